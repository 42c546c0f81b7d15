"""The examples in the help of a verb, so that they fit the terminal in either language."""

from __future__ import annotations

import re

from envtune.report.layout import display_width, indent

_EXAMPLE = re.compile(r"(  \S.*?) {2,}(\S.*)")
_BLOCK = "\b\n"  # what begins a paragraph whose lines are kept


def fitted(text: str, width: int) -> str:
    """Return a help text in which every example is explained beside it or, if one does not fit, all in the next line.

    `width` is in columns.
    """
    parts = text.split("\n\n")
    return "\n\n".join(_fitted(part, width) if part.startswith(_BLOCK) else part for part in parts)


def _fitted(block: str, width: int) -> str:
    lines = block.split("\n")
    rows = [_EXAMPLE.fullmatch(line) for line in lines]
    if not any(rows):
        return block
    column = max(display_width(row[1]) for row in rows if row is not None) + 2
    one_line = all(column + display_width(row[2]) <= width for row in rows if row is not None)
    made: list[str] = []
    for line, row in zip(lines, rows):
        if row is None:
            made.append(line)
        elif one_line:
            made.append(row[1].ljust(column) + row[2])
        else:
            made += [row[1], *indent(row[2], width, " " * 6, " " * 6)]
    return "\n".join(made)
