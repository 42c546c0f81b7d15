"""The catalog: checks, FAQ entries and playbooks as data.

`load` returns the catalog of this process; files become rows in store.py (compiled, cached, or read from YAML through
yaml.py, schema.py and compile.py), rows become the types of model.py in entries.py.
"""

from __future__ import annotations

import sys
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Sequence

from envtune.catalog.entries import check_from, directory_options, faq_from, playbook_from, text_from, with_directories
from envtune.catalog.selection import select
from envtune.catalog.store import Compiled, open_catalogue
from envtune.context.registry import use_index
from envtune.messages import Text
from envtune.model import Check, Expectation, FaqEntry, Playbook

if TYPE_CHECKING:
    from envtune.catalog.codes import Codes

__all__ = ["Catalogue", "check_from", "load", "select"]


class _Later(Text):
    """A text of a check that is read when somebody asks for it."""

    __slots__ = ("_compiled", "_place")

    def __init__(self, compiled: Compiled, id_: str, name: str, number: int) -> None:
        self._compiled, self._place = compiled, (id_, name, number)

    def to(self, lang: str) -> str:
        """Return the text in `lang`."""
        id_, name, number = self._place
        value = self._compiled.words[id_][name]
        return text_from(value[number] if isinstance(value, list) else value).to(lang)


class Catalogue:
    """The loaded catalog; each kind is built on first access, sorted by id."""

    def __init__(self, compiled: Compiled, named: Sequence[Path] = ()) -> None:
        """`named` are the directories of `--catalog`, which the commands of their checks name, too."""
        self._compiled, self._named = compiled, tuple(named)

    @property
    def notes(self) -> tuple[Text, ...]:
        """Notes for the user about where this came from; for stderr."""
        return self._compiled.notes

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """Every check, whatever its status."""
        compiled = self._compiled
        checks = (check_from(row, partial(_Later, compiled, row["id"])) for row in compiled.short_checks)
        if not self._named:
            return tuple(checks)
        files = self.files("checks")
        return tuple(with_directories(check, files[check.id], self._named) for check in checks)

    @cached_property
    def expectations(self) -> Mapping[str, Sequence[Expectation]]:
        """What checks expect of a variable, and of a governor, by name; contexts are opened with it."""
        return _Expectations(self)

    @cached_property
    def faq(self) -> tuple[FaqEntry, ...]:
        """Every FAQ entry."""
        from envtune.catalog.signatures import literals

        literals.remember(self._compiled.literals)
        return tuple(faq_from(row) for row in self._compiled.rows("faq"))

    @cached_property
    def playbooks(self) -> tuple[Playbook, ...]:
        """Every playbook."""
        return tuple(playbook_from(row) for row in self._compiled.rows("playbooks"))

    @cached_property
    def fixable_checks(self) -> frozenset[str]:
        """The ids of the checks for which a playbook has a step that `envtune fix` carries out."""
        carried_out = (row for row in self.playbooks if any(step.kind != "instructions" for step in row.steps))
        return frozenset(check for playbook in carried_out for check in playbook.fixes)

    @cached_property
    def codes(self) -> Codes:
        """The dictionary of error codes."""
        from envtune.catalog.codes import Codes

        return Codes(self._compiled.rows("codes"))

    def with_checks(self, checks: Sequence[Check]) -> Catalogue:
        """Return the same catalog with other checks, as modified by a site's policy."""
        made = Catalogue(self._compiled, self._named)
        made.__dict__["checks"] = tuple(checks)  # where `cached_property` stores it
        return made

    def options_for(self, kind: str, id_: str) -> str:
        """Return the options that a command about this entry needs, such as `--catalog DIR`; usually none."""
        return directory_options(self.files(kind).get(id_, ""), self._named) if self._named else ""

    def files(self, kind: str) -> Mapping[str, str]:
        """Return the file each id comes from; `kind` is checks, faq or playbooks."""
        return {row["id"]: row["file"] for row in self._compiled.rows(kind)}


class _Expectations(Mapping[str, Sequence[Expectation]]):
    """What the checks of a catalog expect, gathered on first access: most runs do not need it."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    @cached_property
    def _found(self) -> Mapping[str, Sequence[Expectation]]:
        from envtune.resources.cpu.governor import governor_expectations
        from envtune.resources.environment.training_values import catalogue_expectations

        checks = self._catalogue.checks
        return {**catalogue_expectations(checks), **governor_expectations(checks)}

    def __getitem__(self, name: str) -> Sequence[Expectation]:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def _use_titles(rows: Sequence[Mapping[str, Any]]) -> None:
    """Register the headings of a site's families for text reports; a JSON report does not need them."""
    if rows or "envtune.catalog.families" in sys.modules:  # it may hold those of another catalog
        from envtune.catalog.families import use_titles

        use_titles(rows)


def load(extra: Sequence[Path] = ()) -> Catalogue:
    """Load the shipped catalog, the site's over it, and the directories of `--catalog` over both.

    Raises CatalogError with every diagnostic about the files, UsageError for a directory that does not exist.
    """
    compiled = open_catalogue(extra)
    use_index(compiled.registry)
    _use_titles(compiled.rows("families"))
    return _catalogue(compiled, tuple(extra))


@lru_cache(maxsize=4)
def _catalogue(compiled: Compiled, named: tuple[Path, ...]) -> Catalogue:
    return Catalogue(compiled, named)
