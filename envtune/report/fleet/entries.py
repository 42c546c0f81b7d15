"""What the catalog says about a check that a store names: its title, and how its findings are fixed."""

from __future__ import annotations

from typing import Mapping, Optional

from envtune.catalog import Catalogue
from envtune.messages import Literal, Text
from envtune.records import NamedTuple


class CheckEntry(NamedTuple):
    """A check as a report on many hosts names it. `fix` is the command that fixes it on a host, if there is one."""

    title: Text
    remedy: Optional[Text]
    fix: str


class Entries:
    """The checks of a catalog by id; one that it does not know goes by its id."""

    def __init__(self, catalogue: Catalogue) -> None:
        automatic = [playbook for playbook in catalogue.playbooks if playbook.safety != "manual"]
        fixed = {identifier for playbook in automatic for identifier in playbook.fixes}
        self._found: Mapping[str, CheckEntry] = {
            check.id: CheckEntry(
                check.title, check.remedy, f"envtune fix {check.id} --apply" if check.id in fixed else ""
            )
            for check in catalogue.checks
        }

    def __getitem__(self, identifier: str) -> CheckEntry:
        return self._found.get(identifier) or CheckEntry(Literal(identifier), None, "")
