"""Roll out a fix: plan every host, fix one stage after the other, check each again, stop when the rule says so."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Any, Callable, Mapping, Optional, Protocol, Sequence

from envtune.fleet.audit import Plan as Collecting
from envtune.fleet.audit import Progress, audit_hosts
from envtune.fleet.collected import Collection
from envtune.fleet.fix.folder import Answer, RunFolder, answer_of
from envtune.fleet.fix.plan import Checked, Fixing, HostPlan, Written, check_again, executable_plan, plan_host
from envtune.fleet.fix.playbook import Ansible, play
from envtune.fleet.fix.program import REQUEST, executor_program, packed_request, read_answer, remote_command
from envtune.fleet.fix.stages import BEGUN, CHANGED, RUNNING, UNTOUCHED, HostOutcome, Stage, why_stop
from envtune.fleet.hosts import chunks
from envtune.fleet.judge import Question, Snapshot
from envtune.fleet.program import Job
from envtune.fleet.record import HostRecord
from envtune.fleet.ssh import CHUNK, Ssh, run_everywhere
from envtune.fleet.store.fixes import Fixes, FixHost, FixRun
from envtune.messages import Message, Text
from envtune.records import NamedTuple

PATIENCE = 60.0  # seconds to wait for a host with a run still in progress
OnRecord = Callable[[HostRecord], None]


class Way(NamedTuple):
    """How hosts are reached: ssh, as root or not, and the executor's time limit on a host.

    Snapshots may come through `gateways`; Ansible always connects directly.
    """

    ssh: Ssh
    become: bool = False
    seconds: int = 600
    job: Job = Job()
    gateways: Sequence[str] = ()

    @property
    def collecting(self) -> Collecting:
        """How their snapshots are collected."""
        return Collecting(self.ssh, self.job, self.become, self.gateways)


class Drain(NamedTuple):
    """Nodes are drained before they are fixed: the path of scontrol, and minutes to wait for jobs to end."""

    scontrol: str
    minutes: int


class Rollout(NamedTuple):
    """The tools of a run."""

    run: FixRun
    folder: RunFolder
    fixes: Fixes
    ansible: Ansible
    way: Way
    question: Question
    fixing: Fixing
    soak: float = 0.0
    drain: Optional[Drain] = None


class Events(Protocol):
    """The progress output of a run."""

    def stage_begins(self, number: int, stages: Sequence[Stage]) -> None:
        """Report that a stage begins."""

    def stage_ended(self, number: int, stage: Stage, outcomes: Mapping[str, HostOutcome]) -> None:
        """Report how a stage ended, once it is checked."""

    def waits(self, what: Text) -> None:
        """Report what is being waited for."""


def plan_hosts(
    hosts: Sequence[str], way: Way, question: Question, fixing: Fixing, progress: Progress, on_record: OnRecord
) -> list[HostPlan]:
    """Collect every host and plan what would fix it; `on_record` is called with the record of each, to store it."""
    found: dict[str, HostPlan] = {}

    def take(one: Any) -> None:
        plan = one if isinstance(one, HostPlan) else HostPlan(one)
        found[plan.host] = plan
        on_record(plan.record)

    work = partial(_plan_host, fixing=fixing)
    audit_hosts(hosts, way.collecting, question._replace(work=work), progress, take)
    return [found[host] for host in hosts if host in found]


def _plan_host(snapshot: Snapshot, question: Question, fixing: Fixing) -> HostPlan:
    return plan_host(snapshot, question, fixing)


def prepare_folder(folder: RunFolder, name: str, plans: Sequence[HostPlan], way: Way) -> None:
    """Write what Ansible sends, and the snapshot each plan is based on."""
    folder.make()
    folder.write("program", executor_program())
    folder.write("command", remote_command(way.seconds, way.become).encode("ascii"))
    for plan in plans:
        request = {"action": "apply", "run": name, "plan": executable_plan(plan)}
        folder.write(f"requests/{plan.host}", packed_request(request))
        shown = [[change.target, change.before, change.after] for change in plan.changes]
        folder.write(f"shown/{plan.host}", json.dumps(shown).encode("ascii"))
        folder.write(f"before/{plan.host}", plan.snapshot)


def roll_out(rollout: Rollout, stages: Sequence[Stage], events: Events, on_record: OnRecord) -> Optional[Text]:
    """Fix one stage after the other; return why it stopped before the end, None if it did not.

    The answer of each host is in the store before the host is checked again.
    """
    canaries = stages[0].hosts if stages and stages[0].canary else ()
    for number, stage in enumerate(stages):
        events.stage_begins(number, stages)
        interrupted, answers = _fix_stage(rollout, number, stage)
        changed = [host for host in stage.hosts if answers[host].state == CHANGED]
        if stage.canary and changed and not interrupted:
            _soak(rollout, events)
        again = [host for host in (*changed, *canaries) if host in stage.hosts or number]
        outcomes = _check_stage(rollout, list(dict.fromkeys(again)), answers, on_record)
        events.stage_ended(number, stage, outcomes)
        _resume(rollout, stage, outcomes)
        reason = Message("interrupted") if interrupted else why_stop(stage, outcomes)
        if reason is not None:
            return reason
    return None


def _fix_stage(rollout: Rollout, number: int, stage: Stage) -> tuple[bool, dict[str, Answer]]:
    """Fix the hosts of a stage with Ansible; return whether it was interrupted, and the answer of each host."""
    folder, drain = rollout.folder, rollout.drain
    variables = {
        "run": rollout.run.name,
        "most_failed": 0 if stage.canary else 10,
        "slurm_drain": drain is not None,
        "scontrol": drain.scontrol if drain else "",
        "drain_minutes": drain.minutes if drain else 0,
    }
    rows = [FixHost(host, number, BEGUN) for host in stage.hosts]
    rollout.fixes.update(rollout.run, rows)  # whatever happens now, these hosts may have been changed
    interrupted = play(rollout.ansible, "fix.yml", folder, stage.hosts, rollout.way.ssh, variables)
    answers = read_answers(folder, stage.hosts, rollout.run.name, rollout.way)
    rollout.fixes.update(rollout.run, _rows(number, answers))
    return interrupted, answers


def read_answers(folder: RunFolder, hosts: Sequence[str], run: str, way: Way) -> dict[str, Answer]:
    """Return what is known about hosts from their output; one that was begun but did not answer is asked again."""
    answers = {host: folder.answer(host) for host in hosts}
    silent = [host for host, answer in answers.items() if answer.state == BEGUN]
    return {**answers, **ask_hosts(silent, run, way)}


def ask_hosts(hosts: Sequence[str], run: str, way: Way, patience: float = PATIENCE) -> dict[str, Answer]:
    """Ask hosts what a run has left on them, from their journals; a host where it is still running gets some seconds.

    A host that does not answer is missing from the result.
    """
    until = time.monotonic() + patience
    program = executor_program().replace(REQUEST.encode("ascii"), packed_request({"action": "state", "run": run}), 1)
    found: dict[str, Answer] = {}

    def take(host: str, answer: Any) -> None:
        data = read_answer(answer.output)
        if data is not None:
            found[host] = answer_of(data)

    while hosts:
        for part in chunks(hosts, CHUNK):
            run_everywhere(part, remote_command(way.seconds, way.become), program, way.ssh, take)
        hosts = [host for host in hosts if host in found and found[host].state == RUNNING]
        if time.monotonic() > until:
            break
        time.sleep(1 if hosts else 0)
    return found


def _rows(stage: int, answers: Mapping[str, Answer]) -> list[FixHost]:
    return [FixHost(host, stage, answer.state, answer.run, answer.detail) for host, answer in answers.items()]


def _soak(rollout: Rollout, events: Events) -> None:
    if rollout.soak:
        events.waits(Message("waiting {seconds:.0f} s before the first hosts are checked again", seconds=rollout.soak))
        time.sleep(rollout.soak)


def _check_stage(
    rollout: Rollout, hosts: Sequence[str], answers: Mapping[str, Answer], on_record: OnRecord
) -> dict[str, HostOutcome]:
    """Collect hosts again and run the same checks; return how each host of the stage ended, and the canaries."""
    folder = rollout.folder
    written = {}
    for host in hosts:
        answer = answers.get(host) or folder.answer(host)
        written[host] = Written(Snapshot(host, folder.before(host), True), answer.run, answer.results)
    found: dict[str, Any] = {}

    def take(one: Any) -> None:
        checked = one if isinstance(one, Checked) else Checked(one)
        found[checked.record.host] = checked
        on_record(checked.record)

    if hosts:
        work = partial(_check_again, fixing=rollout.fixing, written=written)
        question = rollout.question._replace(work=work)
        audit_hosts(hosts, rollout.way.collecting, question, Progress(len(hosts)), take)
    outcomes = {host: _outcome(answer.state, found.get(host)) for host, answer in answers.items()}
    return {**outcomes, **{host: _outcome(CHANGED, found.get(host)) for host in hosts if host not in answers}}


def _check_again(snapshot: Snapshot, question: Question, fixing: Fixing, written: Mapping[str, Written]) -> Checked:
    return check_again(snapshot, question, fixing, written)


def _outcome(state: str, checked: Optional[Checked]) -> HostOutcome:
    if checked is None or checked.record.collection is not Collection.OK:
        return HostOutcome(state, collected=checked is None and state != CHANGED)
    still = tuple(change for change, end in checked.states.items() if end == "still-failing")
    return HostOutcome(state, still, checked.newly_failing)


def _resume(rollout: Rollout, stage: Stage, outcomes: Mapping[str, HostOutcome]) -> None:
    """Resume the nodes that were drained for this stage, except those on which something went wrong."""
    if rollout.drain is None:
        return
    hosts = [host for host in stage.hosts if not outcomes[host].failed or outcomes[host].state in UNTOUCHED]
    if hosts:
        variables = {"scontrol": rollout.drain.scontrol, "run": rollout.run.name}
        play(rollout.ansible, "resume.yml", rollout.folder, hosts, rollout.way.ssh, variables)
