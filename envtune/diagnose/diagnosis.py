"""Check the diagnoses of a log on a host: each with the lines that show it, and what its checks say now."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Mapping, Optional, Sequence

from envtune.diagnose.codes import FoundCode
from envtune.diagnose.confirm import ConfirmingHost
from envtune.diagnose.events.mentions import Mentioned
from envtune.diagnose.logs.files import LogFile
from envtune.diagnose.logs.lines import Line
from envtune.diagnose.logs.own import Looked
from envtune.diagnose.past_fixes import PastFix
from envtune.diagnose.proof import LIKELY, NOT_HERE, PROVED, RULED_OUT, UNCHECKED, Ground, Judgement, judge
from envtune.diagnose.rank import NO_JOB, Candidate, Resolution
from envtune.diagnose.scan import FirstError, Scan
from envtune.diagnose.tables import State
from envtune.messages import Text
from envtune.model import Finding, Outcome
from envtune.ranks.records import Verdict


@dataclass(frozen=True)
class Diagnosis:
    """One known error. `verdict` is one of proof.VERDICTS, `grounds` what decides it, `findings` all that was checked.

    `history` says what the journal adds: fixed (it was the case, and a run of `envtune fix` repaired it), before (fixed
    before this log was written, so the cause is another one), again (fixed once, and broken again), or nothing.
    `elsewhere` names the host that was not checked because the failure was on another one. `fixable`: whether
    `envtune fix` would change something on the checked host; None if that was not determined.
    """

    candidate: Candidate
    verdict: str
    grounds: tuple[Ground, ...] = ()
    findings: tuple[Finding, ...] = ()
    history: str = ""
    past_fix: Optional[PastFix] = None
    elsewhere: str = ""
    fixable: Optional[bool] = None


@dataclass(frozen=True)
class DiagnosisReport:
    """Everything `diagnose` reports. Best diagnosis first; `after` are the lines that follow the first error."""

    inputs: tuple[str, ...]
    diagnoses: tuple[Diagnosis, ...]
    hints: tuple[Diagnosis, ...]
    harmless: tuple[Diagnosis, ...]
    consequences: tuple[Diagnosis, ...]
    first_error: Optional[tuple[LogFile, Line]]
    before: tuple[str, ...]
    unreadable: tuple[tuple[str, Text], ...]
    lines: int  # 0 where they were not counted
    undecided_order: bool = False  # the first two happened on different hosts, nearer than clocks can be trusted
    after: tuple[str, ...] = ()
    size: int = 0  # bytes that were read
    codes: tuple[FoundCode, ...] = ()  # in the order in which they happened
    target: str = ""  # the options that name the job, as they were given
    job: Verdict = NO_JOB  # which of several processes failed first
    mentions: tuple[Mentioned, ...] = ()  # matches that are not events
    states: tuple[State, ...] = ()  # findings of checks in the tables of the logs
    unexplained: bool = False  # no diagnosis, but there are error lines that are not harmless
    looked: tuple[Looked, ...] = ()  # where logs were looked for, if none was named
    catalogs: tuple[str, ...] = ()  # the directories of --catalog
    recording: str = ""  # the snapshot that was asked instead of this host


def report_diagnoses(
    inputs: Sequence[str],
    scan: Scan,
    resolution: Resolution,
    host: Optional[ConfirmingHost],
    codes: tuple[FoundCode, ...] = (),
) -> DiagnosisReport:
    """Return the report on these inputs; without a host nothing is checked."""
    diagnoses = [_asked(candidate, host) for candidate in resolution.diagnoses]
    first = _first_error(scan, resolution)
    return DiagnosisReport(
        tuple(inputs),
        tuple(_ruled_out_last(diagnoses)),
        tuple(Diagnosis(c, UNCHECKED) for c in resolution.hints),
        tuple(Diagnosis(c, UNCHECKED) for c in resolution.harmless),
        tuple(Diagnosis(c, UNCHECKED) for c in resolution.consequences),
        None if first is None else (first.file, first.line),
        () if first is None else first.before,
        tuple(scan.unreadable),
        scan.lines or 0,
        resolution.undecided_order,
        () if first is None else first.after,
        size=scan.size,
        job=resolution.job,
        codes=codes,
        unexplained=not resolution.diagnoses and _has_other_errors(scan, resolution),
    )


def _has_other_errors(scan: Scan, resolution: Resolution) -> bool:
    """Return whether a line looks like an error and is not one that an entry calls harmless."""
    harmless = {(hit.file.path, hit.line.number) for candidate in resolution.harmless for hit in candidate.hits}
    return any((error.file.path, error.line.number) not in harmless for error in scan.errors)


def _first_error(scan: Scan, resolution: Resolution) -> Optional[FirstError]:
    """Return the error of the process that failed first, else the earliest error of all files."""
    root = resolution.job.root
    place = None if root is None or root.note is None else root.note.place
    of_root = (error for error in scan.errors if (error.file.path, error.line.number) == place)
    return next(of_root, scan.first_error)


def _asked(candidate: Candidate, host: Optional[ConfirmingHost]) -> Diagnosis:
    entry = candidate.entry
    if host is None or not (entry.proves or entry.favours or entry.rules_out):
        return Diagnosis(candidate, UNCHECKED)
    if candidate.host and not host.concerns(candidate.host):
        return Diagnosis(candidate, NOT_HERE, elsewhere=host.name)
    judged = judge(entry, candidate.groups, tuple(host.findings(entry.checks)), host)
    history, past_fix = _history(candidate, judged, host.past_fixes())
    return Diagnosis(candidate, *judged, history, past_fix, fixable=host.fixable(judged.findings))


def _history(
    candidate: Candidate, judged: Judgement, past_fixes: Mapping[str, PastFix]
) -> tuple[str, Optional[PastFix]]:
    """Return what the journal adds to the findings, and the recorded fix."""
    findings = judged.findings
    failing = [past_fixes[f.id] for f in findings if f.outcome is Outcome.FAIL and f.id in past_fixes]
    if failing or judged.verdict in (PROVED, LIKELY):
        return ("again", max(failing, key=lambda fix: fix.time)) if failing else ("", None)
    fixed = [past_fixes[f.id] for f in findings if f.outcome is Outcome.FIXED]
    if not fixed:
        return "", None
    latest = max(fixed, key=lambda fix: fix.time)
    return ("before" if _written_after(candidate, latest) else "fixed"), latest


def _written_after(candidate: Candidate, past_fix: PastFix) -> bool:
    """Return whether the log is certainly newer than the run that fixed its cause.

    A line's time has no zone: interpreted as this host's it may be wrong by hours, so the file must be newer, too. The
    output of a command that has just run (it has content and no file) always is newer.
    """
    file, moment = candidate.first.file, candidate.first.line.time
    if file.content is not None and file.path != "-":
        return True
    if moment is None or file.modified <= past_fix.seconds:
        return False
    try:
        return time.mktime((*time.gmtime(moment)[:8], -1)) > past_fix.seconds
    except (OverflowError, ValueError):
        return False


def _ruled_out_last(diagnoses: Sequence[Diagnosis]) -> list[Diagnosis]:
    """Move what this host rules out behind what it proves; otherwise keep the order.

    The log is the stronger evidence (the host may have been repaired, or be another one), so without a proof the order
    stays; a diagnosis whose cause a run of `envtune fix` repaired was right, and keeps its place.
    """
    if not any(d.verdict == PROVED for d in diagnoses):
        return list(diagnoses)
    return sorted(diagnoses, key=lambda d: d.verdict == RULED_OUT and d.history != "fixed")
