"""Catalog files -> rows: plain mappings, validated, merged by id, without the examples that only tests need."""

from __future__ import annotations

import re
from typing import Any, Container, Iterable, Iterator, Mapping, NamedTuple, Sequence

from envtune.catalog.code_files import code_rows
from envtune.catalog.entries import expectation_of
from envtune.catalog.families import folders_of
from envtune.catalog.layers import Source
from envtune.catalog.schema import FAMILY_FILE, KINDS, SIGNATURE_DEFAULTS, SITE_DEFAULTS, SITE_TABLES, TABLES
from envtune.catalog.yaml import Diagnostics, Node, read_yaml
from envtune.context.registry import current_arguments, current_name
from envtune.errors import CatalogError
from envtune.messages import Message, Text
from envtune.schema.validate import Validator

Rows = Mapping[str, Sequence[Mapping[str, Any]]]

# FAQ entries that checks may already name: the 25 of the guide's FAQ chapter (003:2887-3439, in order of appearance)
# and the 12 symptoms described elsewhere in it. Their files follow.
PLANNED = frozenset([*(f"F{n:02}" for n in range(1, 26)), *(f"X{n:02}" for n in range(1, 13))])
_CJK = "\u4e00-\u9fff"
_MARKS = "\u3001-\u3011\uff01-\uff0f\uff1a-\uff1f\u201c\u201d"
_WIDE_GAP = re.compile(f"(?<=[{_CJK}{_MARKS}]) +(?=[{_CJK}{_MARKS}])|(?<=[{_MARKS}]) +|(?<=[^ ]) +(?=[{_MARKS}])")
# key of an entry -> the kind it refers to
_REFERENCES: Mapping[str, Sequence[tuple[str, str]]] = {
    "checks": (("faq", "faq"), ("playbook", "playbooks"), ("covers", "checks")),
    "faq": (
        *((effect, "checks") for effect in ("proves", "favours", "rules_out")),
        ("confirm", "checks"),
        ("named_by", "checks"),
        ("aliases", "faq"),
    ),
    "playbooks": (("fixes", "checks"),),
    "families": (),
}

# field that is accepted for one more release -> what to do instead
_FORMER_FIELDS: Mapping[str, Mapping[str, Text]] = {
    "checks": {
        "faq": Message("name the check in `named_by` of the FAQ entry"),
        "playbook": Message("name the check in `fixes` of the playbook"),
        "volatile": Message("remove it"),
    },
    "faq": {"confirm": Message("it is treated as `favours`; list what proves the cause in `proves`")},
    "playbooks": {},
    "families": {},
}

_ENTRY_KINDS: Mapping[str, Text] = {
    "checks": Message("a check"),
    "faq": Message("an FAQ entry"),
    "playbooks": Message("a playbook"),
}


class _Entry(NamedTuple):
    source: Source
    node: Node
    row: Mapping[str, Any]  # the entry as data
    diagnostics: Diagnostics
    notes: tuple[Text, ...] = ()  # what is accepted for one more release only

    @property
    def id(self) -> str:
        """The id, empty if the file has none."""
        return self.row.get("id") or ""


def compile_rows(files: Iterable[tuple[Source, bytes]], lower: Rows) -> Rows:
    """Return the rows of every kind, `lower` ones (a compiled layer) first; CatalogError has every diagnostic."""
    files = tuple(files)
    made: list[Diagnostics] = []
    entries = list(_entries((file for file in files if file[0].kind != "codes"), made))
    rows: dict[str, dict[str, Mapping[str, Any]]] = {k: {row["id"]: row for row in lower.get(k, ())} for k in KINDS}
    _refuse_doubles(entries)
    for entry in entries:
        known = rows[entry.source.kind]
        known[entry.id] = _over(known.get(entry.id, {}), entry.row)
    _refuse_shared_names(entries, rows)
    for entry in entries if len(entries) == len(made) else ():  # a file that is not YAML may contain what is missing
        _check_references(entry, rows)
    found = sorted((d for one in made for d in one.found), key=lambda d: (d.file, d.line, d.column))
    if found:
        raise CatalogError([diagnostic.message() for diagnostic in found])
    _link_faq(rows, {entry.id for entry in entries if "faq" in entry.row})
    codes = [(source.shown, content) for source, content in files if source.kind == "codes"]
    return {
        "codes": code_rows(codes, lower.get("codes", ()), rows["faq"].values()),
        **{kind: [rows[kind][id_] for id_ in sorted(rows[kind])] for kind in KINDS},
        "warnings": [{"en": warning.en, "zh": warning.zh} for entry in entries for warning in _warnings(entry)],
    }


def _over(lower: Mapping[str, Any], row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an entry that replaces a lower one; an FAQ entry that predates `named_by` keeps the lower list."""
    return {**row, "named_by": lower["named_by"]} if "named_by" in {*lower} - {*row} else row


def _link_faq(rows: Mapping[str, dict[str, Mapping[str, Any]]], own: Container[str]) -> None:
    """Give each check the FAQ entries that name it, those that list it first come first; `own` have a list already."""
    places: dict[str, list[tuple[int, str]]] = {}
    for id_, entry in rows["faq"].items():
        for place, check in enumerate(entry.get("named_by", ())):
            places.setdefault(check, []).append((place, id_))
    for id_, row in rows["checks"].items():
        if id_ not in own:
            rows["checks"][id_] = {**row, "faq": [faq for _, faq in sorted(places.get(id_, ()))]}


def _unfold(data: Any) -> Any:
    """Return data without the blanks that YAML line folding inserts between Chinese characters."""
    if isinstance(data, list):
        return [_unfold(item) for item in data]
    if not isinstance(data, dict):
        return data
    return {key: _WIDE_GAP.sub("", v) if key == "zh" and isinstance(v, str) else _unfold(v) for key, v in data.items()}


def _entries(files: Iterable[tuple[Source, bytes]], made: list[Diagnostics]) -> Iterator[_Entry]:
    for source, content in files:
        diagnostics = Diagnostics(source.shown)
        made.append(diagnostics)
        node = read_yaml(content, diagnostics)
        if node is not None:
            notes: list[Text] = []
            node = _with_current_names(node, notes)
            entry = _Entry(source, node, row_of(node, source, diagnostics), diagnostics, tuple(notes))
            _check_place(entry)
            yield entry


def row_of(node: Node, source: Source, diagnostics: Diagnostics) -> Mapping[str, Any]:
    """Return an entry as data, with its file and without its examples."""
    row = entry_of(node, source.kind, diagnostics, source.layer.own)
    profile = (node.get("expect") or node).get("profile") if source.kind == "checks" else None
    if profile is not None and row.get("probe") and row.get("expect"):
        try:
            row = {**row, "expect": expectation_of(row)}
        except ValueError:
            diagnostics.report(profile, Message("the table of variables has no profile for what this probe reads"))
    return {**_unfold({key: value for key, value in row.items() if key != "examples"}), "file": source.shown}


def entry_of(node: Node, kind: str, diagnostics: Diagnostics, own: bool = True) -> dict[str, Any]:
    """Return the entry of one file as data, validated as `kind`; against the site form unless `own`."""
    tables = TABLES if own else SITE_TABLES
    entry: dict[str, Any] = Validator(diagnostics.report).judge(node, tables[kind]) or {}
    if not own and entry:
        entry = _with_site_defaults(entry, kind)
    origin = node.get("origin")
    if kind == "checks" and origin is not None and entry.get("origin") == "seed" and "seed" not in entry:
        diagnostics.report(origin, Message("origin seed needs the citation in `seed`"))
    return entry


def _with_site_defaults(entry: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return a site's entry with defaults filled in."""
    filled = {**SITE_DEFAULTS[kind], **entry}
    if kind == "checks":
        filled.setdefault("rationale", filled.get("title"))
    if kind == "faq":
        signatures = entry.get("signatures") or ()
        filled["signatures"] = [signature and {**SIGNATURE_DEFAULTS, **signature} for signature in signatures]
    return filled


def _with_current_names(node: Node, notes: list[Text]) -> Node:
    """Return the entry with current names of probes and actions; former names are added to `notes`."""
    if node.kind != "mapping":
        return node
    members = ((key, _with_current_calls(key.text or "", value, notes)) for key, value in node.value)
    return node._replace(value=tuple(members))


def _with_current_calls(field: str, node: Node, notes: list[Text]) -> Node:
    if field == "steps" and node.kind == "list":
        return node._replace(value=tuple(_with_current_calls("probe", step, notes) for step in node.value))
    if field != "probe" or node.kind != "mapping":
        return node
    return node._replace(value=tuple(_current_call(name, arguments, notes) for name, arguments in node.value))


def _current_call(name: Node, arguments: Node, notes: list[Text]) -> tuple[Node, Node]:
    former, given = name.text or "", {key.text or "": value.plain() for key, value in arguments.members()}
    current, taken = current_name(former, given), current_arguments(former, given)
    gone = [key for key in given if key not in taken]
    if current != former:
        called = " ".join((former, *(f"{key}: {given[key]}" for key in gone)))
        notes.append(
            Message(
                "{former} is now called {current}; the old name works for one more release",
                former=called,
                current=current,
            )
        )
    elif gone:
        notes.append(
            Message(
                "{probe} accepts {arguments} for one more release, without effect: the value is in `expect`",
                probe=current,
                arguments=", ".join(gone),
            )
        )
    if gone:
        arguments = arguments._replace(value=tuple(row for row in arguments.members() if row[0].text in taken))
    return name._replace(text=current), arguments


def _warnings(entry: _Entry) -> Iterator[Text]:
    """Yield what is accepted for one more release only."""
    notes = list(entry.notes)
    for field, instead in _FORMER_FIELDS[entry.source.kind].items():
        if field in entry.row:
            words = Message("the field {field} works for one more release: {instead}", field=field, instead=instead)
            notes.append(words)
    row = entry.row
    lines = [*row.get("commands", ()), *(line for by in row.get("commands_by", ()) for line in by["commands"])]
    if entry.source.kind == "checks" and any(isinstance(line, str) for line in lines):
        notes.append(Message("a line of `commands` is treated as `look`; write {{fix: ...}} or {{look: ...}}"))
    yield from (Message("{file}: {note}", file=entry.source.shown, note=note) for note in notes)


def _check_place(entry: _Entry) -> None:
    """Report a file whose name or folder does not match its id, by which readers of a finding look for it."""
    id_ = entry.node.get("id")
    if not entry.id or id_ is None:
        return
    stem = entry.source.path.rpartition("/")[2][: -len(".yaml")]
    folders = folders_of(re.sub("[0-9]+$", "", entry.id))
    name = entry.row.get("name")
    should = entry.id if entry.source.kind == "playbooks" or name is None else f"{entry.id}-{name}"
    should = FAMILY_FILE if entry.source.kind == "families" else should
    if stem != should:
        entry.diagnostics.report(id_, Message("the file must be called {should}.yaml", should=should))
    folder = entry.source.family
    if entry.source.kind in ("checks", "families") and folder and folder not in folders:
        entry.diagnostics.report(
            id_, Message("{id} belongs in the directory {folders}/", id=entry.id, folders=folders[0])
        )


def _refuse_doubles(entries: Sequence[_Entry]) -> None:
    seen: dict[tuple[str, str, str], _Entry] = {}
    for entry in entries:
        first = seen.setdefault((entry.source.layer.directory, entry.source.kind, entry.id), entry)
        node = entry.node.get("id")
        if first is not entry and entry.id and node is not None:
            there = first.source.shown
            entry.diagnostics.report(node, Message("the id {id} is already used by {there}", id=entry.id, there=there))


def _refuse_shared_names(entries: Sequence[_Entry], rows: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    owners: dict[Any, str] = {}
    for kind in KINDS:
        for id_, row in rows[kind].items():
            if row.get("name"):
                owners.setdefault(row["name"], id_)
    for entry in entries:
        node = entry.node.get("name")
        owner = owners.get(entry.row.get("name"), entry.id)
        if node is not None and owner != entry.id:
            entry.diagnostics.report(node, Message("{owner} has the same name; choose another", owner=owner))


def _check_references(entry: _Entry, rows: Mapping[str, Mapping[str, Any]]) -> None:
    for key, kind in _REFERENCES[entry.source.kind]:
        value = entry.node.get(key)
        if value is None or not entry.row.get(key):
            continue
        known = set(rows[kind]) | (PLANNED if kind == "faq" else frozenset())
        for item in value.items() or (value,):
            node = item.get("check") or item if item.kind == "mapping" else item
            if node.text and node.text not in known:
                validator = Validator(entry.diagnostics.report)
                validator.unknown_word(node, _ENTRY_KINDS[kind], sorted(known))
