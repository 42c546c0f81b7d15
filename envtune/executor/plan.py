"""Plans as data: the operations, the form of a plan, and whether it still fits the host."""

import re
from typing import Any, Dict, Optional, Type

from .common import Record
from .operations.base import Operation
from .operations.command import CommandOperation
from .operations.file import FileOperation
from .operations.replace_tree import ReplaceTreeOperation
from .operations.signal import SignalOperation
from .problems import Problem, RefusedError
from .validators import Members, is_text

OPERATIONS: Dict[str, Type[Operation]] = {  # by the `op` of their JSON form
    "file": FileOperation,
    "run": CommandOperation,
    "swap": ReplaceTreeOperation,
    "signal": SignalOperation,
}


def operation_of(wire: Record) -> Operation:
    """Return the operation of its JSON form."""
    return OPERATIONS[wire["op"]](wire)


def operation_fault(wire: Any) -> Optional[Problem]:
    """Return which member of an operation is wrong and why; None if it can be carried out."""
    if not isinstance(wire, dict) or not isinstance(wire.get("op"), str):
        return Problem("at-member", member="op", fault=Problem("missing"))
    if wire["op"] not in OPERATIONS:
        return Problem("at-member", member="op", fault=Problem("unknown-operation", kind=wire["op"]))
    own = OPERATIONS[wire["op"]].members
    return Members({"op": is_text, **own.required}, {"expect": is_text, **own.optional}).fault(wire)


def plan_fault(plan: Any) -> Optional[Problem]:
    """Return which member of a plan is wrong and why; None if it can be carried out."""
    if not isinstance(plan, dict) or not isinstance(plan.get("changes"), list):
        return Problem("at-member", member="changes", fault=Problem("missing"))
    seen = set()
    for number, change in enumerate(plan["changes"]):
        fault = _change_fault(change)
        if fault is None and change["id"] in seen:
            fault = Problem("at-member", member=".id", fault=Problem("occurs-twice", id=change["id"]))
        if fault is not None:
            member = "changes[%d]%s" % (number, fault.fields["member"])
            return Problem("at-member", member=member, fault=fault.fields["fault"])
        seen.add(change["id"])
    return None


def _change_fault(change: Any) -> Optional[Problem]:
    if not isinstance(change, dict):
        return Problem("at-member", member="", fault=Problem("not-a-mapping"))
    if not isinstance(change.get("id"), str) or not re.match("[A-Za-z0-9._-]{1,40}$", change["id"]):
        return Problem("at-member", member=".id", fault=Problem("not-allowed"))
    if not isinstance(change.get("operations"), list):
        return Problem("at-member", member=".operations", fault=Problem("missing"))
    for index, wire in enumerate(change["operations"]):
        fault = operation_fault(wire)
        if fault is not None:
            member = ".operations[%d].%s" % (index, fault.fields["member"])
            return Problem("at-member", member=member, fault=fault.fields["fault"])
    return None


def require_expected(operation: Operation, current: str) -> None:
    """Raise RefusedError if the result of `observe` is not what the plan expected."""
    if operation.planned not in (None, current):
        raise RefusedError("not-as-planned", subject=operation.subject, found=current, planned=operation.planned)
