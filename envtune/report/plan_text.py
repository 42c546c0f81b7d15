"""A plan for a person: per change what it cures, the diff, and everything that matters for consenting to it."""

from __future__ import annotations

import difflib
from typing import Iterable, Iterator, Mapping, Optional, Sequence

from envtune.fix.plan import Plan, SkippedFinding, cured
from envtune.fix.shell_commands import commands
from envtune.messages import Literal, Message, Text, in_context
from envtune.model import Change
from envtune.report.layout import Paint, display_width, indent, pad, printable

VIEWS: Mapping[str, Text] = {
    "live": Message("what runs now, until the next boot"),
    "boot": Message("what the next boot sets"),
    "job": Message("what a job started from now on sees"),
}
SAFETY: Mapping[str, Text] = {
    "safe": Message("safe"),
    "confirm": Message("asks for consent of its own"),
    "manual": Message("shown only; a person does it"),
}
DISRUPTION: Mapping[str, Text] = {
    "none": Message("interrupts nothing"),
    "job": Message("interrupts running jobs"),
    "service": Message("interrupts a service"),
    "reboot": Message("needs a restart"),
}
_LABELS: Mapping[str, Text] = {
    "where": in_context("plan text", "where"),
    "does": Message("does"),
    "cures": Message("cures"),
    "view": Message("changes"),
    "safety": Message("safety"),
    "rivals": Message("others"),
    "note": Message("note"),
}
_PLANNED = Message("What would be changed")
_LEFT = Message("What this plan does not repair")
_NOTHING = Message("Nothing to change.")
DIFF_LINES = 40


def render(plan: Plan, lang: str, *, width: int = 100, colour: bool = False) -> str:
    """The whole plan, in `lang`."""
    page = _Page(lang, max(width, 60), Paint(colour))
    lines = [*page.changes(plan.changes), *page.skipped(plan.skipped)]
    return "\n".join(line.rstrip(" ") for line in lines)


def table(changes: Sequence[Change], lang: str, width: int) -> Iterator[str]:
    """One line per group of like changes: what is asked consent for."""
    for group in groups(changes):
        first = group[0]
        words = [SAFETY[first.safety], DISRUPTION[first.disruption], _root(first), _undoable(first)]
        told = (", " if lang == "en" else "，").join(word.to(lang) for word in words if word.en)
        line = f"{first.finding}  {targets(group, lang)}: {_gist(first, lang)}  ({told})"
        start = f"  {pad(ids(group), 9)} "
        yield from indent(line, width, start, " " * display_width(start))


def groups(changes: Iterable[Change]) -> list[list[Change]]:
    """Changes that differ in nothing but their target, together."""
    found: dict[object, list[Change]] = {}
    for change in changes:
        kinds = tuple(operation["op"] for operation in change.operations)
        alike = change._replace(id="", target="", subject="", operations=(), cures=(), verify={})
        found.setdefault((repr(alike), kinds), []).append(change)
    return list(found.values())


class _Page:
    """The parts of the page; each yields its lines."""

    def __init__(self, lang: str, width: int, paint: Paint) -> None:
        self.lang, self.width, self.paint = lang, width, paint

    def changes(self, changes: Sequence[Change]) -> Iterator[str]:
        if not changes:
            yield self.paint(_NOTHING.to(self.lang), "bold")
            yield ""
            return
        yield self.paint(_PLANNED.to(self.lang), "bold")
        for group in groups(changes):
            yield ""
            yield from self._change(group)
        yield ""

    def _change(self, group: Sequence[Change]) -> Iterator[str]:
        first = group[0]
        checks = dict.fromkeys(check for change in group for check in cured(change))
        yield f"  {self.paint(ids(group), 'bold')}  {', '.join(checks)}  {printable(first.playbook)} ({first.action})"
        yield from self._row("where", targets(group, self.lang))
        yield from self._diff(first)
        yield from self._does(group)
        yield from self._row("view", VIEWS[first.view].to(self.lang))
        words = [SAFETY[first.safety], DISRUPTION[first.disruption], _root(first), _undoable(first)]
        told = (", " if self.lang == "en" else "，").join(word.to(self.lang) for word in words if word.en)
        yield from self._row("safety", told)
        for rival in first.rivals:
            yield from self._row("rivals", printable(rival.to(self.lang)))
        if first.note is not None:
            yield from self._row("note", printable(first.note.to(self.lang)))

    def _row(self, key: str, text: str) -> Iterator[str]:
        label = "      " + self.paint(pad(_LABELS[key].to(self.lang), 8), "dim") + " "
        for number, line in enumerate(indent(text, self.width, " " * 15, " " * 15)):
            yield label + line[15:] if number == 0 else line

    def _diff(self, change: Change) -> Iterator[str]:
        for line in diff(change.before, change.after):
            style = {"-": "red", "+": "green"}.get(line[:1], "dim")
            # a line of a file is shown as it is; a list of packages, say, is broken like other text
            rows = [line] if _writes_files(change) else indent(line, self.width - 8, "", "  ")
            yield from ("        " + self.paint(row, style) for row in rows)

    def _does(self, group: Sequence[Change]) -> Iterator[str]:
        """The operations themselves: what a plan says about itself need not be so, what it does is."""
        for line in list(commands(group[0]))[:8]:
            yield from self._row("does", printable(line))

    def skipped(self, skipped: Sequence[SkippedFinding]) -> Iterator[str]:
        if not skipped:
            return
        yield self.paint(_LEFT.to(self.lang), "bold")
        alike: dict[tuple[Text, tuple[Text, ...]], list[str]] = {}
        for one in skipped:
            name = f"{one.finding} [{printable(one.subject)}]" if one.subject else one.finding
            alike.setdefault((one.reason, one.steps), []).append(name)
        for (reason, steps), names in alike.items():
            yield from indent(", ".join(names), self.width, "  ", "  ")
            yield from indent(printable(reason.to(self.lang)), self.width, " " * 6, " " * 6)
            for number, step in enumerate(steps, 1):
                mark = f"      {number}. "
                yield from indent(printable(step.to(self.lang)), self.width, mark, " " * len(mark))
        yield ""


def diff(before: str, after: str) -> list[str]:
    """The lines that go (`-`) and come (`+`), with a little of what stays around them."""
    found = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
    lines = [printable(line) for line in found if not line.startswith("@@")]
    more = len(lines) - DIFF_LINES
    return lines if more <= 0 else [*lines[:DIFF_LINES], f"  ... {more}"]


def ids(group: Sequence[Change]) -> str:
    """`C03`, or `C03-C98 (96)`."""
    return group[0].id if len(group) == 1 else f"{group[0].id}-{group[-1].id} ({len(group)})"


def targets(group: Sequence[Change], lang: str) -> str:
    """The target, or the first and the last of many."""
    shown = printable(group[0].target)
    if len(group) == 1:
        return shown
    last, rest = printable(group[-1].target), len(group)
    return f"{shown} ... {last} ({rest})" if lang == "en" else f"{shown} …… {last}（共 {rest} 个）"


def _writes_files(change: Change) -> bool:
    return any(operation["op"] == "file" for operation in change.operations)


def _gist(change: Change, lang: str) -> str:
    """Before and after where each is a line, else how many lines go and come."""
    if max(len(change.before.splitlines()), len(change.after.splitlines())) <= 1:
        return f"{_short(change.before)} -> {_short(change.after)}"
    rows = [*difflib.ndiff(change.before.splitlines(), change.after.splitlines())]
    counts = ((mark, sum(row.startswith(mark) for row in rows)) for mark in "-+")
    told = " ".join(f"{mark}{count}" for mark, count in counts if count) or "0"
    return f"{told} 行" if lang == "zh" else f"{told} lines"


def _short(text: str, limit: int = 40) -> str:
    line = printable(" ".join(text.split()))
    return (line if len(line) <= limit else line[: limit - 3] + "...") or "-"


def _root(change: Change) -> Text:
    return Message("needs root") if change.root else Literal("")


def _undoable(change: Change) -> Text:
    return Message("can be undone") if change.undoable else Message("CANNOT be undone")


def change_text(change: Optional[Change], lang: str) -> str:
    """One change in a line of progress."""
    return "" if change is None else f"{change.id} {change.finding} {printable(change.target)}"
