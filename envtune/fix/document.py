"""`envtune.plan/1`: a plan as data, and back. A file is trusted in nothing: every member is judged before use."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional

from envtune import __version__
from envtune.context.registry import current_name
from envtune.errors import PlanError
from envtune.executor.plan import OPERATIONS, operation_fault, plan_fault
from envtune.fix.executor_messages import problem_message
from envtune.fix.plan import DISRUPTION, SAFETY, Plan, SkippedFinding
from envtune.fix.policy import refusal
from envtune.messages import Joined, Literal, Message, Text
from envtune.model import Change

SCHEMA = "envtune.plan/1"
VIEWS = ("live", "boot", "job")
LIMIT = 256 << 20  # bytes; a plan that carries more is not one of ours
TARGET: Mapping[str, type] = {"python": str, "pid": int, "script": str, "env_file": str, "peers": list}
_PATHS = ("python", "script", "env_file")


def plan_data(plan: Plan, lang: str) -> dict[str, Any]:
    """The plan as plain data, texts in `lang`."""
    return {
        "schema": SCHEMA,
        "envtune": __version__,
        "host": plan.host,
        "target": dict(plan.target),
        "changes": [_change_data(change, lang) for change in plan.changes],
        "skipped": [_skipped_data(skipped, lang) for skipped in plan.skipped],
    }


def render(plan: Plan, lang: str) -> str:
    """The plan as one JSON document."""
    return json.dumps(plan_data(plan, lang), ensure_ascii=False, indent=1)


def _change_data(change: Change, lang: str) -> dict[str, Any]:
    return {
        "id": change.id,
        "finding": change.finding,
        "subject": change.subject,
        "playbook": change.playbook,
        "action": change.action,
        "target": change.target,
        "before": change.before,
        "after": change.after,
        "view": change.view,
        "safety": change.safety,
        "disruption": change.disruption,
        "root": change.root,
        "undoable": change.undoable,
        "rivals": [rival.to(lang) for rival in change.rivals],
        "note": None if change.note is None else change.note.to(lang),
        "cures": list(change.cures),
        "verify": dict(change.verify),
        "operations": [dict(operation) for operation in change.operations],
    }


def _skipped_data(skipped: SkippedFinding, lang: str) -> dict[str, Any]:
    return {
        "finding": skipped.finding,
        "subject": skipped.subject,
        "reason": skipped.reason.to(lang),
        "steps": [step.to(lang) for step in skipped.steps],
    }


# ---------------------------------------------------------------------- back


def load_plan(text: str) -> Plan:
    """The plan of a file. Raises PlanError, with the member that is wrong, for anything that is not exactly a plan."""
    try:
        data = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise PlanError("", Message("not JSON: {error}", error=error)) from None
    root = _mapping(data, "", ("schema", "envtune", "host", "target", "changes", "skipped"))
    if root["schema"] != SCHEMA:
        raise PlanError("schema", Message("{schema!r} is not {SCHEMA}", schema=root["schema"], SCHEMA=SCHEMA))
    _text(root["envtune"], "envtune")
    rows = _list(root["changes"], "changes")
    changes = tuple(_change(row, f"changes[{number}]") for number, row in enumerate(rows))
    fault = plan_fault({"changes": rows})
    if fault is not None:
        raise PlanError(fault.fields["member"], problem_message(fault.fields["fault"].to_wire()))
    for number, change in enumerate(changes):
        _refuse(change, f"changes[{number}]")
    rest = _list(root["skipped"], "skipped")
    skipped = tuple(_skipped(row, f"skipped[{number}]") for number, row in enumerate(rest))
    return Plan(_text(root["host"], "host"), changes, skipped, _target(root["target"], "target"))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _refuse(change: Change, where: str) -> None:
    for number, operation in enumerate(change.operations):
        never = refusal(operation)
        if never is not None:
            raise PlanError(f"{where}.operations[{number}]", never)


def _change(row: Any, where: str) -> Change:
    found = _mapping(row, where, (*_TEXTS, *_CHOICES, *_LISTS, "root", "undoable", "note", "verify", "operations"))
    words = {name: _text(found[name], f"{where}.{name}") for name in _TEXTS}
    for name, choices in _CHOICES.items():
        words[name] = _choice(found[name], choices, f"{where}.{name}")
    rivals, cures = (_texts(found[name], f"{where}.{name}") for name in _LISTS)
    words["action"] = current_name(words["action"])
    operations = tuple(_list(found["operations"], f"{where}.operations"))
    note: Optional[Text] = None if found["note"] is None else Literal(_text(found["note"], f"{where}.note"))
    return Change(
        **words,
        root=_bool(found["root"], f"{where}.root"),
        undoable=_bool(found["undoable"], f"{where}.undoable"),
        rivals=tuple(map(Literal, rivals)),
        note=note,
        cures=cures,
        verify=_target(found["verify"], f"{where}.verify"),
        operations=operations,
    )


_TEXTS = ("id", "finding", "subject", "playbook", "action", "target", "before", "after")
_CHOICES: Mapping[str, tuple[str, ...]] = {"view": VIEWS, "safety": SAFETY, "disruption": DISRUPTION}
_LISTS = ("rivals", "cures")


def _skipped(row: Any, where: str) -> SkippedFinding:
    found = _mapping(row, where, ("finding", "subject", "reason", "steps"))
    words = [_text(found[name], f"{where}.{name}") for name in ("finding", "subject", "reason")]
    return SkippedFinding(
        words[0], words[1], Literal(words[2]), tuple(map(Literal, _texts(found["steps"], f"{where}.steps")))
    )


def _target(value: Any, where: str) -> dict[str, Any]:
    """Fields of TargetOptions; paths are absolute and normal."""
    if not isinstance(value, dict):
        raise _wrong(where, Message("a mapping"))
    for name, item in value.items():
        kind = TARGET.get(name)
        if kind is None:
            raise PlanError(f"{where}.{name}", Message("unknown"))
        if type(item) is not kind:
            raise _wrong(f"{where}.{name}", Literal(kind.__name__))
        if kind is list:
            value = {**value, name: _texts(item, f"{where}.{name}")}
        if name in _PATHS and operation_fault({"op": "file", "path": item, "content": None}):
            raise _wrong(f"{where}.{name}", Message("an absolute path without . and .."))
    return dict(value)


def _mapping(value: Any, where: str, names: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(where, Message("a mapping"))
    for name in names:
        if name not in value:
            raise PlanError(_join(where, name), Message("missing"))
    for name in value:
        if name not in names:
            raise PlanError(_join(where, name), Message("unknown"))
    return value


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise _wrong(where, Message("a text"))
    return value


def _bool(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(where, Message("true or false"))
    return value


def _choice(value: Any, choices: tuple[str, ...], where: str) -> str:
    if value not in choices:
        raise _wrong(where, Joined(choices, Message(" or ")))
    return str(value)


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(where, Message("a list"))
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    return tuple(_text(item, f"{where}[{number}]") for number, item in enumerate(_list(value, where)))


def _wrong(where: str, wanted: Text) -> PlanError:
    return PlanError(where, Message("must be {wanted}", wanted=wanted))


# ---------------------------------------------------------------------- the schema that is published


def plan_schema() -> dict[str, Any]:
    """`envtune.plan/1` as JSON Schema; docs/generate.py writes it to docs/schema/plan.json."""
    text, words = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
    target = {
        "type": "object",
        "properties": {
            name: words if kind is list else {"type": "integer" if kind is int else "string"}
            for name, kind in TARGET.items()
        },
        "additionalProperties": False,
    }
    change: dict[str, Any] = dict.fromkeys(_TEXTS, text)
    change["id"] = {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,40}$"}
    change.update({name: {"enum": list(choices)} for name, choices in _CHOICES.items()})
    change.update(root={"type": "boolean"}, undoable={"type": "boolean"}, rivals=words, cures=words)
    change.update(note={"type": ["string", "null"]}, verify=target)
    change["operations"] = {
        "type": "array",
        "items": {"anyOf": [_operation_schema(kind) for kind in OPERATIONS]},
    }
    skipped = {"finding": text, "subject": text, "reason": text, "steps": words}
    plan = {"schema": {"const": SCHEMA}, "envtune": text, "host": text, "target": target}
    lists = {"changes": change, "skipped": skipped}
    rows = {name: {"type": "array", "items": _closed(row)} for name, row in lists.items()}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": SCHEMA, **_closed({**plan, **rows})}


def _operation_schema(kind: str) -> dict[str, Any]:
    """The members of a kind of operation; the executor judges what each may hold (its docstrings say the form)."""
    own = OPERATIONS[kind].members
    members: dict[str, Any] = {"op": {"const": kind}, **{name: {} for name in (*own.required, *own.optional, "expect")}}
    return {**_closed(members), "required": ["op", *own.required]}


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
        "required": list(properties),
    }
