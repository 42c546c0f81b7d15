"""Validate a document against the types of types.py, in any format, and return it as data.

The schema decides the type of a scalar: if it says text, an unquoted `7.10` in a YAML file is the text `7.10`; if it
says number, it is 7.1.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
from typing import Any, Callable, Iterable, Mapping, Optional

from envtune.messages import Joined, Literal, Message, Text, alternatives, enumerated, nearest
from envtune.schema import types
from envtune.schema.values import KINDS, Data, Value, one_line

LARGEST = 1 << 63  # a whole number has at most 63 bits
_NUMBERS = ("int", "float")
_WHOLE, _NUMBER = Message("a whole number"), Message("a number")
_SCALAR = Message("text, a whole number, true or false")


class Validator:
    """Validates values; `report(value, message)` is called for each problem, and may raise."""

    def __init__(self, report: Callable[[Any, Text], None]) -> None:
        self.report = report

    def judge(self, value: Value, type_: types.Type) -> Any:
        """Return the data of a value of this type; None, after reporting it, if it is not."""
        return _JUDGES[type(type_)](self, value, type_)

    def wrong(self, value: Value, type_: types.Type) -> None:
        """Report a value that is not of this type."""
        self.report(value, value.mismatch(name_of(type_)))

    def filled(self, value: Value, kind: str, form: str = "", least: int = 1) -> bool:
        """Return whether the value is a mapping or list (`kind`) that is not too short; report it otherwise."""
        named = _with_form(KINDS[kind], form)
        if value.kind != kind:
            self.report(value, value.mismatch(named))
        elif least and len(list(value.members() if kind == "mapping" else value.items())) < least:
            self.empty(value, named)
        else:
            return True
        return False

    def empty(self, value: Value, name: Text) -> None:
        """Report an empty value; `name` is what it should be."""
        self.report(value, Message("empty; write {name}, or remove the key", name=name))

    def unknown_word(self, value: Value, what: Text, known: Iterable[str], *, names_all: bool = False) -> None:
        """Report a word that is not in a closed list, naming the nearest or all of a short list.

        `names_all`: `what` names the whole list already.
        """
        names, word = list(known), one_line(value.text or str(value.plain()))
        near = nearest(word, names)
        if near:
            guess = alternatives(near)
            message = Message("{word} is not {what}; did you mean {guess}?", word=word, what=what, guess=guess)
        elif names and len(names) <= 16 and not names_all:
            known_names = enumerated(names)
            message = Message("{word} is not {what}; known: {names}", word=word, what=what, names=known_names)
        else:
            message = Message("{word} is not {what}", word=word, what=what)
        self.report(value, message)


def name_of(type_: types.Type) -> Text:
    """Return the name for a value of this type in messages."""
    return _NAMES[type(type_)](type_)


def _with_form(name: Text, form: str) -> Text:
    return Message("{name} ({form})", name=name, form=form) if form else name


# ---------------------------------------------------------------------- scalars


def _str(validator: Validator, value: Value, type_: types.Str) -> Optional[str]:
    text = value.text
    if type_.numbers and text is None and value.kind in _NUMBERS:
        return str(validator.judge(value, types.Number()))
    if text is None or value.kind == "null":
        validator.wrong(value, type_)
        return None
    return text if _is_accepted(validator, value, text, type_) else None


def _is_accepted(validator: Validator, value: Value, text: str, type_: types.Str) -> bool:
    if not text.isascii() and _has_half_a_pair(text):
        validator.report(value, Message("half a surrogate pair is not text"))
    elif not text and (type_.least or type_.form or type_.choices):
        validator.empty(value, name_of(type_))
    elif type_.choices:
        return _is_choice(validator, value, text, type_.choices)
    elif type_.pattern and not re.fullmatch(type_.pattern, text):
        form = Message("{value}: must look like {form}", value=one_line(text), form=type_.form)
        validator.report(value, form if type_.name is None else value.mismatch(type_.name))
    elif type_.least and not text.strip():
        validator.report(value, Message("empty; add a value, or remove the key"))
    else:
        return _holds(validator, value, text, type_)
    return False


def _is_choice(validator: Validator, value: Value, text: str, choices: tuple[str, ...]) -> bool:
    if text not in choices:
        validator.unknown_word(value, Message("one of {choices}", choices=enumerated(choices)), choices, names_all=True)
    return text in choices


def _has_half_a_pair(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _holds(validator: Validator, value: Value, text: str, type_: types.Str) -> bool:
    try:
        if type_.check is None or type_.check(text):
            return True
    except ValueError as error:
        validator.report(value, Message("not {name}: {error}", name=name_of(type_), error=error))
    else:
        validator.wrong(value, type_)
    return False


def regular_expression(text: str) -> bool:
    """Return True for a regular expression of Python; otherwise ValueError says why not."""
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return True


def is_normal_path(text: str) -> bool:
    """Return whether a text is an absolute path without `.`, `..`, `//` or a final `/`."""
    return text.startswith("/") and not text.startswith("//") and "\0" not in text and posixpath.normpath(text) == text


def _bound(number: float) -> str:
    return f"{number:.0f}" if float(number).is_integer() else f"{number:g}"


def _number(validator: Validator, value: Value, type_: types.Number) -> Any:
    number = value.plain() if value.kind in _NUMBERS else None
    if (
        number is None
        or (type_.whole and value.kind == "float")
        or not (math.isfinite(number) if value.kind == "float" else abs(number) < LARGEST)
    ):
        validator.wrong(value, type_)
        return None
    least = -math.inf if type_.least is None else type_.least
    most = math.inf if type_.most is None else type_.most
    if not least <= number <= most:
        span = f"{_bound(least)} .. {_bound(most)}"
        validator.report(value, Message("{number}: must be in {span}", number=value.text or number, span=span))
        return None
    return number


def _scalar(validator: Validator, value: Value, type_: types.Scalar) -> Any:
    if value.kind == "float":
        shown = value.text or value.plain()
        validator.report(
            value, Message('{shown} can be a number or a version; write "{shown}" with quotes', shown=shown)
        )
    elif value.kind in ("text", "int", "bool"):
        return value.plain()
    else:
        validator.wrong(value, type_)
    return None


def _const(validator: Validator, value: Value, type_: types.Const) -> Any:
    found = value.text if isinstance(type_.value, str) else value.plain()
    if type(found) is not type(type_.value) or found != type_.value:
        validator.report(value, Message("must be {wanted}", wanted=name_of(type_)))
    return type_.value


def _of_kind(kind: str) -> Callable[[Validator, Value, Any], Any]:
    def judge(validator: Validator, value: Value, type_: types.Type) -> Any:
        if value.kind == kind:
            return value.plain()
        validator.wrong(value, type_)
        return None

    return judge


# ---------------------------------------------------------------------- structures


def _list(validator: Validator, value: Value, type_: types.ListOf) -> Any:
    if not validator.filled(value, "list", least=type_.least):
        return None
    return [validator.judge(item, type_.item) for item in value.items()]


def _map(validator: Validator, value: Value, type_: types.MapOf) -> Any:
    if not validator.filled(value, "mapping", least=type_.least):
        return None
    if isinstance(value, Data):
        return _map_of_data(validator, value, type_)
    return {validator.judge(key, type_.key): validator.judge(inner, type_.value) for key, inner in value.members()}


def _map_of_data(validator: Validator, value: Data, type_: types.MapOf) -> dict[Any, Any]:
    """Do the same for plain data, which may be large: a text without restrictions is accepted directly."""
    free = type_.value.by_kind.get("text") if isinstance(type_.value, types.AnyOf) else type_.value
    found = {}
    for key, content in value.content.items():
        if _is_fine(key, type_.key) and _is_fine(content, free):
            found[key] = content
        else:
            name = key if isinstance(key, str) else repr(key)
            place = validator.judge(Data(key, value, name), type_.key)
            found[place] = validator.judge(Data(content, value, name), type_.value)
    return found


def _is_fine(content: object, type_: Optional[types.Type]) -> bool:
    """Return whether there is nothing more to check: an ASCII text of a type without a form."""
    if type(content) is not str or not isinstance(type_, types.Str) or not content.isascii():
        return False
    if type_.pattern or type_.form or type_.choices or type_.least:
        return False
    try:
        return type_.check is None or type_.check(content)
    except ValueError:
        return False


def _record(validator: Validator, value: Value, type_: types.Record) -> Any:
    if not validator.filled(value, "mapping", type_.form, type_.least):
        return None
    data: dict[str, Any] = {}
    for key, inner in value.members():
        field = type_.by_name.get(key.text or "")
        if field is not None:
            data[field.name] = validator.judge(inner, field.type)
        elif type_.closed:
            _unknown_key(validator, key, inner, type_)
    for field in type_.fields:
        if field.required and field.name not in data:
            validator.report(value.at(field.name), field.missing or _missing(field))
    return data


def _unknown_key(validator: Validator, key: Value, inner: Value, type_: types.Record) -> None:
    if inner.kind == "null" and inner.text == "":
        message = Message("{key} was parsed as a key; quote the text before it, which contains a comma", key=key.text)
        validator.report(key, message)
    elif (key.text or "") in type_.others:
        validator.report(key, type_.others[key.text or ""])
    else:
        validator.unknown_word(key, type_.key, [*type_.by_name, *type_.others])


def _missing(field: types.Field) -> Text:
    if field.doc:
        return Message("the key {name} is missing: {doc}", name=field.name, doc=field.doc)
    return Message("the key {name} is missing", name=field.name)


def _any_of(validator: Validator, value: Value, type_: types.AnyOf) -> Any:
    option = type_.by_kind.get(value.kind)
    if option is None and value.text is not None:
        option = type_.by_kind.get("text")  # what looks like something else may be a text here
    if option is None:
        return validator.wrong(value, type_)
    return validator.judge(value, option)


def _any_of_name(type_: types.AnyOf) -> Text:
    if type_.name is not None:
        return type_.name
    return Joined(
        [name_of(option) for option in type_.options if not isinstance(option, (types.Null, types.Bytes))],
        Message(" or "),
    )


_JUDGES: Mapping[type, Callable[[Validator, Value, Any], Any]] = {
    types.Str: _str,
    types.Bool: _of_kind("bool"),
    types.Null: _of_kind("null"),
    types.Number: _number,
    types.Scalar: _scalar,
    types.Const: _const,
    types.Bytes: _of_kind("bytes"),
    types.Anything: lambda validator, value, type_: value.plain(),
    types.ListOf: _list,
    types.MapOf: _map,
    types.AnyOf: _any_of,
    types.Record: _record,
    types.Special: lambda validator, value, type_: type_.judge(validator, value),
}
_NAMES: Mapping[type, Callable[[Any], Text]] = {
    types.Str: lambda type_: type_.name or _with_form(KINDS["text"], type_.form),
    types.Bool: lambda type_: KINDS["bool"],
    types.Null: lambda type_: KINDS["null"],
    types.Number: lambda type_: _WHOLE if type_.whole else _NUMBER,
    types.Scalar: lambda type_: _SCALAR,
    types.Const: lambda type_: Literal(json.dumps(type_.value)),
    types.ListOf: lambda type_: KINDS["list"],
    types.MapOf: lambda type_: KINDS["mapping"],
    types.AnyOf: _any_of_name,
    types.Record: lambda type_: KINDS["mapping"],
    types.Special: lambda type_: name_of(type_.published()),
}
