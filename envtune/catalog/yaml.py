"""YAML text -> nodes that know where they stand, and a complaint for everything YAML 1.1 would silently change.

PyYAML reads YAML 1.1, where an unquoted `7.10` is the number 7.1, `NO` is false, `22:22` is 1342 and `0644` is 420. All
of these are refused with the way out. So are duplicate keys (the last one would win), anchors and aliases (a few lines
can stand for gigabytes), tags, and nesting beyond what any entry needs. The event stream is read with a stack of our
own, so that no input can exhaust the recursion limit or libyaml's composer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Iterator, Optional

import yaml

from envtune.catalog.yaml_scalars import hint, scalar
from envtune.messages import Joined, Message, Text

MAX_BYTES = 256 * 1024
MAX_DEPTH = 24
MAX_NODES = 20_000

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Node:
    """One value of a file. `kind` is mapping, list, text, int, float, bool or null; line and column count from 1.

    `value` is a tuple of (key node, value node) for a mapping, a tuple of nodes for a list. `spoiled` marks a node that
    a complaint was already made about.
    """

    kind: str
    value: Any
    line: int
    column: int
    raw: str = ""
    spoiled: bool = False

    def plain(self) -> Any:
        """The value as Python data."""
        if self.kind == "mapping":
            return {key.value: value.plain() for key, value in self.value}
        if self.kind == "list":
            return [node.plain() for node in self.value]
        return self.value

    def get(self, name: str) -> Optional[Node]:
        """The value under a key of a mapping, None when it is not there."""
        found = [value for key, value in self.value if key.value == name] if self.kind == "mapping" else []
        return found[0] if found else None


@dataclass(frozen=True)
class Complaint:
    """One thing that is wrong with a file, and the way out."""

    file: str
    line: int
    column: int
    text: Text

    def message(self) -> Text:
        """Return `file:line:column: message`, as editors and compilers write it."""
        return Joined((f"{self.file}:{self.line}:{self.column}", self.text), ": ")


class Complaints:
    """Collects what is wrong with one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.made: list[Complaint] = []

    def add(self, line: int, column: int, message: Text) -> None:
        """One complaint; line and column count from 1."""
        self.made.append(Complaint(self.file, line, column, message))

    def about(self, node: Node, message: Text) -> None:
        """One complaint about a node, unless one was already made about it."""
        if not node.spoiled:
            self.add(node.line, node.column, message)


class _Stop(Exception):
    """Nothing sensible can follow in this file."""


def read_yaml(content: bytes, complaints: Complaints) -> Optional[Node]:
    """The one document of a file, or None when it cannot be read at all; complaints say what is wrong with it."""
    try:
        text = _decoded(content, complaints)
        builder = _Builder(complaints)
        for event in _events(text, complaints):
            builder.take(event)
    except _Stop:
        return None
    if builder.root is None:
        complaints.add(1, 1, Message("the file is empty; describe one entry in it"))
    return builder.root


def _decoded(content: bytes, complaints: Complaints) -> str:
    if len(content) > MAX_BYTES:
        complaints.add(1, 1, Message("the file is larger than {MAX_BYTES} KiB", MAX_BYTES=MAX_BYTES // 1024))
        raise _Stop
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _place(content[: error.start].decode("utf-8", "replace"))
        complaints.add(line, column, Message("not UTF-8; save the file as UTF-8"))
        raise _Stop from None
    odd = _UNPRINTABLE.search(text)
    if odd is not None:
        line, column = _place(text[: odd.start()])
        code = f"U+{ord(odd[0]):04X}"
        complaints.add(
            line,
            column,
            Message(
                'the character {code} is not allowed in YAML; write it as an escape in double quotes ("\\u....")',
                code=code,
            ),
        )
        raise _Stop
    return text


def _place(before: str) -> tuple[int, int]:
    lines = before.split("\n")
    return len(lines), len(lines[-1]) + 1


def _events(text: str, complaints: Complaints) -> Iterator[Any]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problem = error.problem or "not understood"
        way = hint(problem)
        complaints.add(line, column, Message("not YAML: {problem}; {way}", problem=problem, way=way))
        raise _Stop from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the pure Python scanner lets chr() fail
        complaints.add(1, 1, Message("not YAML: {error}", error=error))
        raise _Stop from None


class _Builder:
    """Turns the event stream into nodes, complaining on the way."""

    def __init__(self, complaints: Complaints) -> None:
        self.root: Optional[Node] = None
        self._complaints = complaints
        self._open: list[tuple[Any, list[Node]]] = []
        self._count = 0

    def take(self, event: Any) -> None:
        """One event of the parser."""
        if isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            self._stop(
                event,
                Message("a file holds one entry; put the second document in a file of its own"),
            )
        if isinstance(event, yaml.NodeEvent):
            self._refuse_anchor(event)
        if isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event))
        elif isinstance(event, yaml.AliasEvent):
            self._add(Node("null", None, *_at(event), spoiled=True))
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(self._open) >= MAX_DEPTH:
                self._stop(event, Message("nested deeper than {MAX_DEPTH} levels", MAX_DEPTH=MAX_DEPTH))
            self._open.append((event, []))
        elif isinstance(event, yaml.CollectionEndEvent):
            start, items = self._open.pop()
            is_list = isinstance(start, yaml.SequenceStartEvent)
            self._add(Node("list", tuple(items), *_at(start)) if is_list else self._mapping(start, items))

    def _add(self, node: Node) -> None:
        self._count += 1
        if self._count > MAX_NODES:
            self._complaints.add(node.line, node.column, Message("more than {MAX_NODES} values", MAX_NODES=MAX_NODES))
            raise _Stop
        if self._open:
            self._open[-1][1].append(node)
        else:
            self.root = node

    def _stop(self, event: Any, message: Text) -> None:
        self._complaints.add(*_at(event), message)
        raise _Stop

    def _refuse_anchor(self, event: Any) -> None:
        if event.anchor is not None:
            mark = "*" if isinstance(event, yaml.AliasEvent) else "&"
            self._complaints.add(
                *_at(event),
                Message(
                    "{mark}{anchor}: anchors and aliases are not used in the catalogue; write the value out",
                    mark=mark,
                    anchor=event.anchor,
                ),
            )
        tag = (getattr(event, "tag", None) or "").replace("tag:yaml.org,2002:", "!!")
        if tag:
            self._complaints.add(*_at(event), Message("{tag}: tags are not used; leave it out", tag=tag))

    def _scalar(self, event: Any) -> Node:
        line, column = _at(event)
        if any("\ud800" <= character <= "\udfff" for character in event.value):
            self._complaints.add(line, column, Message("half a surrogate pair; write the character itself"))
            return Node("text", "", line, column, spoiled=True)
        if event.style:
            return Node("text", event.value, line, column, event.value)
        kind, value, trap = scalar(event.value)
        if trap is None:
            return Node(kind, value, line, column, event.value)
        self._complaints.add(line, column, trap)
        return Node("text", event.value, line, column, event.value, spoiled=True)

    def _mapping(self, start: Any, items: list[Node]) -> Node:
        entries: dict[str, tuple[Node, Node]] = {}
        for key, value in zip(items[::2], items[1::2]):
            if key.kind != "text":
                shown = f' "{key.raw}"' if key.raw else ""
                self._complaints.about(key, Message("a key must be text; quote it{shown}", shown=shown))
                continue
            first = entries.setdefault(key.value, (key, value))[0]
            if first is not key:
                self._complaints.add(
                    key.line,
                    key.column,
                    Message(
                        "the key {value} stands twice, first in line {line}; keep one of them",
                        value=key.value,
                        line=first.line,
                    ),
                )
        return Node("mapping", tuple(entries.values()), *_at(start))


def _at(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1
