"""Find the blocks of a page that are marked as text to be shown as it is: fences, literal blocks, elements. Pure.

Each markup has its own mark: Markdown a fence, reStructuredText a colon more and an indent, HTML and wikis an element,
AsciiDoc four dashes, LaTeX an environment, Python three quotation marks.
"""

from __future__ import annotations

from functools import partial
from typing import Callable, Iterator, NamedTuple, Optional, Sequence

from envtune.diagnose.events.kinds import is_marked
from envtune.records import expression

_FENCE = expression(r"\s*(?:[-*+] |\d{1,2}[.)] |> ?)?(?P<mark>`{3,}|~{3,})")
_LITERAL = expression(
    r"(?P<indent>\s*)(?:\.\. (?:code-block|code|sourcecode|parsed-literal|console|prompt|highlight)::"
    r"|(?!\.\. |>>>).*::$)"
)
_ELEMENT = expression(
    r"(?i).*(?:<(?P<tag>pre|syntaxhighlight|code|file|source|nowiki)\b[^>]*>|\[(?P<board>code)\b[^\]]*\])"
)
_ENVIRONMENT = expression(r"\s*\\begin\{(?P<name>verbatim|Verbatim|lstlisting|minted)\}")
_DELIMITER = expression(r"(?P<mark>-{4}|\.{4})$")
_ABOVE_DELIMITER = expression(r"\[(?:source|listing|literal|subs|%)\S*\]$|\.[A-Z].*$")
_TEXT_MARKS = ('"""', "'''")
# Texts of several lines in other languages, and what ends them: Go and JavaScript, C++, Rust, shells.
_RAW_TEXTS = (
    (expression(r"[^`]*(?:[=(,+{\[]|\breturn|:)\s*(?:\w{1,12}\.raw)?`[^`]*$"), "`"),
    (expression(r'.*\bR"(?P<name>\w{0,16})\((?!.*\)(?P=name)")'), '){name}"'),
    (expression(r'.*\br(?P<name>#{1,4})"(?!.*"(?P=name))'), '"{name}'),
)


class _Open(NamedTuple):
    """A block that is open: what ends it, and whether its first and its last line may hold a part of what is shown.

    One that is `indented` ends before the line that ends it.
    """

    ends: Callable[[str], bool]
    around: bool = False
    indented: bool = False


def shown_lines(lines: Sequence[str], begun: bool = True, ended: bool = True) -> frozenset[int]:
    """Return the numbers of the lines within marked blocks.

    `begun` and `ended` tell whether the lines are from the beginning and up to the end of a file; a block that is cut
    off there goes on beyond.
    """
    shown = frozenset(_blocks(lines, None, ended))
    if begun:
        return shown
    first = next((found["mark"] for found in map(_FENCE.match, lines) if found is not None), "")
    other = frozenset(_blocks(lines, _fence(first), ended)) if first else shown
    return max(shown, other, key=lambda numbers: sum(is_marked(lines[number]) for number in numbers))


def _blocks(lines: Sequence[str], block: Optional[_Open], ended: bool) -> Iterator[int]:
    """Yield the numbers of the lines within marked blocks; `block` is open above the first."""
    inside: list[int] = []
    for number, line in enumerate(lines):
        if block is not None and not block.ends(line):
            inside.append(number)
            continue
        if block is not None:
            yield from (*inside, *((number,) if block.around else ()))
            inside = []
        if block is None or block.indented:
            block = _opened(lines, number)
            inside = [number] if block is not None and block.around else []
        else:
            block = None
    if block is not None and (block.indented or not ended):
        yield from inside


def _opened(lines: Sequence[str], number: int) -> Optional[_Open]:
    """Return the block that a line opens."""
    line = lines[number]
    fence = _FENCE.match(line)
    if fence is not None:
        return _fence(fence["mark"])
    literal = _LITERAL.match(line)
    if literal is not None:
        return _indented(lines, number, len(literal["indent"]))
    environment = _ENVIRONMENT.match(line)
    if environment is not None:
        return _Open(partial(_holds, f"\\end{{{environment['name']}}}"))
    delimiter = _DELIMITER.match(line)
    if delimiter is not None:
        above = lines[number - 1] if number else ""
        return _Open(partial(_is, line)) if _ABOVE_DELIMITER.match(above) or line[0] == "." else None
    return _element(line) or _text(line)


def _fence(mark: str) -> _Open:
    return _Open(partial(_is, mark))


def _indented(lines: Sequence[str], number: int, indent: int) -> Optional[_Open]:
    """Return the block of lines that are further in, where one begins below a line."""
    below = next((line for line in lines[number + 1 : number + 4] if line.strip()), "")
    block = _Open(partial(_is_out, indent), indented=True)
    return None if block.ends(below) else block


def _element(line: str) -> Optional[_Open]:
    """Return the element that a line opens and does not close; a whole one within a line is a block of one line."""
    found = _ELEMENT.match(line)
    if found is None:
        return None
    end = f"</{found['tag']}>" if found["tag"] else f"[/{found['board']}]"
    return None if end.lower() in line[found.end() :].lower() else _Open(partial(_holds, end.lower()), around=True)


def _text(line: str) -> Optional[_Open]:
    """Return the text of several lines that a line of source code opens."""
    mark = next((mark for mark in _TEXT_MARKS if line.count(mark) % 2), "")
    if mark:
        return _Open(partial(_holds, mark))
    for raw, end in _RAW_TEXTS:
        found = raw.match(line)
        if found is not None:
            return _Open(partial(_ends, end.format(**found.groupdict())), around=True)
    return None


def _is(mark: str, line: str) -> bool:
    return line.strip(" >\t") == mark


def _is_out(indent: int, line: str) -> bool:
    return bool(line.strip()) and len(line) - len(line.lstrip()) <= indent


def _ends(mark: str, line: str) -> bool:
    return mark in line


def _holds(end: str, line: str) -> bool:
    return end in line.lower() if end.islower() else end in line
