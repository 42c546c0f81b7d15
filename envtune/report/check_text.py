"""The report a person reads: what is wrong first, what could not be told and why, a line per family, one verdict."""

from __future__ import annotations

import re
from typing import Iterable, Iterator, Mapping, Optional, Sequence

from envtune import __version__
from envtune.audit import summary
from envtune.catalog.families import family_title
from envtune.model import Finding, Outcome, Report, Severity, Text
from envtune.report.layout import Paint, display_width, indent, pad, printable

SEVERITIES: Mapping[Severity, Text] = {
    Severity.CRITICAL: Text("critical", "致命"),
    Severity.HIGH: Text("high", "严重"),
    Severity.MEDIUM: Text("medium", "一般"),
    Severity.LOW: Text("low", "轻微"),
    Severity.INFO: Text("info", "提示"),
}
OUTCOMES: Mapping[Outcome, Text] = {
    Outcome.PASS: Text("passed", "通过"),
    Outcome.FAIL: Text("failed", "未通过"),
    Outcome.UNKNOWN: Text("unknown", "无法判断"),
    Outcome.NOTAPPLICABLE: Text("not applicable", "不适用"),
    Outcome.ERROR: Text("error in envtune", "envtune 出错"),
    Outcome.WAIVED: Text("waived", "已豁免"),
    Outcome.FIXED: Text("fixed", "已修复"),
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
    "host": Text("Host", "主机"),
    "npu": Text("NPU", "NPU"),
    "cann": Text("CANN", "CANN"),
    "python": Text("Python", "Python"),
    "job": Text("Job", "任务"),
    "found": Text("found", "现状"),
    "expected": Text("expected", "期望"),
    "why": Text("why", "原因"),
    "fix": Text("fix", "处理"),
    "where": Text("where", "依据"),
    "wrong": Text("What is wrong", "存在的问题"),
    "untold": Text("What could not be told", "无法判断的项目"),
    "families": Text("All checks", "全部检查"),
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
            yield from self._row(
                "found", self._to(Text(f"and {len(group) - SHOWN} more", f"另有 {len(group) - SHOWN} 项"))
            )
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
    rights = sum(1 for f in untold if f.right)
    passed = sum(1 for f in findings if f.outcome is Outcome.PASS)
    en, zh = [], []
    for severity in sorted(SEVERITIES, key=lambda s: -s.rank):
        number = sum(1 for f in failed if f.severity is severity)
        if number:
            en.append(f"{number} {SEVERITIES[severity].en}")
            zh.append(f"{number} 项{SEVERITIES[severity].zh}")
    serious = any(f.severity.rank >= Severity.MEDIUM.rank for f in failed)
    head = _head(serious, bool(failed), [f for f in untold if f.severity.rank >= Severity.MEDIUM.rank])
    problems = Text(", ".join(en) or "no problems", "、".join(zh) or "没有问题")
    root = Text(f" ({rights} for want of a right: run as root)", f"（其中 {rights} 项缺少权限，请以 root 运行）")
    more = root if rights else Text("", "")
    return Text(
        f"{head.en}: {problems.en}; {passed} passed; {len(untold)} could not be told{more.en}",
        f"{head.zh}：{problems.zh}；{passed} 项通过；{len(untold)} 项无法判断{more.zh}",
    ), "red" if serious else "yellow" if failed or untold else "green"


def _head(serious: bool, failed: bool, untold: Sequence[Finding]) -> Text:
    if serious:
        return Text("NOT READY", "未就绪")
    if untold:
        return Text("NOT SURE", "尚不能确定")
    return Text("READY, with advice", "就绪，另有建议") if failed else Text("READY", "就绪")


def header_texts(report: Report) -> Mapping[str, Text]:
    """The lines of the header from facts and target."""
    facts = {fact.name: fact for fact in report.facts}

    def show(name: str) -> Text:
        fact = facts.get(name)
        if fact is None:
            return Text("unknown", "未知")
        if fact.value is not None:
            return Text(fact.value, fact.value)
        reason = fact.reason or Text("", "")
        return Text(f"unknown ({reason.en})", f"未知（{reason.zh}）")

    container, virtual = facts.get("container"), facts.get("vm")
    kind = Text("bare metal", "物理机")
    if container is not None and container.value == "true":
        kind = Text("container", "容器")
    elif virtual is not None and virtual.value == "true":
        kind = Text("virtual machine", "虚拟机")
    elif container is None or container.value is None or virtual is None or virtual.value is None:
        kind = Text("kind of machine unknown", "机器类型未知")
    return {
        "host": _join([show("os"), show("os_version")], kind, [show("arch"), show("kernel"), _cpus(show("cpus"))]),
        "npu": _npu(show("npu"), show("npu_count"), show("driver"), show("firmware")),
        "cann": _none(show("cann"), Text("none installed", "未安装")),
        "python": _python(report.target),
        "job": _job(report.target),
    }


def _join(name: Sequence[Text], kind: Text, rest: Sequence[Text]) -> Text:
    en = ", ".join([" ".join(n.en for n in name), kind.en, *(r.en for r in rest)])
    return Text(en, "，".join([" ".join(n.zh for n in name), kind.zh, *(r.zh for r in rest)]))


def _cpus(count: Text) -> Text:
    return Text(f"{count.en} CPUs", f"{count.zh} 个 CPU")


def _none(text: Text, words: Text) -> Text:
    return words if text.en == "none" else text


def _npu(model: Text, count: Text, driver: Text, firmware: Text) -> Text:
    if model.en == "none":
        return Text("none", "无")
    driver, firmware = _none(driver, Text("none", "无")), _none(firmware, Text("none", "无"))
    return Text(
        f"{count.en} x {model.en}, driver {driver.en}, firmware {firmware.en}",
        f"{count.zh} × {model.zh}，驱动 {driver.zh}，固件 {firmware.zh}",
    )


def _python(target: Mapping[str, str]) -> Text:
    if "python" not in target:
        reason_en, reason_zh = target.get("python_reason", ""), target.get("python_reason_zh", "")
        return Text(f"unknown: {reason_en}", f"未知：{reason_zh or reason_en}")
    return Text(
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
    return Text(source, zh)


def _job(target: Mapping[str, str]) -> Text:
    source = source_text(target.get("environment", "?"))
    if "environment_reason" in target:
        return Text(
            f"environment unknown: {target['environment_reason']}",
            f"环境变量未知：{target.get('environment_reason_zh', target['environment_reason'])}",
        )
    gap = " " if source.zh.isascii() else ""
    return Text(f"environment of {source.en}", f"环境变量来自{gap}{source.zh}")
