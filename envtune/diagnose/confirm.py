"""The host that a diagnosis is checked on: this one, or a recorded one. Opened when something is asked of it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Mapping, Optional, Sequence

from envtune.job.target import TargetOptions

if TYPE_CHECKING:
    from envtune.context import Context
    from envtune.diagnose.past_fixes import PastFix
    from envtune.model import Finding


class HostWitness:
    """Runs the confirming checks, and knows what `envtune fix` fixed there. `check` False: it is asked nothing but the
    variables of a job that was named."""

    def __init__(
        self,
        catalog: tuple[Path, ...],
        snapshot: Optional[Path],
        options: TargetOptions,
        check: bool = True,
        ran_with: Optional[Mapping[str, str]] = None,
    ) -> None:
        from envtune.cli.check import open_host

        self.check = check
        self._catalog, self._live = catalog, snapshot is None
        self._host, self._options = open_host(snapshot, options)
        self._opened: Optional[Context] = None
        self._past_fixes: Optional[Mapping[str, PastFix]] = None
        self._environment = None if ran_with is None else _as_lines(ran_with)

    @property
    def name(self) -> str:
        """The host's name."""
        return self._host.name

    @property
    def words(self) -> str:
        """The options that named the job, for a command to type on this host."""
        if not self._live:
            return ""
        given = self._options._asdict()
        names = (("python", "--python"), ("pid", "--pid"), ("script", "--script"), ("env_file", "--env-file"))
        return " ".join(
            f"{option} {shlex.quote(str(given[name]))}" for name, option in names if given[name] is not None
        )

    def findings(self, ids: Sequence[str]) -> Sequence[Finding]:
        """What these checks say now; `fixed` for what a run of ours cured."""
        from envtune import catalog as catalogue
        from envtune.audit import audit
        from envtune.diagnose.past_fixes import mark_fixed

        wanted = [check for check in catalogue.load(self._catalog).checks if check.id in ids]
        return mark_fixed(audit(wanted, self._scene()), self.past_fixes())

    def past_fixes(self) -> Mapping[str, PastFix]:
        """What the journal of this host says was cured; a recorded host has none."""
        if self._past_fixes is None:
            from envtune.diagnose.past_fixes import fixed_checks
            from envtune.executor.state import state_directory

            python = self._scene().target.python
            path = None if python is None else python.path
            self._past_fixes = fixed_checks(state_directory(), self.name, path) if self._live else {}
        return self._past_fixes

    def concerns(self, host: str) -> bool:
        """Whether a failure on `host` can be judged here: it is this one, or the user recorded one to be asked."""
        if not self._live:
            return True
        own = {self.name, *(address for face in self._host.interfaces() for address in face.addresses)}
        short = {name.split(".")[0] if not name[:1].isdigit() else name for name in own}
        return host.lower() in {name.lower() for name in own | short}

    def environment(self) -> str:
        """The variables of the named or recorded job; empty where no job was named."""
        if self._environment is None:
            told = self._scene().target.environment.variables if self._options.named or not self._live else None
            self._environment = _as_lines(told or {})
        return self._environment

    def _scene(self) -> Context:
        if self._opened is None:
            from envtune import catalog as catalogue
            from envtune.context.open import open_context

            expectations = catalogue.load(self._catalog).expectations
            self._opened = open_context(self._host, self._options, expectations)
        return self._opened


def _as_lines(variables: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in variables.items())
