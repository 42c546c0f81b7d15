"""`envtune fleet undo`: undo a run of `envtune fleet fix` on every host that it changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import typer

from envtune.cli import options
from envtune.cli.fleet import audit, common
from envtune.cli.fleet.fix import run_data, show_run, way_of
from envtune.messages import N_, Message, plural

if TYPE_CHECKING:
    from envtune.fleet.store.fixes import Fixes

HELP = N_(
    """Undo a run of envtune fleet fix.

On every host that it changed, by the journal there: every byte as it was. What somebody has changed since is left
alone, unless --force. Without RUN the runs are listed.

\b
Examples:
  envtune fleet undo
  envtune fleet undo fleet-20260102-030405

Exit status: 0 undone, 1 something is left, 2 usage error, 3 a host gave no answer.
"""
)
RUN = typer.Argument(None, metavar="[RUN]", help=N_("The run to undo."))
YES = typer.Option(False, "--yes", "-y", help=N_("Do not ask."))
FORCE = typer.Option(False, "--force", help=N_("Also undo what others changed since; a copy of it is kept."))
USER = typer.Option(None, "--user", metavar="NAME", help=N_("Log in as this user, not as the run did."))
SSH_OPTIONS = typer.Option(None, "--ssh-options", metavar="WORDS", help=N_("Other options for ssh than the run had."))


def command(
    run: Optional[str] = RUN,
    yes: bool = YES,
    force: bool = FORCE,
    user: Optional[str] = USER,
    ssh_options: Optional[str] = SSH_OPTIONS,
    fanout: int = audit.FANOUT,
    store: Optional[Path] = common.STORE,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
    verbose: bool = common.VERBOSE,
) -> None:
    from envtune.errors import require_package
    from envtune.fleet.ssh import require_options
    from envtune.fleet.store.fixes import Fixes

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    require_package("ClusterShell")
    require_options(ssh_options or "")
    path = common.store_path(store)
    fixes = Fixes(common.open_until_end(path, create=False))
    settings = common.text_settings(common.plain("text"), lang, verbose)
    if run is None:
        common.end(_list(fixes, format_ == "json", settings))
    given = {"user": user, "options": ssh_options}
    common.end(_undo(fixes, path, run, fanout, {k: v for k, v in given.items() if v}, yes, force, format_, settings))


def _list(fixes: Fixes, as_json: bool, settings: Any) -> int:
    """Print every run with its hosts."""
    runs = fixes.runs()
    if as_json:
        options.print_json([run_data(run, fixes.hosts(run), settings.lang) for run in runs], 1)
        return 0
    if not runs:
        typer.echo(settings.to(Message("the store has no run of envtune fleet fix")))
    for run in runs:
        show_run(run, fixes.hosts(run), settings)
    return 0


def _undo(
    fixes: Fixes,
    path: Path,
    name: str,
    fanout: int,
    given: dict[str, Any],
    yes: bool,
    force: bool,
    format_: str,
    settings: Any,
) -> int:
    from envtune.errors import UsageError
    from envtune.fleet.fix.folder import RunFolder
    from envtune.fleet.fix.playbook import find_ansible
    from envtune.fleet.fix.rollout import Way
    from envtune.fleet.fix.undo import hosts_to_undo, reconcile_run, undo
    from envtune.fleet.ssh import Ssh
    from envtune.trust.programs import resolve_program

    run, ansible = fixes.named(name), find_ansible()
    folder = RunFolder(path, run.name)
    if folder.in_use:
        raise UsageError(Message("run {run} is under way: end it first", run=run.name))
    run = run._replace(reach={**run.reach, **given})
    way = way_of(run, Way(Ssh(fanout=fanout, path=resolve_program("ssh"))))
    if run.ended is None:
        reconcile_run(fixes, run, path, way)
    hosts = hosts_to_undo(fixes, run)
    if not hosts:
        raise UsageError(Message("run {run} has nothing to undo", run=run.name))
    if not _agrees(len(hosts), yes, settings):
        return options.USAGE
    undo(fixes, run, folder, ansible, way, force, lambda: None)
    folder.release()
    return _report(fixes, name, format_ == "json", settings)


def _report(fixes: Fixes, name: str, as_json: bool, settings: Any) -> int:
    """Print how the hosts of the run are now, and return the exit status."""
    from envtune.fleet.fix.stages import BEGUN, WRITTEN

    run = fixes.named(name)
    hosts = fixes.hosts(run)
    if as_json:
        options.print_json(run_data(run, hosts, settings.lang), 1)
    else:
        show_run(run, hosts, settings)
    left = [host.state for host in hosts if host.state in WRITTEN]
    return 0 if not left else options.NOT_READ if BEGUN in left else 1


def _agrees(count: int, yes: bool, settings: Any) -> bool:
    if yes:
        return True
    if not options.is_interactive():
        text = Message("envtune: hosts to undo: {count}; no terminal to ask on: use --yes", count=count)
        typer.echo(settings.to(text), err=True)
        return False
    question = plural("Undo the run on {count} host?", "Undo the run on {count} hosts?", count)
    return typer.confirm(question.to(settings.lang), default=False, err=True)
