"""What a step waits for: the verdict for each rank, the slow rank that others wait for, and the verdict for the job."""

from __future__ import annotations

import statistics
from enum import Enum
from typing import Mapping, Optional, Sequence

from envtune.profile.readers.steps import UNKNOWN_STAGE, RankSteps
from envtune.records import NamedTuple

# Free time above which the host does not dispatch fast enough: msprof_analyze/advisor, overall analysis.
FREE = 0.10
DOMINANT = 0.50  # a part with that share decides alone ...
LEAD = 0.10  # ... and so does one that is larger than the next by this
GAP = 0.50  # of an iteration: porting guide for MindSpore, "iteration gap about 50 %" (004:605, 620)
WAITING = 0.10  # share of the step that others wait longer than the slow rank
DATA_OF_FREE = 0.50  # share of the free time spent waiting for the data loader
DATA_ALONE = 0.20  # share of the step, if only the data loader's time is known


class Bound(str, Enum):
    """What limits the speed of a step."""

    HOST = "host"
    COMMUNICATION = "communication"
    COMPUTE = "compute"
    DATA = "data"
    BALANCED = "balanced"
    UNKNOWN = "unknown"


class RankVerdict(NamedTuple):
    """The verdict for one rank; `waits` if it waits for another stage of the pipeline."""

    steps: RankSteps
    bound: Bound
    waits: bool = False


class SlowRank(NamedTuple):
    """A rank that the others of its stage wait for: what takes longer there, and how much of a step."""

    rank: str
    bound: Bound  # host: its free time; compute: its kernels
    excess: float  # how much longer it takes than the median of the others, as share of the step
    waiting: tuple[str, ...]
    certain: bool = True  # False if ranks are missing: a slower one may be among them


def rank_verdict(steps: RankSteps, data: Optional[float] = None) -> RankVerdict:
    """Return the verdict for one rank; `data` is the share of its steps spent waiting for the data loader."""
    if steps.mean.total <= 0:
        return RankVerdict(steps, Bound.UNKNOWN)
    if steps.mean.gap is not None:
        return RankVerdict(steps, _iteration_bound(steps))
    free = steps.share("free")
    shares = {
        Bound.HOST: free,
        Bound.COMMUNICATION: steps.share("communication", "bubble"),
        Bound.COMPUTE: steps.share("computing"),
    }
    bound = _largest(shares)
    if data is not None and free >= FREE and bound in (Bound.HOST, Bound.BALANCED) and data >= DATA_OF_FREE * free:
        bound = Bound.DATA
    waits = bound is Bound.COMMUNICATION and steps.share("bubble") > steps.share("communication")
    return RankVerdict(steps, bound, waits)


def _largest(shares: Mapping[Bound, float]) -> Bound:
    (bound, first), (_, second), *_ = sorted(shares.items(), key=lambda item: -item[1])
    if bound is Bound.HOST and first < FREE:
        return Bound.COMPUTE
    return bound if first >= DOMINANT or first - second >= LEAD else Bound.BALANCED


def _iteration_bound(steps: RankSteps) -> Bound:
    """Return the verdict for an iteration of a graph with known gap, forward and backward, and tail."""
    if steps.only_start_up:
        return Bound.UNKNOWN
    gap, body, tail = steps.share("free"), steps.share("computing"), steps.share("tail")
    if gap >= GAP or (gap >= FREE and gap > max(body, tail)):
        return Bound.DATA
    if tail > body:
        return Bound.COMMUNICATION if steps.mean.collective else Bound.COMPUTE
    return Bound.COMPUTE


def slow_rank(ranks: Sequence[RankSteps]) -> Optional[SlowRank]:
    """Return the rank that the others wait for: it waits least in communication, as its own work takes longest."""
    found = [slow for group in _stages(ranks) if (slow := _slow_of(group)) is not None]
    return max(found, key=lambda slow: slow.excess, default=None)


def _stages(ranks: Sequence[RankSteps]) -> list[list[RankSteps]]:
    groups: dict[tuple[str, bool], list[RankSteps]] = {}
    for one in ranks:
        if one.mean.gap is None and one.mean.stage != UNKNOWN_STAGE:
            groups.setdefault((one.mean.stage, one.share("bubble") > 0.01), []).append(one)
    return [group for group in groups.values() if len(group) > 1]


def _slow_of(group: Sequence[RankSteps]) -> Optional[SlowRank]:
    slow = min(group, key=lambda one: one.mean.communication)
    others = [one for one in group if one is not slow]
    step = statistics.fmean(one.mean.total for one in group)
    waiting = statistics.median(one.mean.communication for one in others) - slow.mean.communication
    free = slow.mean.free - statistics.median(one.mean.free for one in others)
    computing = slow.mean.computing - statistics.median(one.mean.computing for one in others)
    if step <= 0 or waiting < WAITING * step or free + computing < waiting / 2:
        return None
    bound = Bound.HOST if free >= computing else Bound.COMPUTE
    return SlowRank(slow.rank, bound, (free + computing) / step, tuple(one.rank for one in others))


def job_verdict(ranks: Sequence[RankVerdict], slow: Optional[SlowRank]) -> Bound:
    """Return the verdict for the whole job: that of the slow rank if there is one, else of the mean of all."""
    if slow is not None:
        return slow.bound
    known = [one for one in ranks if one.bound is not Bound.UNKNOWN]
    if not known:
        return Bound.UNKNOWN
    bounds = {one.bound for one in known}
    if len(bounds) == 1:
        return known[0].bound
    if any(one.steps.mean.gap is not None for one in known):
        return max(sorted(bounds), key=lambda bound: sum(one.bound is bound for one in known))
    counted = {Bound.DATA: Bound.HOST}
    shares = {
        Bound.HOST: statistics.fmean(one.steps.share("free") for one in known),
        Bound.COMMUNICATION: statistics.fmean(one.steps.share("communication", "bubble") for one in known),
        Bound.COMPUTE: statistics.fmean(one.steps.share("computing") for one in known),
    }
    bound = _largest(shares)
    data = sum(one.bound is Bound.DATA for one in known)
    return Bound.DATA if counted.get(Bound.DATA) is bound and 2 * data > len(known) else bound
