"""The whole loop on this machine, by the library: find, plan, write, find again, take back.

Used inside namespaces that a test made. A fact can be set, because a test machine is often a VM or a container itself.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Optional

from envtune.audit import examine
from envtune.catalog import load
from envtune.context import Context
from envtune.context.open import open_context
from envtune.executor.recover import undo_run
from envtune.executor.run import apply_plan
from envtune.fix.plan import Plan, executable, make_plan
from envtune.host import LocalHost
from envtune.job.target import TargetOptions
from envtune.model import Change, Fact, Finding, FixOptions


def local_context(facts: Optional[Mapping[str, str]] = None, target: Optional[TargetOptions] = None) -> Context:
    """A context on this machine in which `facts` are as the test says."""
    context = open_context(LocalHost(), target or TargetOptions())
    told = {name: Fact(name, value, "the test") for name, value in (facts or {}).items()}
    return Context(context.host, context.target, told, context.expectations)


def find(context: Context, *ids: str) -> tuple[Finding, ...]:
    """What these checks say."""
    checks = {check.id: check for check in load().checks}
    return tuple(finding for id_ in ids for finding in examine(checks[id_], context))


def plan(context: Context, *ids: str, options: Optional[FixOptions] = None) -> Plan:
    """What would cure the failures of these checks."""
    return make_plan(find(context, *ids), load().playbooks, context, options or FixOptions())


def apply(made: Plan, state: str) -> tuple[str, dict[str, Any]]:
    """Write it: the name of the run, and the result of every change by its target."""
    run, results = apply_plan(executable(made.changes), state)
    by_id = {result["change"]: result for result in results}
    return run, {change.target: by_id[change.id] for change in made.changes}


def undo(run: str, state: str) -> list[str]:
    """Take a run back: what went wrong, nothing when all is as it was."""
    return [str(row) for row in undo_run(state, run) if row["status"] != "undone"]


def by_target(changes: Iterable[Change]) -> dict[str, Change]:
    """The changes by what they are about."""
    return {change.target: change for change in changes}
