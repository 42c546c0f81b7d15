"""A resolution and this host -> the answer: each diagnosis with its proof, and what the confirming checks say now."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Mapping, Optional, Protocol, Sequence

from envtune.diagnose.logs.files import LogFile
from envtune.diagnose.logs.lines import Line
from envtune.diagnose.past_fixes import Cure
from envtune.diagnose.rank import Candidate, Resolution
from envtune.diagnose.scan import Scan
from envtune.model import Finding, Outcome


class Witness(Protocol):
    """The host that is asked whether a cause is so: this one, or a recorded one."""

    @property
    def name(self) -> str:
        """Its name."""

    def findings(self, ids: Sequence[str]) -> Sequence[Finding]:
        """What these checks say; `fixed` for what a run of ours cured."""

    def cures(self) -> Mapping[str, Cure]:
        """What our journal says was cured there, by check."""

    def concerns(self, host: str) -> bool:
        """Whether a failure on `host` can be judged there."""

    def environment(self) -> str:
        """The variables of the job that was named, a NAME=value line each; empty where none was."""


@dataclass(frozen=True)
class Diagnosis:
    """One entry of the answer. `verdict`: confirmed, refuted, unknown, not_checked; `confirm`: the findings behind.

    `history` says what the journal adds: fixed (it was so, and a run of ours cured it), before (cured before this log
    was written, so the cause is another), again (cured once, and so again), or nothing. `elsewhere` names the host that
    was not asked because the failure was on another one.
    """

    candidate: Candidate
    verdict: str
    confirm: tuple[Finding, ...] = ()
    history: str = ""
    cure: Optional[Cure] = None
    elsewhere: str = ""


@dataclass(frozen=True)
class Answer:
    """Everything `diagnose` has to say. Best diagnosis first; `after` are the lines that follow the first error."""

    inputs: tuple[str, ...]
    diagnoses: tuple[Diagnosis, ...]
    hints: tuple[Diagnosis, ...]
    harmless: tuple[Diagnosis, ...]
    consequences: tuple[Diagnosis, ...]
    first_error: Optional[tuple[LogFile, Line]]
    before: tuple[str, ...]
    unreadable: tuple[tuple[str, str], ...]
    lines: int  # 0 where they were not counted
    close: bool = False  # the first two happened on different hosts, nearer than clocks can be trusted
    after: tuple[str, ...] = ()
    size: int = 0  # bytes that were read
    target: str = ""  # the options that name the job, as they were given


def answer(inputs: Sequence[str], found: Scan, resolution: Resolution, confirm: Optional[Witness]) -> Answer:
    """Put the answer together; `confirm` None leaves every verdict at not_checked."""
    diagnoses = [_diagnosis(c, confirm) for c in resolution.diagnoses]
    first = found.first_error
    return Answer(
        tuple(inputs),
        tuple(_refuted_last(diagnoses)),
        tuple(Diagnosis(c, "not_checked") for c in resolution.hints),
        tuple(Diagnosis(c, "not_checked") for c in resolution.harmless),
        tuple(Diagnosis(c, "not_checked") for c in resolution.consequences),
        None if first is None else (first.file, first.line),
        () if first is None else first.before,
        tuple(found.unreadable),
        found.lines or 0,
        resolution.close,
        () if first is None else first.after,
        size=found.size,
    )


def _diagnosis(candidate: Candidate, witness: Optional[Witness]) -> Diagnosis:
    ids = candidate.entry.confirm
    if witness is None or not ids:
        return Diagnosis(candidate, "not_checked")
    if candidate.host and not witness.concerns(candidate.host):
        return Diagnosis(candidate, "not_checked", elsewhere=witness.name)
    findings = tuple(witness.findings(ids))
    history, cure = _history(candidate, findings, witness.cures())
    return Diagnosis(candidate, verdict(findings, candidate.entry.side), findings, history, cure)


def _history(
    candidate: Candidate, findings: Sequence[Finding], known: Mapping[str, Cure]
) -> tuple[str, Optional[Cure]]:
    """What the journal adds to the findings, and the run it speaks of."""
    failing = [known[f.id] for f in findings if f.outcome is Outcome.FAIL and f.id in known]
    if failing or any(f.outcome is Outcome.FAIL for f in findings):
        return ("again", max(failing, key=lambda c: c.time)) if failing else ("", None)
    fixed = [known[f.id] for f in findings if f.outcome is Outcome.FIXED]
    if not fixed:
        return "", None
    cure = max(fixed, key=lambda c: c.time)
    return ("before" if _written_after(candidate, cure) else "fixed"), cure


def _written_after(candidate: Candidate, cure: Cure) -> bool:
    """Whether the log is certainly younger than the run that cured its cause.

    A line's time has no zone: taken as this host's it may err by hours, so the file must be younger, too. Output of a
    command that was run just now (it has content and no file) always is.
    """
    file, moment = candidate.first.file, candidate.first.line.time
    if file.content is not None and file.path != "-":
        return True
    if moment is None or file.modified <= cure.seconds:
        return False
    try:
        return time.mktime((*time.gmtime(moment)[:8], -1)) > cure.seconds
    except (OverflowError, ValueError):
        return False


def verdict(findings: Sequence[Finding], side: str = "host") -> str:
    """confirmed: a check fails; refuted: all that apply pass; unknown: neither.

    Only a cause that lies in the host can be refuted by looking at the host: the script, another host or the hardware
    may be at fault while every check here passes.
    """
    outcomes = {finding.outcome for finding in findings}
    if Outcome.FAIL in outcomes:
        return "confirmed"
    good = {Outcome.PASS, Outcome.FIXED}
    if side == "host" and outcomes & good and outcomes <= good | {Outcome.NOTAPPLICABLE}:
        return "refuted"
    return "unknown"


def _refuted_last(diagnoses: Sequence[Diagnosis]) -> list[Diagnosis]:
    """A diagnosis that this host refutes does not stand before one that it confirms; otherwise the order stays.

    The log is the stronger witness (the host may have been repaired, or be another one), so a refuted diagnosis gives
    way only to a confirmed one; one whose cause a run of ours cured was no error of the log, and keeps its place.
    """
    if not any(d.verdict == "confirmed" for d in diagnoses):
        return list(diagnoses)
    return sorted(diagnoses, key=lambda d: d.verdict == "refuted" and d.history != "fixed")
