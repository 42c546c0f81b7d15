"""The words of every report: severities, outcomes, verdicts, and the line that sums a report up."""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Sequence

from envtune.audit.subjects import subject_text
from envtune.audit.verdict import Counts, Verdict, count_checks, verdict
from envtune.messages import Literal, Message, Text, enumerated, in_context, listed, plural
from envtune.model import Finding, Outcome, Report, Severity
from envtune.report.host_texts import kind_of_machine
from envtune.report.layout import printable

SEVERITIES: Mapping[Severity, Text] = {
    Severity.CRITICAL: Message("critical"),
    Severity.HIGH: Message("high"),
    Severity.MEDIUM: Message("medium"),
    Severity.LOW: Message("low"),
    Severity.INFO: Message("info"),
}
OUTCOMES: Mapping[Outcome, Text] = {
    Outcome.PASS: Message("passed"),
    Outcome.FAIL: Message("failed"),
    Outcome.UNKNOWN: in_context("outcome", "unknown"),
    Outcome.NOTAPPLICABLE: Message("not applicable"),
    Outcome.ERROR: Message("error in envtune"),
    Outcome.WAIVED: Message("waived"),
    Outcome.FIXED: Message("fixed"),
}
NOTE = in_context("row of a report", "note")
VERDICTS: Mapping[Verdict, tuple[Text, str]] = {
    Verdict.READY: (Message("READY"), "green"),
    Verdict.ADVICE: (Message("READY, with advice"), "yellow"),
    Verdict.NOT_READY: (Message("NOT READY"), "red"),
    Verdict.NOT_SURE: (Message("NOT SURE"), "yellow"),
    Verdict.NOTHING_CHECKED: (Message("NOTHING CHECKED"), "yellow"),
    Verdict.NO_NPU: (Message("NO NPU"), "yellow"),
}


def verdict_line(report: Report) -> tuple[Text, str]:
    """Return the line that sums a report up, and its color."""
    reached = verdict(report.findings, report.facts)
    word, colour = VERDICTS[reached]
    text = _conclusion(report, reached)
    return in_context("verdict", "{verdict}  {host}: {text}", verdict=word, host=report.host, text=text), colour


def verdict_lines(report: Report) -> list[Text]:
    """Return the line that sums a report up; where it says nothing of the general checks, what they found."""
    first, _ = verdict_line(report)
    if verdict(report.findings, report.facts) is not Verdict.NO_NPU:
        return [first]
    return [first, Message("Only general checks were run: {problems}", problems=problems_text(report.findings))]


def verdict_colour(report: Report) -> str:
    """Return the color of the verdict."""
    return VERDICTS[verdict(report.findings, report.facts)][1]


MAX_SUBJECTS = 3  # of which the same is said
MAX_IDS = 4  # of checks that are named beside another one


def also_text(ids: Sequence[str]) -> Text:
    """Return what names further checks behind one; nothing where there are none."""
    return Message(" (also {checks})", checks=some(ids, MAX_IDS)) if ids else Literal("")


def few_subjects(subject: str) -> Text:
    """Return the subjects that are joined in one, of many the first only."""
    names: Sequence[str] = printable(subject).split(", ")
    if len(names) <= MAX_SUBJECTS:
        return subject_text(", ".join(names))
    return Message("{names} and {count} more", names=subject_text(names[0]), count=len(names) - 1)


def some(names: Sequence[str], most: int) -> Text:
    """Return at most `most` names in a row, and how many more there are."""
    if len(names) <= most:
        return enumerated(names)
    first = names[: most - 1]
    return Message("{names} and {count} more", names=enumerated(first), count=len(names) - len(first))


def problems_text(findings: Iterable[Finding]) -> Text:
    """Return how many checks found a problem, by severity: the numbers of every format (audit/verdict.py)."""
    found = count_checks(findings).severities
    if not any(found.values()):
        return Message("no problems")
    parts = [
        in_context("severities", "{count} {severity}", count=count, severity=SEVERITIES[severity])
        for severity, count in found.items()
        if count
    ]
    return plural(
        "{count} check failed ({severities})",
        "{count} checks failed ({severities})",
        sum(found.values()),
        severities=enumerated(parts),
    )


def _conclusion(report: Report, reached: Verdict) -> Text:
    """Return what stands behind the verdict in the first line."""
    counts = count_checks(report.findings)
    if reached is Verdict.NOTHING_CHECKED:
        reasons = {finding.reason for finding in report.findings if finding.reason is not None}
        return plural(
            "the selected check does not apply to this host ({why})",
            "none of the {count} selected checks applies to this host ({why})",
            counts.checks,
            why=reasons.pop() if len(reasons) == 1 else kind_of_machine(report.facts),
        )
    if reached is Verdict.NO_NPU:
        return Message("no Ascend NPU, driver or CANN found here")
    if reached is Verdict.READY:
        return _evidence(report, counts)
    if reached is Verdict.NOT_SURE:
        return listed((problems_text(report.findings), *_undecided(counts)))
    return problems_text(report.findings)


def _evidence(report: Report, counts: Counts) -> Text:
    """Return what a host is ready on: what passed, else what is waived, else that there is a note only."""
    if counts.outcomes[Outcome.PASS]:
        return plural("{count} check passed", "{count} checks passed", counts.outcomes[Outcome.PASS])
    if counts.outcomes[Outcome.WAIVED]:
        return plural("{count} check waived", "{count} checks waived", counts.outcomes[Outcome.WAIVED])
    return problems_text(report.findings)


def _undecided(counts: Counts) -> Iterator[Text]:
    """Yield why a host is not surely ready."""
    unknown, errors = counts.outcomes[Outcome.UNKNOWN], counts.outcomes[Outcome.ERROR]
    if errors:
        yield Message("{count} of them with an error in envtune", count=errors)
    if unknown:
        yield plural("{count} check unknown", "{count} checks unknown", unknown)
