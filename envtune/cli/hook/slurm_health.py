"""`envtune hook slurm-health`: the HealthCheckProgram of slurmd."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import List, Optional

import typer

from envtune.cli import options
from envtune.cli.check import SELECT
from envtune.cli.hook import common
from envtune.messages import N_

HELP = N_(
    """Check this host, and drain or resume its Slurm node.

For HealthCheckProgram, as root. A node with problems is drained with the reason "envtune: NET003,CANN007", and resumed
when these checks pass. A node that another user drained, or whose reason was changed, is left as it is. The verdict is
kept for slurm-prolog.

\b
Examples:
  envtune hook slurm-health --dry-run      print what would be done
  envtune hook slurm-health --select CPU,NET,CANN --fail-on critical

Exit status: 0 always, 2 usage error.
"""
)


def command(
    fail_on: Optional[str] = common.FAIL_ON,
    select: Optional[List[str]] = SELECT,
    ignore: Optional[List[str]] = options.IGNORE,
    tag: Optional[List[str]] = options.TAG,
    policy: Optional[str] = options.POLICY,
    profile: Optional[str] = options.PROFILE,
    catalog: Optional[List[Path]] = options.CATALOG,
    timeout: float = common.timeout(30, 55),
    node: str = common.NODE,
    scontrol: str = common.SCONTROL,
    state: Optional[str] = common.STATE,
    dry_run: bool = common.DRY_RUN,
    lang: Optional[str] = options.LANG,
) -> None:
    from envtune.cli.hook.judging import Question, judge
    from envtune.hook.node import Settings, health

    options.language(lang)
    named = common.fail_on_named(fail_on)
    question = Question(select or (), ignore or (), tag or (), policy, profile, catalog or (), named)
    settings = Settings(common.state_of(state), timeout, node=node, scontrol=scontrol, dry_run=dry_run)
    raise typer.Exit(health(settings, partial(judge, question)))
