"""`envtune env`: the variables a job should get on this host, as lines to paste, source or hand to a launcher."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional

import typer

from envtune.cli import options
from envtune.messages import N_, Message

HELP = N_(
    """Print the job variables to change.

Only what differs from what the job gets now, each with its reason; nothing is changed.

\b
Examples:
  eval "$(envtune env)"                          this shell, for training
  eval "$(envtune env --profile debug)"          this shell, for a debugging run
  envtune env --format fish | source             the same in fish
  envtune env --script train.sh                  for what a launch script sets
  envtune env --format systemd > envtune.conf    a drop-in for the unit that starts the job
  envtune env --format docker > job.env          for docker run --env-file (which cannot unset)
  envtune fix ENV --apply                        write them to a file instead

Variables set on purpose (HCCL_WHITELIST_DISABLE=0 with a whitelist file) are kept and listed.
"""
)
FORMATS = ("bash", "fish", "json", "systemd", "docker")  # those of resources/environment/render.py
PROFILES = ("train", "debug", "none")
PROFILE = typer.Option("train", "--profile", "-p", help=N_("train, debug or none."))
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
    from envtune.resources.environment.render import render

    lang = options.language(lang)
    profile = profile_named(profile, lang)
    options.require_choice("--format", format_, FORMATS)
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


def profile_named(word: str, lang: str) -> str:
    """Return the name of a profile; `training`, a former name of `train`, with a hint. Raises UsageError."""
    if word == "training":
        options.print_error(Message("--profile training: renamed to train"), lang)
        return "train"
    options.require_choice("--profile", word, PROFILES)
    return word
