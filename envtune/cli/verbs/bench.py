"""`envtune bench`: what a fix does to the time that work takes, measured with and without it in turn."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional

import typer

from envtune.cli import options
from envtune.messages import N_, Message

HELP = N_(
    """Measure whether a fix makes work faster.

Applies and undoes the fix in turn, and measures the same work each time, until the difference is clear: 8 to 20 pairs.
The work is a built-in measurement, or a command after --. Afterwards everything is as before; --keep keeps a fix that
helps.

\b
Examples:
  envtune bench IMG001 --python env/bin/python       decode and resize images with the Pillow of that Python
  envtune bench CPU001 --keep                        a loop of one thread; the governor stays if it helps
  envtune bench ENV001 -- python train.py --steps 20 your own command
  envtune fix IMG001 --apply --bench                 the same from fix: keep it only if it helps

Exit status: 0 it helps, 1 it does not, 2 usage error, 3 nothing to measure.
"""
)
CONTEXT = {"ignore_unknown_options": False}
IDS = typer.Argument(..., metavar="IDS", help=N_("The checks whose fixes are measured together (CPU001,CPU002)."))
ARGV = typer.Argument(None, metavar="[-- CMD...]", help=N_("A command to measure; it must end with status 0."))
PROBE = typer.Option(
    None, "--probe", metavar="NAME", help=N_("images, opencv, launch or storage (default: what fits the checks).")
)
DATA = typer.Option(None, "--data", metavar="DIR", help=N_("Images, or the data set that storage reads."))
KEEP = typer.Option(False, "--keep", help=N_("Keep the changes if they help."))


def command(
    ids: str = IDS,
    argv: Optional[List[str]] = ARGV,
    probe_name: Optional[str] = PROBE,
    data: Optional[Path] = DATA,
    keep_helpful: bool = KEEP,
    yes: bool = typer.Option(False, "--yes", "-y", help=N_("Do not ask.")),
    yes_confirm: bool = typer.Option(
        False, "--yes-confirm", help=N_("Also apply changes that need separate confirmation or that running jobs use.")
    ),
    change: Optional[List[str]] = typer.Option(None, "--change", help=N_("Only these changes of the plan (C01,C02).")),
    wheels: Optional[Path] = typer.Option(
        None, "--wheels", help=N_("Directory with wheels, for hosts without a network.")
    ),
    python: Optional[str] = options.PYTHON,
    env_file: Optional[str] = options.ENV_FILE,
    wait: float = options.WAIT,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
    catalog: Optional[List[Path]] = options.CATALOG,
) -> None:
    from envtune.cli.fix import Dialogue, given_values, split_words
    from envtune.cli.verbs.measuring import Bench
    from envtune.context.open import open_host
    from envtune.fix.consent import Consent
    from envtune.fix.plan import named_options
    from envtune.fix.prepare import prepare
    from envtune.fix.selection import choose_checks
    from envtune.model import Severity

    lang = options.language(lang)
    options.require_choice("--format", format_, options.FORMATS)
    catalogue = options.load_catalogue(catalog, lang)
    checks = choose_checks(catalogue, split_words([ids]), (), (), (), Severity.INFO)
    host = open_host(None)
    target, fix_options = named_options(host, given_values(python, None, None, env_file, wheels, None, ()))
    consent = Consent(split_words([ids]), split_words(change, upper=True), yes_confirm, False, options.is_interactive())
    prepared = prepare(host, target, checks, catalogue, fix_options).with_only(consent.changes)
    dialogue = Dialogue(lang, format_, yes, [], False)
    dialogue.report_interrupted(True)
    if not prepared.plan.changes:
        dialogue.print_prepared(prepared)
        options.print_error(Message("nothing to measure: there are no changes to make"), lang)
        raise typer.Exit(options.NOT_READ)
    bench = Bench(lang, probe=probe_name, data=data, argv=argv or (), keep=keep_helpful, yes=yes, format_=format_)
    status = dialogue.apply(prepared, consent, None, wait, bench)
    if bench.compared is None:
        raise typer.Exit(status)
    raise typer.Exit(0 if bench.compared.verdict.value == "faster" else 1)
