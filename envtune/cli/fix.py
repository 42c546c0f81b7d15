"""`envtune fix`: what would repair this host; with --apply, do it, and run the same checks again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, List, Optional

import typer

from envtune.cli.options import colour_wanted, fail, language, terminal_width
from envtune.messages import Message

if TYPE_CHECKING:
    from envtune.fix.apply import Made, Request
    from envtune.fix.plan import Plan
    from envtune.job.target import TargetOptions
    from envtune.model import Check, FixOptions

HELP = """What would repair this host; with --apply, repair it and run the same checks again.

Without --apply nothing is changed. WORDS are ids, id prefixes (CPU), names or playbooks. Examples:

\b
  envtune fix                             what could be repaired, as a diff
  envtune fix CPU001 --apply              repair it; asks once
  envtune fix --faq F06                   what the FAQ entry F06 is about
  envtune fix --format json > plan.json   the plan as data
  envtune fix --plan plan.json --apply    apply it later; refused if the host has changed
  envtune fix --finish 20250102-030405    finish a run that was interrupted

Exit status: 0 all is right now or nothing to do, 1 something is still wrong, 2 usage, 3 it could not be told.
"""


def command(
    words: Optional[List[str]] = typer.Argument(None, metavar="[ID|FAMILY|PLAYBOOK]..."),
    faq: Optional[List[str]] = typer.Option(None, "--faq", help="What this FAQ entry is about (F06)."),
    select: Optional[List[str]] = typer.Option(None, "--select", "-s", help="Like the words, as in check."),
    ignore: Optional[List[str]] = typer.Option(None, "--ignore", "-i", help="Leave these out."),
    tag: Optional[List[str]] = typer.Option(None, "--tag", help="Only checks with this tag."),
    severity: str = typer.Option("info", "--severity", help="Only checks of this severity and above."),
    fail_on: str = typer.Option("medium", "--fail-on", help="End with 1 from this severity on."),
    apply: bool = typer.Option(False, "--apply", help="Write. Asks once before."),
    yes: bool = typer.Option(False, "--yes", "-y", help="Do not ask."),
    yes_confirm: bool = typer.Option(False, "--yes-confirm", help="Also what asks for consent of its own."),
    change: Optional[List[str]] = typer.Option(None, "--change", help="Only these changes of the plan (C01)."),
    plan: Optional[Path] = typer.Option(None, "--plan", help="A plan that was saved with --format json."),
    finish: Optional[str] = typer.Option(None, "--finish", metavar="RUN", help="Finish an interrupted run."),
    wait: float = typer.Option(0.0, "--wait", min=0.0, help="Seconds to wait for another run to end."),
    peer: Optional[List[str]] = typer.Option(None, "--peer", help="Another host of the job: address, network, name."),
    hostfile: Optional[Path] = typer.Option(None, "--hostfile", help="The hosts of the job, one a line."),
    wheels: Optional[Path] = typer.Option(None, "--wheels", help="Wheels, for hosts without a network."),
    owner: Optional[str] = typer.Option(None, "--owner", help="With --pid: the user who must own that process."),
    format_: str = typer.Option("text", "--format", "-f", help="text or json."),
    lang: Optional[str] = typer.Option(None, "--lang", help="en or zh (default: your locale)."),
    snapshot: Optional[Path] = typer.Option(None, "--snapshot", help="Plan for a recorded host."),
    python: Optional[str] = typer.Option(None, "--python", help="The job's Python."),
    pid: Optional[int] = typer.Option(None, "--pid", help="A running job, or the process to end."),
    script: Optional[str] = typer.Option(None, "--script", help="The job's launch script."),
    env_file: Optional[str] = typer.Option(None, "--env-file", help="The job's variables, KEY=VALUE lines."),
    catalog: Optional[List[Path]] = typer.Option(None, "--catalog", help="More entries, by id over the shipped ones."),
) -> None:
    from envtune.errors import EnvtuneError

    lang = language(lang)
    if format_ not in ("text", "json"):
        fail(Message("--format {format}: text or json", format=format_), lang)
    if apply and snapshot is not None:
        fail(Message("--apply writes to this host; a recorded one cannot be changed"), lang)
    if finish is not None:
        from envtune.cli.progress import finish_run

        raise typer.Exit(finish_run(finish, lang, format_, wait))
    try:
        prepared = _prepare(lang, [*(words or []), *(select or [])], faq, ignore, tag, severity, catalog, plan)
        # with --owner the number is not the job's: it is the process to end, which must not be spared as the job's own
        target = _target(python, None if owner else pid, script, env_file)
        options = _fix_options(prepared.checks, peer, hostfile, wheels, pid, owner, target)
        if env_file is not None:
            options = options._replace(env_file=str(Path(env_file).absolute()))
        target = target._replace(peers=options.peers)
        request = _request(prepared, target, options, snapshot, lang, format_, fail_on, wait)
        request.consent_to(words or [], select or [], change or [], yes, yes_confirm)
        code = _run(request, apply)
    except EnvtuneError as error:
        fail(error.message, lang)
    sys.stdout.flush()
    raise typer.Exit(code)


def _run(request: Request, apply: bool) -> int:
    """Print the plan; carry it out when asked to."""
    from envtune.fix import apply as fix_apply

    fix_apply.note_interrupted(request, apply)
    made = fix_apply.make(request)
    if apply:
        return fix_apply.apply(request, made)
    text = _rendered(made.plan, request)
    typer.echo(text if made.plan.changes else text.rstrip("\n"))
    if request.format == "text":
        _hint(made.plan, request)
        _looked_at(made, request.lang)
    return made.exit_code(request.floor)


def _rendered(plan: Plan, request: Request) -> str:
    if request.format == "json":
        from envtune.fix.document import render

        return render(plan, request.lang)
    from envtune.report import plan_text as report

    return report.render(plan, request.lang, width=terminal_width(), colour=colour_wanted())


def _hint(plan: Plan, request: Request) -> None:
    if plan.changes:
        en, zh = "Nothing was changed. To do it: the same command with --apply", "未做任何改动。执行改动请加 --apply"
        typer.echo(zh if request.lang == "zh" else en)


def _looked_at(made: Made, lang: str) -> None:
    """Where nothing is wrong: what was looked at, so that silence is not taken for an answer."""
    from envtune.model import Outcome

    if made.plan.changes or made.plan.skipped:
        return
    kinds = (
        (Outcome.PASS, "passed", "通过"),
        (Outcome.NOTAPPLICABLE, "not applicable", "不适用"),
        (Outcome.WAIVED, "waived", "已豁免"),
    )
    outcomes = [*{finding.id: finding.outcome for finding in made.findings}.values()]
    told = [(outcomes.count(kind), en, zh) for kind, en, zh in kinds if kind in outcomes]
    if lang == "zh":
        typer.echo(f"共 {len(outcomes)} 项检查：" + "，".join(f"{count} 项{zh}" for count, _, zh in told))
    else:
        checks = "1 check: " if len(outcomes) == 1 else f"{len(outcomes)} checks: "
        typer.echo(checks + ", ".join(f"{count} {en}" for count, en, _ in told))


class _Prepared:
    """What is known before the host is read."""

    def __init__(self, catalogue: Any, checks: tuple[Check, ...], saved: Optional[Plan]) -> None:
        self.catalogue, self.checks, self.saved = catalogue, checks, saved


def _prepare(
    lang: str,
    words: List[str],
    faq: Optional[List[str]],
    ignore: Optional[List[str]],
    tags: Optional[List[str]],
    severity: str,
    catalog: Optional[List[Path]],
    plan: Optional[Path],
) -> _Prepared:
    from envtune import catalog as catalogue_module
    from envtune.cli.check import severity_named
    from envtune.fix import selection as fix_select

    catalogue = catalogue_module.load(tuple(catalog or []))
    for note in catalogue.notes:
        typer.echo(f"envtune: {note.to(lang)}", err=True)
    if plan is not None:
        saved = fix_select.read_plan(plan, catalogue)
        return _Prepared(catalogue, fix_select.checks_of(saved, catalogue), saved)
    wanted = fix_select.widen(words, faq or [], catalogue)
    if (words or faq) and not wanted:
        return _Prepared(catalogue, (), None)
    chosen = catalogue_module.select(catalogue.checks, wanted or None, ignore, tags, severity_named(severity))
    return _Prepared(catalogue, chosen, None)


def _target(python: Optional[str], pid: Optional[int], script: Optional[str], env_file: Optional[str]) -> TargetOptions:
    """The job. An env file that is not there yet is only where to write: no job reads it."""
    from envtune.cli.check import _absolute
    from envtune.job.target import TargetOptions

    there = env_file is not None and Path(env_file).exists()
    return TargetOptions(python, pid, _absolute(script), _absolute(env_file) if there else None)


def _fix_options(
    checks: tuple[Check, ...],
    peer: Optional[List[str]],
    hostfile: Optional[Path],
    wheels: Optional[Path],
    pid: Optional[int],
    owner: Optional[str],
    target: TargetOptions,
) -> FixOptions:
    import os

    from envtune.errors import UsageError
    from envtune.job.peers import read_peers
    from envtune.model import FixOptions

    if owner is not None and pid is None:
        raise UsageError(Message("--owner goes with --pid: the process to end"))
    if wheels is not None and not wheels.is_dir():
        raise UsageError(Message("--wheels {wheels}: not a directory", wheels=wheels))
    nodes = os.environ.get("SLURM_JOB_NODELIST", "") if any(check.family == "NET" for check in checks) else ""
    peers = read_peers(peer or [], hostfile, nodes)
    return FixOptions(peers, str(wheels.absolute()) if wheels else None, target.env_file, pid, owner)


def _request(
    prepared: _Prepared,
    target: TargetOptions,
    options: FixOptions,
    snapshot: Optional[Path],
    lang: str,
    format_: str,
    fail_on: str,
    wait: float,
) -> Request:
    from envtune.cli.check import severity_named
    from envtune.fix.apply import Request

    return Request(
        catalogue=prepared.catalogue,
        checks=prepared.checks,
        saved=prepared.saved,
        target=target,
        options=options,
        snapshot=snapshot,
        lang=lang,
        format=format_,
        floor=severity_named(fail_on),
        wait=wait,
    )
