"""Where a report goes: `--format FORMAT` to standard output, `--format FORMAT=FILE` to a file, several of one run."""

from __future__ import annotations

import os
from typing import Callable, NoReturn, Sequence

from envtune.messages import Message, Text, enumerated
from envtune.report.output import Output, print_text, with_end


def parse_outputs(values: Sequence[str]) -> tuple[Output, ...]:
    """Return what is to be written where. Raises UsageError, also for a file that cannot be written."""
    outputs = tuple(_output(value) for value in values)
    _require_distinct(outputs)
    if any(output.format == "html" for output in outputs):
        from envtune.errors import require_package

        require_package("jinja2")
    for output in outputs:
        if output.path is not None:
            from envtune.report.formats.files import NotWrittenError, require_writable

            try:
                require_writable(output.path)
            except NotWrittenError as error:
                place = f"--format {output.format}={output.path}"
                _refuse(Message("{place}: {reason}", place=place, reason=error.reason))
    return outputs


def _output(value: str) -> Output:
    name, equals, path = value.partition("=")
    if equals and not path:
        _refuse(Message("--format {value}: name a file after the equals sign", value=value))
    return Output(name, path if equals and path != "-" else None)


def _require_distinct(outputs: Sequence[Output]) -> None:
    printed = [output.format for output in outputs if output.path is None]
    if len(printed) > 1:
        _refuse(
            Message(
                "--format: only one of {names} can go to standard output; name a file for the others, as {example}",
                names=enumerated(printed),
                example=f"--format {printed[-1]}=FILE",
            )
        )
    paths = [os.path.realpath(output.path) for output in outputs if output.path is not None]
    for path in paths:
        if paths.count(path) > 1:
            _refuse(Message("--format: {path} is named more than once", path=path))


def _refuse(message: Text) -> NoReturn:
    from envtune.errors import UsageError

    raise UsageError(message)


def write_outputs(outputs: Sequence[Output], render: Callable[[Output], str]) -> tuple[Text, ...]:
    """Write every document; return why some could not be. Files come first: who reads a pipe may leave."""
    problems = []
    for output in sorted(outputs, key=lambda one: one.path is None):
        if output.path is None:
            print_text(output, render(output))
        else:
            problems += _write_file(output.path, render(output))
    return tuple(problems)


def _write_file(path: str, text: str) -> list[Text]:
    from envtune.report.formats.files import NotWrittenError, write_file

    try:
        write_file(path, with_end(text).encode("utf-8", "backslashreplace"))
    except NotWrittenError as error:
        return [error.message]
    return []
