"""`envtune fleet report`: what fails, who differs, what changed and who is missing, as the last audits found it."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional

from envtune.cli import options
from envtune.cli.fleet import common
from envtune.messages import N_

FORMATS = common.FORMATS
HELP = N_(
    """Report on all hosts.

Shows the results of each host's last collection: problems, differences, changes, and hosts that were not collected.

\b
Examples:
  envtune fleet report
  envtune fleet report --format html=fleet.html
  envtune fleet report -w node[1-8] --format csv

Exit status: the same as of envtune fleet audit.
"""
)


def command(
    nodes: Optional[str] = common.NODES,
    store: Optional[Path] = common.STORE,
    group: Optional[List[str]] = common.GROUP,
    fail_on: str = options.FAIL_ON,
    format_: List[str] = common.FORMAT,
    lang: Optional[str] = options.LANG,
    verbose: bool = common.VERBOSE,
    catalog: Optional[List[Path]] = options.CATALOG,
) -> None:
    from envtune.fleet.questions import overview

    lang = options.language(lang)
    wanted = options.outputs(format_, common.FORMATS)
    threshold = options.threshold_named(fail_on)
    opened, only, groups = common.open_for_reading(store), common.named_nodes(nodes), common.named_groups(group)
    common.require_hosts(opened, only, *groups)
    found = overview(opened, only, groups, common.wants_matrix(wanted))
    common.end_with(found, options.load_catalogue(catalog, lang), wanted, threshold, lang, verbose)
