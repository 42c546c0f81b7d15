"""YAML documents as nodes with line numbers, anchors and merge keys resolved.

The event stream is read with an explicit stack: no input can exhaust the recursion limit. An alias is the same node
object as its anchor, so that a few lines cannot expand to gigabytes; walking visits each node once.
"""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple, Optional

from envtune.messages import Message, Text

MAX_NODES = 100_000
MAX_DEPTH = 100
_NULL = ("", "~", "null", "Null", "NULL")  # written without quotes


class YamlError(Exception):
    """The text is not YAML, or too large, at `line`."""

    def __init__(self, line: int, reason: Text) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


class Node:
    """A mapping, a list or a scalar; lines count from 1."""

    def __init__(self, kind: str, line: int, text: str = "", first_line: int = 0) -> None:
        self.kind, self.line, self.text = kind, line, text
        self.first_line = first_line  # of a block scalar, whose lines are those of the file; 0 for others
        self.is_null = False  # a scalar that means no value
        self.pairs: list[tuple[Node, Node]] = []
        self.items: list[Node] = []

    def get(self, name: str) -> Optional[Node]:
        """Return the value of a key, the last if there are several, else that of a merged mapping."""
        return self._get(name, 0)

    def _get(self, name: str, depth: int) -> Optional[Node]:
        own = [value for key, value in self.pairs if key.kind == "scalar" and key.text == name]
        if own or depth > MAX_DEPTH:
            return own[-1] if own else None
        for key, value in self.pairs:
            if key.text == "<<":
                for merged in value.items if value.kind == "list" else [value]:
                    found = merged._get(name, depth + 1)
                    if found is not None:
                        return found
        return None

    def at(self, *names: str) -> Optional[Node]:
        """Return the node at a path of keys."""
        node: Optional[Node] = self
        for name in names:
            node = None if node is None else node.get(name)
        return node

    def scalar(self, *names: str) -> Optional[Node]:
        """Return the scalar at a path of keys."""
        node = self.at(*names)
        return node if node is not None and node.kind == "scalar" else None

    def word(self, *names: str) -> str:
        """Return the text of the scalar at a path of keys, empty if there is none."""
        node = self.scalar(*names)
        return "" if node is None else node.text

    def entries(self, name: str) -> tuple[Node, ...]:
        """Return the items of the list under a key."""
        node = self.get(name)
        return tuple(node.items) if node is not None else ()

    def all_pairs(self) -> tuple[tuple[Node, Node], ...]:
        """Return the keys of a mapping with their values: its own, then those merged into it that it does not have."""
        found: dict[str, tuple[Node, Node]] = {}
        left, seen = [self], set[int]()
        while left:
            node = left.pop(0)
            if id(node) in seen:
                continue
            seen.add(id(node))
            for key, value in node.pairs:
                if key.text == "<<":
                    left += value.items if value.kind == "list" else [value]
            own = {key.text: (key, value) for key, value in node.pairs if key.kind == "scalar" and key.text != "<<"}
            found = {**own, **found}
        return tuple(found.values())

    def walk(self) -> Iterator[Node]:
        """Yield this node and everything in it, each node once, in order."""
        seen, left = set[int](), [self]
        while left:
            node = left.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            left += reversed([*node.items, *(value for _, value in node.pairs)])


class _Open(NamedTuple):
    node: Node
    keys: list[Node]  # of a mapping: the key whose value comes next


def documents(text: str) -> Iterator[Node]:
    """Yield the documents of a text; raises YamlError."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(yaml)
    try:
        for event in yaml.parse(text.lstrip("\ufeff"), Loader=loader):
            document = builder.take(event)
            if document is not None:
                yield document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = Message("not valid YAML: {problem}", problem=error.problem or "not understood")
        raise YamlError(mark.line + 1 if mark else 1, reason) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise YamlError(1, Message("not valid YAML: {problem}", problem=str(error).splitlines()[0])) from None


class _Builder:
    """Turns the event stream into nodes."""

    def __init__(self, yaml: Any) -> None:
        self._yaml = yaml
        self._open: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._count = 0

    def take(self, event: Any) -> Optional[Node]:
        """Take in one event; return a document that ends with it."""
        yaml, line = self._yaml, event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            self._anchors = {}
        elif isinstance(event, yaml.AliasEvent):
            return self._add(self._anchors.get(event.anchor) or Node("scalar", line), line)
        elif isinstance(event, yaml.ScalarEvent):
            node = Node("scalar", line, event.value, line + 1 if event.style == "|" else 0)
            node.is_null = event.implicit[0] and event.value in _NULL
            return self._add(self._anchored(event, node), line)
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(self._open) >= MAX_DEPTH:
                raise YamlError(line, Message("nested deeper than {limit} levels", limit=MAX_DEPTH))
            kind = "list" if isinstance(event, yaml.SequenceStartEvent) else "mapping"
            self._open.append(_Open(self._anchored(event, Node(kind, line)), []))
        elif isinstance(event, yaml.CollectionEndEvent):
            return self._add(self._open.pop().node, line)
        return None

    def _anchored(self, event: Any, node: Node) -> Node:
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _add(self, node: Node, line: int) -> Optional[Node]:
        self._count += 1
        if self._count > MAX_NODES:
            raise YamlError(line, Message("more than {limit} values", limit=MAX_NODES))
        if not self._open:
            return node
        above, keys = self._open[-1]
        if above.kind == "list":
            above.items.append(node)
        elif keys:
            above.pairs.append((keys.pop(), node))
        else:
            keys.append(node)
        return None
