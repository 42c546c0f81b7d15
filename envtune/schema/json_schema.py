"""The types of types.py as JSON Schema (draft 2020-12), for editors and for programs that read envtune's output.

The validator refuses more than JSON Schema can express: probe arguments against Python, references between files.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping

from envtune.schema import types

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def document(title: str, type_: types.Type) -> dict[str, Any]:
    """Return the schema of a whole document."""
    return {"$schema": DRAFT, "title": title, **_of(type_)}


def _of(type_: types.Type) -> dict[str, Any]:
    return _RULES[type(type_)](type_)


def _str(type_: types.Str) -> dict[str, Any]:
    if type_.choices:
        return {"enum": list(type_.choices)}
    said: dict[str, Any] = {"type": ["string", "number"] if type_.numbers else "string"}
    if type_.pattern:
        said["pattern"] = f"^{type_.pattern}$"
    elif type_.least and not type_.keywords:
        said["minLength"] = type_.least
    return {**said, **type_.keywords}


def _number(type_: types.Number) -> dict[str, Any]:
    bounds = {"minimum": type_.least, "maximum": type_.most}
    said = {name: bound for name, bound in bounds.items() if bound is not None}
    return {"type": "integer" if type_.whole else "number", **said}


def _list(type_: types.ListOf) -> dict[str, Any]:
    said = {"type": "array", "items": _of(type_.item)}
    return {**said, "minItems": type_.least} if type_.least else said


def _map(type_: types.MapOf) -> dict[str, Any]:
    said: dict[str, Any] = {"type": "object"}
    names = {word: value for word, value in _of(type_.key).items() if word != "type"}
    if names:
        said["propertyNames"] = names
    return {**said, "additionalProperties": _of(type_.value), **_sizes(type_)}


def _sizes(type_: types.MapOf | types.Record) -> dict[str, Any]:
    return {
        **({"minProperties": type_.least} if type_.least else {}),
        **({} if type_.most is None else {"maxProperties": type_.most}),
    }


def _record(type_: types.Record) -> dict[str, Any]:
    said: dict[str, Any] = {"type": "object"}
    if type_.fields:
        said["properties"] = {
            field.name: {**_of(field.type), **({"description": field.doc} if field.doc else {})}
            for field in type_.fields
        }
    if type_.closed:
        said["additionalProperties"] = False
    required = [field.name for field in type_.fields if field.required]
    if required:
        said["required"] = required
    return {**said, **_sizes(type_)}


def _any_of(type_: types.AnyOf) -> dict[str, Any]:
    options = [_of(option) for option in type_.options if not isinstance(option, types.Bytes)]
    if all(set(option) == {"type"} for option in options):
        names = [option["type"] for option in options]
        return {"type": [one for name in names for one in ([name] if isinstance(name, str) else name)]}
    return {"anyOf": options}


_RULES: Mapping[type, Callable[[Any], dict[str, Any]]] = {
    types.Str: _str,
    types.Bool: lambda type_: {"type": "boolean"},
    types.Null: lambda type_: {"type": "null"},
    types.Number: _number,
    types.Scalar: lambda type_: {"type": ["string", "integer", "boolean"]},
    types.Const: lambda type_: {"const": type_.value},
    types.Anything: lambda type_: {},
    types.ListOf: _list,
    types.MapOf: _map,
    types.AnyOf: _any_of,
    types.Record: _record,
    types.Special: lambda type_: _of(type_.published()),
}
