"""The examples in the help of a verb, so that each fits a terminal of 80 columns in either language."""

from __future__ import annotations

import re

WIDTH = 78  # typer indents the help of a verb by two columns
_EXAMPLE = r"(  \S.*?) {2,}(\S.*)"


def fitted(text: str) -> str:
    """Return a help text in which words that do not fit beside their example stand in the next line."""
    if all(len(line) <= WIDTH // 2 for line in text.splitlines()):  # also where each character takes two columns
        return text
    parts = text.split("\n\n")
    return "\n\n".join(_fitted(part) if part.startswith("\b\n") else part for part in parts)


def _fitted(block: str) -> str:
    lines = block.split("\n")
    if all(_width(line) <= WIDTH for line in lines):
        return block
    rows = [re.fullmatch(_EXAMPLE, line) for line in lines]
    column = max((len(row[1]) for row in rows if row is not None), default=0) + 2
    made: list[str] = []
    for line, row in zip(lines, rows):
        if row is None:
            made.append(line)
        elif column + _width(row[2]) <= WIDTH:
            made.append(row[1].ljust(column) + row[2])
        else:
            made += [row[1], " " * 6 + row[2]]
    return "\n".join(made)


def _width(line: str) -> int:
    """Return the columns a line takes on a terminal; tables of other letters are loaded for those only."""
    if line.isascii():
        return len(line)
    from envtune.report.layout import display_width

    return display_width(line)
