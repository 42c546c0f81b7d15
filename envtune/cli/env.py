"""`envtune env`: the variables a job should get on this host, as lines to paste, source or hand to a launcher."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional

import typer

from envtune.cli import options
from envtune.messages import N_, Message

HELP = N_(
    """The variables this host's job should get: only what differs from what it gets now, each with its reason.

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
)
PROFILES = ("train", "debug")
PROFILE = typer.Option("train", "--profile", "-p", help=N_("train or debug."))
FORMAT = typer.Option("bash", "--format", "-f", help=N_("bash, fish, json, systemd or docker."))
SNAPSHOT = typer.Option(None, "--snapshot", help=N_("For a recorded host (directory or tar.gz)."))


def command(
    profile: str = PROFILE,
    format_: str = FORMAT,
    lang: Optional[str] = options.LANG,
    snapshot: Optional[List[Path]] = SNAPSHOT,
    python: Optional[str] = options.PYTHON,
    pid: Optional[int] = options.PID,
    script: Optional[str] = options.SCRIPT,
    env_file: Optional[str] = options.ENV_FILE,
) -> None:
    from envtune.cli.policy.loading import load_with_policy
    from envtune.context.open import open_context, open_host, resolve_target
    from envtune.fix.environment import advise
    from envtune.job.target import TargetOptions
    from envtune.resources.environment.render import FORMATS, render

    lang = options.language(lang)
    profile = profile_named(profile, PROFILES)
    options.require_choice("--format", format_, tuple(FORMATS))
    recorded = options.single_snapshot(snapshot)
    options.limit_reading(recorded, lang)
    host = open_host(recorded)
    target = resolve_target(host, TargetOptions(python, pid, script, env_file))
    catalogue = load_with_policy(None, lang).catalogue
    advice = advise(open_context(host, target, catalogue.expectations), profile, format_, catalogue)
    if format_ == "json":
        options.print_document(render(advice, format_, lang))
    else:  # paths in the encoding in which they are
        typer.echo(render(advice, format_, lang), nl=False)
    if not advice.settings:
        options.print_error(Message("nothing differs from the profile"), lang)


def profile_named(word: str, profiles: tuple[str, ...]) -> str:
    """Return the name of a profile; `training` is a former name of `train`. Raises UsageError."""
    name = "train" if word == "training" else word
    options.require_choice("--profile", name, profiles)
    return name
