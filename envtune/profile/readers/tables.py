"""Read tables written by profilers: CSV by column names, with any encoding, line endings and length.

A column is identified by its name without the unit: `Duration(us)` and `Task Duration` of other releases are found by
the readers' aliases. Memory stays bounded: a file is read line by line, and a line is at most LONGEST bytes.
"""

from __future__ import annotations

import codecs
import csv
import math
import re
from typing import IO, Iterable, Iterator, Mapping, Optional, Sequence, cast

from envtune.records import NamedTuple

LONGEST = 1 << 20  # bytes of a line; no table read here has longer ones
_UNIT = re.compile(r"\s*\((ns|us|\u03bcs|\u00b5s|ms|s)\)$")
MICROSECONDS: Mapping[str, float] = {"ns": 1e-3, "us": 1.0, "\u03bcs": 1.0, "\u00b5s": 1.0, "ms": 1e3, "s": 1e6}
_ENCODINGS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


class Header(NamedTuple):
    """The columns of a table: name without unit, in lower case -> its place, and the unit in microseconds."""

    names: tuple[str, ...]
    places: Mapping[str, int]
    units: Mapping[str, float]

    def find(self, *aliases: str) -> Optional[int]:
        """Return the place of the first of these columns that exists."""
        return next((self.places[name] for name in aliases if name in self.places), None)

    def unit(self, *aliases: str, default: str = "us") -> float:
        """Return the factor that converts the column to microseconds, from the unit in its name."""
        return next((self.units[name] for name in aliases if name in self.units), MICROSECONDS[default])


def header_of(cells: Sequence[str]) -> Header:
    """Return the header from these cells; of columns with the same name the first counts."""
    places: dict[str, int] = {}
    units: dict[str, float] = {}
    for place, cell in enumerate(cells):
        name, unit = plain_name(cell)
        places.setdefault(name, place)
        if unit:
            units.setdefault(name, MICROSECONDS[unit])
    return Header(tuple(cell.strip() for cell in cells), places, units)


def plain_name(cell: str) -> tuple[str, str]:
    """Return the name of a column in lower case without its unit, and the unit."""
    text = " ".join(cell.replace("_", " ").split()).lower()
    found = _UNIT.search(text)
    return (text[: found.start()], found[1]) if found else (text, "")


def as_text(stream: IO[bytes]) -> IO[bytes]:
    """Return the stream after its byte order mark, as UTF-8: UTF-16 is converted while reading."""
    start = stream.read(3)
    stream.seek(0)
    for mark, encoding in _ENCODINGS:
        if start.startswith(mark):
            if encoding == "utf-8-sig":
                stream.seek(3)
                return stream
            return cast("IO[bytes]", _Recoded(codecs.getreader(encoding)(stream, "replace")))
    return stream


class _Recoded:
    """Lines of another encoding, as UTF-8."""

    def __init__(self, text: codecs.StreamReader) -> None:
        self._text = text

    def readline(self, size: int) -> bytes:
        """Return the next line, or about `size` bytes of a longer one."""
        return self._text.readline(size).encode("utf-8", "replace")


def lines_of(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file that are not empty; those longer than LONGEST are skipped."""
    skipping = False
    while True:
        line = stream.readline(LONGEST)
        if not line:
            return
        whole = line.endswith(b"\n")
        if not skipping and (whole or len(line) < LONGEST) and line.strip():
            yield line
        skipping = not whole and len(line) >= LONGEST


def rows_of(lines: Iterable[bytes]) -> Iterator[list[str]]:
    """Yield the rows of CSV lines; invalid CSV (a NUL byte, an unclosed quote at the end) ends them."""
    text = (line.decode("utf-8", "replace").replace("\0", "") for line in lines)
    rows = csv.reader(text)
    while True:
        try:
            yield next(rows)
        except StopIteration:
            return
        except csv.Error:
            continue


def number(cell: Optional[str]) -> Optional[float]:
    """Return the number in a cell; None for N/A, blanks and truncated ones."""
    if cell is None:
        return None
    try:
        value = float(cell.strip().rstrip("%"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def cell(row: Sequence[str], place: Optional[int]) -> Optional[str]:
    """Return a cell of a row; None if the column or the end of the row is missing."""
    return None if place is None or place >= len(row) else row[place].strip()
