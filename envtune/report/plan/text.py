"""Render a plan as text: per change what it fixes, the diff, and everything that matters for consenting to it.

The short form leaves out what the diff shows as well, and the steps of what a person has to do.
"""

from __future__ import annotations

import difflib
from typing import Iterator, Mapping, Sequence

from envtune.audit.subjects import subject_text
from envtune.fix.consent import downgrade_texts, like_changes
from envtune.fix.plan import Plan, SkippedFinding, fixed_checks
from envtune.fix.shell_commands import commands
from envtune.messages import Literal, Message, Text, clauses, enumerated, in_context, listed, plural
from envtune.model import Change
from envtune.report.layout import (
    Paint,
    display_width,
    indent,
    pad,
    printable,
    spelled,
)
from envtune.report.plan.skipped import NOT_FIXED, brief_lines, full_reason

VIEWS: Mapping[str, Text] = {
    "live": Message("the running state, until the next boot"),
    "boot": Message("the settings at the next boot"),
    "job": Message("the environment of jobs started from now on"),
}
SAFETY: Mapping[str, Text] = {
    "safe": Message("safe"),
    "confirm": Message("needs confirmation"),
    "manual": Message("shown only, done by hand"),
}
DISRUPTION: Mapping[str, Text] = {
    "none": Message("no interruption"),
    "job": Message("interrupts running jobs"),
    "service": Message("interrupts a service"),
    "reboot": Message("needs a restart"),
}
_LABELS: Mapping[str, Text] = {
    "where": in_context("plan text", "where"),
    "does": Message("runs"),
    "cures": Message("fixes"),
    "view": Message("changes"),
    "safety": Message("safety"),
    "rivals": Message("others"),
    "note": Message("note"),
}
PLANNED = Message("What would be changed")
# What a plan says of what is no file's content; in its data these are words of English.
STATES: Mapping[str, Text] = {
    "not installed": in_context("before a change", "not installed"),
    "installed": in_context("after a change", "installed"),
    "not enabled": in_context("before a change", "not enabled"),
    "enabled at boot": in_context("after a change", "enabled at boot"),
}
NOTHING = Message("Nothing to change.")
MAX_DIFF = 40  # lines
MAX_COMMANDS = 8  # of one change


def render(plan: Plan, lang: str, *, width: int = 100, colour: bool = False, verbose: bool = False) -> str:
    """Return the whole plan in `lang`; with `verbose` every operation and every step for a person."""
    renderer = _Renderer(lang, max(width, 60), Paint(colour), verbose)
    brief = brief_lines(plan.not_fixed, lang, renderer.width, renderer.paint)
    skipped = renderer.skipped(plan.not_fixed) if verbose else brief
    lines = [*renderer.changes(plan.changes), *skipped]
    return "\n".join(line.rstrip(" ") for line in lines)


def table(changes: Sequence[Change], lang: str, width: int) -> Iterator[str]:
    """Yield one line per group of similar changes: what consent is asked for."""
    for group in like_changes(changes):
        first = group[0]
        does = Message("{subject}: {found}", subject=targets(group, lang), found=summary(first))
        said = Message("{changes}  ({safety})", changes=does, safety=_safety(first))
        line = f"{first.finding}  {said.to(lang)}"
        start = f"  {pad(ids(group), 9)} "
        yield from indent(line, width, start, " " * display_width(start))


class _Renderer:
    """The parts of the plan; each yields its lines."""

    def __init__(self, lang: str, width: int, paint: Paint, verbose: bool) -> None:
        self.lang, self.width, self.paint, self.verbose = lang, width, paint, verbose

    def changes(self, changes: Sequence[Change]) -> Iterator[str]:
        if not changes:
            yield self.paint(NOTHING.to(self.lang), "bold")
            yield ""
            return
        yield self.paint(PLANNED.to(self.lang), "bold")
        for group in like_changes(changes):
            yield ""
            yield from self._change(group)
        yield ""

    def _change(self, group: Sequence[Change]) -> Iterator[str]:
        first = group[0]
        checks = dict.fromkeys(check for change in group for check in fixed_checks(change))
        words = f"{', '.join(checks)}  {printable(first.playbook)} ({first.action})"
        rows = indent(words, self.width, " " * (len(ids(group)) + 4), " " * 6)
        yield f"  {self.paint(ids(group), 'bold')}  {rows[0].lstrip(' ')}"
        yield from rows[1:]
        yield from self._row("where", targets(group, self.lang))
        yield from self._diff(first)
        if self.verbose:
            yield from self._does(group)
            yield from self._row("view", VIEWS[first.scope].to(self.lang))
            yield from self._row("safety", _safety(first).to(self.lang))
        else:
            if not _writes_files(first):  # the diff of a file is what is written
                yield from self._does(group)
            yield from self._row("view", clauses((VIEWS[first.scope], _safety(first))).to(self.lang))
        for owner in first.other_owners:
            yield from self._row("rivals", printable(owner.to(self.lang)))
        for note in (*downgrade_texts(first), *([] if first.note is None else [first.note])):
            yield from self._row("note", printable(note.to(self.lang)))

    def _row(self, key: str, text: str) -> Iterator[str]:
        label = "      " + self.paint(pad(_LABELS[key].to(self.lang), 8), "dim") + " "
        for number, line in enumerate(indent(text, self.width, " " * 15, " " * 15)):
            yield label + line[15:] if number == 0 else line

    def _diff(self, change: Change) -> Iterator[str]:
        before, after = (STATES.get(text, Literal(text)).to(self.lang) for text in (change.before, change.after))
        for line in diff(before, after):
            style = {"-": "red", "+": "green"}.get(line[:1], "dim")
            # a line of a file is shown as it is; a list of packages, say, is broken like other text
            rows = [line] if _writes_files(change) and line[1:2] != "#" else indent(line, self.width - 8, "", "  ")
            yield from ("        " + self.paint(row, style) for row in rows)

    def _does(self, group: Sequence[Change]) -> Iterator[str]:
        """Yield the operations themselves: what a plan says about itself may be wrong, what it does is not."""
        lines = list(commands(group[0]))
        for line in lines[:MAX_COMMANDS]:
            yield from self._row("does", printable(line.to(self.lang)))
        if len(lines) > MAX_COMMANDS:
            more = plural("1 more command", "{count} more commands", len(lines) - MAX_COMMANDS)
            yield from self._row("does", more.to(self.lang))

    def skipped(self, skipped: Sequence[SkippedFinding]) -> Iterator[str]:
        if not skipped:
            return
        yield self.paint(NOT_FIXED.to(self.lang), "bold")
        by_reason: dict[tuple[Text, tuple[Text, ...]], list[str]] = {}
        for finding in skipped:
            subjects = printable(subject_text(finding.subjects or finding.subject).to(self.lang))
            name = f"{finding.finding} [{subjects}]" if finding.subject else finding.finding
            by_reason.setdefault((full_reason(finding), finding.steps or finding.instead), []).append(name)
        for (reason, steps), names in by_reason.items():
            yield from indent(enumerated(names).to(self.lang), self.width, "  ", "  ")
            yield from indent(printable(spelled(reason.to(self.lang), self.lang)), self.width, " " * 6, " " * 6)
            for number, step in enumerate(steps, 1):
                mark = f"      {number}. "
                yield from indent(printable(step.to(self.lang)), self.width, mark, " " * len(mark))
        yield ""


def diff(before: str, after: str) -> list[str]:
    """Return the removed (`-`) and added (`+`) lines, with two lines of context."""
    rows = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
    lines = [printable(line) for line in rows if not line.startswith("@@")]
    more = len(lines) - MAX_DIFF
    return lines if more <= 0 else [*lines[:MAX_DIFF], f"  ... {more}"]


def ids(group: Sequence[Change]) -> str:
    """Return `C03`, or `C03-C98 (96)`."""
    return group[0].id if len(group) == 1 else f"{group[0].id}-{group[-1].id} ({len(group)})"


def targets(group: Sequence[Change], lang: str) -> str:
    """Return the target, or the first and the last of several."""
    first, last = printable(group[0].target), printable(group[-1].target)
    if len(group) == 1:
        return first
    return Message("{first} ... {last} ({count})", first=first, last=last, count=len(group)).to(lang)


def _writes_files(change: Change) -> bool:
    return any(operation["op"] == "file" for operation in change.operations)


def summary(change: Change) -> Text:
    """Return before and after where each is a line, else how many lines are removed and added."""
    before, after = change.before.splitlines(), change.after.splitlines()
    if max(len(before), len(after)) <= 1:
        return Literal(f"{_short(change.before)} -> {_short(change.after)}")
    rows = [*difflib.ndiff(before, after)]
    counts = ((mark, sum(row.startswith(mark) for row in rows)) for mark in "-+")
    return Message("{counts} lines", counts=" ".join(f"{mark}{count}" for mark, count in counts if count) or "0")


def _short(text: str, limit: int = 40) -> str:
    line = printable(" ".join(text.split()))
    return (line if len(line) <= limit else line[: limit - 3] + "...") or "-"


def _safety(change: Change) -> Text:
    """Return what a person has to know before consenting."""
    return listed(
        [
            SAFETY[change.safety],
            change.interrupts or DISRUPTION[change.disruption],
            *([Message("needs root")] if change.root else []),
            Message("can be undone") if change.undoable else Message("CANNOT be undone"),
        ]
    )
