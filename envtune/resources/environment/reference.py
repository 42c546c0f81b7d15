"""What is known about the variables of a job (envtune/data/variables.json): readers, ranges, profiles, versions.

Which torch_npu reads a variable is known only for the branches in the table. A version is placed among them by the
compatibility matrix (version -> branch) and judged by its neighbors: if they disagree it is unknown.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, Iterable, Mapping, Optional, Union

from envtune.context import Context
from envtune.messages import Message, Text
from envtune.ranges import checked_int
from envtune.records import NamedTuple
from envtune.resources.npu.devices import ELSEWHERE, runs_elsewhere
from envtune.resources.python.distributions import NONE

TASK_QUEUE_ON = "TASK_QUEUE_ENABLE unset is 1"
TASK_QUEUE_2 = "TASK_QUEUE_ENABLE 2"
_ADVISED = "{name} is advised"  # the profile of a variable is meant for these branches only
_NEWEST = ((99,), (99,))  # `master`, and the upper end of a line of releases


@cache
def table() -> Mapping[str, Any]:
    """Return the shipped table."""
    import pkgutil

    data = pkgutil.get_data("envtune", "data/variables.json")
    loaded: Mapping[str, Any] = json.loads((data or b"{}").decode("utf-8"))
    return loaded


def about(name: str) -> Mapping[str, Any]:
    """Return the row of a variable; empty for one the table does not describe."""
    row: Mapping[str, Any] = table()["variables"].get(name, {})
    return row


def names() -> tuple[str, ...]:
    """Return every described variable."""
    return tuple(table()["variables"])


def path_variables() -> Mapping[str, Mapping[str, Any]]:
    """Return, by name, the variables that name a directory or a file: kind, whether their reader creates it, source."""
    rows: Mapping[str, Mapping[str, Any]] = table()["paths"]
    return rows


def documented() -> frozenset[str]:
    """Return the name of every variable that is documented for jobs on NPUs."""
    further = (name for listed in table()["names"].values() for name in listed)
    return frozenset((*names(), *path_variables(), *further))


def only_torch_npu(name: str) -> bool:
    """Return whether nothing but torch_npu reads the variable."""
    return list(about(name).get("readers", ())) == ["torch_npu"]


Position = tuple[tuple[int, ...], tuple[int, ...]]  # (torch line, release), each comparable


class TorchNpu(NamedTuple):
    """The torch_npu of the job, placed among the branches: between `low` and `high`, both ends included."""

    version: str
    low: Position
    high: Position
    source: str  # where the version was read

    @property
    def words(self) -> str:
        """`torch_npu 2.1.0.post10`."""
        return f"torch_npu {self.version}"


def torch_npu_of(context: Context) -> Union[TorchNpu, Text]:
    """Return the job's torch_npu, or why it is unknown or cannot be placed; NO_TORCH_NPU if none is installed."""
    return context.cached(_torch_npu)


def _torch_npu(context: Context) -> Union[TorchNpu, Text]:
    fact = context.facts["torch_npu"]
    version, source = fact.value, fact.source
    if version is None:
        why = fact.reason or Message("no reason given")
        return Message("torch_npu version unknown: {why}", why=why)
    if version == NONE:
        from envtune.resources.cann.compatibility import released_as

        torch = context.facts["torch"]
        version, source = released_as(torch.value or "") or "", torch.source
        if not version:
            return NOT_HERE if runs_elsewhere(context) else NO_TORCH_NPU
    found = branches_around(version, _branches())
    if found is None:
        return Message("not in the compatibility matrix: torch_npu {version}", version=version)
    return TorchNpu(version, *found, str(source))


NOT_HERE = Message("the job's torch_npu is unknown: {why}", why=ELSEWHERE)
NO_TORCH_NPU = Message("torch_npu is not installed in the job's Python, and nothing else reads the variable")


def _branches() -> Mapping[str, str]:
    """Return {torch_npu version: branch}, as released."""
    from envtune.resources.cann.compatibility import matrix

    rows = (row for row in matrix() if row.package == "torch_npu" and row.relation == "matched")
    return {row.package_version: row.branch_or_tag for row in rows if row.branch_or_tag}


def branches_around(version: str, branches: Mapping[str, str]) -> Optional[tuple[Position, Position]]:
    """Return the two branches a version is between, twice the same if it is a release of one; None if unknown."""
    public = version.partition("+")[0]
    if public in branches:
        exact = position(branches[public])
        return exact and (exact, exact)
    wanted = _version_key(public)
    if wanted is None:
        return None
    line = sorted((key, name) for name in branches for key in [_version_key(name)] if key and key[0] == wanted[0])
    older = [name for key, name in line if key < wanted]
    if not older:
        return None
    newer = [name for key, name in line if key > wanted]
    low = position(branches[older[-1]])
    high = position(branches[newer[0]]) if newer else low and (low[0], _NEWEST[1])
    return (low, high) if low and high else None


def _version_key(version: str) -> Optional[tuple[tuple[int, ...], int, int]]:
    found = re.fullmatch(r"(\d+(?:\.\d+)*)(?:\.?(dev|rc|post)(\d+))?(?:\.dev\d+)?", version)
    if found is None:
        return None
    stage = {"dev": 0, "rc": 1, None: 2, "post": 3}[found[2]]
    return tuple(checked_int(part) for part in found[1].split(".")), stage, checked_int(found[3] or "0")


@cache
def position(branch: str) -> Optional[Position]:
    """Return the torch line and release of a branch: `v2.1.0-6.0.rc3`, `2.0.4.tr5` (torch 1.5.0), `master`."""
    if branch == "master":
        return _NEWEST
    old = re.fullmatch(r"(2\.0\.\d+)\.tr5", branch)
    if old is not None:
        return (1, 5, 0), _release(old[1])
    found = re.fullmatch(r"v(\d+\.\d+\.\d+)-([\w.]+)", branch)
    if found is None:
        return None
    return tuple(checked_int(part) for part in found[1].split(".")), _release(found[2])


def _release(text: str) -> tuple[int, ...]:
    """Return a comparable release: `6.0.rc3` before `6.0.0`, a candidate counting as -100 plus its number."""
    parts: list[int] = []
    for part in text.lower().split("."):
        candidate = re.fullmatch(r"rc(\d+)", part)
        parts.append(checked_int(candidate[1]) - 100 if candidate else checked_int(part) if part.isdecimal() else 0)
    return tuple(parts)


def release_at_least(found: TorchNpu, release: str, torch: str) -> Optional[bool]:
    """Return whether it is `release` or later on a torch line of `torch` or later; None if unknown."""
    wanted = (tuple(checked_int(part) for part in torch.split(".")), _release(release))
    if _reaches(found.low, wanted):
        return True
    return None if _reaches(found.high, wanted) else False


def _reaches(have: Position, want: Position) -> bool:
    return have[0] >= want[0] and have[1] >= want[1]


def reads(found: TorchNpu, variable: str) -> Optional[bool]:
    """Return whether this torch_npu reads the variable; None if unknown."""
    bits = table()["reads"].get(variable)
    return None if bits is None else judged(found, bits)


def read_everywhere(variable: str) -> bool:
    """Return whether every scanned branch reads the variable, so that the version does not matter."""
    bits = str(table()["reads"].get(variable, ""))
    return bool(bits) and set(bits) == {"1"}


def behaves(found: TorchNpu, behaviour: str) -> Optional[bool]:
    """Return whether this torch_npu behaves as `behaviour` says; None if unknown."""
    return judged(found, table()["behaviour"][behaviour]["branches"])


def is_advised(found: TorchNpu, name: str) -> Optional[bool]:
    """Return whether the table's profile of a variable is meant for this torch_npu; None when it cannot be told."""
    return behaves(found, _ADVISED.format(name=name)) if has_advice(name) else True


def has_advice(name: str) -> bool:
    """Return whether the table says for which torch_npu its profile of the variable is meant."""
    return _ADVISED.format(name=name) in table()["behaviour"]


def judged(found: TorchNpu, bits: str) -> Optional[bool]:
    """Return what the branches around a version agree on; `bits` has 0, 1 or ? for each branch of the table."""
    at = {position(branch): bit for branch, bit in zip(table()["branches"], bits)}
    known = [where for where in at if where is not None]
    if found.low == found.high and found.low in at:
        around = {found.low}
    else:
        below = _frontier([p for p in known if _reaches(found.low, p)], down=False)
        above = _frontier([p for p in known if _reaches(p, found.high)], down=True)
        if not below or not above:
            return None
        around = {*below, *above}
    answers = {at[where] for where in around}
    return {"1": True, "0": False}.get(answers.pop()) if len(answers) == 1 else None


def _frontier(points: Iterable[Position], down: bool) -> list[Position]:
    """Return the points nearest to the version: the highest below it, or with `down` the lowest above it."""
    every = list(points)
    if down:
        return [p for p in every if not any(q != p and _reaches(p, q) for q in every)]
    return [p for p in every if not any(q != p and _reaches(q, p) for q in every)]
