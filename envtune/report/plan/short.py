"""Render a plan as short as it can be: a line for each change, a line for each reason why something is not fixed.

The diffs, commands and notes are what `-v` and the question before writing show (report/plan/text.py).
"""

from __future__ import annotations

import posixpath
from typing import Iterator, Sequence

from envtune.fix.consent import downgrade_texts, like_changes
from envtune.fix.plan import Plan, fixed_checks
from envtune.messages import Literal, Message, Text, clauses, enumerated, listed
from envtune.model import Change
from envtune.ranges import join_subjects
from envtune.report.layout import Paint, clip, indent, pad, printable, wrap
from envtune.report.plan.skipped import brief_lines
from envtune.report.plan.text import DISRUPTION, NOTHING, PLANNED, STATES, summary
from envtune.report.words import also_text

MAX_LINES = 4  # of what one change does
MAX_STEP = 3  # of what a person does
MAX_SETTINGS = 6  # of one file, beyond which their number is enough


def render(plan: Plan, lang: str, *, width: int = 100, colour: bool = False) -> str:
    """Return the plan in `lang`, at most `width` columns wide."""
    page = _Page(lang, max(width, 60), Paint(colour))
    return "\n".join(
        line.rstrip(" ")
        for line in [*page.changes(plan.changes), *brief_lines(plan.not_fixed, lang, page.width, page.paint)]
    )


class _Page:
    """The parts of the text; each yields its lines."""

    def __init__(self, lang: str, width: int, paint: Paint) -> None:
        self.lang, self.width, self.paint = lang, width, paint

    def _to(self, text: Text) -> str:
        return printable(text.to(self.lang))

    def changes(self, changes: Sequence[Change]) -> Iterator[str]:
        if not changes:
            yield from (self.paint(self._to(NOTHING), "bold"), "")
            return
        groups = like_changes(changes)
        names = [_ids(group) for group in groups]
        checks = [list(dict.fromkeys(id_ for change in group for id_ in fixed_checks(change))) for group in groups]
        columns = max(map(len, names)) + 2, max(len(ids[0]) for ids in checks) + 2
        yield self.paint(self._to(PLANNED), "bold")
        for name, ids, group in zip(names, checks, groups):
            first = "  " + self.paint(pad(name, columns[0]), "bold") + pad(ids[0], columns[1])
            blank = " " * (sum(columns) + 2)
            rows = self._change(self._to(what(group)), self.width - len(blank), self._to(also_text(ids[1:])))
            yield first + rows[0]
            yield from (blank + row for row in rows[1:])
            for text in downgrade_texts(group[0]):
                yield from indent(self._to(text), self.width, blank, blank)
        for text in _conditions(groups):
            yield from indent(self._to(text), self.width, "  ", "    ")
        yield ""

    def _change(self, text: str, width: int, end: str) -> list[str]:
        """Return what a change does; a path that is longer than a line is not cut."""
        rows = wrap(text + end, width)
        return rows if len(rows) <= MAX_LINES else clip(text, width, MAX_LINES, end)


def _ids(group: Sequence[Change]) -> str:
    return group[0].id if len(group) == 1 else f"{group[0].id}-{group[-1].id}"


def what(group: Sequence[Change]) -> Text:
    """Return what changes that are alike do: where, and before and after or the lines of a file."""
    first = group[0]
    where: Text = Literal(first.target)
    names = {posixpath.basename(change.target) for change in group}
    if len(names) > 1:
        where = Message("{names} and {count} more", names=first.target, count=len(group) - 1)
    elif len(group) > 1:
        subjects = join_subjects(change.subject for change in group)
        where = Message("{name} of {subjects}", name=posixpath.basename(first.target), subjects=subjects)
    return Message("{subject}: {found}", subject=where, found=_values(first))


def _values(change: Change) -> Text:
    before, after = (_state(text) for text in (change.before, change.after))
    if len(change.before.splitlines()) <= 1 and len(change.after.splitlines()) <= 1:
        return Message("{before} -> {after}", before=before, after=after) if change.before.strip() else after
    if change.before in STATES:
        change = change._replace(before="")
    old = set(change.before.splitlines())
    added = [line.strip() for line in change.after.splitlines() if line not in old]
    said = [Literal(line) for line in added if line and not line.startswith(("#", "["))]
    return clauses(said) if 0 < len(said) <= MAX_SETTINGS else summary(change)


def _state(text: str) -> Text:
    line = " ".join(text.split())
    return STATES.get(line) or Literal(line)


def _conditions(groups: Sequence[Sequence[Change]]) -> Iterator[Text]:
    """Yield what has to be known before consenting, each with the changes that it is about."""
    rows: dict[tuple[Text, ...], list[str]] = {}
    for group in groups:
        texts = tuple(_conditions_of(group[0]))
        if texts:
            rows.setdefault(texts, []).append(_ids(group))
    for texts, names in rows.items():
        said = listed(texts)
        is_all = len(names) == len(groups)
        if len(names) == 1 and "-" not in names[0]:
            yield said if is_all else Message("{changes}: {conditions}", changes=names[0], conditions=said)
        else:
            yield Message("{changes}: each {conditions}", changes=enumerated(names), conditions=said)


def _conditions_of(change: Change) -> Iterator[Text]:
    if change.root:
        yield Message("needs root")
    if change.safety == "confirm":
        yield Message("needs confirmation")
    if change.interrupts is not None or change.disruption != "none":
        yield change.interrupts or DISRUPTION[change.disruption]
    if not change.undoable:
        yield Message("CANNOT be undone")
