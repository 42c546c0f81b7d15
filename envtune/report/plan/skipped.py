"""What a plan does not fix, and why, in a line or two for each reason; text.py shows all steps."""

from __future__ import annotations

from typing import Iterator, Sequence

from envtune.fix.plan import BY_HAND, SkippedFinding, is_unknown, only_looks
from envtune.messages import Literal, Message, Text
from envtune.report.layout import Paint, first_clauses, first_sentence, fits, pad, printable, spelled, wrap
from envtune.report.words import also_text, few_subjects

NOT_FIXED = Message("Not fixed automatically")
MAX_STEP = 3  # lines of what a person does


def brief_lines(skipped: Sequence[SkippedFinding], lang: str, width: int, paint: Paint) -> Iterator[str]:
    """Yield the section, at most `width` columns wide: nothing if everything is fixed."""
    if not skipped:
        return
    yield paint(NOT_FIXED.to(lang), "bold")
    column = max(len(finding.finding) for finding in skipped) + 4
    rows: dict[tuple[str, ...], list[str]] = {}
    unknown = len({finding.finding for finding in skipped if is_unknown(finding)}) > 1
    for finding in skipped:
        reason = _Brief(finding, lang, width - column).lines(unknown)
        rows.setdefault(tuple(reason), []).append(finding.finding)
    for said, names in rows.items():
        named = list(dict.fromkeys(names))
        lines = wrap(" ".join(said) + printable(also_text(named[1:]).to(lang)), width - column)
        yield "  " + pad(named[0], column - 2) + lines[0]
        yield from (" " * column + line for line in lines[1:])
    yield paint(Message("Details: -v").to(lang), "dim")
    yield ""


class _Brief:
    """Why one finding is not fixed, in few words."""

    def __init__(self, finding: SkippedFinding, lang: str, width: int) -> None:
        self.finding, self.lang, self.width = finding, lang, width
        # the reason only says that a person has to do it: the line or the remedy belongs to it
        self._continues = bool(finding.steps) and finding.reason.en.endswith(":")

    def lines(self, several_unknown: bool) -> list[str]:
        """Return the reason in a line or two; of several that are unknown, or not in a recording, no details."""
        finding = self.finding
        if finding.elsewhere == "host":
            return self._fitting(Message("run fix on the host itself: the snapshot lacks what it needs"))
        if several_unknown and is_unknown(finding):
            return self._fitting(Message("unknown; why: envtune check -v"))
        if self._continues:
            return self._by_hand()
        if finding.instead:
            rows = wrap(printable(self._joined(Message("by hand:"), finding.instead[0])), self.width)
            if len(rows) <= MAX_STEP:
                return rows
        if finding.steps and ", " in finding.subjects:
            subjects = few_subjects(finding.subjects)
            return self._fitting(Message("{reason} ({subjects})", reason=self._reason(), subjects=subjects))
        return first_clauses(printable(self._reason()), self.width)

    def _fitting(self, text: Text) -> list[str]:
        return first_clauses(printable(text.to(self.lang)), self.width)

    def _by_hand(self) -> list[str]:
        """Return the only line to paste, else the first sentence of the remedy: neither is cut."""
        steps, reason = self.finding.steps, full_reason(self.finding)
        if len(steps) == 2 and not only_looks(steps[1]):
            rows = wrap(printable(self._joined(reason, steps[1])), self.width)
            if len(rows) <= MAX_STEP:
                return rows
        said = printable(self._joined(reason, Literal(first_sentence(steps[0].to(self.lang)))))
        return wrap(said, self.width) if fits(said, self.width, MAX_STEP) else first_clauses(said, self.width, True)

    def _joined(self, start: Text, rest: Text) -> str:
        return start.to(self.lang) + ("" if self.lang == "zh" else " ") + rest.to(self.lang)

    def _reason(self) -> str:
        return spelled(full_reason(self.finding).to(self.lang), self.lang)


def full_reason(finding: SkippedFinding) -> Text:
    """Return why it is not fixed; what a recording lacks can still be fixed on the host.

    The heading of the section has said that there is no automatic fix.
    """
    if finding.reason.en == BY_HAND.en:
        return Message("by hand:")
    if finding.elsewhere != "host":
        return finding.reason
    return Message("run fix on the host itself: {reason}", reason=finding.reason)
