"""`envtune diff`: two hosts, recorded or this one, fact by fact and check by check."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, List, Mapping, Optional, Sequence

import typer

from envtune.cli import options
from envtune.messages import N_, Message

if TYPE_CHECKING:
    from envtune.cli.hosts.several import Question
    from envtune.compare.difference import Difference

HELP = N_(
    """Compare two hosts.

Facts, job settings and checks are compared. Each host is a recorded one, or `-` for this host, which is the default
for the second. What is unknown on one side is listed as such, not as a difference. A host's own name
and addresses, process ids and times are not compared; of a job's settings MASTER_ADDR always is.

\b
Examples:
  envtune diff good.tar.gz bad.tar.gz
  envtune diff golden.tar.gz             this host with a recorded one
  envtune diff a.json b.json -s CANN     only the checks of a family

Exit status: 0 no differences, 1 differences, 2 usage error, 3 no known differences, but something could not
be compared.
"""
)
HERE = "-"  # this host
LEFT = typer.Argument(..., metavar="HOST", help=N_("A recorded host (directory, tar.gz, JSON), or - for this one."))
RIGHT = typer.Argument(HERE, metavar="[HOST]", help=N_("The other host; default: this one."))
SELECT = typer.Option(
    None,
    "--select",
    "-s",
    help=N_("Run only these checks: ids, id prefixes, names or tags (comma-separated or repeated)."),
)
VERBOSE = typer.Option(False, "--verbose", "-v", help=N_("Everything the checks found."))


def command(
    left: str = LEFT,
    right: str = RIGHT,
    select: Optional[List[str]] = SELECT,
    ignore: Optional[List[str]] = options.IGNORE,
    tag: Optional[List[str]] = options.TAG,
    severity: str = options.SEVERITY,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
    verbose: bool = VERBOSE,
    catalog: Optional[List[Path]] = options.CATALOG,
    policy: Optional[str] = options.POLICY,
    profile: Optional[str] = options.PROFILE,
) -> None:
    from envtune.cli.hosts.several import Question
    from envtune.cli.policy.loading import load_with_policy
    from envtune.context.open import UNNAMED

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    loaded = load_with_policy(catalog, lang, policy, profile)
    checks = loaded.select(select, ignore, tag, options.severity_named(severity))
    found = _compared((left, right), Question(UNNAMED, checks, loaded.catalogue.expectations), lang)
    _print(found, format_, lang, verbose, loaded.shown)
    options.exit_now(found.exit_code())


def _are_same(left: str, right: str) -> bool:
    """Return whether one host is named twice, which is no mistake: a script compares what it is given."""
    if HERE in (left, right):
        return left == right
    try:
        return os.path.samefile(left, right)
    except OSError:
        return False  # it is reported where it is read


def _compared(words: Sequence[str], question: Question, lang: str) -> Difference:
    """Check both hosts and return what differs; raises SnapshotError and UsageError."""
    from envtune.cli.hosts.several import Progress, check_here, check_recorded
    from envtune.compare.difference import difference
    from envtune.compare.hosts import labelled

    progress = Progress(2, lang)
    here = Message("this host").to(lang)
    read = [
        (here, check_here(question, progress))
        if word == HERE
        else (word, check_recorded(Path(word), question, progress))
        for word in (words[:1] if _are_same(*words) else words)
    ]
    if len(read) < len(words):
        options.print_error(Message("both are the same host: {host}", host=words[0]), lang)
        read *= 2
    return difference(*labelled(read))


def _print(found: Difference, format_: str, lang: str, verbose: bool, policy: Mapping[str, str]) -> None:
    if format_ == "json":
        from envtune.report.comparison.difference_json import difference_data

        options.print_json({**difference_data(found, lang), **({"policy": dict(policy)} if policy else {})}, 1)
        return
    from envtune.report.comparison.difference_text import render

    width, colour = options.terminal_width(), options.colour_wanted()
    typer.echo(render(found, lang, width=width, colour=colour, verbose=verbose))
    if policy:
        from envtune.report.policy_text import policy_file

        typer.echo("\n".join(policy_file(policy, lang, width)))
