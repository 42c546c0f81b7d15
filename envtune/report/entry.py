"""One entry of the catalogue as a page: `explain` prints it on a terminal, docs/generate.py as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Iterator, Mapping, Optional, Union

from envtune.catalog import Catalogue
from envtune.expect import describe, value_text
from envtune.model import Check, FaqEntry, Playbook, Text, same
from envtune.report.check_text import SEVERITIES
from envtune.report.layout import Paint, indent, printable, wrap

Entry = Union[Check, FaqEntry, Playbook]

STATUS: Mapping[str, Text] = {
    "experimental": Text("experimental", "试验"),
    "stable": Text("stable", "稳定"),
    "deprecated": Text("deprecated", "已弃用"),
}
SIDES: Mapping[str, Text] = {
    "host": Text("the host: envtune can check it", "主机侧：envtune 可以检查"),
    "code": Text("the training script", "训练脚本"),
    "escalate": Text("the vendor's support, with the logs", "携带日志联系厂商支持"),
    "ignore": Text("nobody: it is harmless", "无需处理：没有影响"),
}
SAFETY: Mapping[str, Text] = {
    "safe": Text("safe: running jobs do not notice", "安全：不影响运行中的任务"),
    "confirm": Text("asks before it changes anything", "修改前会请求确认"),
    "manual": Text("by hand: envtune only shows the steps", "手动：envtune 只给出步骤"),
}
DISRUPTION: Mapping[str, Text] = {
    "none": Text("interrupts nothing", "不中断任何业务"),
    "job": Text("the job must be started again", "需要重新启动任务"),
    "service": Text("a service is restarted", "需要重启服务"),
    "reboot": Text("the server restarts", "需要重启服务器"),
}
_NOT_YET = Text("not yet described", "尚未收录")


@dataclass(frozen=True)
class Section:
    """A heading and what is below it; `kind` is text, list, steps or code."""

    heading: Text
    kind: str
    lines: tuple[Text, ...]


def head(entry: Entry) -> Text:
    """The line under the title: how much it matters and what it is for."""
    if isinstance(entry, Check):
        severity, status = SEVERITIES[entry.severity], STATUS[entry.status]
        tags = ", ".join(entry.tags)
        words = [severity, status, *([same(tags)] if tags else [])]
    elif isinstance(entry, FaqEntry):
        words = [Text(f"to be done by {SIDES[entry.side].en}", f"处理方：{SIDES[entry.side].zh}")]
    else:
        words = [SAFETY[entry.safety], DISRUPTION[entry.disruption]]
        words += [Text("needs root", "需要 root 权限")] if entry.root else []
    return Text(" · ".join(w.en for w in words), " · ".join(w.zh for w in words))


def label(entry: Entry) -> str:
    """The id, and the name where there is one."""
    return entry.id if isinstance(entry, Playbook) else f"{entry.id}  {entry.name}"


def sections(entry: Entry, catalogue: Catalogue) -> tuple[Section, ...]:
    """Everything the catalogue says about an entry, without empty sections."""
    if isinstance(entry, Check):
        found = _check(entry, catalogue)
    elif isinstance(entry, FaqEntry):
        found = _faq(entry, catalogue)
    else:
        found = _playbook(entry, catalogue)
    return tuple(section for section in (*found, *_sources(entry)) if section.lines)


def terminal_page(entry: Entry, catalogue: Catalogue, lang: str, *, width: int, colour: bool) -> str:
    """The page for a terminal of `width` columns."""
    paint = Paint(colour)
    title = wrap(printable(entry.title.to(lang)), width)
    summary = (paint(line, "dim") for line in wrap(head(entry).to(lang), width))
    lines = [paint(label(entry), "bold"), *title, *summary]
    for section in sections(entry, catalogue):
        lines += ["", paint(section.heading.to(lang), "bold"), *_terminal(section, lang, width)]
    return "\n".join(line.rstrip() for line in lines)


def _terminal(section: Section, lang: str, width: int) -> Iterator[str]:
    for number, line in enumerate(section.lines, 1):
        words = printable(line.to(lang))
        if section.kind == "code":
            yield f"    {words}"
            continue
        mark = {"text": "", "list": "- ", "steps": f"{number}. "}[section.kind]
        yield from indent(words, width, "  " + mark, "  " + " " * len(mark))


def _check(check: Check, catalogue: Catalogue) -> Iterator[Section]:
    yield Section(Text("Why it matters", "为什么重要"), "text", (check.rationale,))
    yield Section(Text("What is read", "读取内容"), "text", _probe(check))
    yield Section(Text("Expected", "期望"), "text", (describe(check.expect),))
    yield Section(Text("Applies to", "适用范围"), "list", tuple(_facts(check.applies)))
    rows = (_severity_row(when, SEVERITIES[severity]) for when, severity in check.severity_by)
    yield Section(Text("Severity elsewhere", "其他情况下的级别"), "list", tuple(rows))
    yield Section(Text("How to fix it", "处理方法"), "text", (check.remedy,) if check.remedy else ())
    lines = [*check.commands, *(line for _, commands in check.commands_by for line in commands)]
    yield Section(Text("Commands", "命令"), "code", tuple(same(line) for line in lines))
    playbooks = [p for p in catalogue.playbooks if check.id in p.fixes or p.id == check.playbook]
    yield Section(Text("Playbooks", "修复方案"), "list", tuple(_link(p.id, p.title) for p in playbooks))
    yield Section(Text("When a failure is no problem", "何时可以忽略"), "list", check.falsepositives)
    titles = {entry.id: entry.title for entry in catalogue.faq} if check.faq else {}
    yield Section(Text("Known errors", "相关已知错误"), "list", tuple(_link(i, titles.get(i)) for i in check.faq))


def _probe(check: Check) -> tuple[Text, ...]:
    from envtune.context.registry import find_probe

    arguments = ", ".join(f"{name}: {value_text(value)}" for name, value in check.arguments.items())
    call = f"{check.probe} ({arguments})" if arguments else check.probe
    words = " ".join((find_probe(check.probe).__doc__ or "").split("\n\n")[0].split())
    return (Text(f"{call}: {words}" if words else call, call),)


def _facts(applies: Mapping[str, Any]) -> Iterator[Text]:
    for fact, wanted in applies.items():
        if isinstance(wanted, Mapping):
            yield Text(f"{fact}: not {_any(wanted['not'], ' or ')}", f"{fact}：不是 {_any(wanted['not'], ' 或 ')}")
        else:
            yield Text(f"{fact}: {_any(wanted, ' or ')}", f"{fact}：{_any(wanted, ' 或 ')}")


def _any(wanted: Any, joint: str) -> str:
    return joint.join(value_text(one) for one in wanted) if isinstance(wanted, (list, tuple)) else value_text(wanted)


def _severity_row(when: Mapping[str, Any], severity: Text) -> Text:
    facts = list(_facts(when))
    en, zh = ", ".join(f.en for f in facts), "，".join(f.zh for f in facts)
    return Text(f"{severity.en} where {en}", f"{zh} 时为{severity.zh}")


def _link(id_: str, title: Optional[Text]) -> Text:
    title = title or _NOT_YET
    return Text(f"{id_}: {title.en}", f"{id_}：{title.zh}")


def _faq(entry: FaqEntry, catalogue: Catalogue) -> Iterator[Section]:
    yield Section(Text("Cause", "原因"), "text", (entry.cause,))
    yield Section(Text("What to do", "处理方法"), "text", (entry.remedy,))
    titles = {check.id: check.title for check in catalogue.checks} if entry.confirm else {}
    confirm = tuple(_link(id_, titles.get(id_)) for id_ in entry.confirm)
    yield Section(Text("Checks that confirm it", "用于确认的检查"), "list", confirm)
    repair = (same(f"envtune fix --faq {entry.id}"),) if entry.side == "host" and confirm else ()
    yield Section(Text("What can be repaired, on the host", "在主机上查看可修复的内容"), "code", repair)
    regexes = tuple(same(signature.regex) for signature in entry.signatures)
    yield Section(Text("How it looks in a log (regular expressions)", "日志特征（正则表达式）"), "code", regexes)
    versions = tuple(same(f"{name} {wanted}") for name, wanted in entry.versions.items())
    yield Section(Text("Versions", "版本"), "list", versions)
    yield Section(Text("Also known as", "同义条目"), "list", tuple(same(alias) for alias in entry.aliases))


def _playbook(playbook: Playbook, catalogue: Catalogue) -> Iterator[Section]:
    titles = {check.id: check.title for check in catalogue.checks}
    fixes = tuple(_link(id_, titles.get(id_)) for id_ in playbook.fixes)
    yield Section(Text("Repairs", "可修复的检查"), "list", fixes)
    yield Section(Text("Steps", "步骤"), "steps", tuple(_steps(playbook)))


def _steps(playbook: Playbook) -> Iterator[Text]:
    for step in playbook.steps:
        if step.lines:
            yield from step.lines
        else:
            arguments = ", ".join(f"{name}: {value_text(value)}" for name, value in step.arguments.items())
            yield same(f"{step.kind} {arguments}")


def _sources(entry: Entry) -> Iterable[Section]:
    guide = (Text(f"porting guide, {entry.seed}", f"移植指南，{entry.seed}"),) if entry.seed else ()
    lines = (*guide, *(same(reference) for reference in entry.references))
    return (Section(Text("Sources", "出处"), "list", lines),)
