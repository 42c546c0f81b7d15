"""`envtune test-catalog`: run the examples of a site's checks and FAQ entries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Optional

import typer

from envtune.cli import options
from envtune.messages import N_, Joined, Message, Text, listed, plural

if TYPE_CHECKING:
    from envtune.site.examples import Tested

HELP = N_(
    """Run the examples of a site's catalog.

Every file is loaded first, as `envtune check --catalog DIR` does. Each example of a check is a small host on which the
check must have the outcome under which it is listed: pass, fail, notapplicable or unknown. Each line of
output gives the file, the line, and what is missing or different.

\b
Example:
  envtune test-catalog /etc/envtune

Exit status: 0 all as expected, 1 something differs, 2 usage error or a file that does not load, 3 no example was run.
"""
)
DIRECTORY = typer.Argument(..., metavar="DIR", help=N_("Directory with checks/ and playbooks/, or with checks."))


def command(
    directory: Path = DIRECTORY,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
) -> None:
    from envtune.report.layout import shown
    from envtune.site.examples import run_examples

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    tested = run_examples(directory, options.load_catalogue([directory], lang))
    if format_ == "json":
        options.print_json(_data(tested, lang), 1)
    else:
        for problem in (*tested.problems, *tested.notes):
            # `file:line:column: ` in either language: editors read it
            typer.echo(shown(Joined((problem.place, problem.text), ": "), lang))
        typer.echo(shown(_summary(tested), lang))
    raise typer.Exit(_status(tested))


def _status(tested: Tested) -> int:
    if tested.problems:
        return 1
    return 0 if sum(tested.examples.values()) else options.NOT_READ


def _summary(tested: Tested) -> Text:
    entries, examples = tested.entries, sum(tested.examples.values())
    parts = [
        *([plural("{count} check", "{count} checks", entries["checks"])] if entries["checks"] else []),
        *([plural("{count} FAQ entry", "{count} FAQ entries", entries["faq"])] if entries["faq"] else []),
        *([plural("{count} playbook", "{count} playbooks", entries["playbooks"])] if entries["playbooks"] else []),
        plural("{count} example", "{count} examples", examples),
    ]
    counted = listed(parts)
    if tested.problems:
        return Message("FAILED: {counted}; {problems} not as expected", counted=counted, problems=len(tested.problems))
    if not examples:
        return Message("NOTHING TESTED: {counted}", counted=counted)
    return Message("OK: {counted}, all as expected", counted=counted)


def _data(tested: Tested, lang: str) -> dict[str, object]:
    rows = {
        name: [{"place": problem.place, "text": problem.text.to(lang)} for problem in problems]
        for name, problems in (("problems", tested.problems), ("notes", tested.notes))
    }
    return {"entries": dict(tested.entries), "examples": dict(tested.examples), **rows}
