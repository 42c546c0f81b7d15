"""The tables of schema.py as JSON Schema (draft 2020-12), for editors that complete and check YAML.

The loader checks more than JSON Schema can say: probe arguments against Python, references between files, and the
words that YAML 1.1 would change.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping

from envtune import expect
from envtune.context.registry import fact_names, probe_names
from envtune.schema import types as schema
from envtune.schema.types import Bilingual, Bool, ListOf, MapOf, Number, Record, Special, Str

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TITLES: Mapping[str, str] = {
    "checks": "envtune check (checks/<family>/<ID>-<name>.yaml)",
    "faq": "envtune FAQ entry (checks/faq/<ID>-<name>.yaml)",
    "playbooks": "envtune playbook (playbooks/<family>/<id>.yaml)",
}
_SCALAR: dict[str, Any] = {"type": ["string", "integer", "boolean"]}


def document(kind: str) -> dict[str, Any]:
    """The schema of one kind: checks, faq or playbooks."""
    return {"$schema": DRAFT, "title": TITLES[kind], **_of(schema.TABLES[kind])}


def _of(type_: schema.Type) -> dict[str, Any]:
    return _RULES[type(type_)](type_)


def _str(type_: Str) -> dict[str, Any]:
    if type_.choices:
        return {"enum": list(type_.choices)}
    if type_.regex:
        return {"type": "string", "format": "regex"}
    return {"type": "string", "pattern": f"^{type_.pattern}$"} if type_.pattern else {"type": "string", "minLength": 1}


def _number(type_: Number) -> dict[str, Any]:
    return {"type": "integer" if type_.whole else "number", "minimum": type_.least, "maximum": type_.most}


def _bilingual(type_: Bilingual) -> dict[str, Any]:
    text = {"type": "string", "minLength": 1}
    return _closed({"en": text, "zh": text}, ["en", "zh"])


def _list(type_: ListOf) -> dict[str, Any]:
    return {"type": "array", "items": _of(type_.item), "minItems": type_.least}


def _map(type_: MapOf) -> dict[str, Any]:
    keys = {"pattern": f"^{type_.key.pattern}$"}
    return {"type": "object", "propertyNames": keys, "additionalProperties": _of(type_.value), "minProperties": 1}


def _record(type_: Record) -> dict[str, Any]:
    described = {f.name: {**_of(f.type), **({"description": f.doc} if f.doc else {})} for f in type_.fields}
    return _closed(described, [field.name for field in type_.fields if field.required])


def _closed(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**found, "required": required} if required else found


def _special(type_: Special) -> dict[str, Any]:
    return _FORMS[type_.name]()


def _probe() -> dict[str, Any]:
    return {
        "type": "object",
        "propertyNames": {"enum": list(probe_names())},
        "additionalProperties": {"type": ["object", "null"]},
        "minProperties": 1,
        "maxProperties": 1,
    }


def _matchers() -> dict[str, Any]:
    wants: dict[str, Any] = dict.fromkeys(expect.MATCHERS, _SCALAR)
    wants.update({name: {"type": "number"} for name in ("lt", "le", "gt", "ge")})
    wants.update({name: {"type": "array", "items": _SCALAR, "minItems": 1} for name in ("in", "not_in")})
    wants.update(matches={"type": "string", "format": "regex"}, empty={"type": "boolean"})
    return {**_closed(wants, []), "minProperties": 1}


def _expect() -> dict[str, Any]:
    quantified = [_closed({name: _matchers()}, [name]) for name in ("all", "any")]
    alone = [_closed({name: {"const": value}}, [name]) for name, value in (("same", True), ("profile", "train"))]
    return {"anyOf": [_matchers(), *quantified, *alone]}


def _applies() -> dict[str, Any]:
    one: dict[str, Any] = {"type": ["string", "boolean"]}
    several = {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}
    wanted = {"anyOf": [*several["anyOf"], _closed({"not": several}, ["not"])]}
    return {**_closed(dict.fromkeys(fact_names(), wanted), []), "minProperties": 1}


def _example() -> dict[str, Any]:
    return _closed({name: {} for name in schema.EXAMPLE_KEYS}, [])


def _steps() -> dict[str, Any]:
    lines = _list(ListOf(Str()))
    kinds: dict[str, Any] = {name: {"type": "object", "description": doc} for name, doc in schema.STEPS.items()}
    kinds["instructions"] = {
        **_closed({"en": lines, "zh": lines}, ["en", "zh"]),
        "description": schema.STEPS["instructions"],
    }
    step = {**_closed(kinds, []), "minProperties": 1, "maxProperties": 1}
    return {"type": "array", "items": step, "minItems": 1}


_FORMS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "probe": _probe,
    "expect": _expect,
    "applies": _applies,
    "example": _example,
    "steps": _steps,
}
_RULES: Mapping[type, Callable[[Any], dict[str, Any]]] = {
    Str: _str,
    Bool: lambda type_: {"type": "boolean"},
    Number: _number,
    Bilingual: _bilingual,
    ListOf: _list,
    MapOf: _map,
    Record: _record,
    Special: _special,
}
