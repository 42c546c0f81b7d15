"""`envtune env`: the variables a job should get on this host, as lines to paste, source or hand to a launcher."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Optional

import typer

from envtune.cli.options import fail, language
from envtune.messages import Bilingual

if TYPE_CHECKING:
    from envtune.context import Context
    from envtune.resources.environment.profile import Advice

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
        advice = advise(open_context(host, options), profile, format_)
    except EnvtuneError as error:
        fail(error.message, lang)
    sys.stdout.write(render(advice, format_, lang))
    if not advice.settings:
        en, zh = "nothing differs from the profile", "与该配置没有差异"
        typer.echo(f"envtune: {zh if lang == 'zh' else en}", err=True)


def advise(context: Context, profile: str, format_: str) -> Advice:
    """The settings of a profile in what the form can say, each with the failing checks that it was seen to cure."""
    from envtune.resources.environment.path_settings import advice as path_advice
    from envtune.resources.environment.profile import debug, train
    from envtune.resources.environment.render import SOURCES_SCRIPTS
    from envtune.resources.environment.simulate import environment_after, values

    found = debug(context) if profile == "debug" else train(context)
    settings = (*path_advice(context), *found.settings)
    after = environment_after(context, settings)
    if format_ not in SOURCES_SCRIPTS:
        settings = values(settings, after)
    claimed = {check for setting in settings for check in setting.checks}
    cures = _cures(context, claimed, after) if profile == "train" else set()
    judged = tuple(s._replace(checks=tuple(c for c in s.checks if c in cures)) for s in settings)
    return found._replace(settings=judged)


def _cures(context: Context, claimed: set[str], after: object) -> set[str]:
    """Of the checks named those that fail now and would not fail then."""
    from envtune.audit import examine
    from envtune.catalog import load
    from envtune.model import Outcome
    from envtune.resources.environment.simulate import cured

    failing = [
        check
        for check in load().checks
        if check.id in claimed and any(f.outcome is Outcome.FAIL for f in examine(check, context))
    ]
    return set(cured(context, failing, after))  # type: ignore[arg-type]
