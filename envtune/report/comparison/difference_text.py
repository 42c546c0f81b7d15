"""Render what differs between two hosts as text: the facts, the checks, and what is unknown."""

from __future__ import annotations

from typing import Iterator

from envtune.compare.difference import CheckPair, Difference, FactPair, Side
from envtune.compare.facts import is_package, title
from envtune.compare.hosts import HostReport, Value
from envtune.messages import Message, Text, clauses, enumerated, in_context, plural
from envtune.model import Outcome
from envtune.report.comparison.values import contrast, value_text
from envtune.report.layout import Paint, display_width, indent, pad, printable
from envtune.report.words import OUTCOMES, SEVERITIES, some

NAME_COLUMNS = 24  # of a fact's name beside its values
MAX_TEXTS = 3  # of what a check found on one host that are shown without --verbose


def render(found: Difference, lang: str, *, width: int = 100, colour: bool = False, verbose: bool = False) -> str:
    """Return what differs in `lang`, at most `width` columns wide where words allow it."""
    renderer = _Renderer(found, lang, max(width, 60), Paint(colour), verbose)
    return "\n".join(line.rstrip(" ") for line in renderer.lines())


class _Renderer:
    """The parts of the text; each yields its lines."""

    def __init__(self, found: Difference, lang: str, width: int, paint: Paint, verbose: bool) -> None:
        self.found, self.lang, self.width, self.paint, self.verbose = found, lang, width, paint, verbose
        self.marks = (paint("-", "red"), paint("+", "green"))

    def _to(self, text: Text) -> str:
        return printable(text.to(self.lang))

    def lines(self) -> Iterator[str]:
        """Yield every line."""
        found = self.found
        for mark, host in zip(self.marks, (found.left, found.right)):
            yield f"{mark} {self.paint(printable(host.label), 'bold')}{_place(host)}"
        yield from self._facts()
        yield from self._checks()
        yield from self._unknown()
        yield ""
        for line in indent(self._to(summary_text(found)), self.width, "", ""):
            yield self.paint(line, "bold")

    def _heading(self, text: Text) -> Iterator[str]:
        yield ""
        yield self.paint(self._to(text), "bold")

    def _facts(self) -> Iterator[str]:
        """Yield the facts that differ; packages that only one host has in a line for each of them."""
        if self.found.facts:
            yield from self._heading(Message("Facts"))
        alone = [] if self.verbose else [pair for pair in self.found.facts if _is_on_one(pair)]
        for pair in self.found.facts:
            if pair not in alone:
                yield from self._fact(pair)
        own = (
            [title(pair.name) for pair in alone if pair.right.text is None],
            [title(pair.name) for pair in alone if pair.left.text is None],
        )
        for mark, host, names in zip(self.marks, (self.found.left, self.found.right), own):
            if names:
                text = Message("packages only on {host}: {names}", host=printable(host.label), names=enumerated(names))
                yield from self._marked("  ", mark, self._to(text))

    def _fact(self, pair: FactPair) -> Iterator[str]:
        names = [pad(f"  {self._to(title(pair.name))}", NAME_COLUMNS), " " * NAME_COLUMNS]
        if display_width(names[0]) > NAME_COLUMNS:
            yield names[0]
            names[0] = names[1]
        texts = (value_text(pair.name, pair.left.text), contrast(pair.name, pair.right.text, pair.left.text))
        for name, mark, text in zip(names, self.marks, texts):
            yield from self._marked(f"{name} ", mark, self._to(text))

    def _marked(self, start: str, mark: str, text: str) -> Iterator[str]:
        blank = " " * (display_width(start) + 2)
        lines = indent(text, self.width, blank, blank)
        yield f"{start}{mark} {lines[0][len(blank) :]}"
        yield from lines[1:]

    def _checks(self) -> Iterator[str]:
        """Yield the checks that differ; those that do only because they do not apply to one host in a line for each."""
        if self.found.checks:
            yield from self._heading(Message("Checks"))
        alone = [] if self.verbose else [pair for pair in self.found.checks if _applies_to_one(pair)]
        for pair in self.found.checks:
            if pair not in alone:
                yield from self._check(pair)
        own = (
            [pair.check.id for pair in alone if pair.right.outcome is Outcome.NOTAPPLICABLE],
            [pair.check.id for pair in alone if pair.left.outcome is Outcome.NOTAPPLICABLE],
        )
        for mark, names in zip(self.marks, own):
            if names:
                text = Message("passed, and do not apply to the other host: {checks}", checks=enumerated(names))
                yield from self._marked("  ", mark, self._to(text))

    def _check(self, pair: CheckPair) -> Iterator[str]:
        start = f"  {pad(pair.check.id, 8)} "
        yield from indent(self._to(pair.check.title), self.width, start, " " * len(start))
        for mark, side in zip(self.marks, (pair.left, pair.right)):
            yield from self._marked(" " * len(start), mark, self._to(self._side(side)))

    def _side(self, side: Side) -> Text:
        word = OUTCOMES[side.outcome]
        if side.outcome is Outcome.FAIL:
            word = in_context("diff", "{outcome} ({severity})", outcome=word, severity=SEVERITIES[side.severity])
        shown = side.texts if self.verbose else side.texts[:MAX_TEXTS]
        if (side.outcome is Outcome.PASS and not self.verbose) or not shown:
            return word
        more = len(side.texts) - len(shown)
        texts = [*shown, *([Message("and {count} more", count=more)] if more else [])]
        return Message("{outcome}: {texts}", outcome=word, texts=clauses(texts))

    def _unknown(self) -> Iterator[str]:
        """Yield what is unknown, and on which side."""
        if self.found.unknown_facts or self.found.unknown_checks:
            yield from self._heading(in_context("heading", "Unknown"))
        for facts, texts in self._unknown_facts():
            names = enumerated(title(name) for name in facts)
            yield from indent(self._to(Message("{facts}: {why}", facts=names, why=texts)), self.width, "  ", "    ")
        alike: dict[str, list[str]] = {}
        for pair in self.found.unknown_checks:
            alike.setdefault(self._to(self._why(pair)), []).append(pair.check.id)
        for why, ids in alike.items():
            first = f"  {self._to(some(ids, len(ids) if self.verbose else MAX_TEXTS))}"
            if len(ids) > 1:
                yield from indent(first, self.width, "", "  ")
                first = ""
            yield from indent(why, self.width, pad(first, 11), " " * 11)

    def _unknown_facts(self) -> Iterator[tuple[list[str], Text]]:
        """Yield facts that are unknown for the same reason, together."""
        alike: dict[str, tuple[list[str], Text]] = {}
        for pair in self.found.unknown_facts:
            both = ((self.found.left, pair.left), (self.found.right, pair.right))
            text = clauses(self._value(host, pair, value) for host, value in both)
            known = "" if pair.left.reason is not None and pair.right.reason is not None else pair.name
            alike.setdefault(f"{known}\0{text.en}", ([], text))[0].append(pair.name)
        yield from alike.values()

    def _value(self, host: HostReport, pair: FactPair, value: Value) -> Text:
        text = value_text(pair.name, value.text) if value.reason is None else _unknown_text(value.reason)
        return Message("{host}: {value}", host=printable(host.label), value=text)

    def _why(self, pair: CheckPair) -> Text:
        """Return what a check says about each host; what it says about both once."""
        left, right = (self._side(side._replace(texts=side.texts[:1])) for side in (pair.left, pair.right))
        if left == right:
            return Message("both hosts: {value}", value=left)
        hosts = (self.found.left, self.found.right)
        both = (Message("{host}: {value}", host=printable(h.label), value=v) for h, v in zip(hosts, (left, right)))
        return clauses(both)


def _applies_to_one(pair: CheckPair) -> bool:
    """Return whether all that differs is that the check applies to one of the hosts only."""
    return {pair.left.outcome, pair.right.outcome} == {Outcome.PASS, Outcome.NOTAPPLICABLE}


def _is_on_one(pair: FactPair) -> bool:
    """Return whether it is a package that one of the hosts only has."""
    return is_package(pair.name) and None in (pair.left.text, pair.right.text)


def _place(host: HostReport) -> str:
    """Return where the host was read from, unless its label ends with that."""
    return "" if host.label.endswith(f"({host.source})") else f"  {printable(host.source)}"


def _unknown_text(reason: Text) -> Text:
    return in_context("diff", "unknown ({reason})", reason=reason)


def summary_text(found: Difference) -> Text:
    """Return the last line: what differs, what is the same, what is unknown."""
    differs = enumerated(
        (
            plural("{count} fact", "{count} facts", len(found.facts)),
            plural("{count} check", "{count} checks", len(found.checks)),
        )
    )
    same = enumerated(
        (
            plural("{count} fact", "{count} facts", found.same_facts),
            plural("{count} check", "{count} checks", found.same_checks),
        )
    )
    parts: list[Text] = [
        Message("different: {differs}", differs=differs) if found.differs else Message("no differences"),
        Message("the same: {same}", same=same),
    ]
    unknown = len(found.unknown_facts) + len(found.unknown_checks)
    if unknown:
        parts.append(Message("unknown: {count}", count=unknown))
    return clauses(parts)
