"""What a shell script gives each process that it starts, using the shell script interpreter.

Unlike the environment of `--script`, which is what all lines that start the job have in common, every such line is a
separate job here; what the script does not mention is left to its caller.
"""

from __future__ import annotations

import posixpath
from typing import Mapping, Optional, Sequence

from envtune.errors import Elsewhere, HostError
from envtune.host import Host, realpath
from envtune.job.target import JobEnvironment
from envtune.messages import N_, Message, Text
from envtune.model import FileStat
from envtune.records import NamedTuple
from envtune.scan.model import Job, Jobs, Problem, split_place
from envtune.shell.budget import Budget
from envtune.shell.expansion import Value
from envtune.shell.machine import Machine
from envtune.shell.persistent import PersistentMap
from envtune.shell.script import execute_script
from envtune.shell.state import Launches, LeftOpen, State, Variable

MAX_LAUNCHES = 64  # lines of one script that start a job with a different environment than the line before
_SCRIPTS = (".sh", ".bash", ".sbatch", ".slurm")


class FilesBelow:
    """The files that a scanned script may refer to: those below a directory; all others are on the job's host.

    What is missing may exist where the script runs. Methods raise only HostErrors.
    """

    uname: Mapping[str, str] = {}

    def __init__(self, host: Host, root: str) -> None:
        self._host, self._root = host, root

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a file."""
        return self._host.read_bytes(self._inside(path))

    def stat(self, path: str, follow: bool = True) -> FileStat:
        """Return the status of `path`."""
        return self._host.stat(self._inside(path), follow)

    def readlink(self, path: str) -> str:
        """Return the target of a symbolic link."""
        return self._host.readlink(self._inside(path))

    def _inside(self, path: str) -> str:
        """Return the path if it and what it links to are below the root; raises Elsewhere."""
        if path != "/" and self._root.startswith(path.rstrip("/") + "/"):
            return path  # a parent directory, which `readlink -f` examines for links
        if self._is_below(path):
            try:
                if self._is_below(realpath(self._host, path)):
                    return path
            except HostError:
                pass
        raise Elsewhere(path)

    def _is_below(self, path: str) -> bool:
        return path == self._root or path.startswith(self._root.rstrip("/") + "/")


class NoFiles:
    """The files of a container image, none of which is known."""

    uname: Mapping[str, str] = {}

    def read_bytes(self, path: str) -> bytes:
        """Raise Elsewhere."""
        raise Elsewhere(path)

    def stat(self, path: str, follow: bool = True) -> FileStat:
        """Raise Elsewhere."""
        raise Elsewhere(path)

    def readlink(self, path: str) -> str:
        """Raise Elsewhere."""
        raise Elsewhere(path)


class Line(NamedTuple):
    """One line that starts a job, and what it gives the job."""

    place: str
    variables: PersistentMap[Variable]
    default: Optional[Text]
    reason: Optional[Text] = None  # why the job does not get what is exported


class EachLaunch(Launches):
    """Every line that starts a job, with what is exported there."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Line] = []

    def __bool__(self) -> bool:
        return bool(self.lines)

    def add(self, place: str, state: State) -> None:
        """Record a line that starts the job with what is exported in `state`."""
        self._take(Line(place, state.variables.copy(), state.unknown_by_default))

    def add_outside(self, place: str, reason: Text, state: State, inside: State) -> None:
        """Record a line that starts the job with `inside` instead of what is exported in `state`."""
        self._take(Line(place, state.variables.copy(), state.unknown_by_default, reason))
        self._take(Line(place, inside.variables.copy(), state.unknown_by_default))

    def add_unread(self, place: str, reason: Text, state: State) -> None:
        """Record a line that starts a script which cannot be read: what this script gives it is known anyway."""
        self.add(place, state)

    def _take(self, line: Line) -> None:
        last = self.lines[-1] if self.lines else None
        if last is not None and last.reason == line.reason and not last.variables.changed(line.variables):
            return
        if len(self.lines) < MAX_LAUNCHES:
            self.lines.append(line)


class Start(NamedTuple):
    """What a script is started with, apart from what is left open: values (a Text: unknown, and why) and places."""

    values: Mapping[str, Value] = {}
    places: Mapping[str, str] = {}
    default: Optional[Text] = None  # None: left open


NOTHING = Start()


def script_jobs(
    path: str,
    text: str,
    machine: Machine,
    start: Start = NOTHING,
    name: str = "",
    line: int = 0,
    cwd: Optional[str] = None,
) -> Jobs:
    """Return the jobs of a script in the file at `path`, with the line numbers of the file.

    With `line`, all of the text is in that line.
    """
    default = start.default or LeftOpen(N_("the file does not set it"))
    state = State.started(start.values, start.places, default, posixpath.dirname(path) if cwd is None else cwd)
    launches = EachLaunch()
    result = execute_script(machine, realpath, path, text, state, Budget(), launches, line)
    if not launches:  # it is too expensive to read
        place, number = split_place(result.launch.place)
        return Jobs((), (Problem(place, number, result.launch.unknown_by_default or UNREADABLE),))
    jobs = (Job(name, one.place, _environment(path, one)) for one in launches.lines)
    return Jobs(tuple(jobs), (), result.sourced)


UNREADABLE = Message("the script is too complex to analyze")


def _environment(path: str, line: Line) -> JobEnvironment:
    """Return what a job gets: variables are known, unknown for a reason, or left open."""
    known: dict[str, str] = {}
    unknown: dict[str, Text] = {}
    places: dict[str, str] = {}
    for name, (value, exported, place) in sorted(line.variables.items()):
        if value is None or not exported or isinstance(value, LeftOpen):
            continue
        if place:
            places[name] = place
        if line.reason is not None:
            unknown[name] = line.reason
        elif isinstance(value, str):
            known[name] = value
        else:  # what is left open is recognized by the identity of its reason
            unknown[name] = Message("{reason}", reason=value) if value is line.default else value
    return JobEnvironment(
        known, path, unknown=unknown, unknown_by_default=line.default, places=places, left_open=line.default is not None
    )


def joined_jobs(parts: Sequence[Jobs]) -> Jobs:
    """Return what several parts of a file start."""
    jobs = tuple(job for part in parts for job in part.jobs)
    problems = tuple(problem for part in parts for problem in part.problems)
    return Jobs(jobs, problems, frozenset(path for part in parts for path in part.sourced))
