"""`envtune fleet golden`: hosts that differ from the golden values of the site's policy."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional

from envtune.cli import options
from envtune.cli.fleet import common
from envtune.messages import N_

HELP = N_(
    """Show hosts that differ from the site's policy.

Compares the golden values (`facts`) of the policy with the facts of each host's last collection and applies waivers.

\b
Examples:
  envtune fleet golden
  envtune fleet golden --policy site.yaml --profile training

Exit status: 0 all hosts match the policy, 1 some differ, 2 usage error, 3 something is unknown.
"""
)


def command(
    nodes: Optional[str] = common.NODES,
    store: Optional[Path] = common.STORE,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
    verbose: bool = common.VERBOSE,
    catalog: Optional[List[Path]] = options.CATALOG,
    policy: Optional[str] = options.POLICY,
    profile: Optional[str] = options.PROFILE,
) -> None:
    from envtune.cli.policy.loading import load_with_policy
    from envtune.errors import UsageError
    from envtune.fleet.golden import against_policy, exit_code
    from envtune.messages import Message
    from envtune.report.fleet.golden import golden_data, golden_lines

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    loaded = load_with_policy(catalog, lang, policy, profile)
    if loaded.policy is None:
        raise UsageError(
            Message("no policy found; create one with envtune policy init, or specify one with --policy FILE")
        )
    opened, only = common.open_for_reading(store), common.named_nodes(nodes)
    common.require_hosts(opened, only)
    rows = against_policy(opened, loaded.catalogue.checks, only)
    if format_ == "json":
        options.print_json(golden_data(rows, lang), 1)
    else:
        settings = common.text_settings(common.plain(format_), lang, verbose)
        common.print_lines(golden_lines(rows, settings))
    common.end(exit_code(rows))
