"""The part of a text report about the site's policy: the file, what it waives, and waivers that have expired."""

from __future__ import annotations

from typing import Iterable, Iterator

from envtune.messages import Literal, Message, Text
from envtune.model import Finding, Outcome, Report
from envtune.report.layout import display_width, indent, pad, printable
from envtune.report.redaction import redacted

_WAIVED, _EXPIRED = Message("Waived"), Message("Expired waivers")


def policy_lines(report: Report, lang: str, width: int) -> list[str]:
    """Return the part of a text report about the policy: its file, what it waives, and waivers that have expired."""
    about = [finding for finding in report.findings if finding.waiver is not None]
    waived = [finding for finding in about if finding.outcome is Outcome.WAIVED]
    expired = [finding for finding in about if finding.outcome is not Outcome.WAIVED]
    lines = [*_part(_WAIVED, waived, lang, width), *_part(_EXPIRED, expired, lang, width)]
    return [*lines, *_file(report, lang, width), ""] if report.policy else lines


def _file(report: Report, lang: str, width: int) -> list[str]:
    text: Text = Message("Policy: {file}", file=report.policy["file"])
    if report.policy["profile"]:
        text = Message("Policy: {file}, profile {profile}", **report.policy)
    return indent(printable(redacted(text.to(lang))), width, "", "  ")


def _part(heading: Text, findings: Iterable[Finding], lang: str, width: int) -> Iterator[str]:
    lines = [line for finding in findings for line in _line(finding, lang, width)]
    if lines:
        yield from (heading.to(lang), *lines, "")


def _line(finding: Finding, lang: str, width: int) -> list[str]:
    subject = f"[{finding.subject}] " if finding.subject else ""
    first = f"  {pad(finding.id, 8)} "
    words = Message("{title}: {reason}", title=finding.check.title, reason=finding.reason or Literal("-"))
    text = printable(redacted(subject + words.to(lang)))
    return indent(text, width, first, " " * display_width(first))
