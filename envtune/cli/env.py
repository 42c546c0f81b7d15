"""`envtune env`: the variables a job should get on this host, as lines to paste, source or hand to a launcher."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Optional

import typer

from envtune.cli.options import fail, language
from envtune.messages import Bilingual

if TYPE_CHECKING:
    from envtune.catalog import Catalogue
    from envtune.context import Context
    from envtune.resources.environment.profile import Advice, Setting

HELP = """The variables this host's job should get: only what differs from what it gets now, each with its reason.

Changes nothing; prints lines. Examples:

\b
  eval "$(envtune env)"                          this shell, for training
  eval "$(envtune env --profile debug)"          this shell, for a run that is to show where it fails
  envtune env --format fish | source             the same in fish
  envtune env --script train.sh                  what a launch script lacks
  envtune env --format systemd > envtune.conf    a drop-in for the unit that starts the job
  envtune env --format docker > job.env          for docker run --env-file (cannot unset; says so)
  envtune fix ENV --apply                        write them to a file instead

What sets a variable on purpose (HCCL_WHITELIST_DISABLE=0 with a whitelist file) is left and named.
"""
PROFILES = ("train", "debug")


def command(
    profile: str = typer.Option("train", "--profile", "-p", help="train or debug."),
    format_: str = typer.Option("bash", "--format", "-f", help="bash, fish, json, systemd or docker."),
    lang: Optional[str] = typer.Option(None, "--lang", help="en or zh (default: your locale)."),
    snapshot: Optional[Path] = typer.Option(None, "--snapshot", help="For a recorded host (directory or tar.gz)."),
    python: Optional[str] = typer.Option(None, "--python", help="The job's Python."),
    pid: Optional[int] = typer.Option(None, "--pid", help="A running job."),
    script: Optional[str] = typer.Option(None, "--script", help="The job's launch script."),
    env_file: Optional[str] = typer.Option(None, "--env-file", help="The job's variables, KEY=VALUE lines."),
) -> None:
    from envtune.catalog import load
    from envtune.cli.check import _absolute, open_host
    from envtune.context.open import open_context
    from envtune.errors import EnvtuneError
    from envtune.job.target import TargetOptions
    from envtune.resources.environment.render import FORMATS, render

    lang = language(lang)
    for name, value, known in (("--profile", profile, PROFILES), ("--format", format_, tuple(FORMATS))):
        if value not in known:
            fail(
                Bilingual(f"{name} {value}: one of {', '.join(known)}", f"{name} {value}：可选 {'、'.join(known)}"),
                lang,
            )
    try:
        options = TargetOptions(python, pid, _absolute(script), _absolute(env_file))
        host, options = open_host(snapshot, options)
        catalogue = load()
        advice = advise(open_context(host, options, catalogue.expectations), profile, format_, catalogue)
    except EnvtuneError as error:
        fail(error.message, lang)
    sys.stdout.write(render(advice, format_, lang))
    if not advice.settings:
        en, zh = "nothing differs from the profile", "与该配置没有差异"
        typer.echo(f"envtune: {zh if lang == 'zh' else en}", err=True)


def advise(context: Context, profile: str, format_: str, catalogue: Optional[Catalogue] = None) -> Advice:
    """Return the settings of a profile in what the form can say, each with the failing checks that it helps to fix."""
    from envtune.catalog import load
    from envtune.resources.environment.path_settings import advice as path_advice
    from envtune.resources.environment.profile import debug, train
    from envtune.resources.environment.render import SOURCES_SCRIPTS
    from envtune.resources.environment.simulate import environment_after, values

    advice = debug(context) if profile == "debug" else train(context)
    settings = (*path_advice(context), *advice.settings)
    if format_ not in SOURCES_SCRIPTS:
        settings = values(settings, environment_after(context, settings))
    if profile == "train":
        settings = _with_fixed_checks(context, settings, catalogue or load())
    return advice._replace(settings=settings)


def _with_fixed_checks(context: Context, settings: tuple[Setting, ...], catalogue: Catalogue) -> tuple[Setting, ...]:
    """Return the settings with the checks that fail now, would not fail then, and that the setting helps to fix."""
    from envtune.audit import examine
    from envtune.model import Outcome
    from envtune.resources.environment.simulate import attribute, environment_after, fixed_checks

    exporting = [p for p in catalogue.playbooks if any(step.kind == "environment.export" for step in p.steps)]
    fixable = {check for playbook in exporting for check in playbook.fixes}
    failing = [
        check
        for check in catalogue.checks
        if check.id in fixable and any(finding.outcome is Outcome.FAIL for finding in examine(check, context))
    ]
    fixed = fixed_checks(context, failing, environment_after(context, settings), examine)
    return attribute(context, settings, [check for check in failing if check.id in fixed], examine)
