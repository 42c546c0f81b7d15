"""Catalogue files -> rows: plain mappings, validated, merged by id, without the examples that only tests need."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Container, Iterable, Iterator, Mapping, Sequence

from envtune.catalog.entries import expectation_of
from envtune.catalog.families import folders_of
from envtune.catalog.layers import Source
from envtune.catalog.yaml import Complaint, Complaints, Node, read_yaml
from envtune.context.registry import current_arguments, current_name
from envtune.errors import CatalogError
from envtune.messages import Message, Text
from envtune.schema.types import KINDS
from envtune.schema.validate import unknown_word, validate

Rows = Mapping[str, Sequence[Mapping[str, Any]]]

# FAQ entries that checks may already name: the 25 of the guide's FAQ chapter (003:2887-3439, in order of appearance)
# and the 12 symptoms told elsewhere in it. Their files follow.
PLANNED = frozenset([*(f"F{n:02}" for n in range(1, 26)), *(f"X{n:02}" for n in range(1, 13))])
_CJK = "\u4e00-\u9fff"
_MARKS = "\u3001-\u3011\uff01-\uff0f\uff1a-\uff1f\u201c\u201d"
_WIDE_GAP = re.compile(f"(?<=[{_CJK}{_MARKS}]) +(?=[{_CJK}{_MARKS}])|(?<=[{_MARKS}]) +|(?<=[^ ]) +(?=[{_MARKS}])")
# key of an entry -> the kind it refers to
_REFERENCES: Mapping[str, Sequence[tuple[str, str]]] = {
    "checks": (("faq", "faq"), ("playbook", "playbooks")),
    "faq": (("confirm", "checks"), ("named_by", "checks"), ("aliases", "faq")),
    "playbooks": (("fixes", "checks"),),
}

# field of a check that is accepted for one more release -> what to do instead
_FORMER_FIELDS: Mapping[str, Text] = {
    "faq": Message("name the check in `named_by` of the FAQ entry"),
    "playbook": Message("name the check in `fixes` of the playbook"),
    "volatile": Message("leave it out"),
}

_ENTRY_KINDS: Mapping[str, Text] = {
    "checks": Message("a check"),
    "faq": Message("an FAQ entry"),
    "playbooks": Message("a playbook"),
}


@dataclass(frozen=True)
class _Entry:
    source: Source
    node: Node
    complaints: Complaints
    notes: tuple[Text, ...] = ()  # what works for one more release

    @property
    def id(self) -> str:
        """The id, empty when the file has none."""
        node = self.node.get("id")
        return node.value if node is not None and node.kind == "text" else ""


def compile_rows(files: Iterable[tuple[Source, bytes]], lower: Rows) -> Rows:
    """The rows of every kind, `lower` ones (a compiled layer) first; CatalogError with every complaint there is."""
    made: list[Complaints] = []
    entries = list(_entries(files, made))
    rows: dict[str, dict[str, Mapping[str, Any]]] = {k: {row["id"]: row for row in lower.get(k, ())} for k in KINDS}
    _refuse_doubles(entries)
    for entry in entries:
        known = rows[entry.source.kind]
        known[entry.id] = _over(known.get(entry.id, {}), row_of(entry.node, entry.source))
    _refuse_shared_names(entries, rows)
    for entry in entries:
        _check_references(entry, rows)
    complaints = sorted((c for one in made for c in one.made), key=lambda c: (c.file, c.line, c.column))
    if complaints:
        raise _error(complaints)
    _link_faq(rows, {entry.id for entry in entries if entry.node.get("faq") is not None})
    return {
        **{kind: [rows[kind][id_] for id_ in sorted(rows[kind])] for kind in KINDS},
        "warnings": [{"en": warning.en, "zh": warning.zh} for entry in entries for warning in _warnings(entry)],
    }


def _over(lower: Mapping[str, Any], row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an entry that replaces a lower one; an FAQ entry written before it had `named_by` keeps the lower list."""
    return {**row, "named_by": lower["named_by"]} if "named_by" in {*lower} - {*row} else row


def _link_faq(rows: Mapping[str, dict[str, Mapping[str, Any]]], own: Container[str]) -> None:
    """Give each check the FAQ entries that name it, those first in which it stands first; `own` have a list already."""
    places: dict[str, list[tuple[int, str]]] = {}
    for id_, entry in rows["faq"].items():
        for place, check in enumerate(entry.get("named_by", ())):
            places.setdefault(check, []).append((place, id_))
    for id_, row in rows["checks"].items():
        if id_ not in own:
            rows["checks"][id_] = {**row, "faq": [faq for _, faq in sorted(places.get(id_, ()))]}


def row_of(node: Node, source: Source) -> Mapping[str, Any]:
    """Return an entry as data, with the file it comes from and without its examples."""
    data = node.plain() if node.kind == "mapping" else {}
    data.pop("examples", None)
    if source.kind == "checks" and _has_profile(data):
        data["expect"] = expectation_of(data)
    return {**_unfold(data), "file": source.shown}


def _unfold(data: Any) -> Any:
    """Texts of several lines without the blanks that YAML's folding puts between Chinese characters."""
    if isinstance(data, list):
        return [_unfold(item) for item in data]
    if not isinstance(data, dict):
        return data
    return {key: _WIDE_GAP.sub("", v) if key == "zh" and isinstance(v, str) else _unfold(v) for key, v in data.items()}


def _entries(files: Iterable[tuple[Source, bytes]], made: list[Complaints]) -> Iterator[_Entry]:
    for source, content in files:
        complaints = Complaints(source.shown)
        made.append(complaints)
        node = read_yaml(content, complaints)
        if node is not None:
            notes: list[Text] = []
            node = _with_current_names(node, notes)
            validate(node, source.kind, complaints)
            entry = _Entry(source, node, complaints, tuple(notes))
            _check_place(entry)
            _check_profile(entry)
            yield entry


def _with_current_names(node: Node, notes: list[Text]) -> Node:
    """Return the entry with probes and actions called as they are now; adds to `notes` what was called otherwise."""
    if node.kind != "mapping":
        return node
    return replace(node, value=tuple((key, _with_current_calls(key.value, value, notes)) for key, value in node.value))


def _with_current_calls(field: str, node: Node, notes: list[Text]) -> Node:
    if field == "steps" and node.kind == "list":
        return replace(node, value=tuple(_with_current_calls("probe", step, notes) for step in node.value))
    if field != "probe" or node.kind != "mapping":
        return node
    return replace(node, value=tuple(_current_call(name, arguments, notes) for name, arguments in node.value))


def _current_call(name: Node, arguments: Node, notes: list[Text]) -> tuple[Node, Node]:
    given = arguments.plain() if arguments.kind == "mapping" else {}
    current, taken = current_name(name.value, given), current_arguments(name.value, given)
    gone = [key for key in given if key not in taken]
    if current != name.value:
        called = " ".join((name.value, *(f"{key}: {given[key]}" for key in gone)))
        notes.append(
            Message(
                "{former} is called {current} now; the old name works for one more release",
                former=called,
                current=current,
            )
        )
    elif gone:
        notes.append(
            Message(
                "{probe} takes {arguments} for one more release, without effect: the value stands in `expect`",
                probe=current,
                arguments=", ".join(gone),
            )
        )
    if gone:
        arguments = replace(
            arguments, value=tuple((key, value) for key, value in arguments.value if key.value in taken)
        )
    return replace(name, value=current), arguments


def _warnings(entry: _Entry) -> Iterator[Text]:
    """Yield what works for one more release only."""
    notes = list(entry.notes)
    for field, instead in _FORMER_FIELDS.items():
        if entry.source.kind == "checks" and entry.node.get(field) is not None:
            words = Message("the field {field} works for one more release: {instead}", field=field, instead=instead)
            notes.append(words)
    yield from (Message("{file}: {note}", file=entry.source.shown, note=note) for note in notes)


def _has_profile(data: Mapping[str, Any]) -> bool:
    """Return whether the entry expects a profile that the table of variables has."""
    try:
        return bool(expectation_of(data) != data["expect"])
    except (AttributeError, KeyError, TypeError, ValueError):  # it was complained about
        return False


def _check_profile(entry: _Entry) -> None:
    """A profile is one of a variable that the table describes."""
    expect = entry.node.get("expect") if entry.source.kind == "checks" else None
    profile = expect.get("profile") if expect is not None else None
    if profile is not None and not _has_profile(entry.node.plain()):
        entry.complaints.about(profile, Message("the table of variables has no profile for what this probe reads"))


def _check_place(entry: _Entry) -> None:
    """The file's name begins with the id, and its folder is the family, so that a finding leads to its file."""
    id_, name = entry.node.get("id"), entry.node.get("name")
    if not entry.id or id_ is None:
        return
    stem = entry.source.path.rpartition("/")[2][: -len(".yaml")]
    folders = folders_of(re.sub("[0-9]+$", "", entry.id))
    should = entry.id if entry.source.kind == "playbooks" or name is None else f"{entry.id}-{name.value}"
    if stem != should:
        entry.complaints.about(id_, Message("the file must be called {should}.yaml", should=should))
    folder = entry.source.family
    if entry.source.kind == "checks" and folder and folder not in folders:
        entry.complaints.about(id_, Message("{id} belongs into the folder {folders}/", id=entry.id, folders=folders[0]))


def _refuse_doubles(entries: Sequence[_Entry]) -> None:
    seen: dict[tuple[str, str, str], _Entry] = {}
    for entry in entries:
        first = seen.setdefault((entry.source.layer.directory, entry.source.kind, entry.id), entry)
        node = entry.node.get("id")
        if first is not entry and entry.id and node is not None:
            there = first.source.shown
            entry.complaints.about(node, Message("the id {id} is taken by {there}", id=entry.id, there=there))


def _refuse_shared_names(entries: Sequence[_Entry], rows: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    owners: dict[Any, str] = {}
    for kind in KINDS:
        for id_, row in rows[kind].items():
            if isinstance(row.get("name"), str):
                owners.setdefault(row["name"], id_)
    for entry in entries:
        node = entry.node.get("name")
        owner = owners.get(node.value, entry.id) if node is not None and node.kind == "text" else entry.id
        if node is not None and owner != entry.id:
            entry.complaints.about(node, Message("{owner} has the same name; choose another", owner=owner))


def _check_references(entry: _Entry, rows: Mapping[str, Mapping[str, Any]]) -> None:
    for key, kind in _REFERENCES[entry.source.kind]:
        value = entry.node.get(key)
        if value is None or value.kind not in ("list", "text"):
            continue
        known = set(rows[kind]) | (PLANNED if kind == "faq" else frozenset())
        for node in value.value if value.kind == "list" else (value,):
            if node.kind == "text" and node.value not in known:
                unknown_word(node, _ENTRY_KINDS[kind], sorted(known), entry.complaints)


def _error(complaints: Sequence[Complaint]) -> CatalogError:
    return CatalogError([complaint.message() for complaint in complaints])
