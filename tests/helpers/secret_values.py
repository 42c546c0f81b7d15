"""Made-up secrets for tests/cases/redaction: written so that no file of this project holds one."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any, Iterator, NamedTuple

from helpers.yaml_text import load_yaml

CASES = Path(__file__).resolve().parents[1] / "cases" / "redaction"
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ALPHABETS = {"": _LETTERS + "0123456789", "U": _LETTERS[26:] + "0123456789", "H": "0123456789abcdef"}
_MARK = re.compile(r"@UUID|@([UH]?)([0-9]+)|@(?!@)|@(?=@)")


class Planted(NamedTuple):
    """A line with secrets in it, and the secrets."""

    text: str
    secrets: tuple[str, ...]


@cache
def cases(name: str) -> dict[str, list[str]]:
    """Return the rows of tests/cases/redaction/<name>.yaml by their kind."""
    rows: dict[str, list[str]] = load_yaml((CASES / f"{name}.yaml").read_text("utf-8"))
    return rows


def random_text(seed: str, length: int, alphabet: str = "") -> str:
    """Return letters and digits that look drawn at random, the same for a seed."""
    digest, found = b"", ""
    letters = _ALPHABETS[alphabet]
    while len(found) < length:
        digest = hashlib.sha512(digest + seed.encode()).digest()
        found += "".join(letters[byte % len(letters)] for byte in digest)
    found = found[:length]
    if length >= 8 and alphabet != "U":  # each has both kinds
        found = found[:3] + "7" + found[4:6] + ("f" if alphabet else "Q") + found[7:]
    return found


def planted(row: str, number: int) -> Planted:
    """Return the row with a made-up value for each mark: `@`, `@N`, `@UN` and `@HN` of N characters, `@UUID`.

    Of two marks in a row (`@@host`) the second is the character itself.
    """
    secrets: list[str] = []
    pieces: list[str] = []
    at = 0
    for match in _MARK.finditer(row):
        if match.start() < at:
            continue
        kind, length = match.group(1) or "", match.group(2)
        seed = f"{row}{number}{match.start()}"
        if match.group() == "@UUID":
            value = re.sub(r"(.{8})(.{4})(.{4})(.{4})(.{12})", r"\1-\2-\3-\4-\5", random_text(seed, 32, "H"))
        elif length:
            value = random_text(seed, int(length), kind)
        elif number % 3 == 2:
            value = f"{random_text(seed, 1)}orten-{number:03}-kram{match.start()}"
        else:
            value = random_text(seed, 16)
        pieces += [row[at : match.start()], value]
        secrets.append(value)
        at = match.end()
        if row[at : at + 1] == "@":  # the sign itself
            pieces.append("@")
            at += 1
    return Planted("".join(pieces) + row[at:], tuple(secrets))


def rows(name: str, kind: str) -> Iterator[Any]:
    """Yield the rows of one kind, planted."""
    for number, row in enumerate(cases(name)[kind]):
        yield planted(row, number)
