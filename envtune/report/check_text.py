"""Render a report with every detail: the verdict, what is wrong, what is unknown and why, a line per family."""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Optional, Sequence, Union

from envtune.audit.subjects import subject_text
from envtune.audit.verdict import count_checks
from envtune.catalog.families import family_title
from envtune.commandline import commented
from envtune.messages import Literal, Message, Text, enumerated, listed
from envtune.model import Finding, Outcome, Report, Severity, Source
from envtune.report.formats.labels import LABELS
from envtune.report.host_texts import header_texts
from envtune.report.layout import Paint, display_width, indent, pad, printable, spelled
from envtune.report.policy_text import policy_lines
from envtune.report.problems import notes, problems, statements
from envtune.report.words import NOTE, OUTCOMES, SEVERITIES, verdict_colour, verdict_lines
from envtune.version import __version__

_COLOUR: Mapping[Severity, str] = {
    Severity.CRITICAL: "red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
    Severity.INFO: "cyan",
}
MAX_SUBJECTS = 6  # of one failed check that are shown one by one
_HEADER = ("host", "npu", "cann", "python", "job")


def render(report: Report, lang: str, *, width: int = 100, colour: bool = False, verbose: bool = False) -> str:
    """Return the whole report in `lang`, at most `width` columns wide where words allow it."""
    renderer = _Renderer(lang, max(width, 60), Paint(colour))
    lines = [*renderer.verdict(report), "", *renderer.header(report), ""]
    lines += [*renderer.failures(report.findings), *renderer.unknown(report.findings)]
    lines += policy_lines(report, lang, max(width, 60))
    lines += renderer.families(report.findings, verbose)
    return "\n".join(line.rstrip(" ") for line in lines)


class _Renderer:
    """The parts of the report; each yields its lines."""

    def __init__(self, lang: str, width: int, paint: Paint) -> None:
        self.lang, self.width, self.paint = lang, width, paint

    def _to(self, text: Optional[Text]) -> str:
        return "" if text is None else printable(text.to(self.lang))

    def _heading(self, key: str) -> str:
        return self.paint(self._to(LABELS[key]), "bold")

    def header(self, report: Report) -> Iterator[str]:
        yield self.paint(f"envtune {__version__}", "bold") + f"  {printable(report.host)}  {report.started}"
        texts = header_texts(report)
        for key in _HEADER:
            yield from indent(self._to(texts[key]), self.width, "  " + pad(self._to(LABELS[key]), 8), " " * 10)

    def failures(self, findings: Sequence[Finding]) -> Iterator[str]:
        found = problems(findings)
        noted = notes(findings)
        if found:
            yield self._heading("wrong")
            for problem in found:
                yield ""
                yield from self._failure(problem.findings)
                for covered in problem.covered:
                    yield from self._failure(covered.findings)
            yield ""
        for finding in noted:
            yield from self._failure((finding,))
        if noted:
            yield ""

    def _failure(self, group: Sequence[Finding]) -> Iterator[str]:
        """Yield one check that failed, for all its subjects: what differs for each, what is the same once."""
        check, severity = group[0].check, group[0].severity
        alone = f" [{self._to(subject_text(group[0].subject))}]" if len(group) == 1 and group[0].subject else ""
        first = f"  {pad(check.id, 8)} "
        label = pad(self._to(NOTE if check.note else SEVERITIES[severity]), 9)
        title = indent(label + self._to(check.title) + alone, self.width, first, " " * display_width(first + label))
        yield first + self.paint(label, "dim" if check.note else _COLOUR[severity]) + title[0][len(first + label) :]
        yield from title[1:]
        yield from self._values(group)
        shown = group[:MAX_SUBJECTS]
        yield from self._row("where", self._to(enumerated(dict.fromkeys(self._source(f) for f in shown))))
        yield from self._row("why", self._to(check.why))
        yield from self._row("do", self._to(check.remedy))
        yield from self._commands(shown)

    def _commands(self, group: Sequence[Finding]) -> Iterator[str]:
        """Yield what else a person can do, what fixes it, and the one line for each subject that shows more."""
        fixes = list(dict.fromkeys(c.line for f in group for c in f.commands if c.kind == "fix"))
        for text in fixes:
            if isinstance(text, Text):
                yield from indent(self._to(text), self.width, " " * 22, " " * 22)
        looks = [[c.line for c in f.commands if c.kind == "look"][:1] for f in group]
        yield from self._lines("fix", fixes, "green")
        yield from self._lines("look", dict.fromkeys(line for lines in looks for line in lines), "cyan")

    def _lines(self, key: str, lines: Iterable[Union[str, Text]], colour: str) -> Iterator[str]:
        label = " " * 11 + self.paint(pad(self._to(LABELS[key]), 10), "dim") + " "
        for line in lines:
            if isinstance(line, str):
                yield label + self.paint("$ " + printable(commented(line).to(self.lang)), colour)
                label = " " * 22

    def _values(self, group: Sequence[Finding]) -> Iterator[str]:
        """Yield what was found for each subject and what was expected, that once where it is the same for all."""
        rows = statements(group, self.lang)
        expected = dict.fromkeys(printable(row.expected) for row in rows)
        for row in rows[:MAX_SUBJECTS]:
            found: Text = Literal(printable(row.actual))
            if len(group) > 1 and row.subject:
                found = Message("{subject}: {found}", subject=subject_text(printable(row.subject)), found=found)
            yield from self._row("found", self._to(found))
            if len(expected) > 1:
                yield from self._row("expected", printable(row.expected))
        if len(rows) > MAX_SUBJECTS:
            yield from self._row("found", self._to(Message("and {count} more", count=len(rows) - MAX_SUBJECTS)))
        if len(expected) == 1:
            yield from self._row("expected", next(iter(expected)))

    def _row(self, key: str, text: str) -> Iterator[str]:
        if text:
            label = " " * 11 + self.paint(pad(self._to(LABELS[key]), 10), "dim") + " "
            for number, line in enumerate(indent(text, self.width, " " * 22, " " * 22)):
                yield label + line[22:] if number == 0 else line

    def unknown(self, findings: Sequence[Finding]) -> Iterator[str]:
        reasons: dict[str, list[Finding]] = {}
        for finding in findings:
            if finding.outcome is Outcome.UNKNOWN:
                reasons.setdefault(spelled(self._to(finding.reason), self.lang), []).append(finding)
        if not reasons:
            return
        yield self._heading("unknown")
        for reason, group in reasons.items():
            names = self._to(enumerated(dict.fromkeys(self._subject_id(f) for f in group)))
            yield from indent(reason, self.width, "  ? ", "    ")
            yield from indent(names, self.width, "    ", "    ")
        yield ""

    def _subject_id(self, finding: Finding) -> str:
        return f"{finding.id} [{self._to(subject_text(finding.subject))}]" if finding.subject else finding.id

    def families(self, findings: Sequence[Finding], verbose: bool) -> Iterator[str]:
        yield self._heading("families")
        for family in dict.fromkeys(f.check.family for f in findings):
            of_family = [f for f in findings if f.check.family == family]
            counts = count_checks(of_family)
            parts = [*((counts.outcomes[o], OUTCOMES[o]) for o in Outcome), (counts.notes, NOTE)]
            numbers = listed(f"{count} {self._to(word)}" for count, word in parts if count)
            name = pad(family, 6) + pad(self._to(family_title(family)), 28)
            yield from indent(self._to(numbers), self.width, f"  {name}", " " * 36)
            if verbose:
                yield from self._all(of_family)

    def _all(self, findings: Iterable[Finding]) -> Iterator[str]:
        for finding in findings:
            words = spelled(self._to(finding.reason), self.lang) or printable(
                statements((finding,), self.lang)[0].actual
            )
            subject = f"[{self._to(subject_text(finding.subject))}] " if finding.subject else ""
            first = f"    {pad(finding.id, 8)} {pad(self._to(OUTCOMES[finding.outcome]), 16)} "
            yield from indent(f"{subject}{words}", self.width, first, " " * display_width(first))
            yield from indent(self._source(finding), self.width, " " * 31, " " * 31)

    def _source(self, finding: Finding) -> str:
        return self._to(_as_text(finding.evidence.source))

    def verdict(self, report: Report) -> Iterator[str]:
        first, *others = verdict_lines(report)
        for line in indent(self._to(first), self.width, "", ""):
            yield self.paint(line, "bold", verdict_colour(report))
        for text in others:
            yield from indent(self._to(text), self.width, "", "")


def _as_text(source: Source) -> Text:
    return Literal(source) if isinstance(source, str) else source
