"""The part of a text report about the site's policy: the file, what it waives, and waivers that have expired."""

from __future__ import annotations

from typing import Iterator, Mapping, Optional, Sequence

from envtune.audit.subjects import subject_text
from envtune.messages import Literal, Message, Text
from envtune.model import Finding, Outcome, Report, Waiver
from envtune.ranges import join_subjects
from envtune.report.layout import display_width, indent, pad, printable
from envtune.report.redaction import redacted

_WAIVED, _EXPIRED = Message("Waived"), Message("Expired waivers")


def policy_lines(report: Report, lang: str, width: int) -> list[str]:
    """Return the part of a text report about the policy: its file, what it waives, and waivers that have expired."""
    about = [finding for finding in report.findings if finding.waiver is not None]
    waived = [finding for finding in about if finding.outcome is Outcome.WAIVED]
    expired = [finding for finding in about if finding.outcome is not Outcome.WAIVED]
    lines = [*_part(_WAIVED, waived, lang, width), *_part(_EXPIRED, expired, lang, width)]
    return [*lines, *policy_file(report.policy, lang, width), ""] if report.policy else lines


def policy_file(policy: Mapping[str, str], lang: str, width: int) -> list[str]:
    """Return the line about the policy in use: its `file`, and its `profile` where one was named."""
    text: Text = Message("Policy: {file}", file=policy["file"])
    if policy["profile"]:
        text = Message("Policy: {file}, profile {profile}", **policy)
    return indent(printable(redacted(text.to(lang))), width, "", "  ")


def _part(heading: Text, findings: Sequence[Finding], lang: str, width: int) -> Iterator[str]:
    """Yield what one waiver says about one check in one place, with all its subjects."""
    if not findings:
        return
    groups: dict[tuple[str, Optional[Waiver]], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.id, finding.waiver), []).append(finding)
    yield heading.to(lang)
    for group in groups.values():
        yield from _lines(group, lang, width)
    yield ""


def _lines(group: Sequence[Finding], lang: str, width: int) -> list[str]:
    finding, subjects = group[0], join_subjects(finding.subject for finding in group)
    words = Message("{title}: {reason}", title=finding.check.title, reason=finding.reason or Literal("-"))
    first = f"  {pad(finding.id, 8)} "
    text = (f"[{subject_text(subjects).to(lang)}] " if subjects else "") + words.to(lang)
    return indent(printable(redacted(text)), width, first, " " * display_width(first))
