"""Whose Python and whose environment is judged: the training job's, never envtune's own.

The job is named by `--python`, `--pid`, `--script` or `--env-file`; without a name it is what a job started from this
shell would get. Nothing is started: interpreters are resolved by reading links, shims and wrapper scripts.
"""

from __future__ import annotations

from typing import Iterator, Mapping, NamedTuple, Optional

from envtune.errors import Undetermined
from envtune.messages import Message, Text


class TargetOptions(NamedTuple):
    """How the user named the job; all empty means: what this shell would start."""

    python: Optional[str] = None
    pid: Optional[int] = None
    script: Optional[str] = None
    env_file: Optional[str] = None
    peers: tuple[str, ...] = ()  # addresses and networks of the job's other hosts

    @property
    def named(self) -> bool:
        """Whether a job with an environment of its own was named."""
        return self.pid is not None or self.script is not None or self.env_file is not None


class PythonTarget(NamedTuple):
    """The interpreter of the job. `sites` are its site-packages directories in import order, PYTHONPATH excluded."""

    path: str  # as it was named or found on PATH
    real: str  # the interpreter behind links, shims and wrappers
    version: str  # "3.7"
    kind: str  # venv | conda | system
    prefix: str
    sites: tuple[str, ...]
    chosen: Text  # why this one


class JobEnvironment(NamedTuple):
    """The variables a job gets, or the reason why they cannot be told; `source` says where from.

    Of a launch script some variables may be known and others not: `untold` says why, by name, and `rest` why any
    variable that is neither in `variables` nor in `untold` cannot be told (None: such a variable is not set).
    """

    variables: Optional[Mapping[str, str]]
    source: str
    reason: Optional[Text] = None
    needs_privilege: bool = False  # the only reason is a missing privilege
    untold: Mapping[str, Text] = {}
    rest: Optional[Text] = None
    places: Mapping[str, str] = {}  # variable -> file:line that set it, where one did

    def untold_reason(self, name: str) -> Optional[Text]:
        """Why the variable cannot be told; None when it can (also that it is not set)."""
        if self.variables is None:
            return self.reason or Message("the job's environment was not read")
        return None if name in self.variables else self.untold.get(name, self.rest)

    def place(self, name: str) -> str:
        """Where the variable's value comes from: `train.sh:12`, or the environment as a whole."""
        return self.places.get(name) or f"environment of {self.source}"


class ToldVariables(Mapping[str, str]):
    """The variables of a job that are known. Asking for one that cannot be told raises `Undetermined`."""

    def __init__(self, environment: JobEnvironment) -> None:
        self._environment = environment
        self._known = environment.variables or {}

    def __getitem__(self, name: str) -> str:
        reason = self._environment.untold_reason(name)
        if reason is not None:
            raise Undetermined(reason, self._environment.place(name))
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        try:
            self[str(name)]
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class Target(NamedTuple):
    """The job that is judged: its interpreter and its environment, or the reason why one of them cannot be told."""

    options: TargetOptions
    python: Optional[PythonTarget]
    python_reason: Optional[Text]
    environment: JobEnvironment

    def interpreter(self) -> PythonTarget:
        """The interpreter; `Undetermined` with the reason when it cannot be told."""
        if self.python is None:
            reason = self.python_reason or Message("no Python was found")
            pid = self.options.pid
            raise Undetermined(reason, self.options.python or ("PATH" if pid is None else f"/proc/{pid}/exe"))
        return self.python

    def variables(self) -> Mapping[str, str]:
        """The environment of the job; `Undetermined` with the reason when it, or the variable asked for, is untold."""
        environment = self.environment
        if environment.variables is None:
            reason = environment.reason or Message("the job's environment was not read")
            raise Undetermined(reason, environment.source, needs_privilege=environment.needs_privilege)
        return ToldVariables(environment)
