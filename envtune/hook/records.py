"""The data of hooks: a verdict about the host, a node as shown by Slurm, and the drain set by a hook."""

from __future__ import annotations

import calendar
import re
import time
from typing import Any, Iterable, Mapping, Optional

from envtune.records import NamedTuple

SEVERITIES = ("info", "low", "medium", "high", "critical")  # like model.Severity, which takes milliseconds to import
DECIDED = ("pass", "fixed", "waived", "note")  # outcomes that clear the reason for which a node was drained
PREFIX = "envtune:"
DEFAULT_FAIL_ON, NEVER = "high", "none"
_MOST_NAMED = 10  # checks in the reason of a drain; Slurm shows it in one column
_ATTEMPT = 120.0  # seconds for clock differences between host and slurmctld plus the duration of a hook
_ID = re.compile("[A-Za-z0-9_-]{1,40}")


class HookError(Exception):
    """What a hook could not do; the text is complete and in English."""


class Outcome(NamedTuple):
    """The overall outcome of one check."""

    outcome: str
    severity: str


class Choice(NamedTuple):
    """Which checks of a verdict count: ids, or prefixes of ids."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def includes(self, name: str) -> bool:
        """Return whether this check counts."""
        return (not self.select or name.startswith(self.select)) and not name.startswith(self.ignore or ("\0",))


ALL = Choice()


class Verdict(NamedTuple):
    """The outcomes of the checks that were run. `complete`: none was left out because time was up.

    `fail_on` is the severity from which a failed check is a problem; none for never.
    """

    outcomes: Mapping[str, Outcome]
    complete: bool
    written: float = 0.0  # seconds since the epoch
    boot: str = ""  # boot_id of the kernel
    fail_on: str = DEFAULT_FAIL_ON
    npu: bool = True  # False: no trace of Ascend here, only general checks were run

    def problems(self, threshold: str = "", choice: Choice = ALL) -> tuple[str, ...]:
        """Return the failed checks of at least this severity, or that of the verdict, the worst first."""
        threshold = threshold or self.fail_on
        if threshold == NEVER:
            return ()
        least = SEVERITIES.index(threshold)
        found = [
            (-SEVERITIES.index(one.severity), name)
            for name, one in self.outcomes.items()
            if one.outcome == "fail" and SEVERITIES.index(one.severity) >= least and choice.includes(name)
        ]
        return tuple(name for _, name in sorted(found))

    @property
    def is_decided(self) -> bool:
        """Whether any check decided something about whether the host can train."""
        return self.npu and any(one.outcome in ("fail", *DECIDED) for one in self.outcomes.values())


class Node(NamedTuple):
    """A node: its states without the marks added by sinfo, the reason, and who set it when (`root@TIME`, in UTC)."""

    states: frozenset[str]
    reason: str = ""
    stamp: str = ""


class Drain(NamedTuple):
    """A drain set by a hook. Without a stamp it is unknown whether the reason is still the hook's."""

    node: str
    reason: str
    checks: tuple[str, ...]
    stamp: str = ""
    began: float = 0.0  # seconds since the epoch

    def with_stamp_of(self, node: Node) -> Drain:
        """Return it with the stamp of the node, if the hook was killed before it could read it.

        Slurm's time must be that of the attempt, otherwise it is somebody else's drain with the same reason.
        """
        if self.stamp or node.reason != self.reason:
            return self
        given = _seconds(node.stamp.partition("@")[2])
        return self._replace(stamp=node.stamp) if abs(given - self.began) <= _ATTEMPT else self

    def is_of(self, node: Node) -> bool:
        """Return whether the node is drained by this drain, and nobody has drained it or changed the reason since."""
        return bool(self.stamp) and (self.reason, self.stamp) == (node.reason, node.stamp)


def reason_for(problems: Iterable[str]) -> str:
    """Return the reason of a drain: `envtune: NET003,CANN007`."""
    named = [name for name in problems if _ID.fullmatch(name)]
    more = len(named) - _MOST_NAMED
    return f"{PREFIX} {','.join(named[:_MOST_NAMED])}" + (f" and {more} more" if more > 0 else "")


def verdict_data(verdict: Verdict) -> Mapping[str, Any]:
    """Return the verdict in its stored form."""
    outcomes = {name: [*one] for name, one in verdict.outcomes.items()}
    return {**verdict._asdict(), "outcomes": outcomes, "schema": "envtune.verdict/1"}


def verdict_from(data: Any) -> Verdict:
    """Return a stored verdict. Raises ValueError if invalid."""
    _require(isinstance(data, dict) and data.get("schema") == "envtune.verdict/1", "no verdict")
    outcomes, complete, written, boot = (data.get(key) for key in ("outcomes", "complete", "written", "boot"))
    _require(isinstance(data.get("npu"), bool), "no npu")
    _require(data.get("fail_on") in (*SEVERITIES, NEVER), "no severity")
    _require(isinstance(outcomes, dict) and isinstance(complete, bool) and isinstance(boot, str), "incomplete")
    _require(isinstance(written, (int, float)) and not isinstance(written, bool), "no time")
    read = {}
    for name, row in outcomes.items():
        _require(isinstance(row, list) and len(row) == 2 and row[1] in SEVERITIES, "no outcome: " + name[:40])
        read[name] = Outcome(str(row[0]), row[1])
    return Verdict(read, complete, float(written), boot, data["fail_on"], data["npu"])


def drain_data(drain: Drain) -> Mapping[str, Any]:
    """Return the drain in its stored form."""
    return {**drain._asdict(), "schema": "envtune.drain/1"}


def drain_from(data: Any) -> Drain:
    """Return a stored drain. Raises ValueError if invalid."""
    _require(isinstance(data, dict) and data.get("schema") == "envtune.drain/1", "no drain")
    texts = [data.get(key) for key in ("node", "reason", "stamp")]
    checks = data.get("checks")
    _require(all(isinstance(text, str) for text in texts) and isinstance(checks, list), "incomplete")
    began = data.get("began")
    _require(isinstance(began, (int, float)), "no time")
    return Drain(str(texts[0]), str(texts[1]), tuple(map(str, checks)), str(texts[2]), float(began))


def _seconds(text: str) -> float:
    """Return the seconds since the epoch of a UTC time printed by Slurm; 0 for other text."""
    try:
        return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return 0.0


def _require(holds: bool, why: str) -> None:
    if not holds:
        raise ValueError(why)


def age_problem(verdict: Verdict, now: float, boot: str, most: float) -> Optional[str]:
    """Return why a verdict is no longer valid; None if it is."""
    if verdict.boot != boot:
        return "the last verdict is from before the host was started"
    age = now - verdict.written
    if age < -60:
        return "the last verdict has a time in the future"
    return f"the last verdict is {age:.0f} s old" if age > most else None
