"""Which problem of a report gets how many lines of a screen: the worst first, and each at least its id."""

from __future__ import annotations

from typing import Callable, Sequence

from envtune.model import Severity
from envtune.records import NamedTuple
from envtune.report.problems import Problem


class Share(NamedTuple):
    """How much is said of a problem; one without lines shares a row with others of its severity."""

    lines: int = 0
    remedy: int = 0  # 0 none, BRIEF, FULL


class Unknown(NamedTuple):
    """How much is said of what is unknown."""

    reasons: int  # that are shown one by one
    lines: int  # of each


class Room(NamedTuple):
    """How much is said of everything."""

    shares: tuple[Share, ...]
    unknown: Unknown


class _Step(NamedTuple):
    """What the problems of some severities get next, where it fits."""

    severities: tuple[Severity, ...]
    share: Share


BRIEF, FULL = 1, 2
_CRITICAL, _HIGH, _MEDIUM = (Severity.CRITICAL,), (Severity.HIGH,), (Severity.MEDIUM,)
_LOW = (Severity.LOW, Severity.INFO)
_LEAST = Unknown(1, 1)
# What was found comes before what repairs it, and a line for each problem before a second one for a lesser problem.
_STEPS: tuple[_Step | Unknown, ...] = (
    _Step(_CRITICAL, Share(2, BRIEF)),
    _Step(_HIGH, Share(1)),
    _Step(_HIGH, Share(1, BRIEF)),
    _Step(_MEDIUM, Share(1)),
    _Step(_CRITICAL, Share(3, BRIEF)),
    _Step(_HIGH, Share(2, BRIEF)),
    _Step(_LOW, Share(1)),
    _Step(_MEDIUM, Share(2)),
    _Step(_CRITICAL, Share(4, FULL)),
    _Step(_HIGH, Share(2, FULL)),
    _Step(_HIGH, Share(3, FULL)),
    _Step(_MEDIUM, Share(2, BRIEF)),
    _Step(_LOW, Share(2)),
    Unknown(2, 1),
    Unknown(3, 2),
    _Step(_MEDIUM, Share(3, FULL)),
    _Step(_LOW, Share(2, BRIEF)),
    _Step(_LOW, Share(3, FULL)),
    _Step((*_CRITICAL, *_HIGH), Share(6, FULL)),
    _Step((*_MEDIUM, *_LOW), Share(4, FULL)),
    Unknown(8, 3),
)


def share_out(found: Sequence[Problem], screen: int, height: Callable[[Room], int]) -> Room:
    """Return the room with which the report takes at most `screen` lines, and the worst problems say most."""
    # what the site's policy asks for is first among its severity: no title of ours says what that is
    room = Room((Share(),) * len(found), _LEAST)
    for step in _STEPS:
        if isinstance(step, Unknown):
            wider = room._replace(unknown=step)
            room = wider if height(wider) <= screen else room
            continue
        for number, problem in sorted(enumerate(found), key=lambda row: not row[1].check.by_policy):
            if _least_severity(problem) in step.severities:
                shares = (*room.shares[:number], _larger(room.shares[number], step.share), *room.shares[number + 1 :])
                wider = room._replace(shares=shares)
                room = wider if wider == room or height(wider) <= screen else room
    return room


def _least_severity(problem: Problem) -> Severity:
    """Return the severity by which the problem gets room: what a site asks for itself is not left to -v."""
    is_lesser = problem.check.by_policy and problem.severity in _LOW
    return Severity.MEDIUM if is_lesser else problem.severity


def _larger(one: Share, other: Share) -> Share:
    return Share(max(one.lines, other.lines), max(one.remedy, other.remedy))
