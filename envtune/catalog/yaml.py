"""YAML text -> nodes that know where they are.

The schema decides what an unquoted scalar is, so that `7.10`, `NO`, `22:22` and `0644` are texts where it expects text,
whatever YAML 1.1 makes of them. Duplicate keys (the last one would win), anchors and aliases (a few lines can expand to
gigabytes), tags, and nesting beyond what any entry needs are refused with a hint. The event stream is read with an
explicit stack, so that no input can exhaust the recursion limit or libyaml's composer.
"""

from __future__ import annotations

import math
import re
from typing import Any, Iterator, Mapping, NamedTuple, Optional

import yaml

from envtune.catalog.layers import MAX_BYTES
from envtune.messages import Joined, Message, Text
from envtune.schema.values import KINDS

MAX_DEPTH = 24
MAX_NODES = 20_000

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_NULLS = frozenset(["", "~", "null", "Null", "NULL"])
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
# what the parser says -> what most likely helps
_HINTS: Mapping[str, Text] = {
    "'\\t'": Message("indent with blanks, not with tabs"),
    "mapping values are not allowed": Message("quote text that contains `: `"),
    "escape": Message("double the backslash, or use single quotes"),
    "expected ':'": Message("write `key: value`"),
    "cannot start any token": Message(
        "quote text that begins with this character, and indent with spaces, not with tabs"
    ),
    "expected node content": Message("close the quote or bracket"),
    "expected <block end>": Message("check the indentation, and quote texts that hold quotes"),
    "end of stream": Message("close the quote or bracket"),
}


class Node(NamedTuple):
    """One value of a file. `kind` is mapping, list, text, int, float, bool or null; line and column count from 1.

    `value` is a tuple of (key node, value node) for a mapping, a tuple of nodes for a list; `text` a scalar as it was
    written. `reported` marks a node that already has a diagnostic.
    """

    kind: str
    value: Any
    line: int
    column: int
    text: Optional[str] = None
    reported: bool = False

    def plain(self) -> Any:
        """Return the value as data; scalars get the type they look like."""
        if self.kind == "mapping":
            return {key.text: value.plain() for key, value in self.value}
        if self.kind == "list":
            return [node.plain() for node in self.value]
        return self.value

    def get(self, name: str) -> Optional[Node]:
        """Return the value of a key of a mapping, None if it is absent."""
        return next((value for key, value in self.members() if key.text == name), None)

    def members(self) -> tuple[tuple[Node, Node], ...]:
        """Return the keys and values of a mapping; nothing for other nodes."""
        members: tuple[tuple[Node, Node], ...] = self.value if self.kind == "mapping" else ()
        return members

    def items(self) -> tuple[Node, ...]:
        """Return the items of a list; nothing for other nodes."""
        items: tuple[Node, ...] = self.value if self.kind == "list" else ()
        return items

    def at(self, name: str) -> Node:
        """Return the place to report a missing key at: its mapping."""
        return self

    def mismatch(self, wanted: Text) -> Text:
        """Return the text that says what this is, and what it must be."""
        if self.kind == "null":
            return Message("empty; write {name}, or remove the key", name=wanted)
        return Message("this is {found}; it must be {wanted}", found=KINDS[self.kind], wanted=wanted)


class Diagnostic(NamedTuple):
    """One problem in a file, and how to solve it."""

    file: str
    line: int
    column: int
    text: Text

    def message(self) -> Text:
        """Return `file:line:column: message`, as editors and compilers write it."""
        return Joined((f"{self.file}:{self.line}:{self.column}", self.text), ": ")


class Diagnostics:
    """Collects the problems of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Diagnostic] = []

    def add(self, line: int, column: int, message: Text) -> None:
        """Add a diagnostic; line and column count from 1."""
        self.found.append(Diagnostic(self.file, line, column, message))

    def report(self, node: Node, message: Text) -> None:
        """Add a diagnostic about a node, unless it already has one."""
        if not node.reported:
            self.add(node.line, node.column, message)


class _Stop(Exception):
    """The rest of this file cannot be read sensibly."""


def read_yaml(content: bytes, diagnostics: Diagnostics) -> Optional[Node]:
    """Return the one document of a file, None if it cannot be read at all; problems go to `diagnostics`."""
    try:
        text = _decoded(content, diagnostics)
        builder = _Builder(diagnostics)
        for event in _events(text, diagnostics):
            builder.take(event)
    except _Stop:
        return None
    if builder.root is None:
        diagnostics.add(1, 1, Message("the file is empty; describe one entry in it"))
    return builder.root


def _decoded(content: bytes, diagnostics: Diagnostics) -> str:
    if len(content) > MAX_BYTES:
        diagnostics.add(1, 1, Message("the file is larger than {limit} KiB", limit=MAX_BYTES // 1024))
        raise _Stop
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _place(content[: error.start].decode("utf-8", "replace"))
        diagnostics.add(line, column, Message("not UTF-8; save the file as UTF-8"))
        raise _Stop from None
    odd = _UNPRINTABLE.search(text)
    if odd is not None:
        line, column = _place(text[: odd.start()])
        code = f"U+{ord(odd[0]):04X}"
        diagnostics.add(
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


def _events(text: str, diagnostics: Diagnostics) -> Iterator[Any]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        problem = error.problem or "not understood"
        way = _hint(problem)
        diagnostics.add(line, column, Message("not YAML: {problem}; {way}", problem=problem, way=way))
        raise _Stop from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the pure Python scanner lets chr() raise
        diagnostics.add(1, 1, Message("not YAML: {error}", error=error))
        raise _Stop from None


class _Builder:
    """Turns the event stream into nodes."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.root: Optional[Node] = None
        self._diagnostics = diagnostics
        self._open: list[tuple[Any, list[Node]]] = []
        self._count = 0

    def take(self, event: Any) -> None:
        """Take in one event of the parser."""
        if isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            self._stop(
                event,
                Message("a file contains one entry; put the second document in a separate file"),
            )
        if isinstance(event, yaml.NodeEvent):
            self._refuse_anchor(event)
        if isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event))
        elif isinstance(event, yaml.AliasEvent):
            self._add(Node("null", None, *_at(event), reported=True))
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(self._open) >= MAX_DEPTH:
                self._stop(event, Message("nested deeper than {limit} levels", limit=MAX_DEPTH))
            self._open.append((event, []))
        elif isinstance(event, yaml.CollectionEndEvent):
            start, items = self._open.pop()
            is_list = isinstance(start, yaml.SequenceStartEvent)
            self._add(Node("list", tuple(items), *_at(start)) if is_list else self._mapping(start, items))

    def _add(self, node: Node) -> None:
        self._count += 1
        if self._count > MAX_NODES:
            self._diagnostics.add(node.line, node.column, Message("more than {limit} values", limit=MAX_NODES))
            raise _Stop
        if self._open:
            self._open[-1][1].append(node)
        else:
            self.root = node

    def _stop(self, event: Any, message: Text) -> None:
        self._diagnostics.add(*_at(event), message)
        raise _Stop

    def _refuse_anchor(self, event: Any) -> None:
        if event.anchor is not None:
            mark = "*" if isinstance(event, yaml.AliasEvent) else "&"
            self._diagnostics.add(
                *_at(event),
                Message(
                    "{mark}{anchor}: anchors and aliases are not used in the catalog; write the value out",
                    mark=mark,
                    anchor=event.anchor,
                ),
            )
        tag = (getattr(event, "tag", None) or "").replace("tag:yaml.org,2002:", "!!")
        if tag:
            self._diagnostics.add(*_at(event), Message("{tag}: tags are not used; leave it out", tag=tag))

    def _scalar(self, event: Any) -> Node:
        line, column = _at(event)
        if not event.value.isascii() and _HALF_A_PAIR.search(event.value):
            self._diagnostics.add(line, column, Message("half a surrogate pair; write the character itself"))
            return Node("text", "", line, column, "", reported=True)
        kind, value = ("text", event.value) if event.style else _looks_like(event.value)
        return Node(kind, value, line, column, event.value)

    def _mapping(self, start: Any, items: list[Node]) -> Node:
        entries: dict[str, tuple[Node, Node]] = {}
        for key, value in zip(items[::2], items[1::2]):
            if key.text is None or key.kind == "null":
                self._diagnostics.report(key, Message("a key must be text"))
                continue
            first = entries.setdefault(key.text, (key, value))[0]
            if first is not key:
                self._diagnostics.add(
                    key.line,
                    key.column,
                    Message(
                        "duplicate key {key}, first in line {line}; keep one of them",
                        key=key.text,
                        line=first.line,
                    ),
                )
        return Node("mapping", tuple(entries.values()), *_at(start))


def _at(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _looks_like(text: str) -> tuple[str, Any]:
    """Return (kind, value) of an unquoted scalar as in JSON: true, false, null and numbers; everything else is text."""
    if text in ("true", "false"):
        return "bool", text == "true"
    if text in _NULLS:
        return "null", None
    if _WHOLE.fullmatch(text):
        return "int", int(text)
    if _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return "float", float(text)
    return "text", text


def _hint(problem: str) -> Text:
    """Return the most likely remedy for a syntax error that PyYAML describes as `problem`."""
    for words, text in _HINTS.items():
        if words in problem:
            return text
    return Message("quote text that contains any of : # { } [ ] & * ! | > % @")
