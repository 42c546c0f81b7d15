"""Write text so that Markdown shows it as it is. Pure.

Sources: the CommonMark specification 0.31 (backslash escapes, code spans, fenced code, beginnings of blocks), the
GitHub Flavored Markdown specification (extended autolinks), GitHub's "Autolinked references and URLs" and "Writing
mathematical expressions". What a site looks for in the finished text (links, mentions, references, formulas, emoji) no
backslash hides from it, but a code span does.
"""

from __future__ import annotations

import re
from typing import Iterable, Iterator

from envtune.report.layout import printable

_SPAN = re.compile(r"`([^`]+)`")
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&])")
_BLOCK = re.compile(r"\A(?:(?P<mark>[-+=:])|(?P<number>[0-9]{1,9})(?=[.)]))")  # where a line begins with it
_BETWEEN = r"\s\u2e80-\u9fff\uff00-\uffef"  # words end at blanks, and at Chinese characters and punctuation
_WORD = re.compile(rf"[^{_BETWEEN}]+")
_LOOKED_FOR = re.compile(
    r"(?i)[@#$]|://|www\.|mailto:|xmpp:|\bGH-\d|!\d|:[a-z+-][\w+-]*:"
    r"|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}\b"  # a commit
)


def prose(text: str) -> str:
    """Return the text as one line; what stands between single backquotes stays code."""
    pieces: list[str] = []
    for number, part in enumerate(_SPAN.split(printable(" ".join(text.split())))):
        for piece in [code(part)] if number % 2 else _words(part):
            if piece[:1] == "`" and pieces and pieces[-1][-1] == "`":
                pieces.append(" ")  # two runs of backquotes would be one
            pieces += [piece] if piece else []
    return _BLOCK.sub(_escaped_mark, "".join(pieces), count=1)


def _words(text: str) -> Iterator[str]:
    end = 0
    for word in _WORD.finditer(text):
        yield text[end : word.start()]
        yield code(word[0]) if _LOOKED_FOR.search(word[0]) else _SPECIAL.sub(r"\\\1", word[0])
        end = word.end()
    yield text[end:]


def _escaped_mark(found: re.Match[str]) -> str:
    return f"\\{found['mark']}" if found["mark"] else f"{found['number']}\\"


def code(text: str) -> str:
    """Return the text as a code span, one line."""
    text = printable(text)
    ticks = "`" * (_longest_run([text]) + 1)
    blank = " " if text[:1] == "`" or text[-1:] == "`" or (text[:1] == text[-1:] == " " and text.strip()) else ""
    return f"{ticks}{blank}{text}{blank}{ticks}" if text else ""


def fenced(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines as a block of code, and an empty one."""
    rows = [printable(line) for line in lines]
    fence = "`" * max(3, _longest_run(rows) + 1)
    yield from (f"{fence}text", *rows, fence, "")


def _longest_run(lines: Iterable[str]) -> int:
    return max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
