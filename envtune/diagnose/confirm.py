"""The host that a diagnosis is confirmed on: this one, or a recorded one. It is read on first use."""

from __future__ import annotations

import shlex
from functools import cached_property
from typing import Any, Mapping, Optional, Sequence

from envtune.audit import FindFixes, audit
from envtune.audit.applicability import excluded
from envtune.catalog import Catalogue
from envtune.context import Context
from envtune.context.open import open_context, resolve_target
from envtune.diagnose.past_fixes import PastFix, fixed_checks, mark_fixed
from envtune.executor.state import state_directory
from envtune.host import Host, LocalHost
from envtune.job.target import TargetOptions
from envtune.model import Fact, Finding, Outcome

_VISIBLE = ("ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES")


class ConfirmingHost:
    """Runs the confirming checks, and knows what `envtune fix` has fixed there.

    With `check` False only the variables of a named job are read. `ran_with` are the variables of the job if envtune
    ran it itself; `find_fixes` plans what would fix a finding. Raises UsageError if `target` names something that is
    not on the host.
    """

    def __init__(
        self,
        host: Optional[Host],
        target: TargetOptions,
        catalogue: Catalogue,
        *,
        check: bool = True,
        ran_with: Optional[Mapping[str, str]] = None,
        find_fixes: Optional[FindFixes] = None,
    ) -> None:
        self.check = check
        self._host = host or LocalHost()
        self._target = resolve_target(self._host, target)
        self._catalogue, self._ran_with, self._find_fixes = catalogue, ran_with, find_fixes

    @property
    def name(self) -> str:
        """The host's name."""
        return self._host.name

    @property
    def target_options(self) -> str:
        """The options that name the job, for a command to type on this host."""
        if not self._host.live:
            return ""
        return shlex.join(self._target.words)

    def findings(self, ids: Sequence[str]) -> Sequence[Finding]:
        """Return what these checks find now; `fixed` for what an envtune run has fixed."""
        checks = [check for check in self._catalogue.checks if check.id in ids]
        return mark_fixed(audit(checks, self._context), self.past_fixes())

    def fixable(self, findings: Sequence[Finding]) -> Optional[bool]:
        """Return whether `envtune fix` would change something here about these findings; None if nobody plans fixes."""
        if self._find_fixes is None:
            return None
        failed = [finding for finding in findings if finding.outcome is Outcome.FAIL]
        if not failed:
            return False
        fixes = self._find_fixes(self._context, failed)
        return bool(fixes.checks or fixes.elsewhere)

    def holds(self, when: Mapping[str, Any]) -> Optional[tuple[Fact, ...]]:
        """Return the facts that `when` refers to, None if it does not hold or one of them is unknown."""
        facts = self._context.facts
        return tuple(facts[name] for name in when) if excluded(when, facts)[0] is None else None

    @property
    def numbers_devices(self) -> bool:
        """Whether a process of the job numbers devices like the host: it sees all of them, and not in a container."""
        variables = self._context.target.environment.variables
        if variables is None or self.holds({"container": False}) is None:
            return False
        return not any(variables.get(name) for name in _VISIBLE)

    def past_fixes(self) -> Mapping[str, PastFix]:
        """Return what was fixed according to this host's journal; a recorded host has none."""
        return self._past_fixes

    def concerns(self, host: str) -> bool:
        """Return whether a failure on `host` can be confirmed here: it is this host, or a recorded one was named."""
        if not self._host.live:
            return True
        names = {self.name, *(address for face in self._host.interfaces() for address in face.addresses)}
        short = {name.split(".")[0] if not name[:1].isdecimal() else name for name in names}
        return host.lower() in {name.lower() for name in names | short}

    def environment(self) -> str:
        """Return the variables of the named or recorded job, one per line; empty if no job was named."""
        variables = self._ran_with
        if variables is None and (self._target.named or not self._host.live):
            variables = self._context.target.environment.variables
        return "".join(f"{name}={value}\n" for name, value in (variables or {}).items())

    @cached_property
    def _past_fixes(self) -> Mapping[str, PastFix]:
        python = self._context.target.python
        path = None if python is None else python.path
        return fixed_checks(state_directory(), self.name, path) if self._host.live else {}

    @cached_property
    def _context(self) -> Context:
        return open_context(self._host, self._target, self._catalogue.expectations)
