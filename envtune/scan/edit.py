"""Change the lines of launch files that set a variable wrongly, in memory; nothing is written.

A line is changed if it sets one variable in a known form, to the value that the check's own command names. Then the
changed text is checked again: a change that does not remove the finding is dropped.
"""

from __future__ import annotations

import difflib
import re
import shlex
from typing import Callable, Iterable, Iterator, NamedTuple, Optional, Sequence

from envtune.scan.kinds import COMPOSE, DOCKERFILE, KUBERNETES
from envtune.scan.model import Found

_COMMAND = re.compile(r"(?:export ([A-Za-z_]\w*)=(.*)|unset ([A-Za-z_]\w*))", re.DOTALL)
_VALUE = r"(?:[^\s'\";&|<>()\\,]|\\.|'[^']*'|\"[^\"]*\")*"
_LONG_VALUE = r"(?:[^\s'\";&|<>()\\]|\\.|'[^']*'|\"[^\"]*\")*"
MAX_FIXED = 40  # findings of one file that are fixed at a time; the whole file is rechecked for each
_CONTINUED = re.compile(r"[\\`][ \t]*\r?$")


class Wanted(NamedTuple):
    """The desired value of a variable: `value` as plain text, None for not set."""

    name: str
    value: Optional[str]


class Fixed(NamedTuple):
    """A file with changed lines, and the findings that are gone."""

    path: str
    before: str
    after: str
    found: tuple[Found, ...]


Remaining = Callable[[str], "frozenset[tuple[int, str, str]]"]  # text -> line, id, subject of its findings


def fix_text(path: str, kind: str, text: str, found: Sequence[Found], remaining: Remaining) -> Fixed:
    """Return the file with all possible changes; `found` are the failed findings in this file."""
    current, gone = text, set[tuple[int, str, str]]()
    wrong = remaining(text)
    for one in sorted(
        found[:MAX_FIXED], key=lambda row: -row.line
    ):  # from the end, so that earlier line numbers stay valid
        for wanted in _wanted(one):
            for changed in _changes(current, kind, one.line, wanted):
                left = remaining(changed)
                if len(left) < len(wrong) and (one.line, one.finding.id, one.finding.subject) not in left:
                    gone |= {row for row in wrong - left if row[0] == one.line}
                    current, wrong = changed, left
                    break
    fixed = tuple(row for row in found if (row.line, row.finding.id, row.finding.subject) in gone)
    return Fixed(path, text, current, fixed)


def diff(fixed: Iterable[Fixed]) -> str:
    """Return the changes as a unified diff for `git apply` and `patch -p1`."""
    return "".join(line for one in fixed if one.before != one.after for line in _diff(one))


def _diff(one: Fixed) -> Iterator[str]:
    end = "\t" if " " in one.path else ""  # a tab ends a name with blanks, as in git
    before, after = (text.splitlines(keepends=True) for text in (one.before, one.after))
    for row in difflib.unified_diff(before, after, f"a/{one.path}{end}", f"b/{one.path}{end}"):
        yield row if row.endswith("\n") else row + "\n\\ No newline at end of file\n"


def _wanted(found: Found) -> Iterator[Wanted]:
    """Yield the variables that the commands of a finding set."""
    for command in found.finding.commands:
        line = _COMMAND.fullmatch(command.line) if command.kind == "fix" and isinstance(command.line, str) else None
        if line is None:
            continue
        try:
            words = shlex.split(line[2]) if line[1] else []
        except ValueError:
            continue
        if line[1] and "$" in line[2]:
            continue
        yield Wanted(line[1] or line[3], " ".join(words) if line[1] else None)


def _changes(text: str, kind: str, line: int, wanted: Wanted) -> Iterator[str]:
    """Yield the text with the line changed, in each form in which it may set the variable."""
    rows = text.splitlines(keepends=True)
    last = line
    while last < len(rows) and _CONTINUED.search(rows[last - 1]):
        last += 1
    for number in range(line, last + 1):
        if number > len(rows):
            return
        for changed in _row_changes(rows, number, kind, wanted):
            yield "".join(changed)


def _row_changes(rows: Sequence[str], number: int, kind: str, wanted: Wanted) -> Iterator[Sequence[str]]:
    row = rows[number - 1]
    if kind in (KUBERNETES, COMPOSE):
        yield from _env_entry(rows, number, wanted)
    if kind == COMPOSE:
        yield from _list_entry(rows, number, wanted)
        return
    assigned = re.compile(rf"(?<![\w$/.-]){wanted.name}=({_VALUE if '--export' in row else _LONG_VALUE})")
    places = list(assigned.finditer(row))
    if kind == DOCKERFILE and not places:
        places = list(re.finditer(rf"(?<=ENV ){wanted.name}[ \t]+(\S.*?)(?=\s*$)", row, re.IGNORECASE))
    if len(places) != 1:
        return
    place = places[0]
    if wanted.value is not None:
        new = row[: place.start(1)] + shlex.quote(wanted.value) + row[place.end(1) :]
        yield [*rows[: number - 1], new, *rows[number:]]
        return
    for new in _without(row, place):
        yield [*rows[: number - 1], *([new] if new else []), *rows[number:]]


def _without(row: str, place: re.Match[str]) -> Iterator[str]:
    """Yield the row without an assignment; empty if there is nothing else on it."""
    before, after = row[: place.start()], row[place.end() :]
    if ("--export" in before and before.endswith(",")) or (after.startswith(",") and before.endswith("=")):
        yield before.rstrip(",") + after if before.endswith(",") else before + after[1:]
    elif re.fullmatch(r"\s*(?:export|ENV|declare -x|typeset -x)\s+", before, re.IGNORECASE) and not after.strip():
        yield ""
    elif re.search(r"(?:^|[;&|(]|\s)export\s+$", before) and re.match(r"\s*(?:$|[;&|)#])", after):
        yield re.sub(r"export(\s+)$", r"unset\1", before) + place[0].partition("=")[0] + after
    else:
        yield before + after.lstrip(" \t")


def _list_entry(rows: Sequence[str], number: int, wanted: Wanted) -> Iterator[Sequence[str]]:
    """Yield the rows with the entry `- NAME=value` of a list on this line changed."""
    entry = re.fullmatch(rf"(\s*-\s+[\"']?{wanted.name}=)([^\"'#]*?)([\"']?\s*(?:#.*)?)", rows[number - 1], re.DOTALL)
    if entry is not None:
        new = [] if wanted.value is None else [entry[1] + wanted.value + entry[3]]
        yield [*rows[: number - 1], *new, *rows[number:]]


def _env_entry(rows: Sequence[str], number: int, wanted: Wanted) -> Iterator[Sequence[str]]:
    """Yield the rows with the entry of a list `env` changed whose value is on this line."""
    row = rows[number - 1]
    flow = re.compile(rf"(name:\s*[\"']?{wanted.name}[\"']?\s*,\s*value:\s*)(\"[^\"]*\"|'[^']*'|[^,}}\s]+)")
    block = re.compile(r"(\s*(?:-\s+)?value:\s*)(\"[^\"]*\"|'[^']*'|[^\s#]+)(?=\s*(?:#.*)?$)")
    mapped = re.compile(rf"(\s*[\"']?{wanted.name}[\"']?:\s*)(\"[^\"]*\"|'[^']*'|[^\s#]+)(?=\s*(?:#.*)?$)")
    for pattern in (flow, block, mapped):
        found = pattern.search(row) if pattern is flow else pattern.match(row)
        if found is None:
            continue
        if wanted.value is not None:
            new = row[: found.start(2)] + '"' + wanted.value + '"' + row[found.end(2) :]
            yield [*rows[: number - 1], new, *rows[number:]]
        elif pattern is mapped:
            yield [*rows[: number - 1], *rows[number:]]
        elif pattern is block and number > 1 and _names(rows[number - 2], wanted.name):
            yield [*rows[: number - 2], *rows[number:]]
        elif re.fullmatch(r"\s*-\s*\{[^{}]*\}\s*(?:#.*)?", row):
            yield [*rows[: number - 1], *rows[number:]]


def _names(row: str, name: str) -> bool:
    """Return whether a row begins the entry of a variable in a list `env`, and contains nothing else."""
    return re.match(rf"\s*-\s+name:\s*[\"']?{name}[\"']?\s*$", row) is not None
