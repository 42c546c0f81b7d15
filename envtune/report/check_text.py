"""The report a person reads: what is wrong first, what could not be told and why, a line per family, one verdict."""

from __future__ import annotations

import re
from typing import Iterable, Iterator, Mapping, Optional, Sequence

from envtune import __version__
from envtune.audit import summary
from envtune.catalog.families import family_title
from envtune.messages import Bilingual, Literal, Message, Text, in_context
from envtune.model import Finding, Outcome, Report, Severity
from envtune.report.layout import Paint, display_width, indent, pad, printable

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
SHOWN = 6  # subjects of one failed check that are told one by one
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
    "where": Message("where"),
    "wrong": Message("What is wrong"),
    "untold": Message("What could not be told"),
    "families": Message("All checks"),
}


def render(report: Report, lang: str, *, width: int = 100, colour: bool = False, verbose: bool = False) -> str:
    """The whole report, in `lang`, at most `width` columns wide where words allow it."""
    page = _Page(lang, max(width, 60), Paint(colour))
    lines = [*page.header(report), "", *page.wrong(report.findings), *page.untold(report.findings)]
    lines += [*page.families(report.findings, verbose), "", *page.verdict(report.findings)]
    return "\n".join(line.rstrip(" ") for line in lines)


class _Page:
    """The parts of the page; each returns its lines."""

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

    def wrong(self, findings: Sequence[Finding]) -> Iterator[str]:
        bad = [f for f in findings if f.outcome in (Outcome.FAIL, Outcome.ERROR)]
        if not bad:
            return
        yield self._heading("wrong")
        bad.sort(key=lambda f: -f.severity.rank)
        for family in dict.fromkeys(f.check.family for f in bad):
            yield ""
            yield "  " + self.paint(f"{family}  {self._to(family_title(family))}".rstrip(), "bold")
            own = [f for f in bad if f.check.family == family]
            for identifier in dict.fromkeys(f.id for f in own):
                yield from self._defect([f for f in own if f.id == identifier])
        yield ""

    def _defect(self, group: Sequence[Finding]) -> Iterator[str]:
        """One check that failed, for all its subjects: what differs is said for each, what is the same once."""
        check, severity = group[0].check, group[0].severity
        alone = f" [{printable(group[0].subject)}]" if len(group) == 1 and group[0].subject else ""
        first = f"  {pad(check.id, 8)} "
        label = pad(self._to(SEVERITIES[severity]), 9)
        title = indent(label + self._to(check.title) + alone, self.width, first, " " * display_width(first + label))
        yield first + self.paint(label, _COLOUR[severity]) + title[0][len(first + label) :]
        yield from title[1:]
        expected = dict.fromkeys(self._to(f.expected) for f in group)
        for finding in group[:SHOWN]:
            found = finding.reason if finding.outcome is Outcome.ERROR else finding.actual
            subject = f"{printable(finding.subject)}: " if len(group) > 1 and finding.subject else ""
            yield from self._row("found", subject + self._to(found))
            if len(expected) > 1:
                yield from self._row("expected", self._to(finding.expected))
        if len(group) > SHOWN:
            yield from self._row("found", self._to(Message("and {count} more", count=len(group) - SHOWN)))
        if len(expected) == 1:
            yield from self._row("expected", next(iter(expected)))
        yield from self._row("where", ", ".join(dict.fromkeys(self._source(f) for f in group[:SHOWN])))
        yield from self._row("why", self._to(check.rationale))
        yield from self._row("fix", self._to(check.remedy))
        for command in dict.fromkeys(f.commands[0] for f in group[:SHOWN] if f.commands):
            yield " " * 22 + self.paint("$ " + command, "green")

    def _row(self, key: str, text: str) -> Iterator[str]:
        if text:
            label = " " * 11 + self.paint(pad(self._to(_LABELS[key]), 10), "dim") + " "
            for number, line in enumerate(indent(text, self.width, " " * 22, " " * 22)):
                yield label + line[22:] if number == 0 else line

    def untold(self, findings: Sequence[Finding]) -> Iterator[str]:
        reasons: dict[str, list[Finding]] = {}
        for finding in findings:
            if finding.outcome is Outcome.UNKNOWN:
                reasons.setdefault(self._to(finding.reason), []).append(finding)
        if not reasons:
            return
        yield self._heading("untold")
        for reason, group in reasons.items():
            names = ", ".join(dict.fromkeys(_subject_id(f) for f in group))
            yield from indent(reason, self.width, "  ? ", "    ")
            yield from indent(names, self.width, "    ", "    ")
        yield ""

    def families(self, findings: Sequence[Finding], verbose: bool) -> Iterator[str]:
        yield self._heading("families")
        for family in dict.fromkeys(f.check.family for f in findings):
            own = [f for f in findings if f.check.family == family]
            counts = summary(own)
            words = [f"{counts[o.value]} {self._to(OUTCOMES[o])}" for o in Outcome if counts[o.value]]
            name = pad(family, 6) + pad(self._to(family_title(family)), 28)
            yield from indent((", " if self.lang == "en" else "，").join(words), self.width, f"  {name}", " " * 36)
            if verbose:
                yield from self._all(own)

    def _all(self, findings: Iterable[Finding]) -> Iterator[str]:
        for finding in findings:
            words = self._to(finding.reason) or self._to(finding.actual)
            subject = f"[{printable(finding.subject)}] " if finding.subject else ""
            first = f"    {pad(finding.id, 8)} {pad(self._to(OUTCOMES[finding.outcome]), 16)} "
            yield from indent(f"{subject}{words}", self.width, first, " " * display_width(first))
            yield from indent(self._source(finding), self.width, " " * 31, " " * 31)

    def _source(self, finding: Finding) -> str:
        return printable(self._to(source_text(finding.evidence.source)))

    def verdict(self, findings: Sequence[Finding]) -> list[str]:
        text, style = verdict_text(findings)
        lines = indent(self._to(text), self.width, "", "")
        return [self.paint(line, "bold", style) for line in lines]


def _subject_id(finding: Finding) -> str:
    return f"{finding.id} [{printable(finding.subject)}]" if finding.subject else finding.id


def verdict_text(findings: Sequence[Finding]) -> tuple[Text, str]:
    """The one line that says it all, and its colour."""
    failed = [f for f in findings if f.outcome in (Outcome.FAIL, Outcome.ERROR)]
    untold = [f for f in findings if f.outcome is Outcome.UNKNOWN]
    rights = sum(1 for f in untold if f.needs_privilege)
    passed = sum(1 for f in findings if f.outcome is Outcome.PASS)
    en, zh = [], []
    for severity in sorted(SEVERITIES, key=lambda s: -s.rank):
        number = sum(1 for f in failed if f.severity is severity)
        if number:
            en.append(f"{number} {SEVERITIES[severity].en}")
            zh.append(f"{number} 项{SEVERITIES[severity].zh}")
    serious = any(f.severity.rank >= Severity.MEDIUM.rank for f in failed)
    head = _head(serious, bool(failed), [f for f in untold if f.severity.rank >= Severity.MEDIUM.rank])
    problems = Bilingual(", ".join(en) or "no problems", "、".join(zh) or "没有问题")
    root = Message(" ({rights} for want of a right: run as root)", rights=rights)
    more = root if rights else Literal("")
    return Message(
        "{head}: {problems}; {passed} passed; {count} could not be told{more}",
        head=head,
        problems=problems,
        passed=passed,
        count=len(untold),
        more=more,
    ), "red" if serious else "yellow" if failed or untold else "green"


def _head(serious: bool, failed: bool, untold: Sequence[Finding]) -> Text:
    if serious:
        return Message("NOT READY")
    if untold:
        return Message("NOT SURE")
    return Message("READY, with advice") if failed else Message("READY")


def header_texts(report: Report) -> Mapping[str, Text]:
    """The lines of the header from facts and target."""
    facts = {fact.name: fact for fact in report.facts}

    def show(name: str) -> Text:
        fact = facts.get(name)
        if fact is None:
            return in_context("value", "unknown")
        if fact.value is not None:
            return Literal(fact.value)
        reason = fact.reason or Literal("")
        return Message("unknown ({reason})", reason=reason)

    container, virtual = facts.get("container"), facts.get("vm")
    kind = Message("bare metal")
    if container is not None and container.value == "true":
        kind = Message("container")
    elif virtual is not None and virtual.value == "true":
        kind = Message("virtual machine")
    elif container is None or container.value is None or virtual is None or virtual.value is None:
        kind = Message("kind of machine unknown")
    return {
        "host": _join([show("os"), show("os_version")], kind, [show("arch"), show("kernel"), _cpus(show("cpus"))]),
        "npu": _npu(show("npu"), show("npu_count"), show("driver"), show("firmware")),
        "cann": _none(show("cann"), Message("none installed")),
        "python": _python(report.target),
        "job": _job(report.target),
    }


def _join(name: Sequence[Text], kind: Text, rest: Sequence[Text]) -> Text:
    en = ", ".join([" ".join(n.en for n in name), kind.en, *(r.en for r in rest)])
    return Bilingual(en, "，".join([" ".join(n.zh for n in name), kind.zh, *(r.zh for r in rest)]))


def _cpus(count: Text) -> Text:
    return Message("{count} CPUs", count=count)


def _none(text: Text, words: Text) -> Text:
    return words if text.en == "none" else text


def _npu(model: Text, count: Text, driver: Text, firmware: Text) -> Text:
    if model.en == "none":
        return Message("none")
    driver, firmware = _none(driver, Message("none")), _none(firmware, Message("none"))
    return Message(
        "{count} x {model}, driver {driver}, firmware {firmware}",
        count=count,
        model=model,
        driver=driver,
        firmware=firmware,
    )


def _python(target: Mapping[str, str]) -> Text:
    if "python" not in target:
        reason_en, reason_zh = target.get("python_reason", ""), target.get("python_reason_zh", "")
        return Bilingual(f"unknown: {reason_en}", f"未知：{reason_zh or reason_en}")
    return Bilingual(
        f"{target.get('python_version', '?')}  {target['python']}  ({target.get('python_chosen', '')})",
        f"{target.get('python_version', '?')}  {target['python']}（{target.get('python_chosen_zh', '')}）",
    )


_SOURCE_ZH = (
    (re.compile(r"^environment of (.+)$"), r"\1 的环境变量"),
    (re.compile(r"\bthis shell\b"), "当前 shell"),
    (re.compile(r"\bprocess (?=\d+\b)"), "进程 "),
    (re.compile(r"^(\S+) over (.+)$"), r"\1（其余取自\2）"),
    (re.compile(r"^(\S+) alone$"), r"仅 \1"),
)


def source_text(source: str) -> Text:
    """A source of evidence in both languages: paths and commands stand for themselves, `this shell` does not."""
    zh = source
    for pattern, words in _SOURCE_ZH:
        zh = pattern.sub(words, zh)
    return Bilingual(source, zh)


def _job(target: Mapping[str, str]) -> Text:
    source = source_text(target.get("environment", "?"))
    if "environment_reason" in target:
        return Bilingual(
            f"environment unknown: {target['environment_reason']}",
            f"环境变量未知：{target.get('environment_reason_zh', target['environment_reason'])}",
        )
    gap = " " if source.zh.isascii() else ""
    return Bilingual(f"environment of {source.en}", f"环境变量来自{gap}{source.zh}")
