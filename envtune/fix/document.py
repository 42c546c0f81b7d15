"""`envtune.plan/1`: convert a plan to data and back.

A file is not trusted. Its content is only compared with the plan that is built again on this host (rebuild.py): no
operation from a file is carried out, and none is shown as what would be done. Files are also passed on: what they quote
of the host's files has secrets removed, on both sides of the comparison.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any, Mapping, NoReturn, Sequence

from envtune.collector.redact import redact_file, redact_text
from envtune.collector.redact.values import REDACTED
from envtune.context.registry import current_name
from envtune.errors import PlanError
from envtune.executor.plan import OPERATIONS
from envtune.fix.plan import DISRUPTION, SAFETY, Plan, SkippedFinding, without_label
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
from envtune.schema.validate import Validator
from envtune.schema.values import Data
from envtune.trust.characters import json_text
from envtune.version import __version__

SCHEMA = "envtune.plan/1"
VIEWS = ("live", "boot", "job")
# A larger plan was not written by envtune: 1,024 CPUs take 1.5 MB and 50,000 values.
LIMIT = 8 << 20  # bytes
_MOST_VALUES = 200_000
_DEEPEST = 32  # levels of nesting; a plan has ten
_HALF = re.compile("[\ud800-\udfff]")


def plan_data(plan: Plan, lang: str) -> dict[str, Any]:
    """Return the plan as plain data, texts in `lang`."""
    return {
        "schema": SCHEMA,
        "envtune": __version__,
        "host": plan.host,
        "machine": plan.machine,
        "target": dict(plan.target),
        "options": dict(plan.options),
        "checks": list(plan.checks),
        "changes": [change_data(change, lang) for change in plan.changes],
        "skipped": [_skipped_data(skipped, lang) for skipped in plan.skipped],
    }


def render(plan: Plan, lang: str) -> str:
    """Return the plan as one JSON document."""
    return json_text(plan_data(plan, lang), 1)


def change_data(change: Change, lang: str) -> dict[str, Any]:
    """Return a change as plain data, texts in `lang`."""
    return {
        "id": change.id,
        "finding": change.finding,
        "subject": redact_text(change.subject),
        "playbook": change.playbook,
        "action": change.action,
        "target": change.target,
        "before": _shown(change, change.before),
        "after": _shown(change, change.after),
        "view": change.scope,
        "safety": change.safety,
        "disruption": change.disruption,
        "root": change.root,
        "undoable": change.undoable,
        "rivals": [redact_text(owner.to(lang)) for owner in change.other_owners],
        "note": None if change.note is None else redact_text(change.note.to(lang)),
        "cures": list(change.fixes),
        "verify": dict(change.verify),
        "operations": [
            {name: _operand(change, name, value) for name, value in operation.items()}
            for operation in change.operations
        ],
    }


def _shown(change: Change, text: str) -> str:
    """Return the content of a file or setting for a plan: without secrets, by the rules for that file."""
    is_env_file = change.verify.get("env_file") == change.target
    kept = redact_file(change.target, text.encode("utf-8", "surrogateescape"), env_file=is_env_file)
    return REDACTED if kept is None else kept.decode("utf-8", "surrogateescape")


def _operand(change: Change, name: str, value: Any) -> Any:
    """Return a member of an operation; a file's content without secrets."""
    if isinstance(value, str) and name == "content":
        try:
            text = base64.b64decode(value, validate=True).decode("utf-8", "surrogateescape")
        except (binascii.Error, ValueError):
            return value  # from a file not written by envtune; it is refused
        shown = _shown(change, text)
        return value if shown == text else base64.b64encode(shown.encode("utf-8", "surrogateescape")).decode("ascii")
    if isinstance(value, str):
        return redact_text(value)
    return [_operand(change, "", member) for member in value] if isinstance(value, (list, tuple)) else value


def _skipped_data(skipped: SkippedFinding, lang: str) -> dict[str, Any]:
    return {
        "finding": skipped.finding,
        "subject": redact_text(skipped.subject),
        "reason": redact_text(skipped.reason.to(lang)),
        "steps": [redact_text(without_label(step).to(lang)) for step in skipped.steps],
    }


# ---------------------------------------------------------------------- back


def load_plan(text: str) -> Plan:
    """Return the plan in a file, for comparison only; `rebuild.prepare_saved` builds one that can be used.

    Raises PlanError, naming the wrong member, for what does not have the form of a plan.
    """
    data = _parse(text)
    plan = Validator(_refuse).judge(Data(data), PLAN)
    _refuse_same_ids(plan["changes"])
    changes, skipped = map(_change, plan["changes"]), map(_skipped, plan["skipped"])
    more = {"options": plan.get("options", {}), "checks": tuple(plan.get("checks", ())), "machine": plan.get("machine")}
    return Plan(plan["host"], tuple(changes), tuple(skipped), plan["target"], **more)


def _parse(text: str) -> Any:
    """Return the JSON of a file; raises PlanError if it is not JSON, or cannot be a plan."""
    if not text.strip():
        raise PlanError("", Message("the file is empty: the command that should have written the plan failed"))
    try:
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number, parse_int=_number)
    except RecursionError:
        raise _nested() from None
    except ValueError as error:
        reason = Message("not JSON: {error}; `envtune fix --format json` writes a plan", error=error)
        raise PlanError("", reason) from None
    _require_plain(data)
    return data


def _require_plain(data: Any) -> None:
    """Raise PlanError for more or deeper values than a plan has, and for text that nothing could print."""
    level, count = [data], 0
    for _ in range(_DEEPEST):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below += [*value, *value.values()]
            elif isinstance(value, list):
                below += value
            elif isinstance(value, str) and _HALF.search(value):
                raise PlanError("", Message("not a plan: text with half a character (\\ud800 to \\udfff)"))
        level, count = below, count + len(below)
        if count > _MOST_VALUES:
            raise PlanError("", Message("not a plan: more than {most} values", most=_MOST_VALUES))
    if level:
        raise _nested()


def _nested() -> PlanError:
    return PlanError("", Message("not a plan: nested too deeply"))


def _number(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _refuse(value: Data, message: Text) -> NoReturn:
    raise PlanError(value.path, message)


def _refuse_same_ids(changes: Sequence[Mapping[str, Any]]) -> None:
    seen: set[str] = set()
    for number, change in enumerate(changes):
        if change["id"] in seen:
            raise PlanError(f"changes[{number}].id", Message("duplicate id {id}", id=change["id"]))
        seen.add(change["id"])


def _change(row: Mapping[str, Any]) -> Change:
    """Return the change; its members have the names of `envtune.plan/1`, which outlive those in the code."""
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


def _is_absolute(text: str) -> bool:
    return text.startswith("/") and _has_no_nul(text)


def _operation_form() -> AnyOf:
    """Return the members of each kind of operation; their content is described in executor/operations."""
    return AnyOf(*map(_operation, OPERATIONS))


def _judge_operation(validator: Validator, value: Any) -> Any:
    """Return an operation unchanged: it is compared as a whole, and never carried out."""
    return value.plain() if validator.filled(value, "mapping", least=0) else {}


def _operation(kind: str) -> Record:
    members = OPERATIONS[kind].members
    return Record(
        Field("op", Const(kind), "", True),
        *(Field(name, Anything(), "", True) for name in members.required),
        *(Field(name, Anything()) for name in (*members.optional, "expect")),
    )


_TEXT, _PATH = Str(check=_has_no_nul), Str(name=Message("an absolute path"), check=_is_absolute)
_NAME = Str(name=Message("a name"), check=str.isprintable)
_TEXTS = ListOf(_TEXT)
_OPERATION = Special(_judge_operation, _operation_form)
_TARGET = Record(
    Field("python", _PATH),
    Field("pid", Number(whole=True)),
    Field("script", _PATH),
    Field("env_file", _PATH),
    Field("peers", _TEXTS),
)
_OPTIONS = Record(
    *(Field(name, _TEXT) for name in ("python", "owner", "lang")),
    *(Field(name, _PATH) for name in ("script", "env_file", "wheels")),
    Field("pid", Number(least=1, whole=True)),
    Field("peers", _TEXTS),
)
_CHANGE: Mapping[str, Type] = {
    "id": Str("[A-Za-z0-9._-]{1,40}", "C01"),
    "finding": _NAME,
    "subject": _TEXT,
    **dict.fromkeys(("playbook", "action"), _NAME),
    **dict.fromkeys(("target", "before", "after"), _TEXT),
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
_MEMBERS: Mapping[str, Type] = {
    "schema": Const(SCHEMA),
    "envtune": _TEXT,
    "host": _TEXT,
    "target": _TARGET,
    "changes": ListOf(record_of(_CHANGE)),
    "skipped": ListOf(record_of(_SKIPPED)),
}
PLAN = Record(
    *record_of(_MEMBERS).fields,
    Field("machine", optional(_TEXT), "A digest of the host's machine id; null where it is not known."),
    Field("options", _OPTIONS, "What was named on the command line, so that the same plan can be built again."),
    Field("checks", _TEXTS, "The checks that were run."),
)
