"""The dictionary of error codes, from compiled rows; code_files.py makes the rows."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Optional, Sequence

from envtune.messages import Bilingual, Message, Text
from envtune.model import ErrorCode

Row = Mapping[str, Any]


class Codes:
    """The dictionary; a later row replaces an earlier one for the same code."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows: dict[str, Row] = {}
        self._prefixes: dict[str, Row] = {}
        for row in rows:
            (self._prefixes if row.get("prefix") else self._rows).update(dict.fromkeys(row["codes"], row))

    def __iter__(self) -> Iterator[ErrorCode]:
        """Yield every code that has its own row, sorted."""
        return (_code(code, self._rows[code]) for code in sorted(self._rows))

    def find(self, code: str) -> Optional[ErrorCode]:
        """Return what is known about a code: its own row, or that of its prefix; None for others."""
        row = self._rows.get(code)
        if row is not None:
            return _code(code, row)
        for length in (4, 3, 2):
            if len(code) == 6 and code[:length] in self._prefixes:
                return _code(code, self._prefixes[code[:length]], of_module=True)
        return None


def _code(code: str, row: Row, *, of_module: bool = False) -> ErrorCode:
    meaning: Text = Bilingual(row["en"], row["zh"])
    if of_module:
        meaning = Message("Error in {module}; see the line for details", module=meaning)
    action = row["action"]
    return ErrorCode(
        code,
        meaning,
        Bilingual(action["en"], action["zh"]),
        action["side"],
        row["source"],
        row["faq"],
        bool(row.get("generic")),
        exact=not of_module,
    )
