"""The types of document forms, used to describe catalog files, snapshots, plans, reports and diagnoses.

A table in these types has two uses: `validate` checks documents against it, `json_schema` publishes it.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Optional, Union

from envtune.messages import Message, Text

KNOWN_KEY = Message("a known key")


class Str(NamedTuple):
    """A text; `pattern` must match all of it, `least=1` refuses an empty or blank one."""

    pattern: str = ""
    form: str = ""  # what it looks like: an example, or a word for it
    choices: tuple[str, ...] = ()
    least: int = 0
    name: Optional[Text] = None  # the name of such a text, if "a text" says too little
    check: Optional[Callable[[str], bool]] = None  # what a pattern cannot express; may raise ValueError with the reason
    keywords: Mapping[str, Any] = {}  # JSON Schema keywords for `check`
    numbers: bool = False  # a number is meant as text


class Bool(NamedTuple):
    """true or false."""


class Null(NamedTuple):
    """null."""


class Number(NamedTuple):
    """A number between two bounds, both included; `whole` refuses fractions."""

    least: Optional[float] = None
    most: Optional[float] = None
    whole: bool = False


class Scalar(NamedTuple):
    """A text, a whole number, true or false, depending on its form."""


class Const(NamedTuple):
    """Exactly this value."""

    value: Any


class Bytes(NamedTuple):
    """Bytes, which exist only in memory; JSON and YAML have no form for them."""


class Anything(NamedTuple):
    """Any value, validated elsewhere."""


class ListOf(NamedTuple):
    """A list of at least `least` items."""

    item: Type
    least: int = 0


class MapOf(NamedTuple):
    """A mapping with free keys."""

    value: Type
    key: Str = Str()
    least: int = 0
    most: Optional[int] = None


class AnyOf:
    """One of several types, distinguished by the kind of the value; `name` is their common name."""

    __slots__ = ("by_kind", "name", "options")

    def __init__(self, *options: Type, name: Optional[Text] = None) -> None:
        self.options, self.name = options, name
        self.by_kind: dict[str, Type] = {}
        for option in options:
            for kind in kinds_of(option):
                self.by_kind.setdefault(kind, option)


class Field(NamedTuple):
    """One key of a record."""

    name: str
    type: Type
    doc: str = ""
    required: bool = False
    missing: Optional[Text] = None  # the message if it is required but missing


class Record:
    """A mapping with known keys; the order of the fields is the order in which a file gives them.

    `closed` refuses other keys, `key` is what a key is called then; `form` shows what the mapping looks like. `others`
    are names of the same kind that are no keys here, with the reason.
    """

    __slots__ = ("by_name", "closed", "fields", "form", "key", "least", "most", "others")

    def __init__(
        self,
        *fields: Field,
        closed: bool = True,
        key: Text = KNOWN_KEY,
        form: str = "",
        least: int = 0,
        most: Optional[int] = None,
        others: Mapping[str, Text] = {},
    ) -> None:
        self.others = others
        self.fields, self.closed, self.key, self.least, self.most = fields, closed, key, least, most
        self.by_name: Mapping[str, Field] = {field.name: field for field in fields}
        self.form = form or ", ".join([*list(self.by_name)[:4], "..."])


class Special(NamedTuple):
    """A form with special rules: `judge(validator, value)` returns the data, `published()` the type to publish."""

    judge: Callable[[Any, Any], Any]
    published: Callable[[], Type]


Type = Union[Str, Bool, Null, Number, Scalar, Const, Bytes, Anything, ListOf, MapOf, AnyOf, Record, Special]


_KINDS: Mapping[type, tuple[str, ...]] = {
    Str: ("text",),
    Bool: ("bool",),
    Null: ("null",),
    Number: ("int", "float"),
    Scalar: ("text", "int", "bool"),
    Bytes: ("bytes",),
    ListOf: ("list",),
    MapOf: ("mapping",),
    Record: ("mapping",),
}
_CONST_KINDS: Mapping[type, str] = {str: "text", bool: "bool", int: "int"}


def kinds_of(type_: Type) -> tuple[str, ...]:
    """Return the kinds of value (values.py) that a type accepts."""
    if isinstance(type_, AnyOf):
        return tuple(type_.by_kind)
    if isinstance(type_, Const):
        return (_CONST_KINDS[type(type_.value)],)
    if isinstance(type_, Str) and type_.numbers:
        return ("text", "int", "float")
    if isinstance(type_, Number) and type_.whole:
        return ("int",)
    return _KINDS[type(type_)]


def optional(type_: Type) -> AnyOf:
    """Return the type that also accepts null."""
    return AnyOf(*(type_.options if isinstance(type_, AnyOf) else (type_,)), Null())


def record_of(fields: Mapping[str, Type]) -> Record:
    """Return the record that has all of these keys."""
    return Record(*(Field(name, type_, "", True) for name, type_ in fields.items()))
