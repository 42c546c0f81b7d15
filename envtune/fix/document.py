"""`envtune.plan/1`: a plan as data, and back. A file is trusted in nothing: every member is judged before use."""

from __future__ import annotations

import json
from typing import Any, Mapping, NoReturn

from envtune.context.registry import current_name
from envtune.errors import PlanError
from envtune.executor.plan import OPERATIONS, plan_fault
from envtune.fix.executor_messages import problem_message
from envtune.fix.plan import DISRUPTION, SAFETY, Plan, SkippedFinding
from envtune.fix.policy import refusal
from envtune.messages import Literal, Message, Text
from envtune.model import Change
from envtune.schema.types import (
    AnyOf,
    Anything,
    Bool,
    Const,
    Field,
    ListOf,
    Number,
    Record,
    Special,
    Str,
    Type,
    optional,
    record_of,
)
from envtune.schema.validate import Validator, is_normal_path
from envtune.schema.values import Data
from envtune.version import __version__

SCHEMA = "envtune.plan/1"
VIEWS = ("live", "boot", "job")
LIMIT = 256 << 20  # bytes; a plan that carries more is not one of ours


def plan_data(plan: Plan, lang: str) -> dict[str, Any]:
    """Return the plan as plain data, texts in `lang`."""
    return {
        "schema": SCHEMA,
        "envtune": __version__,
        "host": plan.host,
        "target": dict(plan.target),
        "changes": [_change_data(change, lang) for change in plan.changes],
        "skipped": [_skipped_data(skipped, lang) for skipped in plan.skipped],
    }


def render(plan: Plan, lang: str) -> str:
    """Return the plan as one JSON document."""
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
        "view": change.scope,
        "safety": change.safety,
        "disruption": change.disruption,
        "root": change.root,
        "undoable": change.undoable,
        "rivals": [owner.to(lang) for owner in change.other_owners],
        "note": None if change.note is None else change.note.to(lang),
        "cures": list(change.fixes),
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
    """Return the plan of a file; PlanError, with the member that is wrong, for anything that is not exactly a plan."""
    try:
        data = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise PlanError("", Message("not JSON: {error}", error=error)) from None
    plan = Validator(_refuse).judge(Data(data), PLAN)
    fault = plan_fault({"changes": plan["changes"]})
    if fault is not None:
        raise PlanError(fault.fields["member"], problem_message(fault.fields["fault"].to_wire()))
    changes = tuple(map(_change, plan["changes"]))
    for number, change in enumerate(changes):
        _refuse_forbidden(change, f"changes[{number}]")
    return Plan(plan["host"], changes, tuple(map(_skipped, plan["skipped"])), plan["target"])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _refuse(value: Data, message: Text) -> NoReturn:
    raise PlanError(value.path, message)


def _refuse_forbidden(change: Change, where: str) -> None:
    for number, operation in enumerate(change.operations):
        never = refusal(operation)
        if never is not None:
            raise PlanError(f"{where}.operations[{number}]", never)


def _change(row: Mapping[str, Any]) -> Change:
    """Return the change; its members are called as in `envtune.plan/1`, whose names outlive those of the code."""
    same = {name: row[name] for name in Change._fields if name in row}
    renamed = {
        "action": current_name(row["action"]),
        "scope": row["view"],
        "other_owners": tuple(map(Literal, row["rivals"])),
        "fixes": tuple(row["cures"]),
        "note": None if row["note"] is None else Literal(row["note"]),
        "operations": tuple(row["operations"]),
    }
    return Change(**{**same, **renamed})


def _skipped(row: Mapping[str, Any]) -> SkippedFinding:
    return SkippedFinding(row["finding"], row["subject"], Literal(row["reason"]), tuple(map(Literal, row["steps"])))


# ---------------------------------------------------------------------- the form


def _has_no_nul(text: str) -> bool:
    return "\0" not in text


def _operation_form() -> AnyOf:
    """Return the members of each kind of operation; the executor judges what they hold (see its docstrings)."""
    return AnyOf(*map(_operation, OPERATIONS))


def _operation(kind: str) -> Record:
    members = OPERATIONS[kind].members
    return Record(
        Field("op", Const(kind), "", True),
        *(Field(name, Anything(), "", True) for name in members.required),
        *(Field(name, Anything()) for name in (*members.optional, "expect")),
    )


_TEXT, _PATH = Str(check=_has_no_nul), Str(name=Message("an absolute path without . and .."), check=is_normal_path)
_TEXTS = ListOf(_TEXT)
_OPERATION = Special(lambda validator, value: value.plain(), _operation_form)
_TARGET = Record(
    Field("python", _PATH),
    Field("pid", Number(whole=True)),
    Field("script", _PATH),
    Field("env_file", _PATH),
    Field("peers", _TEXTS),
)
_CHANGE: Mapping[str, Type] = {
    "id": Str("[A-Za-z0-9._-]{1,40}", "C01"),
    **dict.fromkeys(("finding", "subject", "playbook", "action", "target", "before", "after"), _TEXT),
    "view": Str(choices=VIEWS),
    "safety": Str(choices=SAFETY),
    "disruption": Str(choices=DISRUPTION),
    "root": Bool(),
    "undoable": Bool(),
    "rivals": _TEXTS,
    "cures": _TEXTS,
    "note": optional(_TEXT),
    "verify": _TARGET,
    "operations": ListOf(_OPERATION),
}
_SKIPPED: Mapping[str, Type] = {"finding": _TEXT, "subject": _TEXT, "reason": _TEXT, "steps": _TEXTS}
PLAN = record_of(
    {
        "schema": Const(SCHEMA),
        "envtune": _TEXT,
        "host": _TEXT,
        "target": _TARGET,
        "changes": ListOf(record_of(_CHANGE)),
        "skipped": ListOf(record_of(_SKIPPED)),
    }
)
