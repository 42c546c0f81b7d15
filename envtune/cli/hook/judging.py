"""Run the checks for a hook, and say what each finds as soon as it is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Callable, Optional, Sequence, Union

from envtune.audit import Began, audited
from envtune.audit.verdict import is_without_npu, worst_outcome
from envtune.cli.policy.loading import load_with_policy
from envtune.context import Context
from envtune.context.open import UNNAMED, open_context, resolve_target
from envtune.host import LocalHost
from envtune.job.target import JobEnvironment, TargetOptions
from envtune.messages import Message
from envtune.model import Finding, Outcome, Severity
from envtune.records import NamedTuple

if TYPE_CHECKING:
    from envtune.cli.policy.loading import Loaded


class Question(NamedTuple):
    """Which checks to run, as the command line says; `target` is the job, None where the environment is no job's."""

    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    tag: Sequence[str] = ()
    policy: Optional[str] = None
    profile: Optional[str] = None
    catalog: Sequence[Union[str, Path]] = ()
    fail_on: str = ""
    target: Optional[TargetOptions] = None


def judge(question: Question, say: Callable[..., None]) -> None:
    """Say `step` before each check, and `check`, `outcome`, `severity` after it.

    Raises CatalogError, PolicyError, UsageError.
    """
    say(step="loading the checks")
    loaded = load_with_policy([Path(folder) for folder in question.catalog], "en", question.policy, question.profile)
    say(fail_on=question.fail_on or _policy_fail_on(loaded) or "high")
    checks = loaded.select(question.select, question.ignore, question.tag, Severity.INFO)
    context = _context(loaded, question.target)
    findings: list[Finding] = []
    for event in audited(checks, context):
        if isinstance(event, Began):
            say(step=f"{event.check.id} {event.check.name}")
        else:
            findings += event.findings
            _say_outcome(event.findings, say)
    say(npu=not is_without_npu(findings, [context.facts[name] for name in ("ascend", "ascend_job")]))


def _say_outcome(findings: Sequence[Finding], say: Callable[..., None]) -> None:
    """Say what the findings of one check are as a whole."""
    worst = worst_outcome(findings)
    deciding = [finding for finding in findings if finding.outcome is worst]
    severity = max((finding.severity for finding in deciding), key=lambda found: found.rank)
    note = worst is Outcome.FAIL and deciding[0].check.note
    say(check=deciding[0].id, outcome="note" if note else worst.value, severity=severity.value)


def _policy_fail_on(loaded: Loaded) -> str:
    return "" if loaded.policy is None else str(loaded.policy.last("fail_on") or "")


def _context(loaded: Loaded, target: Optional[TargetOptions]) -> Context:
    """Return the context; a daemon's environment and Python are no job's."""
    host = LocalHost()
    expectations = loaded.catalogue.expectations
    context = open_context(host, resolve_target(host, target or UNNAMED), expectations)
    if target is not None:
        return context
    reason = Message("a scheduler's daemon started the check, not a job")
    job = context.target._replace(
        environment=JobEnvironment(None, Message("the daemon of the scheduler"), reason),
        python=None,
        python_reason=reason,
    )
    return Context(host, job, expectations=expectations)
