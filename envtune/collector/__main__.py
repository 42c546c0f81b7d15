#!/usr/bin/python3 -I
"""Record this host for envtune: `python3 -I collector.py > host.tar.gz`.

One file, assembled from envtune/collector by envtune/assemble.py: it needs only Python 3.6 or newer and its standard
library, and writes nothing but its output (`envtune.snapshot/1`, docs/snapshot.md). The same on another host: `ssh HOST
python3 -I - < collector.py > host.tar.gz`.
"""

import os
import sys
from typing import Any, Sequence

from ..trust.characters import visible
from .frame import find_job, framed, packed_for_frame
from .machine import Machine
from .snapshot import pack, take, write_new


def main(arguments: Sequence[str], program: str = "collector.py") -> int:
    """Write a snapshot of this host to standard output, or to the file of -o; return the exit status."""
    options = _options(arguments, program)
    if options.output is None and (sys.stdout is None or sys.stdout.isatty()):
        where = "there is no standard output" if sys.stdout is None else "a snapshot is a tar.gz, not for a terminal"
        _say("%s: %s: add -o FILE or > FILE" % (program, where))
        return 2
    target = {
        "python": options.python,
        "pid": options.pid,
        "script": options.script and os.path.abspath(options.script),
        "env_file": options.env_file and os.path.abspath(options.env_file),
    }
    machine = Machine(os.path.abspath(options.root) if options.root else "")
    if options.job is not None:
        rows = machine.processes() if machine.runs else []
        target["job"] = options.job
        target["pid"] = find_job(options.job, rows if isinstance(rows, list) else [])
    snapshot = take(target, machine)
    data = framed(packed_for_frame(snapshot)) if options.frame else pack(snapshot)
    try:
        if options.output is None:
            _write_all(sys.stdout.fileno(), data)
        else:
            write_new(options.output, data, options.force)
    except BrokenPipeError:  # the reader has closed the pipe
        return 141
    except OSError as error:
        _say("%s: %s: %s" % (program, options.output or "standard output", error.strerror or error))
        return 2
    return 0


def _write_all(descriptor: int, data: bytes) -> None:
    """Write without a buffer: Python would flush a buffer again at exit and set an exit status of its own."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _say(words: str) -> None:
    line = visible(words) + "\n"
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(line)
    except (OSError, ValueError):  # closed
        pass


def _options(arguments: Sequence[str], program: str) -> Any:
    import argparse

    class Parser(argparse.ArgumentParser):
        """Escapes what it quotes from the command line, so that a terminal does not interpret it."""

        def error(self, message: str) -> Any:
            super().error(visible(message))

    parser = Parser(
        prog=program,
        description="Record this host for envtune: what is read is what envtune's checks look at, without secrets. "
        "Changes nothing, needs no root and nothing installed.",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE (not to standard output)")
    parser.add_argument("--force", action="store_true", help="replace FILE when it is there")
    parser.add_argument("--python", metavar="PATH", help="the job's Python")
    parser.add_argument("--pid", type=int, metavar="N", help="a running job")
    parser.add_argument("--script", metavar="FILE", help="the job's launch script")
    parser.add_argument("--env-file", metavar="FILE", help="the job's variables, KEY=VALUE lines")
    parser.add_argument("--job", metavar="NAME", help="a running job: the name of its process, program or script")
    parser.add_argument("--frame", action="store_true", help="write text of at most 48 KiB (docs/fleet.md)")
    parser.add_argument("--root", metavar="DIR", default="", help="record the files below DIR, as if it were /")
    parser.add_argument("--lang", choices=("en", "zh"), help=argparse.SUPPRESS)  # as `envtune snapshot`; English only
    options = parser.parse_args(list(arguments))
    if options.output == "-":
        options.output = None
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
