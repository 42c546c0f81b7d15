"""Where a report goes: `--format FORMAT` to standard output, `--format FORMAT=FILE` to a file, several of one run."""

from __future__ import annotations

import os
import sys
from typing import Callable, NoReturn, Optional, Sequence

from envtune.messages import Message, Text, enumerated
from envtune.records import NamedTuple

PLUGIN = "nagios"


class Output(NamedTuple):
    """One document: its format, and the file it goes to; None is standard output."""

    format: str
    path: Optional[str] = None


def parse_outputs(values: Sequence[str]) -> tuple[Output, ...]:
    """Return what is to be written where. Raises UsageError, NotWrittenError for a file that cannot be written."""
    outputs = tuple(_output(value) for value in values)
    if len(outputs) == 1 and outputs[0].path is None and outputs[0].format != "html":
        return outputs  # nothing more to look at
    _require_distinct(outputs)
    if any(output.format == "html" for output in outputs):
        from envtune.report.formats.html import require_library

        require_library()
    for output in outputs:
        if output.path is not None:
            from envtune.report.formats.files import require_writable

            require_writable(output.path)
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


def is_plugin(outputs: Sequence[Output]) -> bool:
    """Return whether a monitoring system reads standard output, and takes the exit status by its own rules."""
    return any(output.format == PLUGIN and output.path is None for output in outputs)


def write_outputs(outputs: Sequence[Output], render: Callable[[Output], str]) -> tuple[Text, ...]:
    """Write every document; return why some could not be. Files come first: who reads a pipe may leave."""
    problems = []
    for output in sorted(outputs, key=lambda one: one.path is None):
        text = render(output)
        text = text if text.endswith("\n") else text + "\n"
        if output.path is not None:
            problems += _write_file(output.path, text)
        elif output.format == "text":
            sys.stdout.write(text)  # in the encoding of the locale
        else:
            from envtune.report.output import write_bytes

            write_bytes(text.encode("utf-8", "backslashreplace"))
    return tuple(problems)


def _write_file(path: str, text: str) -> list[Text]:
    from envtune.report.formats.files import NotWrittenError, write_file

    try:
        write_file(path, text.encode("utf-8", "backslashreplace"))
    except NotWrittenError as error:
        return [error.message]
    return []
