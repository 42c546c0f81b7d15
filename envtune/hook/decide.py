"""What to do with a node: pure tables of its state, the drain set by a hook, and the verdict."""

from __future__ import annotations

import enum
from typing import Optional

from envtune.hook.records import DECIDED, Drain, Node, Verdict, reason_for
from envtune.records import NamedTuple

# States and flags as in Slurm's node_state_base_string and node_state_flag_string. A node in another state is left
# alone: it is being maintained, rebooted or powered down, or the state is newer than this table.
_WORKING = frozenset(("IDLE", "ALLOCATED", "MIXED"))
_HARMLESS = frozenset(("COMPLETING", "PLANNED", "RESERVED", "CLOUD", "DYNAMIC_NORM", "DYNAMIC_FUTURE", "BLOCKED"))
_DRAIN = frozenset(("DRAIN", "DRAINED", "DRAINING"))
_DOWN = frozenset(("DOWN", "NOT_RESPONDING"))


class Action(enum.Enum):
    """What a hook does with a node."""

    LEAVE = "leave"
    DRAIN = "drain"
    RESUME = "resume"
    FORGET = "forget"  # the stored drain: somebody has resumed the node or drained it again


class Decision(NamedTuple):
    """What to do with a node, and why."""

    action: Action
    why: str
    reason: str = ""  # of a drain
    checks: tuple[str, ...] = ()  # all checks it is for; the reason names the first of them


def is_drained(node: Node) -> bool:
    """Return whether no further job is started on the node."""
    return bool(node.states & _DRAIN)


def after_check(node: Node, drain: Optional[Drain], verdict: Verdict, problems: tuple[str, ...]) -> Decision:
    """Return what slurm-health does with a node."""
    own = is_drained(node) and drain is not None and drain.is_of(node)
    if problems:
        return _with_problems(node, own, problems)
    if own and drain is not None:
        return _without_problems(node, drain, verdict)
    if drain is not None and (not is_drained(node) or drain.stamp):
        return Decision(Action.FORGET, "the node was resumed or drained by another user")
    return Decision(Action.LEAVE, f"drained by {_who(node)}" if is_drained(node) else "no problems")


def before_job(node: Node, drain: Optional[Drain], problems: tuple[str, ...]) -> Decision:
    """Return what a prolog does with a node on which problems were found."""
    return _with_problems(node, is_drained(node) and drain is not None and drain.is_of(node), problems)


def _with_problems(node: Node, own: bool, problems: tuple[str, ...]) -> Decision:
    reason = reason_for(problems)
    if own and node.reason == reason:
        return Decision(Action.LEAVE, "already drained for that")
    if is_drained(node) and not own:
        return Decision(Action.LEAVE, f"drained by {_who(node)}")
    left = node.states - _WORKING - _HARMLESS - (_DRAIN if own else frozenset())
    if left or (node.reason and not own):
        return Decision(Action.LEAVE, "in state " + _states(node) + (f", {_who(node)}" if node.reason else ""))
    return Decision(Action.DRAIN, "", reason, problems)


def _without_problems(node: Node, drain: Drain, verdict: Verdict) -> Decision:
    """Return what to do if this program has drained the node, and no check fails."""
    if not verdict.complete:
        return Decision(Action.LEAVE, "not all checks were run in time")
    for name in drain.checks:
        found = verdict.outcomes.get(name)
        if found is not None and found.outcome not in (*DECIDED, "fail"):
            return Decision(Action.LEAVE, f"{name}: {found.outcome}")
    left = node.states - _WORKING - _HARMLESS - _DRAIN - _DOWN
    if left:
        return Decision(Action.LEAVE, "in state " + _states(node))
    return Decision(Action.RESUME, "fixed: " + ", ".join(drain.checks))


def _states(node: Node) -> str:
    return "+".join(sorted(node.states)) or "unknown"


def _who(node: Node) -> str:
    who = node.stamp.partition("@")[0] or "another user"
    return f"{who}: {node.reason}" if node.reason else who
