"""`envtune fleet fix`: fix many hosts in stages, and stop where it goes wrong."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, List, Mapping, Optional, Sequence

import typer

from envtune.cli import options
from envtune.cli.fleet import audit, common
from envtune.messages import N_, Message, Text, plural

if TYPE_CHECKING:
    from envtune.cli.policy.loading import Loaded
    from envtune.fleet.fix.plan import Fixing, HostPlan
    from envtune.fleet.fix.rollout import Drain, Rollout, Way
    from envtune.fleet.fix.stages import HostOutcome, Stage
    from envtune.fleet.judge import Question
    from envtune.fleet.store.fixes import Fixes, FixHost, FixRun

SCHEMA = "envtune.fleet-fix/1"
HELP = N_(
    """Fix many hosts over ssh, in stages.

Every host is collected and checked, and what would fix it is planned here, as envtune fix does it on one host. Then one
host of each group (hardware, system, driver) is fixed, and checked again after --soak seconds; then 1 %, 10 %, 25 % and
the rest, each checked again. No further stage is begun where a host of the first stage fails, where more than 10 % of a
stage fail, or where a check fails that passed before. Hosts on which jobs use NPUs are left out.

\b
Examples:
  envtune fleet fix -w node[1-64] --check --diff          only show it
  envtune fleet fix CPU001 -w node[1-64] --become         fix it, as root by sudo -n; asks once
  envtune fleet fix --slurm --slurm-drain --become --yes  drain each node first
  envtune fleet undo RUN                                  undo it

Exit status: 0 fixed, or nothing to fix, 1 something failed or is left (with --check: something to fix), 2 usage error,
3 a host could not be collected, or it is unknown whether it was changed.
"""
)
WORDS = typer.Argument(None, metavar="[ID|FAMILY|PLAYBOOK]...", help=N_("What to fix: checks, families or playbooks."))
CHECK = typer.Option(False, "--check", help=N_("Only show what would be changed."))
DIFF = typer.Option(False, "--diff", help=N_("Show the lines that change."))
YES = typer.Option(False, "--yes", "-y", help=N_("Do not ask."))
YES_CONFIRM = typer.Option(False, "--yes-confirm", help=N_("Also apply changes that need separate confirmation."))
BECOME = typer.Option(False, "--become", help=N_("Collect and fix as root, by sudo -n."))
GATEWAYS = typer.Option(
    None, "--gateways", metavar="NODESET", help=N_("Collect through these; the fix itself connects directly.")
)
SOAK = typer.Option(60.0, "--soak", min=0.0, metavar="SECONDS", help=N_("Seconds until the first stage is checked."))
DRAIN = typer.Option(False, "--slurm-drain", help=N_("Drain each node of Slurm before it is fixed, resume it after."))
MINUTES = typer.Option(60, "--drain-minutes", min=1, metavar="N", help=N_("Minutes to wait for a node's jobs to end."))
FIX_TIMEOUT = typer.Option(600, "--fix-timeout", min=10, metavar="N", help=N_("Seconds for the fix on a host."))


def command(
    words: Optional[List[str]] = WORDS,
    nodes: Optional[str] = common.NODES,
    hosts_from: Optional[str] = audit.HOSTS_FROM,
    inventory: Optional[Path] = audit.INVENTORY,
    limit: Optional[str] = audit.LIMIT,
    slurm: bool = audit.SLURM,
    partition: Optional[str] = audit.PARTITION,
    python: Optional[str] = audit.PYTHON,
    env_file: Optional[str] = audit.ENV_FILE,
    job: Optional[str] = audit.JOB,
    check: bool = CHECK,
    diff: bool = DIFF,
    yes: bool = YES,
    yes_confirm: bool = YES_CONFIRM,
    become: bool = BECOME,
    soak: float = SOAK,
    slurm_drain: bool = DRAIN,
    drain_minutes: int = MINUTES,
    user: Optional[str] = audit.USER,
    ssh_options: str = audit.SSH_OPTIONS,
    gateways: Optional[str] = GATEWAYS,
    fanout: int = audit.FANOUT,
    timeout: int = audit.TIMEOUT,
    fix_timeout: int = FIX_TIMEOUT,
    connect_timeout: int = audit.CONNECT_TIMEOUT,
    store: Optional[Path] = common.STORE,
    ignore: Optional[List[str]] = options.IGNORE,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
    verbose: bool = common.VERBOSE,
    catalog: Optional[List[Path]] = options.CATALOG,
    policy: Optional[str] = options.POLICY,
    profile: Optional[str] = options.PROFILE,
) -> None:
    from envtune.cli.policy.loading import load_with_policy
    from envtune.errors import require_package
    from envtune.fleet.fix.playbook import find_ansible
    from envtune.fleet.fix.rollout import Way
    from envtune.fleet.hosts import required_hosts
    from envtune.fleet.program import Job
    from envtune.fleet.ssh import Ssh, require_options
    from envtune.trust.programs import resolve_program

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    require_package("ClusterShell")
    require_options(ssh_options)
    ansible = find_ansible()
    hosts = required_hosts(audit.named_hosts(nodes, hosts_from, inventory, limit, slurm, partition))
    loaded = load_with_policy(catalog, lang, policy, profile)
    drain = _drain(drain_minutes) if slurm_drain else None
    question, fixing = _question(loaded, words or [], ignore or [], yes_confirm, drain)
    ssh = Ssh(ssh_options, user, fanout, connect_timeout, timeout, resolve_program("ssh"))
    way = Way(ssh, become, fix_timeout, Job(python, env_file, job), audit.named_gateways(gateways))
    session = _Session(store, loaded, format_, lang, verbose)
    session.report_interrupted(way)
    plans, stages = session.plan(hosts, way, question, fixing)
    session.show_plan(plans, stages, diff, check)
    if check or not stages:
        common.end(_status_of_plan(plans))
    if not session.agrees(sum(len(stage.hosts) for stage in stages), yes):
        common.end(options.USAGE)
    rollout = session.begin(" ".join(words or []), plans, stages, way, question, fixing)
    common.end(session.roll_out(rollout._replace(ansible=ansible, soak=soak, drain=drain), stages, plans))


def _drain(minutes: int) -> Drain:
    from envtune.errors import UsageError, system_error_text
    from envtune.fleet.fix.rollout import Drain
    from envtune.trust.programs import resolve_program

    try:
        return Drain(resolve_program("scontrol"), minutes)
    except OSError as error:
        raise UsageError(Message("--slurm-drain: scontrol: {reason}", reason=system_error_text(error))) from None


def _question(
    loaded: Loaded, words: Sequence[str], ignore: Sequence[str], yes_confirm: bool, drain: Optional[Drain]
) -> tuple[Question, Fixing]:
    """Return what is checked on each host, and what of it is to be fixed."""
    from envtune.fix.consent import Consent
    from envtune.fix.selection import choose_checks
    from envtune.fleet.fix.plan import Fixing
    from envtune.fleet.judge import Question
    from envtune.model import Severity

    pieces = tuple(piece.strip() for word in words for piece in word.split(","))
    chosen = loaded.selectors(list(words), None, list(ignore), None)
    checks = choose_checks(loaded.catalogue, chosen.select, (), chosen.ignore, chosen.tags, Severity.INFO)
    selected = frozenset(check.id for check in checks)
    every = {check.id: check for check in (*loaded.select(None, None, None, Severity.INFO), *checks)}
    fixing = Fixing(selected, loaded.catalogue.playbooks, Consent(pieces, (), yes_confirm), drain is not None)
    return Question(tuple(every.values()), loaded.catalogue.expectations), fixing


def _status_of_plan(plans: Sequence[HostPlan]) -> int:
    from envtune.fleet.collected import Collection

    if any(plan.changes for plan in plans) or _leaves_something(plans):
        return 1
    return 0 if all(plan.record.collection is Collection.OK for plan in plans) else options.NOT_READ


def _leaves_something(plans: Sequence[HostPlan]) -> bool:
    """Return whether a host is left out, or a change needs more than was agreed to."""
    return any(plan.withheld or plan.reason is not None for plan in plans)


class _Session:
    """One command: what it says, and what it keeps."""

    def __init__(self, store: Optional[Path], loaded: Loaded, format_: str, lang: str, verbose: bool) -> None:
        from envtune.fleet.store.fixes import Fixes

        self.path = common.store_path(store)
        self.connection = common.open_until_end(self.path)
        self.fixes: Fixes = Fixes(self.connection)
        self.loaded, self.lang, self.json = loaded, lang, format_ == "json"
        self.settings = common.text_settings(common.plain("text"), lang, verbose)

    def say(self, text: Text) -> None:
        """Say something about the progress."""
        typer.echo(self.settings.to(text), err=True)

    def report_interrupted(self, way: Way) -> None:
        """Find out what runs have changed whose controller was ended in the middle, and say it."""
        from envtune.fleet.fix.undo import interrupted_runs, reconcile_run

        for run in interrupted_runs(self.fixes, self.path):
            hosts = reconcile_run(self.fixes, run, self.path, way_of(run, way))
            show_run(self.fixes.named(run.name), hosts, self.settings, error_stream=True)

    def plan(
        self, hosts: Sequence[str], way: Way, question: Question, fixing: Fixing
    ) -> tuple[list[HostPlan], tuple[Stage, ...]]:
        """Collect the hosts, keep what was found, and return what would fix them, and in which stages."""
        from envtune.cli.program.waiting import show_while_waiting
        from envtune.fleet.audit import Progress
        from envtune.fleet.fix.rollout import plan_hosts
        from envtune.fleet.fix.stages import make_stages

        progress = Progress(len(hosts))
        show_while_waiting(lambda: audit.progress_text(progress), self.lang)
        writer = self._writer()
        plans = plan_hosts(hosts, way, question, fixing, progress, writer.add)
        writer.finish()
        groups = {plan.host: plan.group for plan in plans}
        return plans, make_stages([plan.host for plan in plans if plan.changes], groups)

    def _writer(self) -> Any:
        from envtune.fleet.store.write import Writer

        return Writer(self.connection, "ssh", self.loaded.shown.get("file", ""))

    def show_plan(self, plans: Sequence[HostPlan], stages: Sequence[Stage], diff: bool, only: bool) -> None:
        """Print what would be changed."""
        from envtune.report.fleet.fix_text import plan_lines

        if self.json:
            if only or not stages:
                options.print_json({**plan_data(plans, stages, self.lang), "run": None}, 1)
            return
        common.print_lines(plan_lines(plans, stages, self.settings, diff))
        if only and stages:
            typer.echo(Message("Nothing was changed. To fix it, run the same command without --check").to(self.lang))

    def agrees(self, count: int, yes: bool) -> bool:
        """Ask once about all hosts."""
        if yes:
            return True
        if not options.is_interactive():
            self.say(Message("envtune: hosts to change: {count}; no terminal to ask on: use --yes", count=count))
            return False
        question = plural("Change {count} host?", "Change {count} hosts in these stages?", count)
        return typer.confirm(question.to(self.lang), default=False, err=True)

    def begin(
        self,
        words: str,
        plans: Sequence[HostPlan],
        stages: Sequence[Stage],
        way: Way,
        question: Question,
        fixing: Fixing,
    ) -> Rollout:
        """Write the run into the store, and prepare what is sent."""
        from envtune.fleet.fix.folder import RunFolder
        from envtune.fleet.fix.playbook import find_ansible
        from envtune.fleet.fix.rollout import Rollout, prepare_folder
        from envtune.fleet.fix.stages import PLANNED
        from envtune.fleet.store.fixes import FixHost

        rows = [FixHost(host, number, PLANNED) for number, stage in enumerate(stages) for host in stage.hosts]
        run = self.fixes.begin(words, reach(way), rows)
        folder = RunFolder(self.path, run.name)
        prepare_folder(folder, run.name, [plan for plan in plans if plan.changes], way)
        return Rollout(run, folder, self.fixes, find_ansible(), way, question, fixing)

    def roll_out(self, rollout: Rollout, stages: Sequence[Stage], plans: Sequence[HostPlan]) -> int:
        """Carry it out, print what came of it, and return the exit status."""
        from envtune.fleet.fix.rollout import roll_out

        writer = self._writer()
        stopped = roll_out(rollout, stages, _Events(self), writer.add)
        writer.finish()
        self.fixes.end(rollout.run, None if stopped is None else (stopped.en, stopped.zh))
        rollout.folder.release()
        run, hosts = self.fixes.named(rollout.run.name), self.fixes.hosts(rollout.run)
        if self.json:
            options.print_json({**plan_data(plans, stages, self.lang), **run_data(run, hosts, self.lang)}, 1)
        else:
            show_run(run, hosts, self.settings)
        return _status_of_run(hosts, stopped, plans)


def _status_of_run(hosts: Sequence[FixHost], stopped: Optional[Text], plans: Sequence[HostPlan]) -> int:
    from envtune.fleet.collected import Collection
    from envtune.fleet.fix.stages import BEGUN, CHANGED

    if any(host.state == BEGUN for host in hosts):
        return options.NOT_READ
    if stopped is not None or any(host.state != CHANGED for host in hosts) or _leaves_something(plans):
        return 1
    return 0 if all(plan.record.collection is Collection.OK for plan in plans) else options.NOT_READ


class _Events:
    """Says how far a run is (`rollout.Events`)."""

    def __init__(self, session: _Session) -> None:
        self._session, self._count = session, 0

    def stage_begins(self, number: int, stages: Sequence[Stage]) -> None:
        """Say which hosts are begun."""
        from envtune.report.fleet.text import short

        self._count = len(stages)
        fields = {"number": number + 1, "count": len(stages)}
        hosts = short(stages[number].hosts, self._session.settings)
        self._session.say(Message("stage {number} of {count}: {hosts} ...", hosts=hosts, **fields))

    def stage_ended(self, number: int, stage: Stage, outcomes: Mapping[str, HostOutcome]) -> None:
        """Say how they ended."""
        from envtune.report.fleet.fix_text import outcome_lines, stage_text

        mine = {host: outcomes[host] for host in stage.hosts}
        self._session.say(stage_text(number, self._count, mine))
        for line in outcome_lines(outcomes, self._session.settings):
            typer.echo(line, err=True)

    def waits(self, what: Text) -> None:
        """Say what is waited for."""
        self._session.say(what)


def reach(way: Way) -> dict[str, Any]:
    """Return how hosts are reached, as it is kept with a run."""
    ssh = way.ssh
    kept = {"options": ssh.options, "user": ssh.user, "fanout": ssh.fanout, "connect_timeout": ssh.connect_timeout}
    return {**kept, "become": way.become, "seconds": way.seconds}


def way_of(run: FixRun, way: Way) -> Way:
    """Return how the hosts of a run are reached: as they were then, where that is kept."""
    kept = {**reach(way), **run.reach}
    ssh = way.ssh._replace(options=kept["options"], user=kept["user"], connect_timeout=kept["connect_timeout"])
    return way._replace(ssh=ssh, become=kept["become"], seconds=kept["seconds"])


def show_run(run: FixRun, hosts: Iterable[FixHost], settings: Any, error_stream: bool = False) -> None:
    """Print how the hosts of a run are, and how it is undone."""
    from envtune.fleet.fix.stages import WRITTEN
    from envtune.report.fleet.fix_text import run_lines

    rows = list(hosts)
    stream = sys.stderr if error_stream else sys.stdout
    lines = [*run_lines(run, rows, settings)]
    if any(row.state in WRITTEN for row in rows):
        lines += settings.lines(Message("To undo it: {command}", command=f"envtune fleet undo {run.name}"))
    typer.echo("\n".join(line.rstrip(" ") for line in lines), file=stream)


def plan_data(plans: Sequence[HostPlan], stages: Sequence[Stage], lang: str) -> dict[str, Any]:
    """Return the plans as data."""
    from envtune.fix.document import change_data

    rows = []
    for plan in plans:
        changes = [change_data(change, lang) for change in plan.changes]
        reason = None if plan.reason is None else plan.reason.to(lang)
        withheld = [{"finding": one.change.finding, "reason": one.reason.to(lang)} for one in plan.withheld]
        row = {"host": plan.host, "collection": plan.record.collection.value, "group": list(plan.group)}
        rows.append({**row, "changes": changes, "left_out": reason, "withheld": withheld})
    return {"schema": SCHEMA, "plans": rows, "stages": [list(stage.hosts) for stage in stages]}


def run_data(run: FixRun, hosts: Iterable[FixHost], lang: str) -> dict[str, Any]:
    """Return a run as data."""
    stopped = None if run.stopped is None else run.stopped[lang == "zh"]
    rows = [
        {"host": host.host, "stage": host.stage, "state": host.state, "run": host.run, "detail": host.detail}
        for host in hosts
    ]
    return {"schema": SCHEMA, "run": run.name, "stopped": stopped, "hosts": rows}
