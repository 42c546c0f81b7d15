"""The part of a text report about the site's policy: the file, what it waives, and waivers that have expired."""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Optional, Sequence

from envtune.audit.subjects import subject_text
from envtune.messages import Literal, Message, Text, enumerated
from envtune.model import Finding, Outcome, Report, Waiver
from envtune.ranges import join_subjects
from envtune.report.layout import display_width, indent, pad, printable
from envtune.report.redaction import redacted
from envtune.report.words import few_subjects

MAX_WAIVED = 2  # waivers that a short report describes; of more it names the checks


def policy_lines(report: Report, lang: str, width: int, short: bool = False) -> list[str]:
    """Return the part of a text report about the policy: its file, what it waives, and waivers that have expired."""
    expired = [f for f in report.findings if f.waiver is not None and f.outcome is not Outcome.WAIVED]
    day = report.started[:10]
    parts = (
        (Message("Waived as of {day}", day=day), _waived(report)),
        (Message("Expired waivers as of {day}", day=day), _groups(expired)),
    )
    names_only = short and sum(len(groups) for _, groups in parts) > MAX_WAIVED
    lines: list[str] = []
    for heading, groups in parts:
        lines += _names(heading, groups, lang, width) if names_only else _part(heading, groups, lang, width, short)
    return [*lines, *policy_file(report.policy, lang, width), ""] if report.policy else lines


def policy_file(policy: Mapping[str, str], lang: str, width: int) -> list[str]:
    """Return the line about the policy in use: its `file`, and its `profile` where one was named."""
    text: Text = Message("Policy: {file}", file=policy["file"])
    if policy["profile"]:
        text = Message("Policy: {file}, profile {profile}", **policy)
    return indent(printable(redacted(text.to(lang))), width, "", "  ")


def _waived(report: Report) -> list[list[Finding]]:
    return _groups(f for f in report.findings if f.waiver is not None and f.outcome is Outcome.WAIVED)


def _groups(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Return together what one waiver says about one check."""
    groups: dict[tuple[str, Optional[Waiver]], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.id, finding.waiver), []).append(finding)
    return list(groups.values())


def _names(heading: Text, groups: Sequence[Sequence[Finding]], lang: str, width: int) -> list[str]:
    """Return the row that names the checks of these waivers."""
    if not groups:
        return []
    ids = enumerated(dict.fromkeys(group[0].id for group in groups))
    return indent(Message("{subject}: {found}", subject=heading, found=ids).to(lang), width, "", "  ")


def _part(heading: Text, groups: Sequence[Sequence[Finding]], lang: str, width: int, short: bool) -> Iterator[str]:
    """Yield what one waiver says about one check in one place, with all its subjects."""
    if not groups:
        return
    yield heading.to(lang)
    for group in groups:
        yield from _lines(group, lang, width, short)
    yield ""


def _lines(group: Sequence[Finding], lang: str, width: int, short: bool) -> list[str]:
    finding, subjects = group[0], join_subjects(finding.subject for finding in group)
    words = Message("{title}: {reason}", title=finding.check.title, reason=finding.reason or Literal("-"))
    first = f"  {pad(finding.id, 8)} "
    named = few_subjects(subjects) if short else subject_text(subjects)
    text = (f"[{named.to(lang)}] " if subjects else "") + words.to(lang)
    return indent(printable(redacted(text)), width, first, " " * display_width(first))
