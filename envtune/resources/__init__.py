"""One module per technology, holding its probe and its action.

A probe kind is `<module>.<name>`: `cpufreq.governors` lives in `cpufreq.py`, so that a run imports only the modules its
checks name. A probe is `def f(scene: Scene, *, argument: ...) -> Iterable[Reading]` and only reads.
"""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Iterable, TypeVar

from envtune.model import Change, Reading

if TYPE_CHECKING:
    from envtune.facts import Facts
    from envtune.host import Host
    from envtune.target import Target

Probe = Callable[..., Iterable[Reading]]
Action = Callable[..., Iterable[Change]]
P = TypeVar("P", bound=Probe)
A = TypeVar("A", bound=Action)
T = TypeVar("T")

_probes: dict[str, Probe] = {}
_actions: dict[str, Action] = {}


@dataclass
class Scene:
    """What a probe sees: the host, the facts, and the job that is judged. `once` shares work between checks."""

    host: Host
    facts: Facts
    target: Target
    _memory: dict[Any, Any] = field(default_factory=dict)

    def once(self, read: Callable[..., T], *arguments: Any) -> T:
        """`read(self, *arguments)`, computed at most once per run; an exception it raised is raised again."""
        key = (read, arguments)
        if key not in self._memory:
            try:
                self._memory[key] = (read(self, *arguments), None)
            except Exception as failure:
                self._memory[key] = (None, failure)
        value, error = self._memory[key]
        if error is not None:
            raise error.with_traceback(None)
        return value  # type: ignore[no-any-return]


def probe(kind: str) -> Callable[[P], P]:
    """Register a probe under its kind."""

    def register(function: P) -> P:
        _probes[kind] = function
        return function

    return register


def action(kind: str) -> Callable[[A], A]:
    """Register an action under its kind.

    An action is `def f(scene: Scene, findings: Sequence[Finding], *, argument: ...) -> Iterable[Change]`: it reads, and
    says what it would write; the executor writes. It raises `Skipped` when it has nothing to propose. Its module is
    found by `_ACTIONS`, so that planning imports only what the playbooks name.
    """

    def register(function: A) -> A:
        _actions[kind] = function
        return function

    return register


# action kind -> module of envtune.resources that holds it
_ACTIONS: dict[str, str] = {
    "package.install": "package_install",
    "python.install": "python_install",
    "python.patch": "python_patch",
    "sysfs.write": "sysfs",
    "sysctl.set": "sysctl",
    "file.dropin": "file_dropin",
    "service.enable": "service",
    "env.export": "env_export",
    "process.terminate": "process_end",
    "firewall.allow": "firewall_allow",
}


def find_action(kind: str) -> Action:
    """The action of that kind, importing its module; raises KeyError when there is none."""
    if kind not in _actions:
        importlib.import_module(f"{__name__}.{_ACTIONS[kind]}")
    return _actions[kind]


def find_probe(kind: str) -> Probe:
    """The probe of that kind, importing its module; raises KeyError when there is none."""
    if kind not in _probes:
        module = kind.partition(".")[0]
        if not module.isidentifier():
            raise KeyError(kind)
        try:
            importlib.import_module(f"{__name__}.{module}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{module}":
                raise
            raise KeyError(kind) from None
    return _probes[kind]


def action_arguments(kind: str) -> dict[str, inspect.Parameter]:
    """The keyword arguments of an action that a playbook gives; `options` comes from the command line."""
    found = _keywords(find_action(kind))
    return {name: parameter for name, parameter in found.items() if name != "options"}


def wants_options(action: Action) -> bool:
    """Whether the action takes the FixOptions of the command line."""
    return "options" in _keywords(action)


def _keywords(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function).parameters
    return {name: p for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}


def probe_arguments(kind: str) -> dict[str, inspect.Parameter]:
    """The keyword arguments a probe takes, for checking a catalogue file against them."""
    return _keywords(find_probe(kind))


def probe_kinds() -> tuple[str, ...]:
    """Every probe of the resources (imports every module of them); not what somebody else registered."""
    import pkgutil

    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return tuple(sorted(kind for kind, function in _probes.items() if function.__module__.startswith(__name__)))
