"""The content of a launch file, and what was found in it."""

from __future__ import annotations

import re
from typing import Mapping, NamedTuple, Optional

from envtune.job.target import JobEnvironment
from envtune.messages import Text
from envtune.model import Check, Finding, Outcome

PLACE = re.compile(r"(.+):(\d+)$", re.DOTALL)  # file:line, the form of variables' places


class Job(NamedTuple):
    """One process that a launch file starts, with the environment that the file gives it.

    `name` distinguishes the containers of a pod and the like; `place` is the file:line that starts it.
    """

    name: str
    place: str
    environment: JobEnvironment


class Problem(NamedTuple):
    """Why a file, or a line of it, could not be checked."""

    path: str
    line: int  # 0: the file as a whole
    reason: Text


class Jobs(NamedTuple):
    """What one launch file starts; `sourced` are the files that it sources."""

    jobs: tuple[Job, ...] = ()
    problems: tuple[Problem, ...] = ()
    sourced: frozenset[str] = frozenset()


class Suppression(NamedTuple):
    """`# envtune: ignore ENV003 -- reason`: `line` is its own line, `about` the line it applies to (0: the file)."""

    path: str
    line: int
    about: int
    ids: tuple[str, ...]
    reason: str


class Found(NamedTuple):
    """A finding in a launch file; `line` is 0 if it is about the whole file."""

    path: str
    line: int
    job: str
    finding: Finding
    suppression: Optional[Suppression] = None
    covered_by: str = ""  # the check whose finding about the same variable on this line has the same cause

    @property
    def counts(self) -> bool:
        """Whether it counts for the exit status: it is not waived in the file or in the site's policy."""
        return self.suppression is None and self.finding.outcome is not Outcome.WAIVED


class FileResult(NamedTuple):
    """The result for one launch file."""

    path: str
    kind: str
    jobs: int
    found: tuple[Found, ...]
    problems: tuple[Problem, ...]
    unused: tuple[Suppression, ...]  # suppressions without a finding
    passed: tuple[str, ...]  # ids of checks that found nothing wrong
    need_host: tuple[str, ...]  # ids of checks that also depend on the host, so the file alone is not enough


class ScanReport(NamedTuple):
    """One run of `envtune scan`; `checks` are those that were run, in the order of the catalog."""

    files: tuple[FileResult, ...]
    problems: tuple[Problem, ...]  # with the named paths: files and directories that could not be read
    checks: tuple[Check, ...]
    policy: Mapping[str, str] = {}

    @property
    def found(self) -> tuple[Found, ...]:
        """Every finding, by file and line."""
        return tuple(found for file in self.files for found in file.found)

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        """Everything that could not be checked, by file."""
        return (*self.problems, *(problem for file in self.files for problem in file.problems))


def split_place(place: str) -> tuple[str, int]:
    """Return file and line of a place; line 0 if it has none."""
    found = PLACE.fullmatch(place)
    return (found[1], int(found[2])) if found is not None else (place, 0)
