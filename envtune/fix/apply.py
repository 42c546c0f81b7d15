"""Carrying a plan out: what is there, consent, the executor, the same checks again."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

import typer

from envtune.cli.options import USAGE, colour_wanted, terminal_width
from envtune.cli.progress import Progress, guarded
from envtune.errors import PlanError, UsageError
from envtune.executor.files import is_kernel_file, read_content
from envtune.executor.plan import stale_changes
from envtune.executor.problems import RefusedError, problem_of
from envtune.executor.run import apply_plan
from envtune.executor.state import state_directory
from envtune.fix.consent import EACH, Consent, Held, sort_changes, unknown_changes
from envtune.fix.executor_messages import problem_message
from envtune.fix.outcome import Written, exit_status, settle
from envtune.fix.plan import Plan, cured, executable, make_plan
from envtune.job.target import TargetOptions
from envtune.messages import Joined, Message, Text
from envtune.model import Change, Check, Expectation, Finding, FixOptions, Severity

if TYPE_CHECKING:
    from envtune.catalog import Catalogue
    from envtune.host import Host

Verdict = tuple[Finding, ...]


@dataclass
class Request:
    """One call of `envtune fix`."""

    catalogue: Catalogue
    checks: tuple[Check, ...]
    saved: Optional[Plan]
    target: TargetOptions
    options: FixOptions
    snapshot: Optional[Path]
    lang: str
    format: str
    floor: Severity
    wait: float = 0.0
    yes: bool = False
    consent: Consent = field(default_factory=Consent)

    def consent_to(
        self, words: Sequence[str], select: Sequence[str], changes: Sequence[str], yes: bool, everything: bool
    ) -> None:
        """Take what the command line consents to."""
        named = tuple(piece.strip() for part in (*words, *select) for piece in part.split(","))
        picked = tuple(piece.strip().upper() for part in changes for piece in part.split(","))
        self.yes, self.consent = yes, Consent(named, picked, everything)

    def say(self, message: Text) -> None:
        """A line to stderr, in the user's language."""
        typer.echo(message.to(self.lang), err=True)


@dataclass(frozen=True)
class Made:
    """A plan, and the findings it starts from."""

    plan: Plan
    findings: Verdict
    target: TargetOptions

    def exit_code(self, floor: Severity) -> int:
        """What `fix` without --apply ends with: 1 when there is something to do or something wrong."""
        return 1 if self.plan.changes else exit_status(self.findings, (), floor)


def is_root() -> bool:
    """Whether what needs root may be tried."""
    return os.geteuid() == 0


def somebody_is_there() -> bool:
    """Whether a question would be answered."""
    return sys.stdin.isatty()


def note_interrupted(request: Request, writing: bool) -> None:
    """Say what an earlier run left; nothing is written on top of it."""
    from envtune.cli.interrupted import told_of_interrupted

    if told_of_interrupted(state_directory(), request.lang) and writing:
        raise typer.Exit(USAGE)


def make(request: Request) -> Made:
    """The plan: made from what the checks find here, or the saved one together with what they find."""
    from envtune.cli.check import open_host

    target = _saved_target(request)
    host, target = open_host(request.snapshot, target)
    if not request.checks:
        return Made(request.saved or Plan(host.name, (), ()), (), target)
    findings, context = _examine(host, target, request.checks, request.catalogue.expectations)
    if request.saved is not None:
        return Made(_shown(request.saved), findings, target)
    playbooks = request.catalogue.playbooks
    options = request.options
    if options.env_file is None and target.env_file is not None:
        options = FixOptions(options.peers, options.wheels, target.env_file, options.pid, options.owner)
    return Made(make_plan(findings, playbooks, context, options), findings, target)


def _saved_target(request: Request) -> TargetOptions:
    """The job that the plan was made for, unless another one is named now."""
    if request.saved is None or request.target._replace(peers=()) != TargetOptions():
        return request.target
    saved = TargetOptions(**request.saved.target)
    return saved._replace(peers=request.target.peers or saved.peers)


def _examine(
    host: Host, target: TargetOptions, checks: Sequence[Check], expectations: Mapping[str, Sequence[Expectation]]
) -> tuple[Verdict, Any]:
    from envtune.audit import audit
    from envtune.context.open import open_context

    context = open_context(host, target, expectations)
    return audit(checks, context), context


def _shown(plan: Plan) -> Plan:
    """A saved plan with the diff that its operations really make: what a file says about itself need not be true."""
    import base64

    changes = []
    for change in plan.changes:
        files = [operation for operation in change.operations if operation["op"] == "file"]
        if len(files) == 1:
            content = files[0]["content"]
            path = files[0]["path"]
            after = "" if content is None else base64.b64decode(content).decode("utf-8", "replace")
            before = _content(path)
            if is_kernel_file(path):
                before, after = before.strip(), after.strip()
            change = change._replace(target=path, before=before, after=after)
        changes.append(change)
    return Plan(plan.host, tuple(changes), plan.skipped, plan.target)


def _content(path: str) -> str:
    try:
        return (read_content(path) or b"").decode("utf-8", "replace")
    except (OSError, RefusedError) as error:
        return f"({problem_of(error)})"


# ---------------------------------------------------------------------- apply


def apply(request: Request, made: Made) -> int:
    """Ask, write, check again, report. The exit status."""
    plan = made.plan
    for name in unknown_changes(plan.changes, request.consent):
        raise UsageError(Message("--change {name}: the plan has no such change", name=name))
    if request.saved is not None:
        _refuse_stale(plan)
    ready, held = sort_changes(plan.changes, request.consent, is_root())
    if request.format == "text":
        _print_plan(request, plan)
    try:
        ready, held = _ask_each(request, plan.changes, ready, held)
        agreed = not ready or _agreed(request, ready)
    except typer.Abort:
        typer.echo(err=True)  # Ctrl-C and Ctrl-D leave the cursor behind the question
        agreed = False
    if not agreed:
        request.say(Message("envtune: nothing was changed"))
        return made.exit_code(request.floor) if somebody_is_there() else USAGE
    written = _write(request, made, ready, held)
    after = _again(request, made, ready, written)
    findings = settle(made.findings, after, plan.changes, written)
    if not written.run and not held and request.format == "text":
        return exit_status(findings, (), request.floor)
    _report(request, made, findings, written)
    needs_root = [one.change for one in held if one.why == "root"]
    if needs_root:
        from envtune.cli.needs_root import for_root

        for_root(Plan(plan.host, tuple(needs_root), (), plan.target), written.run, request.lang)
    return exit_status(_wanted(request, findings, plan), written.results.values(), request.floor)


def _wanted(request: Request, findings: Verdict, plan: Plan) -> Verdict:
    """Where single changes were named, only what they were to cure decides how it ended."""
    if not request.consent.changes:
        return findings
    named = {check for change in plan.changes if change.id in request.consent.changes for check in cured(change)}
    return tuple(finding for finding in findings if finding.id in named)


def _refuse_stale(plan: Plan) -> None:
    """Nothing of a saved plan is carried out when any of it no longer fits what is there."""
    found = stale_changes(executable(plan.changes))
    if found:
        rows = [Joined((f"  {id_}: ", problem_message(why.to_wire())), "") for id_, why in found.items()]
        raise PlanError(
            "",
            Message("the plan does not fit this host any more; make a new one:\n{reasons}", reasons=Joined(rows, "\n")),
        )


def _print_plan(request: Request, plan: Plan) -> None:
    from envtune.report import plan_text as report

    typer.echo(report.render(plan, request.lang, width=terminal_width(), colour=colour_wanted()))


def _ask_each(
    request: Request, planned: Sequence[Change], ready: list[Change], held: list[Held]
) -> tuple[list[Change], list[Held]]:
    """On a terminal, ask about what wants consent of its own; --yes does not answer for it.

    Changes that differ in their target only are one question, processes to be ended one each.
    """
    if not somebody_is_there():
        return ready, held
    from envtune.report.plan_text import groups

    able = [one.change for one in held if one.why == "consent" and (is_root() or not one.change.root)]
    alone = [[change] for change in able if change.action in EACH]
    order = {change.id: number for number, change in enumerate(planned)}
    together = groups(change for change in able if change.action not in EACH)
    for group in sorted([*alone, *together], key=lambda group: order[group[0].id]):
        if _ask(_own_question(group, request.lang)):
            ready = [*ready, *group]
    chosen = {change.id for change in ready}
    rest = [one for one in held if one.change.id not in chosen]
    return sorted(ready, key=lambda change: order[change.id]), rest


def _own_question(group: Sequence[Change], lang: str) -> str:
    from envtune.report.layout import printable
    from envtune.report.plan_text import ids, targets

    words = f"{ids(group)}  {group[0].finding}  {targets(group, lang)}"
    return printable(f"{words}：需单独确认，是否执行？" if lang == "zh" else f"{words}: do this, too?")


def _agreed(request: Request, ready: Sequence[Change]) -> bool:
    """The one question; without a terminal it must have been answered by --yes."""
    if request.yes:
        return True
    from envtune.report.plan_text import table

    count = len(ready)
    if not somebody_is_there():
        request.say(
            Message("envtune: ready to change {count}; nobody can be asked here: say --yes", count=count),
        )
        return False
    for line in table(ready, request.lang, terminal_width()):
        typer.echo(line, err=True)
    words = (
        f"执行以上 {count} 项改动？"
        if request.lang == "zh"
        else f"Make {'this change' if count == 1 else f'these {count} changes'}?"
    )
    return _ask(words)


def _ask(words: str) -> bool:
    """Raises typer.Abort at Ctrl-C and Ctrl-D: that is a no to everything."""
    return bool(typer.confirm(words, default=False, err=True))


def _write(request: Request, made: Made, ready: Sequence[Change], held: Sequence[Held]) -> Written:
    if not ready:
        return Written("", {}, tuple(held))
    progress = Progress(request.lang, len(ready))
    plan = {"host": made.plan.host, "target": dict(made.plan.target), **executable(ready)}
    name, results = guarded(lambda: apply_plan(plan, state_directory(), progress, request.wait))
    return Written(name, {result["change"]: result for result in results}, tuple(held))


# ---------------------------------------------------------------------- afterwards


def _again(request: Request, made: Made, ready: Sequence[Change], written: Written) -> Verdict:
    """The same checks on a host that is read anew; where a change says so, on the job that shows its effect."""
    from envtune.host import LocalHost

    if not written.run:
        return made.findings
    done = [change for change in ready if written.results[change.id]["status"] == "done"]
    elsewhere: dict[str, Mapping[str, Any]] = {}
    for change in done:
        if change.verify:
            elsewhere.update(dict.fromkeys(cured(change), change.verify))
    here = [check for check in request.checks if check.id not in elsewhere]
    found = list(_examine(LocalHost(), made.target, here, request.catalogue.expectations)[0]) if here else []
    for verify in {repr(sorted(v.items())): v for v in elsewhere.values()}.values():
        checks = [check for check in request.checks if elsewhere.get(check.id) == verify]
        found += _examine(LocalHost(), TargetOptions(**verify), checks, request.catalogue.expectations)[0]
    order = {check.id: number for number, check in enumerate(request.checks)}
    return tuple(sorted(found, key=lambda finding: order[finding.id]))


def _report(request: Request, made: Made, findings: Verdict, written: Written) -> None:
    from envtune.report import fix_text as report

    if request.format == "json":
        typer.echo(report.render_json(made.plan, findings, written, request.lang))
    else:
        typer.echo(report.render(made.findings, findings, written, request.lang, terminal_width(), colour_wanted()))
