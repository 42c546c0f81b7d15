"""The Python and environment to judge: those of the training job, never envtune's own.

The job is named by `--python`, `--pid`, `--script` or `--env-file`; otherwise it is what a job started from this shell
would get. Nothing is started: interpreters are resolved by reading links, shims and wrapper scripts.
"""

from __future__ import annotations

from typing import Iterator, Mapping, Optional

from envtune.errors import Undetermined
from envtune.messages import N_, Message, Text
from envtune.model import Source
from envtune.records import NamedTuple

THIS_SHELL = Message("this shell")
_LAYERED = N_("{path} over {base}")


class TargetOptions(NamedTuple):
    """How the user named the job; all empty means what this shell would start."""

    python: Optional[str] = None
    pid: Optional[int] = None
    script: Optional[str] = None
    env_file: Optional[str] = None
    peers: tuple[str, ...] = ()  # addresses and networks of the job's other hosts
    probe: bool = False  # whether to allow connecting to MASTER_ADDR and the peers, at ports of the job
    lang: Optional[str] = None  # of comments in written files; None: the locale's

    @property
    def named(self) -> bool:
        """Whether the user named a job with its own environment."""
        return self.pid is not None or self.script is not None or self.env_file is not None

    @property
    def words(self) -> tuple[str, ...]:
        """The command line options that name the same job."""
        values = (self.python, self.pid, self.script, self.env_file, *self.peers)
        options = ("--python", "--pid", "--script", "--env-file", *("--peer" for _ in self.peers))
        named = ((option, str(value)) for option, value in zip(options, values) if value is not None)
        return tuple(word for pair in named for word in pair)


class PythonTarget(NamedTuple):
    """The interpreter of the job. `sites` are its site-packages directories in import order, PYTHONPATH excluded."""

    path: str  # as it was named or found on PATH
    real: str  # the interpreter behind links, shims and wrappers
    version: str  # "3.7"
    kind: str  # venv | conda | system
    prefix: str
    sites: tuple[str, ...]
    chosen: Text  # why this one


def process_source(pid: int) -> Text:
    """Return the source for what process `pid` was started with."""
    return Message("process {pid}", pid=pid)


def layered(path: str, base: Source) -> Text:
    """Return the source for what a file sets on top of another environment."""
    return Message(_LAYERED, path=path, base=base)


def alone(path: str) -> Text:
    """Return the source for what a file sets on top of an unknown environment."""
    return Message("{path} alone", path=path)


class JobEnvironment(NamedTuple):
    """The variables a job gets, or the reason why they are unknown; `source` says where they come from.

    For a launch script some variables may be known and others not: `unknown` says why, by name, and
    `unknown_by_default` why any variable that is neither in `variables` nor in `unknown` is unknown (None: such a
    variable is not set).
    """

    variables: Optional[Mapping[str, str]]
    source: Source
    reason: Optional[Text] = None
    needs_privilege: bool = False  # unknown only because of a missing privilege
    unknown: Mapping[str, Text] = {}
    unknown_by_default: Optional[Text] = None
    places: Mapping[str, str] = {}  # variable -> file:line that set it, if any
    unset: frozenset[str] = frozenset()  # known not to be set, regardless of the default
    is_plain: bool = False  # from an env file of `KEY=VALUE` lines as read by docker and systemd, not by a shell
    left_open: bool = False  # what a launch file does not mention (`unknown_by_default`) is left to its caller
    finished: bool = False  # the variables of a job that has ended: nothing can be set there for the next one

    def why_unknown(self, name: str) -> Optional[Text]:
        """Return why the variable is unknown; None if it is known (or known not to be set)."""
        if self.variables is None:
            return self.reason or Message("the job's environment was not read")
        known = name in self.variables or name in self.unset
        return None if known else self.unknown.get(name, self.unknown_by_default)

    def place(self, name: str) -> Source:
        """Return where the variable's value comes from: `train.sh:12`, or the environment as a whole."""
        return self.places.get(name) or self.description

    @property
    def description(self) -> Text:
        """The source as evidence: `environment of this shell`."""
        if isinstance(self.source, Message) and self.source.template == _LAYERED:
            return Message("environment of {path} over {base}", **self.source.fields)
        return Message("environment of {source}", source=self.source)


class KnownVariables(Mapping[str, str]):
    """The known variables of a job. Looking up an unknown one raises `Undetermined`."""

    def __init__(self, environment: JobEnvironment) -> None:
        self._environment = environment
        self._known = environment.variables or {}

    def __getitem__(self, name: str) -> str:
        reason = self._environment.why_unknown(name)
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
    """The job that is judged: its interpreter and its environment, or the reason why one of them is unknown."""

    options: TargetOptions
    python: Optional[PythonTarget]
    python_reason: Optional[Text]
    environment: JobEnvironment

    def interpreter(self) -> PythonTarget:
        """Return the interpreter; raises Undetermined with the reason if it is unknown."""
        if self.python is None:
            reason = self.python_reason or Message("no Python was found")
            pid = self.options.pid
            raise Undetermined(reason, self.options.python or ("PATH" if pid is None else f"/proc/{pid}/exe"))
        return self.python

    def variables(self) -> Mapping[str, str]:
        """Return the environment of the job.

        Raises Undetermined if all of it is unknown; so does looking up an unknown variable.
        """
        environment = self.environment
        if environment.variables is None:
            reason = environment.reason or Message("the job's environment was not read")
            raise Undetermined(reason, environment.source, needs_privilege=environment.needs_privilege)
        return KnownVariables(environment)
