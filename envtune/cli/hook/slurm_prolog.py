"""`envtune hook slurm-prolog`: the Prolog of slurmd. cli/hook/quick.py answers it where it can, without typer."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional

import typer

from envtune.cli import options
from envtune.cli.hook import common
from envtune.messages import N_

HELP = N_(
    """Refuse a job on a host with problems.

For Prolog, as root. It runs no check but reads the last verdict of slurm-health. With problems, the node is drained and
the exit status is 20, which the script in docs/schedulers.md passes on to slurmd. If the verdict is missing or too old,
the job starts, or the host is checked now (--stale check).

\b
Examples:
  envtune hook slurm-prolog --dry-run
  envtune hook slurm-prolog --max-age 3600 --stale check --timeout 20

Exit status: 0 the job may start, 20 it must not, 2 usage error.
"""
)
MAX_AGE = typer.Option(
    1800.0, "--max-age", min=1, metavar="SECONDS", help=N_("How old the verdict may be, in seconds.")
)
STALE = typer.Option(
    "start", "--stale", metavar="ACTION", help=N_("Without such a verdict: start (the job) or check (now).")
)
FAIL_ON = typer.Option(
    None, "--fail-on", metavar="LEVEL", help=N_("Findings of this severity or higher (default: slurm-health's).")
)
SELECT = typer.Option(None, "--select", "-s", help=N_("Only these checks: ids or beginnings of ids."))
IGNORE = typer.Option(None, "--ignore", "-i", help=N_("Skip these checks: ids or beginnings of ids."))


def command(
    max_age: float = MAX_AGE,
    stale: str = STALE,
    fail_on: Optional[str] = FAIL_ON,
    select: Optional[List[str]] = SELECT,
    ignore: Optional[List[str]] = IGNORE,
    policy: Optional[str] = options.POLICY,
    profile: Optional[str] = options.PROFILE,
    catalog: Optional[List[Path]] = options.CATALOG,
    timeout: float = common.timeout(10, 300),
    node: str = common.NODE,
    scontrol: str = common.SCONTROL,
    state: Optional[str] = common.STATE,
    dry_run: bool = common.DRY_RUN,
    lang: Optional[str] = options.LANG,
) -> None:
    from envtune.cli.hook.quick import Words, run

    options.language(lang)
    options.require_choice("--stale", stale, ("start", "check"))
    chosen = (common.split(select), common.split(ignore), policy, profile, tuple(map(str, catalog or ())))
    words = Words(max_age, stale, common.fail_on_named(fail_on), *chosen, timeout, node, scontrol, state, dry_run)
    raise typer.Exit(run(words))
