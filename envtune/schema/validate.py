"""Judges one catalogue file against the tables of schema.py: every complaint with its place and the way out."""

from __future__ import annotations

import re
from typing import Any, Callable, Iterable, Mapping

from envtune.catalog.selection import nearest
from envtune.catalog.yaml import Complaints, Node
from envtune.messages import Joined, Message, Text, enumerated
from envtune.schema import types as schema
from envtune.schema.types import Bilingual, Bool, Field, ListOf, MapOf, Number, Record, Special, Str

_KIND_NAMES: Mapping[str, Text] = {
    "mapping": Message("a mapping"),
    "list": Message("a list"),
    "text": Message("a text"),
    "int": Message("a number"),
    "float": Message("a number"),
    "bool": Message("true or false"),
    "null": Message("nothing"),
}
Rule = Callable[[Node, Any, Complaints], None]


def validate(node: Node, kind: str, complaints: Complaints) -> None:
    """Judge the document of one file as an entry of `kind` (checks, faq or playbooks)."""
    judge(node, schema.TABLES[kind], complaints)
    if kind == "checks":
        _seed_is_cited(node, complaints)


def judge(node: Node, type_: schema.Type, complaints: Complaints) -> None:
    """Judge one node against its type."""
    _RULES[type(type_)](node, type_, complaints)


def wanted(node: Node, kind: str, complaints: Complaints, form: str = "") -> bool:
    """Whether the node is of that kind and not empty; complains otherwise."""
    if node.kind == kind and (kind in ("bool", "int") or node.value not in ((), "")):
        return True
    kind_name = _KIND_NAMES[kind]
    like = f" ({form})" if form else ""
    if node.kind == kind or node.kind == "null":
        complaints.about(node, Message("empty; write {kind}{like}, or leave the key out", kind=kind_name, like=like))
    elif kind == "text" and node.kind in ("int", "float", "bool"):
        complaints.about(node, Message('{raw} is not a text in YAML; write "{raw}" with quotes', raw=node.raw))
    else:
        found = _KIND_NAMES[node.kind]
        complaints.about(
            node, Message("this is {found}; it must be {kind}{like}", found=found, kind=kind_name, like=like)
        )
    return False


def unknown_word(
    node: Node, what: Text, known: Iterable[str], complaints: Complaints, *, names_all: bool = False
) -> None:
    """Complain about a word that is not in a closed list, naming the nearest or all of a short list.

    `names_all`: `what` names the whole list already.
    """
    names = list(known)
    near = nearest(node.raw or str(node.value), names)
    if not near and len(names) <= 16 and not names_all:
        near = names
    if near:
        guess = Joined(near, Message(" or "))
        message = Message("{word} is not {what}; did you mean {guess}?", word=node.value, what=what, guess=guess)
    else:
        message = Message("{word} is not {what}", word=node.value, what=what)
    complaints.about(node, message)


def known_keys(node: Node, names: Iterable[str], complaints: Complaints) -> None:
    """Complain about every key of a mapping that is not one of the names."""
    allowed = list(names)
    for key, value in node.value:
        if key.value not in allowed and value.kind == "null" and not value.raw:
            complaints.about(
                key,
                Message("{value} has become a key; quote the text before it, which holds a comma", value=key.value),
            )
        elif key.value not in allowed:
            unknown_word(key, Message("a key that is known here"), allowed, complaints)


def regex(node: Node, complaints: Complaints) -> None:
    """Complain when a text is not a regular expression of Python."""
    try:
        re.compile(node.value)
    except (re.error, OverflowError, RecursionError) as error:
        complaints.about(node, Message("not a regular expression: {error}", error=error))


def _str(node: Node, type_: Str, complaints: Complaints) -> None:
    if not wanted(node, "text", complaints, type_.form) or node.spoiled:
        return
    if type_.choices and node.value not in type_.choices:
        what = Message("one of {choices}", choices=enumerated(type_.choices))
        unknown_word(node, what, type_.choices, complaints, names_all=True)
    elif type_.pattern and not re.fullmatch(type_.pattern, node.value):
        complaints.about(node, Message("{value}: must look like {form}", value=node.value, form=type_.form))
    elif type_.regex:
        regex(node, complaints)
    elif not node.value.strip():
        complaints.about(node, Message("empty; write something, or leave the key out"))


def _bool(node: Node, type_: Bool, complaints: Complaints) -> None:
    wanted(node, "bool", complaints)


def _number(node: Node, type_: Number, complaints: Complaints) -> None:
    if node.kind not in ("int", "float"):
        complaints.about(node, Message("this is {found}; it must be a number", found=_KIND_NAMES[node.kind]))
    elif type_.whole and node.kind == "float":
        complaints.about(node, Message("{raw}: write a whole number", raw=node.raw))
    elif not type_.least <= node.value <= type_.most:
        span = f"{type_.least:g} .. {type_.most:g}"
        complaints.about(node, Message("{raw}: must lie in {span}", raw=node.raw, span=span))


def _bilingual(node: Node, type_: Bilingual, complaints: Complaints) -> None:
    form = "{en: ..., zh: ...}"
    if not wanted(node, "mapping", complaints, form):
        return
    known_keys(node, ("en", "zh"), complaints)
    for lang, name in (("en", Message("English")), ("zh", Message("Chinese"))):
        text = node.get(lang)
        if text is None:
            complaints.about(
                node, Message("{lang} is missing; write the {language} text, too", lang=lang, language=name)
            )
        else:
            _str(text, Str(), complaints)


def _list(node: Node, type_: ListOf, complaints: Complaints) -> None:
    if wanted(node, "list", complaints, "[...]"):
        for item in node.value:
            judge(item, type_.item, complaints)


def _map(node: Node, type_: MapOf, complaints: Complaints) -> None:
    if wanted(node, "mapping", complaints, "{...}"):
        for key, value in node.value:
            judge(key, type_.key, complaints)
            judge(value, type_.value, complaints)


def _record(node: Node, type_: Record, complaints: Complaints) -> None:
    names = [field.name for field in type_.fields]
    if not wanted(node, "mapping", complaints, ", ".join(names[:4]) + ", ..."):
        return
    known_keys(node, names, complaints)
    for field in type_.fields:
        value = node.get(field.name)
        if value is not None:
            judge(value, field.type, complaints)
        elif field.required:
            _missing(node, field, complaints)


def _missing(node: Node, field: Field, complaints: Complaints) -> None:
    if field.doc:
        message = Message("the key {name} is missing: {doc}", name=field.name, doc=field.doc)
    else:
        message = Message("the key {name} is missing", name=field.name)
    complaints.about(node, message)


def _special(node: Node, type_: Special, complaints: Complaints) -> None:
    from envtune.catalog import forms as validate_forms

    validate_forms.FORMS[type_.name](node, complaints)


_RULES: Mapping[type, Rule] = {
    Str: _str,
    Bool: _bool,
    Number: _number,
    Bilingual: _bilingual,
    ListOf: _list,
    MapOf: _map,
    Record: _record,
    Special: _special,
}


def _seed_is_cited(node: Node, complaints: Complaints) -> None:
    origin = node.get("origin")
    if origin is not None and origin.value == "seed" and node.get("seed") is None:
        complaints.about(origin, Message("origin seed needs the citation in `seed`"))
