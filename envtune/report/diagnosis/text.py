"""An answer as text for a terminal: what it most likely is, the proof, the cause, what this host says, the way out."""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Sequence

from envtune.diagnose.diagnosis import Answer, Diagnosis
from envtune.messages import Bilingual, Literal, Message, Text, in_context
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
from envtune.report.layout import Paint, display_width, indent, pad, printable, wrap

WORDS: Mapping[str, Text] = {
    "log": Message("log"),
    "says": Message("says"),
    "where": in_context("text", "where"),
    "cause": Message("cause"),
    "here": Message("host"),
    "also": Message("Also found (envtune explain ID tells more):"),
    "waited": Message("Only waited for another rank, not the cause:"),
    "consequences": Message("Followed from it, not the cause:"),
    "harmless": Message("Harmless, nothing to do:"),
    "hints": Message("Weak signs only; perhaps worth a look:"),
}
CLOSE = Message("The first two happened on different hosts within seconds: their clocks decide nothing, look at both.")
EVERYBODY = Message(
    "In these logs everybody only waited: the log of the rank that failed or hung is not among them, or says nothing."
)
NO_ERROR_LINE = Message("No line looks like an error, either.")
FIRST = Message("The first line that looks like an error")
SEND = Message("To ask for help, send the whole log and the file that this command writes:")
_LABEL = 6  # columns of the labels
_INDENT = _LABEL + 4


def nothing_known(answer: Answer) -> Text:
    """The sentence for an answer without a diagnosis."""
    shown = [Message("standard input") if n == "-" else Literal(printable(n)) for n in answer.inputs[:3]]
    more = " …" if len(answer.inputs) > 3 else ""
    names, names_zh = ", ".join(n.en for n in shown) + more, "、".join(n.zh for n in shown) + more
    if not answer.size:
        return Bilingual(f"Nothing to read in {names}: it is empty.", f"{names_zh} 为空，没有可读内容。")
    much = Message("{lines:,} lines", lines=answer.lines) if answer.lines else Literal(f"{answer.size / 1e6:,.0f} MB")
    return Bilingual(f"No known error in {names} ({much.en}).", f"{names_zh}（{much.zh}）中没有发现已知错误。")


def render_text(answer: Answer, lang: str, *, width: int = 100, colour: bool = False) -> str:
    """The answer for a terminal, at most `width` columns wide where words allow it."""
    page = _Page(lang, max(width, 50), Paint(colour))
    lines = list(page.page(answer))
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(line.rstrip() for line in lines)


class _Page:
    """The parts of the page; each returns its lines."""

    def __init__(self, lang: str, width: int, paint: Paint) -> None:
        self.lang, self.width, self.paint = lang, width, paint

    def page(self, answer: Answer) -> Iterator[str]:
        if answer.diagnoses:
            yield from self._diagnosis(answer.diagnoses[0], answer.target)
        else:
            yield from self._nothing(answer)
        yield from self._also(answer)
        waiting = [d for d in answer.consequences if waited(d.candidate) is not None]
        yield from self._list("waited", waiting)
        yield from self._list("consequences", [d for d in answer.consequences if d not in waiting])
        yield from self._list("harmless", answer.harmless)
        yield from self._list("hints", answer.hints)

    # ---------------------------------------------------------------- the most likely one

    def _diagnosis(self, diagnosis: Diagnosis, target: str) -> Iterator[str]:
        candidate = diagnosis.candidate
        entry = candidate.entry
        yield from (
            self.paint(line, "bold") for line in indent(entry.title.to(self.lang), self.width, f"{entry.id}  ", "     ")
        )
        yield ""
        yield from self._proof(diagnosis)
        place = where(candidate)
        yield from self._field("where", "" if place is None else place.to(self.lang))
        if entry.role == "waiting" and len(candidate.ranks) > 1 and "lost_rank" not in candidate.groups:
            yield from self._field("", EVERYBODY.to(self.lang))
        told = [f"{label.to(self.lang)} {value}" for label, value in says(candidate.groups)]
        yield from self._field("says", ("；" if self.lang == "zh" else "; ").join(told))
        yield from self._field("cause", fill(entry.cause, candidate.groups).to(self.lang))
        yield from self._host(diagnosis)
        yield from self._todo(diagnosis, target)
        yield ""

    def _proof(self, diagnosis: Diagnosis) -> Iterator[str]:
        shown = proof(diagnosis.candidate)
        yield from self._field("log", shown.place.to(self.lang))
        yield from self._quoted(shown.before, shown.line, shown.after)

    def _quoted(self, before: Iterable[str], line: str, after: Iterable[str]) -> Iterator[str]:
        """The line with a mark, in full; its neighbours cut to one row each."""
        yield from (self._neighbour(text) for text in before)
        mark = " " * (_INDENT - 2) + self.paint(">", "red") + " "
        for number, row in enumerate(broken(line, self.width - _INDENT)):
            yield (mark if number == 0 else " " * _INDENT) + row
        yield from (self._neighbour(text) for text in after)

    def _neighbour(self, text: str) -> str:
        return " " * _INDENT + self.paint(clipped(printable(text), self.width - _INDENT), "dim")

    def _host(self, diagnosis: Diagnosis) -> Iterator[str]:
        unchecked = unasked(diagnosis)
        if unchecked is not None:
            yield from self._field("here", unchecked.to(self.lang))
        elif diagnosis.confirm:
            yield from self._field("here", here(diagnosis).to(self.lang), _colour(diagnosis))
            for _, words in findings(diagnosis):
                yield from indent(words.to(self.lang), self.width, " " * _INDENT + "- ", " " * _INDENT + "  ")

    def _todo(self, diagnosis: Diagnosis, target: str) -> Iterator[str]:
        way = todo(diagnosis, target)
        if diagnosis.history != "fixed":
            yield from self._field(way.label, way.words.to(self.lang))
        if way.command:
            label = way.label if diagnosis.history == "fixed" else None
            yield from self._field(label, way.explained.to(self.lang) if way.explained is not None else "")
            yield " " * _INDENT + self.paint(f"$ {way.command}", "cyan")

    # ---------------------------------------------------------------- nothing known

    def _nothing(self, answer: Answer) -> Iterator[str]:
        yield from (
            self.paint(line, "bold") for line in indent(nothing_known(answer).to(self.lang), self.width, "", "")
        )
        if answer.first_error is None:
            if answer.size:
                yield NO_ERROR_LINE.to(self.lang)
            yield ""
            return
        file, line = answer.first_error
        yield ""
        colon = "：" if self.lang == "zh" else ": "
        words = FIRST.to(self.lang) + colon + file_line(file.path, line.number).to(self.lang)
        yield from indent(words, self.width, "", "")
        yield from self._quoted(answer.before, printable(line.text[:2000]), answer.after)
        yield ""
        yield from indent(SEND.to(self.lang), self.width, "", "")
        yield "  " + self.paint(f"$ {SNAPSHOT}", "cyan")
        yield ""

    # ---------------------------------------------------------------- the others

    def _also(self, answer: Answer) -> Iterator[str]:
        rows = list(others(answer.diagnoses[1:]))
        if answer.close:
            yield from indent(CLOSE.to(self.lang), self.width, "", "")
            yield ""
        if rows:
            yield self.paint(WORDS["also"].to(self.lang), "bold")
        for number, (id_, title, place) in enumerate(rows, 2):
            yield from indent(f"{id_}  {title.to(self.lang)}", self.width, f"  {number}. ", "     ")
            yield from indent(place.to(self.lang), self.width, "     ", "     ")
        if rows:
            yield ""

    def _list(self, key: str, diagnoses: Sequence[Diagnosis]) -> Iterator[str]:
        if not diagnoses:
            return
        yield self.paint(WORDS[key].to(self.lang), "bold")
        for diagnosis in diagnoses:
            candidate = diagnosis.candidate
            who, hit = waited(candidate), candidate.first
            place = file_line(hit.file.path, hit.line.number).to(self.lang)
            note = "" if who is None else (f"{who.to(self.lang)}：" if self.lang == "zh" else f"{who.to(self.lang)}: ")
            words = f"{note}{candidate.entry.id}  {candidate.entry.title.to(self.lang)}"
            yield from indent(f"{words}  [{place}]", self.width, "  ", "    ")
        yield ""

    def _field(self, key: object, text: str, colour: str = "") -> Iterator[str]:
        """A labelled paragraph; nothing where there is no text. `key` names a label, is one, or is None for none."""
        if not text:
            return
        label = key.to(self.lang) if isinstance(key, Text) else WORDS[str(key)].to(self.lang) if key else ""
        left = "  " + self.paint(pad(label, _LABEL), "dim") + "  "
        for number, line in enumerate(indent(text, self.width, " " * _INDENT, " " * _INDENT)):
            words = line[_INDENT:]
            yield (left if number == 0 else " " * _INDENT) + (self.paint(words, colour) if colour else words)


def _colour(diagnosis: Diagnosis) -> str:
    if diagnosis.history == "fixed":
        return "green"
    return {"confirmed": "red", "refuted": "green"}.get(diagnosis.verdict, "yellow")


def broken(text: str, columns: int) -> Iterator[str]:
    """The text in rows of at most `columns` columns; a word that is longer is broken, too: log lines hold such."""
    for row in wrap(text, columns):
        while display_width(row) > columns:
            head = _head(row, columns)
            yield head
            row = row[len(head) :]
        yield row


def _head(text: str, columns: int) -> str:
    """As much of the text as fits, at least one character."""
    used = 0
    for number, character in enumerate(text):
        used += display_width(character)
        if used > columns:
            return text[: max(number, 1)]
    return text


def clipped(text: str, columns: int) -> str:
    """The text in one row of at most `columns` columns, with an ellipsis where it was cut."""
    if display_width(text) <= columns:
        return text
    return _head(text, columns - 2).rstrip() + " …"
