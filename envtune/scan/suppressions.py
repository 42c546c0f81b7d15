"""Comments in launch files that accept a finding: `# envtune: ignore ENV003 -- reason`.

At the end of a line it applies to that line, on a separate line to the next line that is not a comment; with
`ignore-file` to the whole file. Without a reason nothing is accepted, and that is reported as a problem.
"""

from __future__ import annotations

import re
from typing import Iterable, NamedTuple, Optional, Sequence

from envtune.messages import Message, Text, enumerated, nearest
from envtune.scan.model import Problem, Suppression

_COMMENT = re.compile(r"(?:^|(?<=\s))#\s*envtune\s*:\s*(\S*)(.*)$")
_IDS = re.compile(r"[\s,]*([A-Za-z]+[0-9]+(?:[\s,]+[A-Za-z]+[0-9]+)*)[\s,]*(.*)")
_REASON = re.compile(r"--\s*(\S.*)")
_ENTRY = re.compile(r"\s*-\s+name:\s*[^\s#]+\s*(?:#.*)?")
_VALUE = re.compile(r"\s*value:")
_WORDS = ("ignore", "ignore-file")


class Suppressions(NamedTuple):
    """The valid suppressions of a file, and what is wrong with others."""

    all: tuple[Suppression, ...]
    problems: tuple[Problem, ...]


def read_suppressions(path: str, text: str, known: Iterable[str]) -> Suppressions:
    """Return the suppressions of a file; `known` are the existing ids."""
    rows = text.split("\n")
    ids = frozenset(known)
    found: list[Suppression] = []
    problems: list[Problem] = []
    for number, row in enumerate(rows, 1):
        comment = _COMMENT.search(row.rstrip("\r"))
        if comment is None:
            continue
        about = _statement(rows, number) if row[: comment.start()].strip() else _next_line(rows, number)
        read = _read(path, number, comment[1], comment[2], about, ids)
        if isinstance(read, Suppression):
            found.append(read)
        else:
            problems.append(Problem(path, number, read))
    return Suppressions(tuple(found), tuple(problems))


def _next_line(rows: Sequence[str], number: int) -> int:
    """Return the number of the next line that is neither empty nor a comment; the last line's if there is none."""
    for at in range(number, len(rows)):
        row = rows[at].strip()
        if row and (not row.startswith("#") or row.startswith("#SBATCH")):
            return _value_line(rows, at + 1)
    return len(rows)


def _statement(rows: Sequence[str], number: int) -> int:
    """Return the first line of the statement that ends on a line."""
    while number > 1 and rows[number - 2].rstrip("\r").endswith("\\"):
        number -= 1
    return _value_line(rows, number)


def _value_line(rows: Sequence[str], number: int) -> int:
    """Return the line of the value if a line of YAML names a variable, else the line itself."""
    named = _ENTRY.fullmatch(rows[number - 1].rstrip("\r"))
    return number + 1 if named is not None and number < len(rows) and _VALUE.match(rows[number]) else number


def _read(path: str, number: int, word: str, rest: str, about: int, known: frozenset[str]) -> Suppression | Text:
    """Return the suppression in a comment, or what is wrong with it."""
    if word not in _WORDS:
        return Message("unknown comment for envtune: {word}; use {words}", word=word or "-", words=enumerated(_WORDS))
    named = _IDS.match(rest)
    if named is None:
        return Message("{word} names no check: write {example}", word=word, example=f"# envtune: {word} ENV003 -- why")
    ids = tuple(re.split(r"[\s,]+", named[1].upper()))
    wrong = next((one for one in ids if one not in known), None)
    if wrong is not None:
        near = nearest(wrong, known)
        if near:
            return Message("unknown id {id}; did you mean {names}?", id=wrong, names=enumerated(near))
        return Message("unknown id {id}", id=wrong)
    reason = _REASON.fullmatch(named[2].strip())
    if reason is None:
        example = f"# envtune: {word} {', '.join(ids)} -- why"
        return Message("{ids} is ignored without a reason: write {example}", ids=enumerated(ids), example=example)
    return Suppression(path, number, 0 if word == "ignore-file" else about, ids, reason[1].strip())


def suppression_for(suppressions: Iterable[Suppression], id_: str, lines: Sequence[int]) -> Optional[Suppression]:
    """Return the suppression of a finding about one of these lines, first those of a line."""
    fitting = [one for one in suppressions if id_ in one.ids and (not one.about or one.about in lines)]
    return next((one for one in fitting if one.about), fitting[0] if fitting else None)
