"""An answer as Markdown, to paste into an issue: nothing of a log can become markup, a mention or a reference there."""

from __future__ import annotations

import re
from typing import Iterator, Sequence

from envtune import __version__
from envtune.diagnose.diagnosis import Answer, Diagnosis
from envtune.messages import Text
from envtune.report.diagnosis import text as page
from envtune.report.diagnosis.content import (
    SNAPSHOT,
    file_line,
    findings,
    here,
    others,
    proof,
    todo,
    unasked,
    waited,
    where,
)
from envtune.report.diagnosis.placeholders import fill, says
from envtune.report.layout import printable

_SPECIAL = re.compile(r"([\\*_<>#|\[\]@~])")
_CODE = re.compile(r"(`[^`]*`)")


def render_markdown(answer: Answer, lang: str) -> str:
    """The answer to paste into an issue."""
    return "\n".join(_page(answer, lang)).rstrip() + "\n"


def _page(answer: Answer, lang: str) -> Iterator[str]:
    if answer.diagnoses:
        yield from _diagnosis(answer.diagnoses[0], answer.target, lang)
    else:
        yield from _nothing(answer, lang)
    if answer.close:
        yield from (prose(page.CLOSE.to(lang)), "")
    yield from _also(answer, lang)
    waiting = [d for d in answer.consequences if waited(d.candidate) is not None]
    rest = [d for d in answer.consequences if d not in waiting]
    lists = (("waited", waiting), ("consequences", rest), ("harmless", answer.harmless), ("hints", answer.hints))
    for key, rows in lists:
        yield from _list(key, rows, lang)
    yield f"<sub>envtune {__version__} diagnose</sub>"


def _diagnosis(diagnosis: Diagnosis, target: str, lang: str) -> Iterator[str]:
    candidate = diagnosis.candidate
    entry, shown, place = candidate.entry, proof(candidate), where(candidate)
    yield from (f"### {entry.id} {prose(entry.title.to(lang))}", "")
    told = [shown.place.to(lang), *([] if place is None else [place.to(lang)])]
    yield from (prose("；".join(told) if lang == "zh" else "; ".join(told)), "")
    yield from _fenced([*shown.before, shown.line, *shown.after])
    values = [f"{prose(label.to(lang))} {code(value)}" for label, value in says(candidate.groups)]
    yield from _item(page.WORDS["says"], ("，" if lang == "zh" else ", ").join(values), lang)
    yield from _item(page.WORDS["cause"], prose(fill(entry.cause, candidate.groups).to(lang)), lang)
    yield from _host(diagnosis, lang)
    way = todo(diagnosis, target)
    if diagnosis.history != "fixed":
        yield from _item(way.label, prose(way.words.to(lang)), lang)
    if way.command:
        explained = "" if way.explained is None else prose(way.explained.to(lang))
        yield from _item(way.label if diagnosis.history == "fixed" else None, f"{explained} {code(way.command)}", lang)
    yield ""


def _host(diagnosis: Diagnosis, lang: str) -> Iterator[str]:
    unchecked = unasked(diagnosis)
    if unchecked is not None:
        yield from _item(page.WORDS["here"], prose(unchecked.to(lang)), lang)
    elif diagnosis.confirm:
        yield from _item(page.WORDS["here"], f"**{prose(here(diagnosis).to(lang))}**", lang)
        yield from (f"  - {prose(words.to(lang))}" for _, words in findings(diagnosis))


def _nothing(answer: Answer, lang: str) -> Iterator[str]:
    yield from (f"**{prose(page.nothing_known(answer).to(lang))}**", "")
    if answer.first_error is None:
        return
    file, line = answer.first_error
    colon = "：" if lang == "zh" else ": "
    yield from (prose(page.FIRST.to(lang)) + colon + code(file_line(file.path, line.number).to(lang)), "")
    yield from _fenced([*map(printable, answer.before), printable(line.text[:2000]), *map(printable, answer.after)])
    yield from (f"{prose(page.SEND.to(lang))} {code(SNAPSHOT)}", "")


def _also(answer: Answer, lang: str) -> Iterator[str]:
    rows = list(others(answer.diagnoses[1:]))
    if rows:
        yield from (prose(page.WORDS["also"].to(lang)), "")
        yield from (f"- **{id_}** {prose(title.to(lang))}: {prose(place.to(lang))}" for id_, title, place in rows)
        yield ""


def _list(key: str, rows: Sequence[Diagnosis], lang: str) -> Iterator[str]:
    if not rows:
        return
    yield from (prose(page.WORDS[key].to(lang)), "")
    for diagnosis in rows:
        candidate = diagnosis.candidate
        who, hit = waited(candidate), candidate.first
        note = "" if who is None else prose(f"{who.to(lang)}：" if lang == "zh" else f"{who.to(lang)}: ")
        place = code(file_line(hit.file.path, hit.line.number).to(lang))
        yield f"- {note}{candidate.entry.id} {prose(candidate.entry.title.to(lang))} {place}"
    yield ""


def _item(label: object, text: str, lang: str) -> Iterator[str]:
    if text.strip():
        yield f"- **{label.to(lang)}** {text}" if isinstance(label, Text) else f"- {text}"


def prose(text: str) -> str:
    """The text so that Markdown shows it as it is; spans in backticks stay code."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if number % 2 else _SPECIAL.sub(r"\\\1", part) for number, part in enumerate(parts))


def code(text: str) -> str:
    """The text as a code span."""
    return f"`{text.replace('`', chr(0x2018))}`"


def _fenced(lines: Sequence[str]) -> Iterator[str]:
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    yield from (f"{fence}text", *lines, fence, "")
