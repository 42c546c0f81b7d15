"""Turn the files of the dictionary of error codes, `checks/codes/*.yaml`, into rows.

A file holds rows for many codes with one source for all of them; the remedy for a code is given by name, because
hundreds of codes share some sixty remedies. A row with `prefix` applies to codes without a row of their own.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Optional, Sequence

from envtune.catalog.codes import Row
from envtune.catalog.forms import TEXT, several
from envtune.catalog.yaml import Diagnostics, Node, read_yaml
from envtune.errors import CatalogError
from envtune.messages import Message
from envtune.schema.types import Bool, Field, MapOf, Record, Str
from envtune.schema.validate import Validator

_CODE = Str("([0-9]{3,6}|E[A-Z1-9][0-9]{0,4}|ERR[0-9]{5}|HCCL[0-9]{1,2})", "'507011'")
_NAME = Str("[a-z]+", "memory")
_EN = Field("en", TEXT, "", True)
_ZH = Field("zh", TEXT, "", True)
_ROW = Record(
    Field("codes", several(_CODE), "The codes that mean this.", True),
    _EN,
    _ZH,
    Field("action", _NAME, "What to do: the name of an action.", True),
    Field("faq", TEXT, "The FAQ entry that says more, by id or name; one that is not there is left out."),
    Field("generic", Bool(), "Says where it failed, not why."),
    Field("source", TEXT, "Where it is documented; the file's source otherwise."),
    Field("prefix", Bool(), "These are the first characters of codes without a row of their own."),
)
_SIDE = Field("side", Str(choices=("host", "code", "escalate")), "Who has to act.", True)
CODES = Record(
    Field("source", TEXT, "Where the codes of this file are documented."),
    Field("actions", MapOf(Record(_SIDE, _EN, _ZH), _NAME), "What to do, by name."),
    Field("codes", several(_ROW), "The codes."),
)


def code_rows(files: Iterable[tuple[str, bytes]], lower: Sequence[Row], faq: Iterable[Row]) -> list[Row]:
    """Return the rows of the files (name and content) after those of the lower layer; raises CatalogError."""
    named = {name: row["id"] for row in faq for name in (*row.get("aliases", ()), row["name"], row["id"])}
    made = [_read(name, content) for name, content in files]
    actions: dict[str, Row] = {row["action"]["name"]: row["action"] for row in lower}
    for data, _ in made:
        actions.update({name: {"name": name, **action} for name, action in data.get("actions", {}).items()})
    rows: list[Row] = [{**row, "faq": named.get(row["named"], "")} for row in lower]
    for data, diagnostics in made:
        rows += _rows(data, diagnostics, actions, named)
    return rows


def _read(name: str, content: bytes) -> tuple[Row, Diagnostics]:
    diagnostics = Diagnostics(name)
    node = read_yaml(content, diagnostics)
    data = None if node is None else _judged(node, diagnostics)
    if diagnostics.found:
        raise CatalogError([diagnostic.message() for diagnostic in diagnostics.found])
    return data or {}, diagnostics


def _judged(node: Node, diagnostics: Diagnostics) -> Optional[Row]:
    data: Optional[Row] = Validator(diagnostics.report).judge(node, CODES)
    if data and data.get("codes") and not all(row.get("source") or data.get("source") for row in data["codes"]):
        diagnostics.report(node, Message("source is missing: state where the codes are documented"))
    return data


def _rows(data: Row, diagnostics: Diagnostics, actions: Mapping[str, Row], named: Mapping[str, str]) -> Iterator[Row]:
    for row in data.get("codes", ()):
        action = actions.get(row["action"])
        if action is None:
            file, name = diagnostics.file, row["action"]
            raise CatalogError([Message("{file}: no action {name}", file=file, name=name)])
        wanted = row.get("faq", "")
        source = row.get("source") or data["source"]
        yield {**row, "action": action, "named": wanted, "faq": named.get(wanted, ""), "source": source}
