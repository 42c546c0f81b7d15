"""The block that envtune manages in a user's file, between two marks; the rest is kept byte by byte."""

from __future__ import annotations

import re
from typing import Callable, Iterable, Iterator, Optional

from envtune.resources.environment.profile import Setting
from envtune.resources.environment.render import bash_lines, comment
from envtune.shell.lexer import ShellSyntaxError
from envtune.shell.parser import statement_lines

BEGIN, END = "# >>> envtune >>>", "# <<< envtune <<<"
MOST_POSITIONS = 60  # statements before which placing a block is tried
_KEY = re.compile(
    r"(?:(?:export )?(?=\w+=)|unset )(?P<name>[A-Za-z_]\w*)(?:=|$)"
    r"|case \":\$\{(?P<path>[A-Za-z_]\w*)"
    r"|(?:case \$- in .*? )?[.] (?P<script>(?:(?! ;; esac$).)+)(?: ;; esac)?$"
)
Entries = dict[str, list[str]]  # variable or script -> its lines, comments included
Lines = Callable[[Setting], list[str]]


class UnclosedBlockError(Exception):
    """The file contains a begin mark, at `line`, without an end mark."""

    def __init__(self, line: int) -> None:
        super().__init__(f"line {line}")
        self.line = line


def split(text: str) -> tuple[str, Optional[str], str]:
    """Return the text before our block, inside it (None if there is no block), and after it."""
    rows = text.split("\n")
    marks = [row.strip() for row in rows]
    if BEGIN not in marks:
        return text, None, ""
    first = marks.index(BEGIN)
    if END not in marks[first:]:
        raise UnclosedBlockError(first + 1)
    last = marks.index(END, first)
    before = "".join(row + "\n" for row in rows[:first])
    return before, "".join(row + "\n" for row in rows[first + 1 : last]), "\n".join(rows[last + 1 :])


def line_in(now: str, changed: str, number: int) -> Optional[int]:
    """Return the number in `now` of a line of `changed`, which differ only in their blocks; None for one in a block."""
    first, size = _block(changed)
    if first < number <= first + size:
        return None
    own = number if number <= first else number - size
    first, size = _block(now)
    return own if own <= first else own + size


def _block(text: str) -> tuple[int, int]:
    """Return how many lines precede the block, and how many it has including its marks."""
    before, inside, _ = split(text)
    return before.count("\n"), 0 if inside is None else inside.count("\n") + 2


def entries(inside: str) -> Entries:
    """Return the settings in a block, each with the comment above it; other lines belong to the preceding setting."""
    found: Entries = {}
    comments: list[str] = []
    current = ""
    for row in inside.splitlines():
        if row.startswith("#"):
            comments.append(row)
            continue
        key = _KEY.match(row)
        if key is not None:
            name = key["name"] or key["path"] or key["script"]
            if comments or name != current:
                found[name] = comments
            current, comments = name, []
        found.setdefault(current, []).append(row)
    return found


def merged(inside: str, settings: Iterable[Setting], lang: str, lines: Lines = bash_lines) -> str:
    """Return the content of a block with these settings replacing those for the same variables.

    An entry is parsed by lines: a multi-line value, which no path or number has, is left out.
    """
    found = entries(inside)
    for setting in settings:
        if "\n" in (setting.value or ""):
            continue
        key = setting.script or setting.name
        found[key] = [comment(setting.reason.to(lang)), *lines(setting)]
    return "".join(row + "\n" for rows in found.values() for row in rows)


def variants(text: str, inside: str, script: bool) -> Iterator[str]:
    """Yield the file with a block that contains `inside`.

    First where the block is; then, in a script, before each top-level statement from the last one up, because what
    comes later wins. In an env file it goes to the end.
    """
    before, there, behind = split(text)
    block = f"{BEGIN}\n{inside}{END}\n"
    if there is not None:
        yield before + block + behind
        if not script:
            return
        text = before + behind
    if not script:
        yield text + ("" if not text or text.endswith("\n") else "\n") + block
        return
    rows = text.split("\n")
    try:
        positions = statement_lines(text)
    except ShellSyntaxError:
        return
    for line in positions[::-1][:MOST_POSITIONS]:
        yield "".join(row + "\n" for row in rows[: line - 1]) + block + "\n".join(rows[line - 1 :])


def docker_lines(setting: Setting) -> list[str]:
    """Return one setting for an env file of `KEY=VALUE` lines."""
    return [f"{setting.name}={setting.value}"]
