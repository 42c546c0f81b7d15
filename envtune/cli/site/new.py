"""`envtune new`: the skeleton of a check, a playbook or an FAQ entry of a site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, List, Optional

import typer

from envtune.cli import options
from envtune.messages import N_, Message

if TYPE_CHECKING:
    from envtune.site.skeleton import Skeleton

HELP = N_(
    """Write a new check, playbook or FAQ entry.

The file is a skeleton that loads as it is: a check contains its probe's example, a playbook its step's. An
existing file is never overwritten.

\b
Examples:
  envtune new check SITE101 --probe sysctl.value --catalog site
  envtune new playbook raise-max-map-count --fixes SITE101 --catalog site
  envtune new faq S01 --fixes SITE101 --catalog site

Exit status: 0 success, 2 error.
"""
)
KINDS = ("check", "playbook", "faq")
KIND = typer.Argument(..., metavar="check|playbook|faq")
ID = typer.Argument(..., metavar="ID", help=N_("Id of the new entry, such as SITE101, raise-max-map-count or S01."))
NAME = typer.Option("", "--name", metavar="NAME", help=N_("Name of a check or FAQ entry, in lower case."))
PROBE = typer.Option("", "--probe", metavar="PROBE", help=N_("Probe that the check reads; see `envtune list probes`."))
STEP = typer.Option("", "--step", metavar="STEP", help=N_("Step of the playbook; see `envtune list steps`."))
FIXES = typer.Option("", "--fixes", metavar="ID", help=N_("The check to which the playbook or FAQ entry refers."))
CATALOG = typer.Option(None, "--catalog", help=N_("Directory of the catalog (default: the current one)."))


def command(
    kind: str = KIND,
    id_: str = ID,
    name: str = NAME,
    probe: str = PROBE,
    step: str = STEP,
    fixes: str = FIXES,
    catalog: Optional[Path] = CATALOG,
    lang: Optional[str] = options.LANG,
) -> None:
    from envtune.report.layout import shown
    from envtune.site.skeleton import place_of

    lang = options.language(lang)
    options.require_choice("new", kind, KINDS)
    directory = Path.cwd() if catalog is None else catalog
    if kind == "check":
        skeleton = _check(id_, name, probe)
    else:
        skeleton = _about_a_check(kind, id_, name, step, fixes, directory, lang)
    path = place_of(skeleton, directory)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(skeleton.text)
    except OSError as error:
        options.fail_to_write(str(path), error, lang)
    typer.echo(
        shown(Message("{path} written; next: envtune test-catalog {directory}", path=path, directory=directory), lang)
    )


def _check(id_: str, name: str, probe: str) -> Skeleton:
    from envtune.catalog.selection import unknown_name
    from envtune.context.registry import probe_names
    from envtune.site.skeleton import CHECK_PROBE, new_check

    try:
        return new_check(id_, name, probe or CHECK_PROBE)
    except KeyError:
        raise unknown_name(probe, probe_names(), ("probes",)) from None


def _about_a_check(kind: str, id_: str, name: str, step: str, fixes: str, directory: Path, lang: str) -> Skeleton:
    """Return a playbook or FAQ entry about the check that `fixes` names, else about the only one in the directory."""
    from envtune.catalog.forms import STEP_KINDS
    from envtune.catalog.selection import unknown_name
    from envtune.site.examples import checks_of
    from envtune.site.skeleton import new_faq, new_playbook, the_only_check

    layers: List[Path] = [directory] if any(directory.glob("**/*.yaml")) else []
    catalogue = options.load_catalogue(layers, lang)
    own = checks_of(directory, catalogue)
    named = [check for check in catalogue.checks if fixes.lower() in (check.id.lower(), check.name)]
    if fixes and not named:
        raise unknown_name(fixes, [check.id for check in catalogue.checks], ("checks",))
    if kind == "faq":
        about = named or (own if len(own) == 1 else [])
        return new_faq(id_, name, about[0].id if about else None)
    if step and step not in STEP_KINDS:
        raise unknown_name(step, STEP_KINDS, ("steps",))
    return new_playbook(id_, named[0] if named else the_only_check(own), step)
