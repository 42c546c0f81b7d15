"""The catalog as the site's policy wants it: what every command starts from that runs or shows checks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Mapping, Optional, Sequence, TypeVar, Union

from envtune.cli import options
from envtune.messages import Message
from envtune.policy.find import OPTION, find_policy
from envtune.records import NamedTuple

if TYPE_CHECKING:
    import typer

    from envtune.catalog import Catalogue
    from envtune.model import Check, Severity
    from envtune.policy.read import Policy

T = TypeVar("T")


class Selectors(NamedTuple):
    """Which checks run: what the command line says, or else the policy."""

    select: Sequence[str]
    ignore: Sequence[str]
    tags: Sequence[str]


class Loaded(NamedTuple):
    """A catalog, and the policy it follows, if there is one."""

    catalogue: Catalogue
    policy: Optional[Policy]

    @property
    def shown(self) -> Mapping[str, str]:
        """What a report says about the policy."""
        return {} if self.policy is None else {"file": self.policy.file, "profile": self.policy.profile}

    def fail_on(self, context: typer.Context, given: str) -> str:
        """Return the severity from which on the exit status is 1: `--fail-on`, the policy's, or the default."""
        named = any(parameter.name == "fail_on" for parameter in options.given_parameters(context))
        return given if self.policy is None or named else self.policy.last("fail_on") or given

    def selectors(
        self,
        select: Optional[Sequence[str]],
        faq: Optional[Sequence[str]],
        ignore: Optional[Sequence[str]],
        tags: Optional[Sequence[str]],
    ) -> Selectors:
        """Return what the command line selects; where it selects nothing, what the policy does."""
        if self.policy is None or select or faq or tags:
            return Selectors(select or (), ignore or (), tags or ())
        last = self.policy.last
        return Selectors(last("select"), (*(ignore or ()), *last("ignore")), last("tags"))

    def select(
        self,
        select: Optional[Sequence[str]],
        ignore: Optional[Sequence[str]],
        tags: Optional[Sequence[str]],
        floor: Severity,
    ) -> tuple[Check, ...]:
        """Return the checks to run. Raises UsageError as `catalog.select` does."""
        from envtune.catalog import select as select_checks

        chosen = self.selectors(select, None, ignore, tags)
        return select_checks(self.catalogue.checks, chosen.select, chosen.ignore, chosen.tags, floor)

    def explained(self, entry: T) -> Union[T, Check]:
        """Return the entry to explain: of the checks of golden values one about all of them."""
        if self.policy is None:
            return entry
        from envtune.policy.golden import ID, overview

        return overview(self.policy.facts) if getattr(entry, "id", "") == ID else entry

    def words(self, given: Optional[str]) -> list[str]:
        """Return the option with which root goes on with the same policy, where the command line names none."""
        if self.policy is None or given is not None:
            return []
        return [OPTION, os.path.abspath(self.policy.file)]


def load_with_policy(
    directories: Optional[Sequence[Path]],
    lang: str,
    policy: Optional[str] = None,
    profile: Optional[str] = None,
    named_by: str = OPTION,
) -> Loaded:
    """Return the catalog under the policy that is in use; `policy` and `profile` are what the command line names.

    `named_by`: what `policy` is the value of.

    Raises PolicyError for a policy that is wrong or that root must not trust, UsageError for one that is not there.
    """
    catalogue, place = options.load_catalogue(directories, lang), find_policy(policy, os.environ, named_by)
    if place is None:
        if profile is not None:
            from envtune.errors import UsageError

            raise UsageError(Message("--profile {name}: no policy found; specify one with --policy", name=profile))
        return Loaded(catalogue, None)
    from envtune.policy.apply import apply_policy
    from envtune.policy.find import policy_content
    from envtune.policy.read import read_policy

    found = read_policy(policy_content(place), place.path, catalogue.checks, profile)
    return Loaded(apply_policy(found, catalogue), found)
