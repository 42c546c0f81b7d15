"""The hooks of slurmd: slurm-prolog and slurm-health.

Both work in two limited processes (limits.py): one finds the verdict, one changes the node. A failure in either is a
line in the log and exit status 0.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Callable, Optional

from envtune.hook import log
from envtune.hook.decide import Action, Decision, after_check, before_job, is_drained
from envtune.hook.limits import Ended, Say, Work, run_limited
from envtune.hook.records import (
    ALL,
    DEFAULT_FAIL_ON,
    Choice,
    Drain,
    Node,
    Outcome,
    Verdict,
    age_problem,
    verdict_data,
    verdict_from,
)
from envtune.hook.slurm import Slurm, SlurmError, node_name
from envtune.hook.state import State, StateError, boot_id
from envtune.records import NamedTuple

REFUSED = 20  # of slurm-prolog; Python exits with 1 if it cannot even start, and a shell with 2, 126 and more
_CHECKING = 0.7  # the part of the time for the checks; the rest is for Slurm
UPDATING = "scontrol update"
PROLOG, HEALTH = "slurm-prolog", "slurm-health"
Decide = Callable[[Node, Optional[Drain]], Decision]


class Settings(NamedTuple):
    """The options of a hook; `state` is the directory with the hooks' files."""

    state: str
    timeout: float
    fail_on: str = ""  # threshold of the verdict
    choice: Choice = ALL
    node: str = ""
    scontrol: str = "scontrol"
    dry_run: bool = False
    max_age: float = 1800.0
    stale: str = "start"


def prolog(settings: Settings, judge: Work) -> int:
    """Return REFUSED if the node has problems and was drained for them, else 0; never raises."""
    end = time.monotonic() + settings.timeout
    verdict = _kept_verdict(settings, end)
    if verdict is None and settings.stale == "check":
        verdict = _checked(PROLOG, judge, end, keep=None if settings.dry_run else settings.state)
    if verdict is None:
        return 0
    if not any(map(settings.choice.includes, verdict.outcomes)):
        log.note(f"{PROLOG}: the last verdict has none of the selected checks; the job starts unchecked")
        return 0
    problems = verdict.problems(settings.fail_on, settings.choice)
    if not problems:
        log.note("no problems", quiet=True)
        return 0
    decide = partial(_before_job, problems)
    ended = run_limited(partial(_act, settings, decide), end - time.monotonic())
    _report(PROLOG, ended)
    refused = ended.fault is None and bool(ended.last("refused"))
    if refused:
        would = "would not" if settings.dry_run else "does not"
        log.note(f"the job {would} start here: {', '.join(problems)}", quiet=settings.dry_run)
    return REFUSED if refused and not settings.dry_run else 0


def health(settings: Settings, judge: Work) -> int:
    """Check the host, drain or resume the node, and return 0; never raises."""
    end = time.monotonic() + settings.timeout
    verdict = _checked(HEALTH, judge, end, keep=None if settings.dry_run else settings.state)
    if verdict is None:
        return 0
    problems = verdict.problems(settings.fail_on, settings.choice)

    def decide(node: Node, drain: Optional[Drain]) -> Decision:
        return after_check(node, drain, verdict, problems)

    _report(HEALTH, run_limited(partial(_act, settings, decide), end - time.monotonic()))
    return 0


def _before_job(problems: tuple[str, ...], node: Node, drain: Optional[Drain]) -> Decision:
    return before_job(node, drain, problems)


def _report(hook: str, ended: Ended) -> None:
    for line in ended.said:
        if "did" in line:
            log.note(str(line["did"]), quiet=bool(line.get("quiet")))
    if ended.fault is not None and ended.last("step") == UPDATING:
        log.warn(f"{hook}: {ended.fault}; whether Slurm has changed the node is unknown")
    elif ended.fault is not None:
        log.fault(hook, ended.fault)


# ---------------------------------------------------------------------- the verdict


def _kept_verdict(settings: Settings, end: float) -> Optional[Verdict]:
    """Return the last verdict if it is still valid, else None after reporting why."""

    def read(say: Say) -> None:
        say(step="reading the last verdict")
        try:
            found = State(settings.state).verdict()
        except StateError as error:
            say(missing=str(error))
            return
        why = (
            "no verdict was kept yet" if found is None else age_problem(found, time.time(), boot_id(), settings.max_age)
        )
        if found is None or why is not None:
            say(missing=why)
        else:
            say(verdict=verdict_data(found))

    ended = run_limited(read, end - time.monotonic())
    data = ended.last("verdict")
    if ended.fault is None and data is not None:
        return verdict_from(data)
    why = ended.fault or ended.last("missing")
    then = "checking now" if settings.stale == "check" else "the job starts unchecked"
    log.note(f"{PROLOG}: {why}; {then}")
    return None


def _checked(hook: str, judge: Work, end: float, keep: Optional[str]) -> Optional[Verdict]:
    """Run the checks and store the verdict; None after reporting why there is none.

    What was found before time was up counts: a problem is a problem even if other checks were not run.
    """
    ended = run_limited(judge, (end - time.monotonic()) * _CHECKING)
    verdict = verdict_of(ended)
    if verdict is None:
        log.fault(hook, ended.fault or "no check was run")
        return None
    if ended.fault is not None:
        log.note(f"{hook}: {ended.fault}; only the checks before it count")
    if keep is not None:
        kept = run_limited(lambda say: State(keep).keep_verdict(verdict), end - time.monotonic())
        if kept.fault is not None:
            log.note(f"{hook}: the verdict was not kept: {kept.fault}")
    return verdict


def verdict_of(ended: Ended) -> Optional[Verdict]:
    """Return what a process that ran checks has reported; None if it failed, or reported nothing in time."""
    rows = [row for row in ended.said if {"check", "outcome", "severity"} <= set(row)]
    if not rows or (ended.fault is not None and not ended.timed_out):
        return None
    outcomes = {str(row["check"]): Outcome(str(row["outcome"]), str(row["severity"])) for row in rows}
    fail_on = str(ended.last("fail_on", DEFAULT_FAIL_ON))
    return Verdict(outcomes, complete=ended.fault is None, fail_on=fail_on, npu=bool(ended.last("npu", True)))


# ---------------------------------------------------------------------- the node


def _act(settings: Settings, decide: Decide, say: Say) -> None:
    """Apply the decision to the node; a drain is stored before it is set, or it could not be undone."""
    state = State(settings.state)
    slurm = Slurm(settings.scontrol, node_name(settings.node))
    if settings.dry_run:
        say(step="scontrol show node")
        node = slurm.show()
        decision = decide(node, _kept_drain(state, slurm.node))
        _say_end(say, slurm.node, "would ", decision, node)
        return
    say(step="waiting for another hook on this host")
    with state.locked():
        drain = _kept_drain(state, slurm.node)
        say(step="scontrol show node")
        node = slurm.show()
        if drain is not None and not drain.stamp and is_drained(node):
            drain = drain.with_stamp_of(node)
            state.keep_drain(drain)
        decision = decide(node, drain)
        if decision.action is Action.DRAIN:
            _drain(slurm, state, decision, drain, say)
        elif decision.action is Action.RESUME:
            say(step=UPDATING)
            slurm.resume()
            state.forget_drain()
        elif decision.action is Action.FORGET:
            state.forget_drain()
    _say_end(say, slurm.node, "", decision, node)


def _kept_drain(state: State, node: str) -> Optional[Drain]:
    drain = state.drain()
    return drain if drain is not None and drain.node == node else None


def _drain(slurm: Slurm, state: State, decision: Decision, before: Optional[Drain], say: Say) -> None:
    """Drain the node and store the time that identifies the drain; the previous drain is kept if Slurm refuses."""
    drain = Drain(slurm.node, decision.reason, decision.checks, began=time.time())
    state.keep_drain(drain)
    say(step=UPDATING)
    try:
        slurm.drain(decision.reason)
    except SlurmError:
        state.forget_drain() if before is None else state.keep_drain(before)
        raise
    say(step="scontrol show node")
    try:
        node = slurm.show()
    except SlurmError as error:
        say(did=f"{error}; the time of the drain is read at the next check")
        return
    if is_drained(node) and node.reason == decision.reason:
        state.keep_drain(drain._replace(stamp=node.stamp))


def _say_end(say: Say, name: str, would: str, decision: Decision, node: Node) -> None:
    say(refused=decision.action is Action.DRAIN or is_drained(node))
    words = {Action.DRAIN: f"drain {name}: {decision.reason}", Action.RESUME: f"resume {name}: {decision.why}"}
    if decision.action not in words:
        say(did=f"{would}leave {name} as it is: {decision.why}", quiet=True)
        return
    text = words[decision.action]
    verb, _, rest = text.partition(" ")
    past = {"drain": "drained", "resume": "resumed"}[verb]
    say(did=f"{would}{verb} {rest}" if would else f"{past} {rest}", quiet=bool(would))
