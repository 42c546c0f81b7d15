"""`envtune diff`: two hosts, recorded or this one, fact by fact and check by check."""

from __future__ import annotations

from typing import TYPE_CHECKING, List, Optional

import typer

from envtune.cli import options
from envtune.messages import N_, Message

if TYPE_CHECKING:
    from envtune.cli.hosts import Progress, Question
    from envtune.model import Report

HELP = N_(
    """Compare two hosts: facts, job settings and checks.

A host is a recorded one, or `-` for this one; without a second one it is compared with this host. What is unknown on
one side is listed as such, not as a difference. Host names, addresses, process ids and times are not compared.
Examples:

\b
  envtune diff good.tar.gz bad.tar.gz
  envtune diff golden.tar.gz             this host with a recorded one
  envtune diff a.json b.json -s CANN     only the checks of a family

Exit status: 0 no differences, 1 differences, 2 usage, 3 no known differences, but something could not be compared.
"""
)
HERE = "-"  # this host
LEFT = typer.Argument(..., metavar="HOST", help=N_("A recorded host (directory, tar.gz, JSON), or - for this one."))
RIGHT = typer.Argument(HERE, metavar="[HOST]", help=N_("The other host; default: this one."))
SELECT = typer.Option(None, "--select", "-s", help=N_("Only these: ids, id prefixes, names (comma or repeat)."))
VERBOSE = typer.Option(False, "--verbose", "-v", help=N_("All that the checks found."))


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
    catalog: Optional[List[str]] = options.CATALOG,
) -> None:
    from pathlib import Path

    from envtune.catalog import select as select_checks
    from envtune.cli.hosts import Progress, Question
    from envtune.compare.difference import difference
    from envtune.compare.hosts import labelled
    from envtune.context.open import UNNAMED
    from envtune.errors import UsageError

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    if left == right:
        raise UsageError(Message("both are the same host: {host}", host=left))
    catalogue = options.load_catalogue([Path(path) for path in catalog or ()], lang)
    checks = select_checks(catalogue.checks, select, ignore, tag, options.severity_named(severity))
    question = Question(UNNAMED, checks, catalogue.expectations)
    progress = Progress(2, lang)
    here = Message("this host").to(lang)
    read = [(here if word == HERE else word, _report(word, question, progress)) for word in (left, right)]
    progress.end()
    found = difference(*labelled(read))
    if format_ == "json":
        from envtune.report.comparison.difference_json import difference_data

        options.print_json(difference_data(found, lang), 1)
    else:
        from envtune.report.comparison.difference_text import render

        width, colour = options.terminal_width(), options.colour_wanted()
        typer.echo(render(found, lang, width=width, colour=colour, verbose=verbose))
    options.exit_now(found.exit_code())


def _report(word: str, question: Question, progress: Progress) -> Report:
    from pathlib import Path

    from envtune.cli.hosts import check_here, check_recorded

    return check_here(question, progress) if word == HERE else check_recorded(Path(word), question, progress)
