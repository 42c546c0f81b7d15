"""The part of a text report about findings that the site's policy waives, or whose waiver has expired."""

from __future__ import annotations

from typing import Iterable, Iterator

from envtune.messages import Literal, Message, Text
from envtune.model import Finding, Outcome
from envtune.report.layout import display_width, indent, pad, printable
from envtune.report.redaction import redacted

_WAIVED, _EXPIRED = Message("Waived"), Message("Expired waivers")


def waiver_lines(findings: Iterable[Finding], lang: str, width: int) -> list[str]:
    """Return the part of a text report about waivers, a line for each finding; nothing where there is none."""
    about = [finding for finding in findings if finding.waiver is not None]
    waived = [finding for finding in about if finding.outcome is Outcome.WAIVED]
    expired = [finding for finding in about if finding.outcome is not Outcome.WAIVED]
    return [*_part(_WAIVED, waived, lang, width), *_part(_EXPIRED, expired, lang, width)]


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
