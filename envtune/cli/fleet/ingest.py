"""`envtune fleet ingest`: snapshots that came another way than by ssh."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import List, Optional

import typer

from envtune.cli import options
from envtune.cli.fleet import common
from envtune.messages import N_

FORMATS = common.FORMATS
HELP = N_(
    """Check snapshots collected another way.

For hosts without ssh: air gap, cron, Kubernetes Job. The directory contains snapshots from envtune snapshot or the
collector (tar.gz or JSON) and frames (*.frame, collector option --frame); `-` reads frames from standard input. Each
host gets the name in its snapshot.

\b
Examples:
  envtune fleet ingest /srv/snapshots
  srun python3 -I collector.py --frame | envtune fleet ingest -

Exit status: the same as of envtune fleet audit.
"""
)
PLACE = typer.Argument(..., metavar="DIR|-", help=N_("A directory, a snapshot, or - for frames."))


def command(
    context: typer.Context,
    place: str = PLACE,
    store: Optional[Path] = common.STORE,
    group: Optional[List[str]] = common.GROUP,
    fail_on: str = options.FAIL_ON,
    format_: List[str] = common.FORMAT,
    lang: Optional[str] = options.LANG,
    verbose: bool = common.VERBOSE,
    catalog: Optional[List[Path]] = options.CATALOG,
    policy: Optional[str] = options.POLICY,
    profile: Optional[str] = options.PROFILE,
) -> None:
    from envtune.cli.policy.loading import load_with_policy
    from envtune.fleet.ingest import ingest
    from envtune.fleet.judge import Question
    from envtune.fleet.questions import overview
    from envtune.fleet.store.write import Writer
    from envtune.model import Severity

    lang = options.language(lang)
    wanted = options.outputs(format_, common.FORMATS)
    options.threshold_named(fail_on)
    loaded = load_with_policy(catalog, lang, policy, profile)
    threshold = options.threshold_named(loaded.fail_on(context, fail_on))
    question = Question(loaded.select(None, None, None, Severity.INFO), loaded.catalogue.expectations)
    writer = Writer(common.open_until_end(common.store_path(store)), "ingest", loaded.shown.get("file", ""))
    names: list[str] = []
    for record in ingest(place, sys.stdin.buffer, question):
        names.append(record.host)
        writer.add(record)
    writer.finish()
    found = overview(common.open_for_reading(store), names, common.named_groups(group), common.wants_matrix(wanted))
    common.end_with(found, loaded.catalogue, wanted, threshold, lang, verbose)
