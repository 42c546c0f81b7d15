"""`envtune fleet drift`: facts in which hosts of a kind, a job or a named group differ."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional

from envtune.cli import options
from envtune.cli.fleet import common
from envtune.messages import N_, Message

HELP = N_(
    """Show facts that differ between hosts.

Prints the most common value of each fact and the hosts with another one. Compares hosts of the same NPU, architecture
and system, and hosts of the same job; --group compares the hosts you specify.

\b
Examples:
  envtune fleet drift
  envtune fleet drift --group node[1-8] --group node[9-16]   two HCCL domains
  envtune fleet drift --group @slurm:train                   a partition, as a ClusterShell group

Exit status: 0 no differences, 1 differences, 2 usage error.
"""
)


def command(
    nodes: Optional[str] = common.NODES,
    store: Optional[Path] = common.STORE,
    group: Optional[List[str]] = common.GROUP,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
    verbose: bool = common.VERBOSE,
) -> None:
    from envtune.fleet.questions import differences
    from envtune.report.fleet.data import drift_data
    from envtune.report.fleet.text import drift_lines

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    opened, only, groups = common.open_for_reading(store), common.named_nodes(nodes), common.named_groups(group)
    common.require_hosts(opened, only, *groups)
    found = differences(opened, only, groups)
    differs = any(one.differences for one in found)
    if format_ == "json":
        options.print_json(drift_data(found, lang), 1)
    else:
        nothing = Message("no differences between the collected hosts")
        settings = common.text_settings(common.plain(format_), lang, verbose)
        common.print_lines(drift_lines(found, settings) if differs else settings.lines(nothing))
    common.end(1 if differs else 0)
