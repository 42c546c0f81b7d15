"""A resolution and this host -> the answer: each diagnosis with its proof, and what the confirming checks say now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Mapping, Optional, Sequence

from envtune.diagnose.lines import Line
from envtune.diagnose.resolve import Candidate, Resolution
from envtune.diagnose.scan import Scan
from envtune.diagnose.sources import LogFile
from envtune.model import Finding, Outcome

Confirm = Callable[[Sequence[str]], Sequence[Finding]]  # check ids -> their findings on the host that is judged


@dataclass(frozen=True)
class Diagnosis:
    """One entry of the answer. `verdict`: confirmed, refuted, unknown, not_checked; `confirm`: the findings behind."""

    candidate: Candidate
    verdict: str
    confirm: tuple[Finding, ...]


@dataclass(frozen=True)
class Answer:
    """Everything `diagnose` has to say. Best diagnosis first."""

    inputs: tuple[str, ...]
    diagnoses: tuple[Diagnosis, ...]
    hints: tuple[Diagnosis, ...]
    harmless: tuple[Diagnosis, ...]
    consequences: tuple[Diagnosis, ...]
    first_error: Optional[tuple[LogFile, Line]]
    before: tuple[str, ...]
    unreadable: tuple[tuple[str, str], ...]
    lines: int


def answer(inputs: Sequence[str], found: Scan, resolution: Resolution, confirm: Optional[Confirm]) -> Answer:
    """Put the answer together; `confirm` None leaves every verdict at not_checked."""
    diagnoses = [_diagnosis(c, confirm) for c in resolution.diagnoses]
    return Answer(
        tuple(inputs),
        tuple(_refuted_last(diagnoses)),
        tuple(_diagnosis(c, None) for c in resolution.hints),
        tuple(_diagnosis(c, None) for c in resolution.harmless),
        tuple(_diagnosis(c, None) for c in resolution.consequences),
        found.first_error,
        found.before,
        tuple(found.unreadable),
        found.lines,
    )


def _diagnosis(candidate: Candidate, confirm: Optional[Confirm]) -> Diagnosis:
    ids = candidate.entry.confirm
    if confirm is None or not ids:
        return Diagnosis(candidate, "not_checked", ())
    findings = tuple(confirm(ids))
    return Diagnosis(candidate, verdict(findings, candidate.entry.side), findings)


def verdict(findings: Sequence[Finding], side: str = "host") -> str:
    """confirmed: a check fails; refuted: all that apply pass; unknown: neither.

    Only a cause that lies in the host can be refuted by looking at the host: the script, another host or the hardware
    may be at fault while every check here passes.
    """
    if side != "host":
        return "confirmed" if any(f.outcome is Outcome.FAIL for f in findings) else "unknown"
    outcomes = {finding.outcome for finding in findings}
    if Outcome.FAIL in outcomes:
        return "confirmed"
    if outcomes and outcomes <= {Outcome.PASS, Outcome.NOTAPPLICABLE} and Outcome.PASS in outcomes:
        return "refuted"
    return "unknown"


def _refuted_last(diagnoses: Sequence[Diagnosis]) -> list[Diagnosis]:
    """A diagnosis that this host refutes does not stand before one that it confirms; otherwise the order stays.

    The log is the stronger witness (the host may have been repaired, or be another one), so a refuted diagnosis gives
    way only to a confirmed one.
    """
    if not any(d.verdict == "confirmed" for d in diagnoses):
        return list(diagnoses)
    return sorted(diagnoses, key=lambda d: d.verdict == "refuted")


def where(candidate: Candidate) -> Mapping[str, object]:
    """Which rank on which host, as far as the inputs say."""
    return {"rank": candidate.rank, "host": candidate.host or None}
