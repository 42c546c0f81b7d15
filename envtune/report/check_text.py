"""Render a report as text: what is wrong first, what is unknown and why, a line per family, one verdict."""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Optional, Sequence, Union

from envtune.audit import summary
from envtune.audit.verdict import Verdict, verdict
from envtune.catalog.families import family_title
from envtune.messages import Joined, Literal, Message, Text, enumerated, in_context, listed, plural
from envtune.model import Fact, Finding, Outcome, Report, Severity, Source
from envtune.report.layout import Paint, display_width, indent, pad, printable
from envtune.report.policy_text import policy_lines
from envtune.version import __version__

SEVERITIES: Mapping[Severity, Text] = {
    Severity.CRITICAL: Message("critical"),
    Severity.HIGH: Message("high"),
    Severity.MEDIUM: Message("medium"),
    Severity.LOW: Message("low"),
    Severity.INFO: Message("info"),
}
OUTCOMES: Mapping[Outcome, Text] = {
    Outcome.PASS: Message("passed"),
    Outcome.FAIL: Message("failed"),
    Outcome.UNKNOWN: in_context("outcome", "unknown"),
    Outcome.NOTAPPLICABLE: Message("not applicable"),
    Outcome.ERROR: Message("error in envtune"),
    Outcome.WAIVED: Message("waived"),
    Outcome.FIXED: Message("fixed"),
}
_COLOUR: Mapping[Severity, str] = {
    Severity.CRITICAL: "red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
    Severity.INFO: "cyan",
}
MAX_SUBJECTS = 6  # of one failed check that are shown one by one
_HEADER = ("host", "npu", "cann", "python", "job")
_LABELS: Mapping[str, Text] = {
    "host": Message("Host"),
    "npu": Literal("NPU"),
    "cann": Literal("CANN"),
    "python": Literal("Python"),
    "job": Message("Job"),
    "found": Message("found"),
    "expected": Message("expected"),
    "why": Message("why"),
    "fix": Message("fix"),
    "look": in_context("text", "look"),
    "where": Message("where"),
    "wrong": Message("What is wrong"),
    "unknown": Message("What could not be told"),
    "families": Message("All checks"),
}


def render(report: Report, lang: str, *, width: int = 100, colour: bool = False, verbose: bool = False) -> str:
    """Return the whole report in `lang`, at most `width` columns wide where words allow it."""
    renderer = _Renderer(lang, max(width, 60), Paint(colour))
    lines = [*renderer.header(report), "", *renderer.failures(report.findings), *renderer.unknown(report.findings)]
    lines += policy_lines(report, lang, max(width, 60))
    lines += [*renderer.families(report.findings, verbose), "", *renderer.verdict(report)]
    return "\n".join(line.rstrip(" ") for line in lines)


class _Renderer:
    """The parts of the report; each yields its lines."""

    def __init__(self, lang: str, width: int, paint: Paint) -> None:
        self.lang, self.width, self.paint = lang, width, paint

    def _to(self, text: Optional[Text]) -> str:
        return "" if text is None else printable(text.to(self.lang))

    def _heading(self, key: str) -> str:
        return self.paint(self._to(_LABELS[key]), "bold")

    def header(self, report: Report) -> Iterator[str]:
        yield self.paint(f"envtune {__version__}", "bold") + f"  {printable(report.host)}  {report.started}"
        texts = header_texts(report)
        for key in _HEADER:
            yield from indent(self._to(texts[key]), self.width, "  " + pad(self._to(_LABELS[key]), 8), " " * 10)

    def failures(self, findings: Sequence[Finding]) -> Iterator[str]:
        failed = [f for f in findings if f.outcome in (Outcome.FAIL, Outcome.ERROR)]
        if not failed:
            return
        yield self._heading("wrong")
        failed.sort(key=lambda f: -f.severity.rank)
        for family in dict.fromkeys(f.check.family for f in failed):
            yield ""
            yield "  " + self.paint(f"{family}  {self._to(family_title(family))}".rstrip(), "bold")
            of_family = [f for f in failed if f.check.family == family]
            for identifier in dict.fromkeys(f.id for f in of_family):
                yield from self._failure([f for f in of_family if f.id == identifier])
        yield ""

    def _failure(self, group: Sequence[Finding]) -> Iterator[str]:
        """Yield one check that failed, for all its subjects: what differs for each, what is the same once."""
        check, severity = group[0].check, group[0].severity
        alone = f" [{printable(group[0].subject)}]" if len(group) == 1 and group[0].subject else ""
        first = f"  {pad(check.id, 8)} "
        label = pad(self._to(SEVERITIES[severity]), 9)
        title = indent(label + self._to(check.title) + alone, self.width, first, " " * display_width(first + label))
        yield first + self.paint(label, _COLOUR[severity]) + title[0][len(first + label) :]
        yield from title[1:]
        yield from self._values(group)
        shown = group[:MAX_SUBJECTS]
        yield from self._row("where", ", ".join(dict.fromkeys(self._source(f) for f in shown)))
        yield from self._row("why", self._to(check.rationale))
        yield from self._row("fix", self._to(check.remedy))
        yield from self._commands(shown)

    def _commands(self, group: Sequence[Finding]) -> Iterator[str]:
        """Yield what repairs it below the remedy, then the one line for each subject that shows more."""
        repairs = dict.fromkeys(c.line for f in group for c in f.commands if c.kind == "fix")
        for line in repairs:
            yield from self._line(line, "green")
        looks = [[c.line for c in f.commands if c.kind == "look"][:1] for f in group]
        for number, line in enumerate(dict.fromkeys(line for lines in looks for line in lines)):
            rows = list(self._line(line, "cyan"))
            label = " " * 11 + self.paint(pad(self._to(_LABELS["look"]), 10), "dim") + " "
            yield from [label + rows[0][22:], *rows[1:]] if number == 0 else rows

    def _line(self, line: Union[str, Text], colour: str) -> Iterator[str]:
        if isinstance(line, str):
            yield " " * 22 + self.paint("$ " + printable(line), colour)
        else:
            yield from indent(self._to(line), self.width, " " * 22, " " * 22)

    def _values(self, group: Sequence[Finding]) -> Iterator[str]:
        """Yield what was found for each subject and what was expected, that once where it is the same for all."""
        expected = dict.fromkeys(self._to(f.expected) for f in group)
        for finding in group[:MAX_SUBJECTS]:
            actual = finding.reason if finding.outcome is Outcome.ERROR else finding.actual
            subject = f"{printable(finding.subject)}: " if len(group) > 1 and finding.subject else ""
            yield from self._row("found", subject + self._to(actual))
            if len(expected) > 1:
                yield from self._row("expected", self._to(finding.expected))
        if len(group) > MAX_SUBJECTS:
            yield from self._row("found", self._to(Message("and {count} more", count=len(group) - MAX_SUBJECTS)))
        if len(expected) == 1:
            yield from self._row("expected", next(iter(expected)))

    def _row(self, key: str, text: str) -> Iterator[str]:
        if text:
            label = " " * 11 + self.paint(pad(self._to(_LABELS[key]), 10), "dim") + " "
            for number, line in enumerate(indent(text, self.width, " " * 22, " " * 22)):
                yield label + line[22:] if number == 0 else line

    def unknown(self, findings: Sequence[Finding]) -> Iterator[str]:
        reasons: dict[str, list[Finding]] = {}
        for finding in findings:
            if finding.outcome is Outcome.UNKNOWN:
                reasons.setdefault(self._to(finding.reason), []).append(finding)
        if not reasons:
            return
        yield self._heading("unknown")
        for reason, group in reasons.items():
            names = ", ".join(dict.fromkeys(_subject_id(f) for f in group))
            yield from indent(reason, self.width, "  ? ", "    ")
            yield from indent(names, self.width, "    ", "    ")
        yield ""

    def families(self, findings: Sequence[Finding], verbose: bool) -> Iterator[str]:
        yield self._heading("families")
        for family in dict.fromkeys(f.check.family for f in findings):
            of_family = [f for f in findings if f.check.family == family]
            counts = summary(of_family)
            numbers = listed(f"{counts[o.value]} {self._to(OUTCOMES[o])}" for o in Outcome if counts[o.value])
            name = pad(family, 6) + pad(self._to(family_title(family)), 28)
            yield from indent(self._to(numbers), self.width, f"  {name}", " " * 36)
            if verbose:
                yield from self._all(of_family)

    def _all(self, findings: Iterable[Finding]) -> Iterator[str]:
        for finding in findings:
            words = self._to(finding.reason) or self._to(finding.actual)
            subject = f"[{printable(finding.subject)}] " if finding.subject else ""
            first = f"    {pad(finding.id, 8)} {pad(self._to(OUTCOMES[finding.outcome]), 16)} "
            yield from indent(f"{subject}{words}", self.width, first, " " * display_width(first))
            yield from indent(self._source(finding), self.width, " " * 31, " " * 31)

    def _source(self, finding: Finding) -> str:
        return self._to(_as_text(finding.evidence.source))

    def verdict(self, report: Report) -> list[str]:
        text, style = verdict_text(report)
        lines = indent(self._to(text), self.width, "", "")
        return [self.paint(line, "bold", style) for line in lines]


def _subject_id(finding: Finding) -> str:
    return f"{finding.id} [{printable(finding.subject)}]" if finding.subject else finding.id


_VERDICTS: Mapping[Verdict, Text] = {
    Verdict.READY: Message("READY"),
    Verdict.ADVICE: Message("READY, with advice"),
    Verdict.NOT_READY: Message("NOT READY"),
    Verdict.NOT_SURE: Message("NOT SURE"),
}


def verdict_text(report: Report) -> tuple[Text, str]:
    """Return the one line that sums it up, and its colour."""
    findings = report.findings
    reached = verdict(findings)
    if reached is Verdict.NOTHING_CHECKED:
        return _nothing_checked(report), "yellow"
    failed = [f for f in findings if f.outcome in (Outcome.FAIL, Outcome.ERROR)]
    unknown = [f for f in findings if f.outcome is Outcome.UNKNOWN]
    privileged = sum(1 for f in unknown if f.needs_privilege)
    passed = sum(1 for f in findings if f.outcome is Outcome.PASS)
    root = Message(" ({count} for want of a right: run as root)", count=privileged) if privileged else Literal("")
    return Message(
        "{verdict}: {problems}; {passed} passed; {unknown} could not be told{root}",
        verdict=_VERDICTS[reached],
        problems=_problems(failed),
        passed=passed,
        unknown=len(unknown),
        root=root,
    ), {Verdict.READY: "yellow" if unknown else "green", Verdict.NOT_READY: "red"}.get(reached, "yellow")


def _nothing_checked(report: Report) -> Text:
    """Return the conclusion where no check applies: nothing is known about the host, not even that it is ready."""
    kind = _kind_of_machine({fact.name: fact for fact in report.facts})
    return plural(
        "NOTHING CHECKED: the selected check does not apply to this host ({kind})",
        "NOTHING CHECKED: none of the {count} selected checks applies to this host ({kind})",
        len({finding.id for finding in report.findings}),
        kind=kind,
    )


def _problems(failed: Sequence[Finding]) -> Text:
    """Return how many checks failed, by severity."""
    counts = ((s, sum(1 for f in failed if f.severity is s)) for s in sorted(SEVERITIES, key=lambda s: -s.rank))
    parts = [Message("{count} {severity}", count=count, severity=SEVERITIES[s]) for s, count in counts if count]
    return enumerated(parts) if parts else Message("no problems")


def header_texts(report: Report) -> Mapping[str, Text]:
    """Return the lines of the header, made of facts and target."""
    facts = {fact.name: fact for fact in report.facts}

    def show(name: str) -> Text:
        fact = facts.get(name)
        if fact is None:
            return in_context("value", "unknown")
        if fact.value is not None:
            return Literal(fact.value)
        reason = fact.reason or Literal("")
        return Message("unknown ({reason})", reason=reason)

    system = Joined([show("os"), show("os_version")], " ")
    cpus = Message("{count} CPUs", count=show("cpus"))
    return {
        "host": listed([system, _kind_of_machine(facts), show("arch"), show("kernel"), cpus]),
        "npu": _npu(show("npu"), show("npu_count"), show("driver"), show("firmware")),
        "cann": _unless_none(show("cann"), Message("none installed")),
        "python": _python(report.target),
        "job": _job(report.target),
    }


def _kind_of_machine(facts: Mapping[str, Fact]) -> Text:
    values = {name: facts[name].value if name in facts else None for name in ("container", "vm")}
    if values["container"] == "true":
        return Message("container")
    if values["vm"] == "true":
        return Message("virtual machine")
    return Message("kind of machine unknown") if None in values.values() else Message("bare metal")


def _unless_none(value: Text, none: Text) -> Text:
    return none if value.en == "none" else value


def _npu(model: Text, count: Text, driver: Text, firmware: Text) -> Text:
    if model.en == "none":
        return Message("none")
    return Message(
        "{count} x {model}, driver {driver}, firmware {firmware}",
        count=count,
        model=model,
        driver=_unless_none(driver, Message("none")),
        firmware=_unless_none(firmware, Message("none")),
    )


def _python(target: Mapping[str, Source]) -> Text:
    if "python" not in target:
        return Message("unknown: {reason}", reason=target.get("python_reason", ""))
    version, reason = target.get("python_version", "?"), target.get("python_chosen", "")
    return Message("{version}  {path}  ({reason})", version=version, path=target["python"], reason=reason)


def _job(target: Mapping[str, Source]) -> Text:
    if "environment_reason" in target:
        return Message("environment unknown: {reason}", reason=target["environment_reason"])
    return in_context("job", "environment of {source}", source=target.get("environment", "?"))


def _as_text(source: Source) -> Text:
    return Literal(source) if isinstance(source, str) else source
