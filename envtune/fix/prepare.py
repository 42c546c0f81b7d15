"""The scope of a fix, and its plan: the selected checks, what they find here, and what would fix it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Callable, Optional, Sequence

from envtune.audit import audit
from envtune.catalog import Catalogue, load
from envtune.context import Context
from envtune.context.open import NO_EXPECTATIONS, UNNAMED, Expectations, open_context, resolve_target
from envtune.errors import UsageError
from envtune.fix.outcome import exit_status
from envtune.fix.plan import NO_OPTIONS, Plan, make_plan
from envtune.fix.selection import choose_checks
from envtune.host import Host, LocalHost
from envtune.job.target import TargetOptions
from envtune.messages import Message
from envtune.model import Check, Finding, FixOptions, Severity

Progress = Callable[[Check], None]


@dataclass(frozen=True)
class PreparedFix:
    """A plan and its basis: the checks, their findings and the job they are about."""

    plan: Plan
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]
    target: TargetOptions
    expectations: Expectations = field(default_factory=dict)  # of the catalog, by variable

    def exit_code(self, floor: Optional[Severity]) -> int:
        """Return the exit status of `fix` without --apply: 1 if there is something to do or something wrong."""
        return 1 if self.plan.changes and floor else exit_status(self.findings, (), floor)

    def with_only(self, ids: Sequence[str]) -> PreparedFix:
        """Return it with only these changes, all if none is named; raises UsageError for one not in the plan."""
        for id_ in ids:
            if id_ not in {change.id for change in self.plan.changes}:
                raise UsageError(Message("--change {name}: the plan has no such change", name=id_))
        changes = tuple(change for change in self.plan.changes if not ids or change.id in ids)
        return replace(self, plan=self.plan._replace(changes=changes))


def plan(
    host: Optional[Host] = None,
    target: TargetOptions = UNNAMED,
    *,
    catalogue: Optional[Catalogue] = None,
    select: Sequence[str] = (),
    faq: Sequence[str] = (),
    ignore: Sequence[str] = (),
    tags: Sequence[str] = (),
    severity: Severity = Severity.INFO,
    options: FixOptions = NO_OPTIONS,
    progress: Optional[Progress] = None,
) -> Plan:
    """Check a host and return what would fix it. Nothing is changed.

    Args:
        host: The host to read; None means this machine. `envtune.open_snapshot(path)` opens a recorded one.
        target: The job to fix; none means the one a snapshot was taken for, or what this shell would start.
        catalogue: Checks and playbooks; None means the shipped ones with the site's changes.
        select: Ids, id prefixes, names or tags of checks, or ids of playbooks; nothing means all stable checks.
        faq: Ids of FAQ entries (`F06`): the checks that confirm them.
        ignore: Checks to leave out, named in the same way as in `select`.
        tags: Only checks with one of these tags.
        severity: Only checks of this severity and above.
        options: What the fix may use: the job's other hosts, a directory of wheels, a file to write variables to.
        progress: Called with each check before it runs.

    Returns:
        The changes in the order in which they would be applied, and the reason for every finding that they do not fix.

    Raises:
        UsageError: A selector names nothing, or `target` names something that is not on the host.
        CatalogError: A file of the catalog is wrong.

    Example:
        >>> import envtune
        >>> [change.target for change in envtune.plan(select=["NET"]).changes]  # doctest: +SKIP
        ['/etc/sysctl.d/90-envtune.conf']
    """
    catalogue = catalogue or load()
    checks = choose_checks(catalogue, select, faq, ignore, tags, severity)
    return prepare(host or LocalHost(), target, checks, catalogue, options, progress).plan


def prepare(
    host: Host,
    target: TargetOptions,
    checks: tuple[Check, ...],
    catalogue: Catalogue,
    options: FixOptions = NO_OPTIONS,
    progress: Optional[Progress] = None,
) -> PreparedFix:
    """Run the checks and plan what would fix their findings."""
    target = resolve_target(host, target)
    findings, context = examine(host, target, checks, catalogue.expectations, progress)
    if options.env_file is None and target.env_file is not None:
        options = options._replace(env_file=target.env_file)
    made = make_plan(findings, catalogue.playbooks, context, options)
    return PreparedFix(made, checks, findings, target, expectations=catalogue.expectations)


def examine(
    host: Host,
    target: TargetOptions,
    checks: Sequence[Check],
    expectations: Expectations = NO_EXPECTATIONS,
    progress: Optional[Progress] = None,
) -> tuple[tuple[Finding, ...], Context]:
    """Return what the checks find on the host for that job, and the context they were run in."""
    context = open_context(host, target, expectations)
    return audit(checks, context, progress), context
