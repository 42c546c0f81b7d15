"""Whether a value conforms to a JSON Schema."""

from __future__ import annotations

import re
from typing import Any

from helpers.examples import ROOT

DIAGNOSIS = ROOT / "docs/schema/diagnosis-2.json"


def conforms(value: Any, schema: dict[str, Any], path: str = "$") -> list[str]:
    """What of a value a JSON Schema (the part of it used here) does not allow."""
    if "anyOf" in schema:
        tried = [conforms(value, one, path) for one in schema["anyOf"]]
        return [] if [] in tried else [f"{path}: none of {len(tried)} forms"]
    wrong = [] if value == schema.get("const", value) else [f"{path}: not {schema['const']}"]
    wrong += [f"{path}: not one of {schema['enum']}"] if value not in schema.get("enum", [value]) else []
    types = schema.get("type", [])
    if types and not any(_is(value, name) for name in ([types] if isinstance(types, str) else types)):
        return [*wrong, f"{path}: not {types}"]
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        wrong.append(f"{path}: {value} does not match")
    if isinstance(value, list):
        wrong += [w for n, item in enumerate(value) for w in conforms(item, schema.get("items", {}), f"{path}[{n}]")]
        wrong += [f"{path}: too short"] if len(value) < schema.get("minItems", 0) else []
    if isinstance(value, dict):
        wrong += _object(value, schema, path)
    return wrong


def _object(value: dict[str, Any], schema: dict[str, Any], path: str) -> list[str]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    wrong = [f"{path}: {name} is missing" for name in schema.get("required", []) if name not in value]
    wrong += [f"{path}: too few"] if len(value) < schema.get("minProperties", 0) else []
    for name, inner in value.items():
        wrong += conforms(name, schema.get("propertyNames", {}), f"{path}.{name}")
        if name in known:
            wrong += conforms(inner, known[name], f"{path}.{name}")
        else:
            wrong += [f"{path}: {name} is unknown"] if others is False else conforms(inner, others, f"{path}.{name}")
    return wrong


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "null": type(None)}
    return name in kinds and isinstance(value, kinds[name])
