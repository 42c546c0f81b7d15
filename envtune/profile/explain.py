"""The verdict and the host: which checks can explain the verdict of a profile, and which of the failing ones do.

A check explains a verdict if what it finds makes that part of a step longer; each row says why.
"""

from __future__ import annotations

from typing import Callable, Iterable, Mapping, Optional, Sequence

from envtune.job.target import TargetOptions
from envtune.model import Finding, Outcome, Report
from envtune.profile.verdict import Bound
from envtune.ranges import single_subjects
from envtune.records import NamedTuple

# Operators are dispatched by one thread of the host: its CPU's frequency, what it writes and waits for, and the queue
# between preparing and submitting an operator (porting guide, "CPU performance" and "common environment variables").
_DISPATCH = (
    *("CPU001", "CPU002", "CPU003", "CPU006", "CPU007", "CPU008"),
    *("ENV001", "ENV002", "ENV003", "ENV004", "ENV005", "ENV006", "ENV013", "ENV015", "ENV101"),
    *("PROC001", "PROC003", "SYS010"),
)
# Samples are read, decoded and resized by processes of the host (porting guide, "Pillow-SIMD", "data loading").
_LOADING = (
    *("CPU001", "CPU002", "CPU003", "CPU006", "CPU007", "CPU008"),
    *("IMG001", "IMG002", "IMG005", "IMG007", "IMG101"),
    *("SYS006", "SYS010", "PROC001"),
)
# Collectives go over the interface and links that the job names, and wait for the slowest rank.
_COLLECTIVES = ("NET101", "NET006", "ENV010", "ENV103", "CANN007")
# Kernels: copies that variables save, fused operators, and an NPU that is not healthy.
_KERNELS = ("ENV007", "ENV008", "ENV009", "PY006", "PY007", "PY010", "CANN007")

EXPLAINS: Mapping[Bound, tuple[str, ...]] = {
    Bound.HOST: _DISPATCH,
    Bound.DATA: _LOADING,
    Bound.COMMUNICATION: _COLLECTIVES,
    Bound.COMPUTE: _KERNELS,
}
# For an observed job the cause is known more precisely: the samples leave fewer checks.
EXPLAINS_CAUSE: Mapping[str, tuple[str, ...]] = {
    "throttled": ("SYS010",),
    "swap": ("SYS005", "SYS010", "PROC001"),
    "affinity": ("SYS010",),
    "oversubscribed": ("SYS010", "PROC001"),
    "main-thread": _DISPATCH,
    "serialized": _DISPATCH,
    "storage": ("SYS006",),
    "workers": tuple(id_ for id_ in _LOADING if id_ != "SYS006"),
    "children": tuple(id_ for id_ in _LOADING if id_ != "SYS006"),
    "loader-thread": tuple(id_ for id_ in _LOADING if id_ != "SYS006"),
}
_IS_WRONG = (Outcome.FAIL, Outcome.ERROR)
Noted = tuple[str, Mapping[str, str]]
CheckHost = Callable[[TargetOptions], Report]


class Explanation(NamedTuple):
    """What the checks of a host say about a verdict."""

    report: Report
    fitting: frozenset[str]  # ids of the checks that can explain the verdict
    job: str  # the file with the noted variables of the finished job; empty if there is none


def can_explain(bound: Bound) -> bool:
    """Return whether any check can explain the verdict."""
    return bound in EXPLAINS


def explain(
    fitting: Iterable[str],
    check: CheckHost,
    target: TargetOptions,
    noted: Optional[Noted] = None,
) -> Explanation:
    """Return what the host says about a verdict that the checks `fitting` can explain.

    `noted` is profiler_metadata.json and the variables in it: if the user named no job, these are what the job had,
    whatever this shell or the recorded one sets.
    """
    report, job = check(target), ""
    if noted is not None and not target.named:
        path, variables = noted
        job = path
        finished = check(TargetOptions(env_file=path))
        report = report._replace(findings=_merged(report.findings, finished.findings, variables))
    return Explanation(report, frozenset(fitting), job)


def _merged(own: Sequence[Finding], finished: Sequence[Finding], variables: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return the findings about the host, with those about the noted variables of the finished job."""
    noted = [
        finding
        for finding in finished
        if finding.outcome in (*_IS_WRONG, Outcome.PASS) and _is_about(finding, variables)
    ]
    kept = [finding for finding in own if not _is_about(finding, variables)]
    return (*kept, *noted)


def _is_about(finding: Finding, variables: Mapping[str, str]) -> bool:
    subjects = set(single_subjects(finding.subject))
    return finding.check.family == "ENV" and bool(subjects) and subjects <= set(variables)
