"""Format an nftables rule from JSON as a person would type it: for evidence and reasons, not for parsing."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

_LIMIT = 12  # elements of a set that are listed


def rule_text(expr: Sequence[Mapping[str, Any]]) -> str:
    """Return a rule such as `tcp dport { 29688, 60000-60031 } accept`."""
    return " ".join(filter(None, map(_statement, expr)))


def _statement(statement: Mapping[str, Any]) -> str:
    ((kind, body),) = statement.items() if len(statement) == 1 else (("?", None),)
    writer = _STATEMENTS.get(kind)
    try:
        return str(writer(body)) if writer is not None else kind
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return kind


def _match(body: Mapping[str, Any]) -> str:
    op = str(body.get("op", ""))
    middle = f" {op} " if op not in ("==", "in", "") else " "
    left = body.get("left")
    if isinstance(left, dict) and "&" in left:
        middle = f" {op} "
    return f"{_value(left)}{middle}{_value(body.get('right'))}"


def _map(data: Any) -> str:
    if not isinstance(data, dict):
        return str(data)
    pairs = [f"{_value(pair[0])} : {_statement(pair[1])}" for pair in data.get("set", []) if len(pair) == 2]
    return _braces(pairs)


def _braces(words: Sequence[str]) -> str:
    more = f", ... ({len(words)} elements)" if len(words) > _LIMIT else ""
    return "{ " + ", ".join(words[:_LIMIT]) + more + " }"


def _value(expression: Any) -> str:
    """Return any expression as text; unknown ones unchanged."""
    if isinstance(expression, list):
        return ",".join(map(_value, expression))
    if not isinstance(expression, dict) or len(expression) != 1:
        return str(expression)
    ((kind, body),) = expression.items()
    writer = _WRITERS.get(kind)
    try:
        return writer(body) if writer is not None else f"{kind} {body}"
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return f"{kind} {body}"


def _payload(body: Any) -> str:
    if "protocol" in body:
        return f"{body['protocol']} {body['field']}"
    return f"@{body['base']},{body['offset']},{body['len']}"


def _meta(body: Any) -> str:
    key = str(body["key"])
    return key if key.startswith(("iif", "oif")) else f"meta {key}"


def _set(body: Any) -> str:
    return _braces([_value(part) for part in (body if isinstance(body, list) else [body])])


_WRITERS: Mapping[str, Any] = {
    "payload": _payload,
    "meta": _meta,
    "ct": lambda body: " ".join(["ct", *([body["dir"]] if "dir" in body else []), body["key"]]),
    "fib": lambda body: f"fib {' . '.join(body['flags'])} {body['result']}",
    "prefix": lambda body: f"{body['addr']}/{body['len']}",
    "range": lambda body: f"{_value(body[0])}-{_value(body[1])}",
    "set": _set,
    "concat": lambda body: " . ".join(_value(part) for part in body),
    "elem": lambda body: _value(body["val"]),
    "&": lambda body: f"{_value(body[0])} & {_value(body[1])}",
    "|": lambda body: "(" + " | ".join(_value(part) for part in body) + ")",
}

_STATEMENTS: Mapping[str, Any] = {
    "match": _match,
    "jump": lambda body: f"jump {body['target']}",
    "goto": lambda body: f"goto {body['target']}",
    "vmap": lambda body: f"{_value(body['key'])} vmap {_map(body['data'])}",
    "mangle": lambda body: f"{_value(body['key'])} set {_value(body['value'])}",
    "limit": lambda body: f"limit rate {body['rate']}/{body['per']}",
    "xt": lambda body: f"xt {body['type']} {body['name']}",
    "set": lambda body: f"{body['op']} {body['set']} {{ {_value(body['elem'])} }}",
    "counter": lambda body: "",  # only counts; two hosts with the same rule should read the same
}
