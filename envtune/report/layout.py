"""Lay text out on a terminal: widths of Chinese and Latin characters, line breaking, color.

A Chinese character takes two columns and a line may break before or after it, but no line begins with closing
punctuation (the rule typesetters call kinsoku).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Iterable, Iterator

from envtune.messages import Joined, Literal, Message, Text, enumerated, in_context
from envtune.records import expression
from envtune.report.redaction import redacted
from envtune.trust.characters import visible, visible_lines

# Closing punctuation of both languages, full-width and ASCII.
NEVER_FIRST = frozenset(
    "\uff0c\u3002\u3001\uff1b\uff1a\uff1f\uff01\uff09\u300b\u300d\u300f\u3011\u201d\u2019,.;:?!)]}%"
)
_OPENING, _CLOSING = "([\uff08", ")]\uff09"
_CONTINUES = NEVER_FIRST | {" "}
NEVER_LAST = "\uff08\u300a\u300c\u300e\u3010\u201c\u2018("  # opening punctuation
_PROMPT = expression(r"\$\s")  # before a command of ours: nothing quoted may be broken into a row that begins with it
_END_OF_SENTENCE = expression("[.](?= +[A-Za-z`])|;(?= )|[\u3002\uff1b](?=.)")
_FULL_STOP = expression("(?<=[.])(?= +[A-Z`])|(?<=\u3002)")
_LONG_PATH = expression(r"(?<![\w./-])(?:/[\w.+~@%-]+){4,}", re.ASCII)
_ASCII_REMARK = r" *\((?:[^()]|\([^()]*\))*\)"  # one may hold another
_REMARK = expression(
    f"(?:{_ASCII_REMARK}|\uff08(?:[^\uff08\uff09]|\uff08[^\uff08\uff09]*\uff09)*\uff09)(?=$|[;,]|\uff1b|\uff0c)"
)
_SHELL_WORD = expression(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""")
# Where `_words` breaks plain text: behind a blank, unless a closing mark, another blank or a prompt follows.
_PLAIN_BREAK = expression(r"(?<= )(?!\$\s)(?=[^ ,.;:?!)\]}%])")

COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "bold": "1", "dim": "2"}


def display_width(text: str) -> int:
    """Return the columns the text takes on a terminal."""
    if _is_plain(text):
        return len(text)
    return sum(_columns(character) for character in text)


def _is_plain(text: str) -> bool:
    """Return whether each character is a letter, digit, mark or blank of ASCII, which takes one column."""
    return text.isascii() and text.isprintable()


@lru_cache(maxsize=8192)
def _columns(character: str) -> int:
    import unicodedata

    if unicodedata.combining(character) or unicodedata.category(character) == "Cf":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def printable(text: str) -> str:
    """Return the text as one line without secrets, with everything in it visible (escape sequences, bidi marks)."""
    return visible(redacted(text).replace("\t", " "))


def shown(text: Text, lang: str) -> str:
    """Return a text of ours in `lang`: its own line ends are kept, what it quotes is printable."""
    return visible_lines(redacted(_with_printable_fields(text).to(lang)))


def _with_printable_fields(text: Text) -> Text:
    if isinstance(text, Message):
        fields = {name: _printable_field(value) for name, value in text.fields.items()}
        return in_context(text.context, text.template, **fields)
    if isinstance(text, Joined):
        return Joined(map(_printable_field, text.parts), text.separator)
    return Literal(printable(text.text)) if isinstance(text, Literal) else text


def _printable_field(value: Any) -> Any:
    if isinstance(value, Text):
        return _with_printable_fields(value)
    return value if isinstance(value, (int, float)) else printable(str(value))


def wrap(text: str, width: int, whole: int = 0) -> list[str]:
    """Return the text in lines of at most `width` columns; a longer word gets a line of its own.

    `whole` is as of `indent`.
    """
    lines: list[str] = []
    width = max(width, 1)
    for paragraph in text.splitlines() or [""]:
        lines.extend(_wrap_paragraph(paragraph, width, min(whole, width)))
    return lines


def _wrap_paragraph(text: str, width: int, whole: int) -> Iterator[str]:
    line, used = "", 0
    for word in _with_brackets(_words(text), whole) if whole else _words(text):
        columns = display_width(word.rstrip(" "))
        if line and used + columns > width:
            yield line.rstrip(" ")
            line, used = "", 0
            word = word.lstrip(" ")
        line += word
        used += display_width(word)
    yield line.rstrip(" ")


def _with_brackets(words: Iterable[str], most: int) -> Iterator[str]:
    """Yield the pieces with those from a bracket to its end as one, where they take at most `most` columns."""
    group: list[str] = []
    depth = 0
    for word in words:
        group.append(word)
        depth += sum(map(word.count, _OPENING)) - sum(map(word.count, _CLOSING))
        joined = "".join(group)
        if depth <= 0 and display_width(joined.rstrip(" ")) <= most:
            group = [joined]
        if depth <= 0:
            yield from group
            group, depth = [], 0
    yield from group


def _words(text: str) -> Iterator[str]:
    """Yield the pieces between which a line may break: a Latin word with its blanks, or a wide character."""
    if _is_plain(text):
        yield from _PLAIN_BREAK.split(text) if text else ()
        return
    start, after_wide = 0, False
    for at, character in enumerate(text):
        wide = _columns(character) == 2
        if (
            (wide or after_wide or text[at - 1] == " ")
            and start < at
            and text[at - 1] not in NEVER_LAST
            and character not in _CONTINUES
            and not _PROMPT.match(text, at)
        ):
            yield text[start:at]
            start = at
        after_wide = wide
    if text:
        yield text[start:]


def continued(command: str, width: int) -> list[str]:
    """Return a command line in lines of at most `width` columns, which a shell reads as one; a longer word stays whole.

    It is broken at blanks outside of quotes only: a line end within them would be a part of the word.
    """
    lines = [""]
    words = _SHELL_WORD.findall(command)
    for number, word in enumerate(words, 1):
        joined, room = f"{lines[-1]} {word}" if lines[-1] else word, width if number == len(words) else width - 2
        if lines[-1] and display_width(joined) > room and display_width(word) <= room:
            lines.append(word)
        else:
            lines[-1] = joined
    if display_width(command) <= width or " ".join(lines) != command:
        return [command]
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def indent(text: str, width: int, first: str, others: str, whole: int = 0) -> list[str]:
    """Return the text wrapped to `width` columns, its first line after `first` and the others after `others`.

    `whole`: what stands in brackets is not broken where it takes at most so many columns, or a line of them.
    """
    room = width - max(display_width(first), display_width(others))
    return [(first if number == 0 else others) + line for number, line in enumerate(wrap(text, room, whole))]


def fits(text: str, width: int, lines: int) -> bool:
    """Return whether the text takes at most `lines` lines of `width` columns."""
    rows = wrap(text, width)
    return len(rows) <= lines and all(display_width(row) <= width for row in rows)


def clip(text: str, width: int, lines: int, end: str = "") -> list[str]:
    """Return the text with `end` after it in at most `lines` lines of `width` columns; what does not fit is cut.

    `end` is kept. A longer word, which breaks nowhere, counts as a line.
    """
    rows = wrap(text + end, width)
    if len(rows) <= lines and all(display_width(row) <= width for row in rows):
        return rows
    low, high = 0, len(text)
    while low < high:  # the longest beginning that fits
        middle = (low + high + 1) // 2
        rows = wrap(text[:middle].rstrip() + "..." + end, width)
        fits = len(rows) <= lines and all(display_width(row) <= width for row in rows)
        low, high = (middle, high) if fits else (low, middle - 1)
    return wrap(text[:low].rstrip() + "..." + end, width)[:lines]


def short_paths(text: str) -> str:
    """Return the text with long paths shortened in the middle: `/usr/local/.../site-packages`."""
    return _LONG_PATH.sub(_short_path, text)


def _short_path(found: re.Match[str]) -> str:
    names = found[0].split("/")
    short = "/".join([*names[:3], "...", names[-1]])
    return short if len(short) < len(found[0]) - 3 else found[0]


def without_remarks(text: str) -> str:
    """Return the text without what stands in parentheses at the end of a clause."""
    return _REMARK.sub("", text)


def first_clauses(text: str, width: int, is_command: bool = False) -> list[str]:
    """Return as many clauses of the text as one line holds, else what two hold of the first.

    The paths of a command stay as they are.
    """
    if is_command:
        return next(([one] for one in beginnings(text) if fits(one, width, 1)), wrap(text, width))
    made = (
        version for one in beginnings(text) for version in (one, short_paths(one), without_remarks(short_paths(one)))
    )
    said = next((one for one in made if fits(one, width, 1)), None)
    return clip(list(beginnings(text))[-1], width, 2) if said is None else [said]


def first_sentence(text: str) -> str:
    """Return the first sentence, with its full stop."""
    said = _FULL_STOP.split(text, 1)[0].strip()
    return said if said.endswith((".", "\u3002")) else said + ("." if said.isascii() else "\u3002")


def beginnings(text: str) -> Iterator[str]:
    """Yield the text, then what is left of it without its last clause, without the last two, and so on."""
    yield text
    for end in reversed([found.start() for found in _END_OF_SENTENCE.finditer(text)]):
        yield text[:end]


def pad(text: str, width: int) -> str:
    """Return the text filled with blanks to `width` columns."""
    return text + " " * max(0, width - display_width(text))


class Paint:
    """Colors text, or with `colour` False returns it as it is."""

    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def __call__(self, text: str, *styles: str) -> str:
        """Return the text between the escape sequences of COLOURS for `styles`."""
        if not self._colour or not text:
            return text
        return f"\033[{';'.join(COLOURS[s] for s in styles)}m{text}\033[0m"


CHOICE = expression(r"\S+(?: \| \S+)+")  # `1 | 2`: what documents write where one of several values is meant


def spelled(text: str, lang: str) -> str:
    """Return the text with `1 | 2 | 3` as a person writes it, who may take `|` for a shell's pipe: `1, 2 or 3`."""

    def words(choice: re.Match[str]) -> str:
        *first, last = choice[0].split(" | ")
        return Joined((enumerated(first), last), Message(" or ")).to(lang)

    return CHOICE.sub(words, text)
