"""`envtune.diagnosis/1`: an answer as data, as text for a terminal, and as Markdown to paste into an issue."""

from __future__ import annotations

import json
import re
from typing import Any, Iterable, Iterator, Mapping, Sequence

from envtune.diagnose.answer import Answer, Diagnosis
from envtune.diagnose.resolve import Candidate
from envtune.model import Outcome, Text
from envtune.report.json import finding_data
from envtune.report.layout import Paint, indent, pad, printable

SCHEMA = "envtune.diagnosis/1"

_WORDS: Mapping[str, Text] = {
    "log": Text("log", "日志"),
    "says": Text("says", "信息"),
    "cause": Text("cause", "原因"),
    "where": Text("where", "位置"),
    "here": Text("here", "本机"),
    "fix": Text("fix", "处理"),
    "also": Text("Also in the log, without weight", "日志中还有（不影响结论）"),
    "hints": Text("Perhaps worth a look (weak signs only)", "可能相关（仅有弱特征）"),
    "consequences": Text("Followed from it", "由此引起"),
    "harmless": Text("Harmless", "无害"),
    "waited": Text("waited for another rank", "在等待其他 rank"),
}
SIDES: Mapping[str, Text] = {
    "host": Text("this host can be repaired", "可在本机修复"),
    "code": Text("the training code has to change", "需修改训练代码"),
    "escalate": Text("take it to the vendor's support", "需联系厂商支持"),
    "ignore": Text("nothing to do", "无需处理"),
}
VERDICTS: Mapping[str, Text] = {
    "confirmed": Text("confirmed", "已确认"),
    "refuted": Text("not so on this host now", "本机当前并非如此"),
    "unknown": Text("could not be told", "无法判断"),
    "not_checked": Text("not checked", "未检查"),
}
NOTHING = Text("No known error was found.", "没有发现已知错误。")
REPORT = Text(
    "Nothing in the catalogue matches. A report to send: envtune snapshot -o host.tar.gz, with the log.",
    "知识库中没有匹配项。如需求助，请附上日志和以下命令的输出：envtune snapshot -o host.tar.gz",
)


def data(answer: Answer, lang: str) -> dict[str, Any]:
    """The answer as plain data, texts in `lang`."""
    first = answer.first_error
    return {
        "schema": SCHEMA,
        "inputs": list(answer.inputs),
        "diagnoses": [_row(d, number, lang) for number, d in enumerate(answer.diagnoses, 1)],
        "hints": [_row(d, number, lang) for number, d in enumerate(answer.hints, 1)],
        "harmless": [_row(d, number, lang) for number, d in enumerate(answer.harmless, 1)],
        "consequences": [_row(d, number, lang) for number, d in enumerate(answer.consequences, 1)],
        "first_error": None
        if first is None
        else {"file": first[0].path, "line": first[1].number, "text": first[1].text},
    }


def _row(diagnosis: Diagnosis, number: int, lang: str) -> dict[str, Any]:
    candidate = diagnosis.candidate
    entry = candidate.entry
    return {
        "id": entry.id,
        "name": entry.name,
        "rank": number,
        "strength": "strong" if candidate.strong else "weak",
        "count": candidate.count,
        "lines": _lines(candidate),
        "groups": dict(candidate.groups),
        "where": {"rank": candidate.rank, "host": candidate.host or None},
        "verdict": diagnosis.verdict,
        "confirm": [finding_data(finding, lang) for finding in diagnosis.confirm],
        "side": entry.side,
        "remedy": fill(entry.remedy, candidate.groups).to(lang),
    }


def _lines(candidate: Candidate) -> list[dict[str, Any]]:
    """The lines that speak for it, each once."""
    found = {(h.file.path, h.line.number): h.line.text for h in candidate.hits}
    return [{"file": path, "line": number, "text": text} for (path, number), text in found.items()]


def render_json(answer: Answer, lang: str) -> str:
    """The answer as one JSON document."""
    return json.dumps(data(answer, lang), ensure_ascii=False, indent=1)


def fill(text: Text, groups: Mapping[str, str]) -> Text:
    """`{op}` in an entry's text replaced by what the log says; a name the log does not tell stays as `<op>`."""
    return Text(_fill(text.en, groups), _fill(text.zh, groups))


def _fill(text: str, groups: Mapping[str, str]) -> str:
    return re.sub(r"\{([a-z_]+)\}", lambda found: groups.get(found[1], f"<{found[1]}>"), text)


def render_text(answer: Answer, lang: str, *, width: int = 100, colour: bool = False) -> str:
    """The answer for a terminal."""
    return "\n".join(line.rstrip() for line in _Page(lang, width, Paint(colour)).page(answer))


class _Page:
    """The parts of the page; each returns its lines."""

    def __init__(self, lang: str, width: int, paint: Paint) -> None:
        self.lang, self.width, self.paint = lang, width, paint

    def page(self, answer: Answer) -> Iterator[str]:
        if answer.diagnoses:
            for number, diagnosis in enumerate(answer.diagnoses[:3], 1):
                yield from self._diagnosis(number, diagnosis, short=number > 1)
                yield ""
        else:
            yield from self._nothing(answer)
        yield from self._list("consequences", answer.consequences)
        yield from self._list("harmless", answer.harmless)
        yield from self._list("hints", answer.hints)

    def _nothing(self, answer: Answer) -> Iterator[str]:
        yield self.paint(NOTHING.to(self.lang), "bold")
        if answer.first_error is not None:
            file, line = answer.first_error
            for text in (*answer.before, line.text):
                yield from indent(printable(text), self.width, "    ", "    ")
            yield f"  {printable(file.path)}:{line.number}"
            yield from indent(REPORT.to(self.lang), self.width, "", "")
        yield ""

    def _diagnosis(self, number: int, diagnosis: Diagnosis, short: bool) -> Iterator[str]:
        candidate = diagnosis.candidate
        entry = candidate.entry
        head = f"{number}. {entry.id} {entry.title.to(self.lang)}"
        yield from (self.paint(line, "bold") for line in indent(head, self.width, "", "   "))
        hit = candidate.first
        place = f"{hit.file.path}:{hit.line.number}" + (f"  (x{candidate.count})" if candidate.count > 1 else "")
        yield from self._field("log", printable(place))
        yield from self._field("", printable(hit.line.text)[:400])
        yield from self._field("where", self._where(diagnosis))
        groups = {key: value for key, value in candidate.groups.items() if not key.startswith("lost_")}
        yield from self._field("says", printable(", ".join(f"{k} = {v}" for k, v in groups.items())))
        if short:
            return
        yield from self._field("cause", fill(entry.cause, candidate.groups).to(self.lang))
        yield from self._field("here", self._verdict(diagnosis))
        yield from self._field("fix", f"{fill(entry.remedy, candidate.groups).to(self.lang)}")
        if entry.side == "host" and entry.confirm:
            yield from self._field("", f"$ envtune fix --faq {entry.id}")

    def _where(self, diagnosis: Diagnosis) -> str:
        candidate = diagnosis.candidate
        parts = [f"rank {candidate.rank}"] if candidate.rank is not None else []
        return ", ".join([*parts, candidate.host] if candidate.host else parts)

    def _verdict(self, diagnosis: Diagnosis) -> str:
        parts = [VERDICTS[diagnosis.verdict].to(self.lang)]
        for finding in diagnosis.confirm:
            if finding.outcome is Outcome.NOTAPPLICABLE:
                continue
            words = finding.actual or finding.reason
            subject = f" {finding.subject}" if finding.subject else ""
            said = f": {words.to(self.lang)}" if words else ""
            parts.append(f"{finding.id}{subject} {finding.outcome.value}{said}")
        return "; ".join(parts)

    def _list(self, key: str, diagnoses: Sequence[Diagnosis]) -> Iterator[str]:
        if not diagnoses:
            return
        yield self.paint(_WORDS[key].to(self.lang), "bold")
        for diagnosis in diagnoses:
            candidate = diagnosis.candidate
            ranks = ", ".join(str(rank) for rank in candidate.ranks)
            waited = ranks and candidate.entry.role == "waiting"
            note = f" (rank {ranks}: {_WORDS['waited'].to(self.lang)})" if waited else ""
            hit = candidate.first
            words = f"{candidate.entry.id} {candidate.entry.title.to(self.lang)}{note}"
            yield from indent(f"{words}  {hit.file.path}:{hit.line.number}", self.width, "  ", "      ")

    def _field(self, key: str, text: str) -> Iterator[str]:
        if text:
            label = self.paint(pad(_WORDS[key].to(self.lang) if key else "", 7), "dim")
            for number, line in enumerate(indent(text, self.width, " " * 11, " " * 11)):
                yield "   " + (label if number == 0 else " " * 7) + " " + line[11:]


def render_markdown(answer: Answer, lang: str) -> str:
    """The answer to paste into an issue."""
    return "\n".join(_markdown(answer, lang))


def _markdown(answer: Answer, lang: str) -> Iterator[str]:
    if not answer.diagnoses:
        yield f"**{NOTHING.to(lang)}**"
        if answer.first_error is not None:
            file, line = answer.first_error
            yield from _quoted([*answer.before, line.text], f"{file.path}:{line.number}")
    for number, diagnosis in enumerate(answer.diagnoses[:3], 1):
        entry = diagnosis.candidate.entry
        yield f"### {number}. {entry.id} {entry.title.to(lang)}"
        yield f"*{VERDICTS[diagnosis.verdict].to(lang)}* - {SIDES[entry.side].to(lang)}"
        hit = diagnosis.candidate.first
        yield from _quoted(hit.context or (hit.line.text,), f"{hit.file.path}:{hit.line.number}")
        yield f"{_WORDS['cause'].to(lang)}: {fill(entry.cause, diagnosis.candidate.groups).to(lang)}\n"
        yield f"{_WORDS['fix'].to(lang)}: {fill(entry.remedy, diagnosis.candidate.groups).to(lang)}\n"
        for finding in diagnosis.confirm:
            actual = finding.actual or finding.reason
            yield f"- `{finding.id}` {finding.subject} **{finding.outcome.value}** {actual.to(lang) if actual else ''}"
    for key, rows in (("consequences", answer.consequences), ("harmless", answer.harmless), ("hints", answer.hints)):
        if rows:
            names = ", ".join(f"{d.candidate.entry.id} {d.candidate.entry.name}" for d in rows)
            yield f"\n{_WORDS[key].to(lang)}: {names}"


def _quoted(lines: Iterable[str], place: str) -> Iterator[str]:
    fence = "```"
    body = [printable(line) for line in lines]
    while any(fence in line for line in body):
        fence += "`"
    yield f"{fence}text\n# {place}"
    yield from body
    yield fence
