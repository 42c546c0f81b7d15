"""`envtune snapshot`: record this host, so that it can be judged elsewhere, later, or by somebody else."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, Mapping, Optional

import typer

from envtune.cli.options import fail, fail_to_write, language
from envtune.messages import Message

HELP = """Record this host: everything the checks look at, without secrets, as one small file.

Reads only; needs no root. Judge it anywhere with `envtune check --snapshot FILE`. Examples:

\b
  envtune snapshot -o host.tar.gz                     this host and the environment of this shell
  envtune snapshot -o job.tar.gz --pid 4711           a running job
  envtune snapshot -o job.tar.gz --script train.sh    the environment that a launch script sets
  envtune snapshot > host.tar.gz                      to standard output

Values of variables and options that look like keys, tokens or passwords are left out. Exit status: 0, or 2.
"""


def command(
    output: Optional[Path] = typer.Option(None, "--output", "-o", help="The file to write (tar.gz)."),
    force: bool = typer.Option(False, "--force", help="Replace the file when it is there."),
    python: Optional[str] = typer.Option(None, "--python", help="The job's Python."),
    pid: Optional[int] = typer.Option(None, "--pid", help="A running job."),
    script: Optional[str] = typer.Option(None, "--script", help="The job's launch script."),
    env_file: Optional[str] = typer.Option(None, "--env-file", help="The job's variables, KEY=VALUE lines."),
    lang: Optional[str] = typer.Option(None, "--lang", help="en or zh (default: your locale)."),
) -> None:
    from envtune.collector.snapshot import pack, take, write_new
    from envtune.job.recording import record_environment
    from envtune.job.target import TargetOptions

    lang = language(lang)
    output = None if str(output) == "-" else output
    _refuse_target(output, force, lang)
    clock = time.monotonic()
    target: dict[str, Any] = {
        "python": python,
        "pid": pid,
        "script": _absolute(script),
        "env_file": _absolute(env_file),
    }
    options = TargetOptions(python, pid, target["script"], target["env_file"])
    snapshot = take(target, more=lambda recorder: record_environment(recorder, options))
    data = pack(snapshot)
    try:
        if output is None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            write_new(str(output), data, force)
    except OSError as error:
        fail_to_write(str(output or "-"), error, lang)
    seconds = time.monotonic() - clock
    typer.echo(_summary(str(output or "-"), len(data), seconds, unread(snapshot), lang), err=True)


def _absolute(path: Optional[str]) -> Optional[str]:
    return None if path is None else str(Path(path).absolute())


def _refuse_target(output: Optional[Path], force: bool, lang: str) -> None:
    """Say what is wrong with the target before seconds are spent on reading."""
    if output is None:
        if sys.stdout.isatty():
            fail(
                Message("a snapshot is a tar.gz, not for a terminal: add -o FILE"),
                lang,
            )
    elif output.is_dir():
        fail(Message("{output} is a directory: name a file in it", output=output), lang)
    elif os.path.lexists(output) and not force:
        fail(Message("{output} is there already: --force replaces it", output=output), lang)
    elif not output.absolute().parent.is_dir():
        fail(Message("{parent} is not a directory", parent=output.absolute().parent), lang)


def unread(snapshot: Mapping[str, Any]) -> list[str]:
    """The paths, commands and tables that are there and could not be read."""
    found = [
        path for path, entry in snapshot.get("files", {}).items() if isinstance(entry, Mapping) and "error" in entry
    ]
    for row in snapshot.get("commands", ()):
        if row.get("error", "missing") != "missing":
            found.append(" ".join(row["argv"]))
    return found + [name for name, table in snapshot.items() if isinstance(table, Mapping) and set(table) == {"error"}]


def _summary(place: str, size: int, seconds: float, missed: list[str], lang: str) -> str:
    shown = ", ".join(missed[:5]) + (f", +{len(missed) - 5}" if len(missed) > 5 else "")
    if lang == "zh":
        rest = f"；{len(missed)} 项无法读取：{shown}" if missed else ""
        return f"{place}：{size / 1024:.1f} KiB，{seconds:.1f} 秒{rest}"
    rest = f"; {len(missed)} could not be read: {shown}" if missed else ""
    return f"{place}: {size / 1024:.1f} KiB in {seconds:.1f} s{rest}"
