"""The parts of a document as seen by the validator; and an adapter for plain data (parsed JSON)."""

from __future__ import annotations

import json
import re
from typing import Any, Iterable, Mapping, Optional, Protocol, Union

from envtune.messages import Message, Text

KINDS: Mapping[str, Text] = {
    "mapping": Message("a mapping"),
    "list": Message("a list"),
    "text": Message("text"),
    "int": Message("a number"),
    "float": Message("a number"),
    "bool": Message("true or false"),
    "null": Message("nothing"),
}
_DOTTED = re.compile(r"[\w.\[\]]*")  # a path to which a key can be added with a dot
_SHOWN = 60  # characters of a value in a message


class Value(Protocol):
    """One value of a document, and where it is."""

    @property
    def kind(self) -> str:
        """One of KINDS; for a scalar whose type the format leaves open, what it looks like."""

    @property
    def text(self) -> Optional[str]:
        """A scalar as text, if it may be one."""

    def plain(self) -> Any:
        """Return the value as data; scalars get the type they look like."""

    def members(self) -> Iterable[tuple[Value, Value]]:
        """Return the keys and values of a mapping."""

    def items(self) -> Iterable[Value]:
        """Return the items of a list."""

    def at(self, name: str) -> Value:
        """Return the place for a missing key of a mapping."""

    def mismatch(self, wanted: Text) -> Text:
        """Return the message if this value is not what is expected there."""


def one_line(text: str) -> str:
    """Return a word of a document for quoting in a message: control characters, including newlines, are escaped."""
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in text)


class Data:
    """Plain data; `path` says where it is: `processes[3].pid`."""

    __slots__ = ("above", "content", "kind", "name")

    def __init__(self, content: Any, above: Optional[Data] = None, name: Union[str, int] = "") -> None:
        self.content, self.above, self.name = content, above, name
        self.kind = _KIND_OF.get(type(content)) or _kind_of(content)

    @property
    def text(self) -> Optional[str]:
        """Return a text."""
        return self.content if isinstance(self.content, str) else None

    @property
    def path(self) -> str:
        """Return the path to this value from the top of the document, as a person would write it."""
        if self.above is None:
            return one_line(str(self.name))
        above = "" if self.above.above is None else self.above.path
        if isinstance(self.name, int):
            return f"{above}[{self.name}]"
        name = one_line(self.name)
        if not above:
            return name
        dotted = self.name.isidentifier() and _DOTTED.fullmatch(above)
        return f"{above}.{name}" if dotted else f"{above}: {name}"

    def plain(self) -> Any:
        """Return the data."""
        return self.content

    def members(self) -> Iterable[tuple[Data, Data]]:
        """Return the keys and values; a key is where its value is."""
        for key, value in self.content.items():
            name = key if isinstance(key, str) else repr(key)
            yield Data(key, self, name), Data(value, self, name)

    def items(self) -> Iterable[Data]:
        """Return the items."""
        for number, item in enumerate(self.content):
            yield Data(item, self, number)

    def at(self, name: str) -> Data:
        """Return the place for a missing key."""
        return Data(None, self, name)

    def mismatch(self, wanted: Text) -> Text:
        """Return what is expected, and the actual value."""
        return Message("expected {wanted}, not {shown}", wanted=wanted, shown=self._shown())

    def _shown(self) -> Union[str, Text]:
        if self.kind in ("mapping", "list"):
            return KINDS[self.kind]
        if self.content is None or isinstance(self.content, bool):
            return str(self.content).lower().replace("none", "null")
        if isinstance(self.content, int) and self.content.bit_length() > 64:
            return "..."
        shown = repr(self.content)
        return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."


_KIND_OF: Mapping[type, str] = {
    dict: "mapping",
    list: "list",
    tuple: "list",
    str: "text",
    int: "int",
    float: "float",
    bool: "bool",
    type(None): "null",
    bytes: "bytes",
}


def _kind_of(content: Any) -> str:
    """Return the kind of a value whose class is derived from a known one; the name of any other class."""
    return next((kind for base, kind in _KIND_OF.items() if isinstance(content, base)), type(content).__name__)
