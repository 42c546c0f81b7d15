"""Probes, facts and actions by name.

A function registers itself with a decorator. Compiling the catalog imports every module of `envtune.resources` once
and notes where each name was found (`index`), so that a run imports only the modules that its checks need, and a
function may move to another module without a change to the catalog.
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any, Callable, Iterable, Mapping, TypeVar

from envtune.model import Change, Fact, Reading

Probe = Callable[..., Iterable[Reading]]
Action = Callable[..., Iterable[Change]]
FactReader = Callable[..., Fact]
F = TypeVar("F", bound=Callable[..., Any])

RESOURCES = "envtune.resources"
KINDS = ("probes", "facts", "actions")
PLAN_ARGUMENTS = ("options", "judge")  # what the plan may pass to an action: FixOptions, how a check is judged
_functions: dict[str, dict[str, Callable[..., Any]]] = {kind: {} for kind in KINDS}
_paths: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
# former name of a probe or action -> arguments that were passed to it, and its current name
_former_names: dict[str, list[tuple[Mapping[str, Any], str]]] = {}
_former_arguments: dict[str, tuple[str, ...]] = {}  # of a probe; they have no effect
_units: dict[str, str] = {}  # of the values of a probe
_noted_units: dict[str, str] = {}  # of probes that may not be imported yet
_complete = False
_NOTHING: Mapping[str, Any] = {}


def probe(name: str, *, formerly: str = "", former_arguments: tuple[str, ...] = (), unit: str = "") -> Callable[[F], F]:
    """Register `def f(context, *, argument: ...) -> Iterable[Reading]`; it reads but does not judge.

    `unit` is the unit of numeric values: `GB`, `%`. `formerly` is a name that site catalogs may still use,
    `former_arguments` are arguments that they may still pass: both are accepted for one release, with a warning.
    """
    _former_arguments[name] = former_arguments
    _units[name] = unit
    return _register("probes", name, formerly)


def fact(name: str) -> Callable[[F], F]:
    """Register `def f(context) -> Fact`."""
    return _register("facts", name, "")


def action(name: str, *, formerly: str = "", formerly_with: Mapping[str, Any] = _NOTHING) -> Callable[[F], F]:
    """Register `def f(context, findings, *, argument: ...) -> Iterable[Change]`.

    It reads, and returns what it would write; the executor writes. It raises `Skipped` if it has nothing to propose.
    `formerly_with` are the arguments with which the former name meant this action.
    """
    return _register("actions", name, formerly, formerly_with)


def _register(kind: str, name: str, formerly: str, formerly_with: Mapping[str, Any] = _NOTHING) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        _functions[kind][name] = function
        if formerly:
            _former_names.setdefault(formerly, []).append((formerly_with, name))
        return function

    return decorate


def use_index(index: Mapping[str, Mapping[str, str]]) -> None:
    """Use what was noted when the catalog was compiled: kind -> name -> `module:function`, and units of probes."""
    for kind in KINDS:
        _paths[kind] = dict(index[kind])
    _noted_units.update(index["units"])


def make_index() -> dict[str, dict[str, str]]:
    """Return the place of everything that the resources register, and the units; imports all of them."""
    _import_everything()
    index = {
        kind: {
            name: f"{function.__module__}:{function.__qualname__}"
            for name, function in sorted(_functions[kind].items())
            if function.__module__.startswith(RESOURCES)
        }
        for kind in KINDS
    }
    index["units"] = {name: _units[name] for name in index["probes"] if _units[name]}
    return index


def find_probe(name: str) -> Probe:
    """Return the probe of that name; raises KeyError if there is none."""
    return _find("probes", name)


def find_fact(name: str) -> FactReader:
    """Return the function that reads a fact; raises KeyError if there is none."""
    return _find("facts", name)


def find_action(name: str) -> Action:
    """Return the action of that name; raises KeyError if there is none."""
    return _find("actions", name)


def fact_names() -> tuple[str, ...]:
    """Return the name of every fact."""
    if not _paths["facts"]:
        _import_everything()
    return tuple(sorted({*_functions["facts"], *_paths["facts"]}))


def probe_names() -> tuple[str, ...]:
    """Return the name of every probe."""
    return tuple(make_index()["probes"])


def former_names(kind: str) -> dict[str, str]:
    """Return {former name: current name (or names)} of the probes or actions that entries may still use."""
    _import_everything()
    names = {former: sorted(name for _, name in rows) for former, rows in _former_names.items()}
    return {former: ", ".join(now) for former, now in sorted(names.items()) if set(now) <= set(_functions[kind])}


def current_name(name: str, arguments: Mapping[str, Any] = _NOTHING) -> str:
    """Return the current name of a probe or action; `name` itself if it was never renamed."""
    _import_everything()
    for needed, current in _former_names.get(name, ()):
        if needed.items() <= arguments.items():
            return current
    return name


def current_arguments(name: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return those of the arguments that the probe or action of that (perhaps former) name still takes."""
    current = current_name(name, arguments)
    gone = {*_former_arguments.get(current, ())}
    gone |= {key for needed, target in _former_names.get(name, ()) if target == current for key in needed}
    return tuple(argument for argument in arguments if argument not in gone)


def probe_unit(name: str) -> str:
    """Return the unit of a probe's values, empty if it has none; imports the probe only if no index is in use."""
    if name in _paths["probes"]:
        return _noted_units.get(name, "")
    find_probe(name)
    return _units.get(name, "")


def probe_arguments(name: str) -> dict[str, inspect.Parameter]:
    """Return the keyword arguments of a probe, against which its entries in the catalog are validated."""
    return _keywords(find_probe(name))


def action_arguments(name: str) -> dict[str, inspect.Parameter]:
    """Return the keyword arguments that a playbook passes to an action, without those passed by the plan."""
    return {key: parameter for key, parameter in _keywords(find_action(name)).items() if key not in PLAN_ARGUMENTS}


def plan_arguments(action: Action) -> tuple[str, ...]:
    """Return those of PLAN_ARGUMENTS that the action takes."""
    return tuple(name for name in PLAN_ARGUMENTS if name in _keywords(action))


def _keywords(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function).parameters
    return {name: p for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}


def _find(kind: str, name: str) -> Callable[..., Any]:
    functions = _functions[kind]
    if name not in functions:
        if name in _paths[kind]:
            importlib.import_module(_paths[kind][name].partition(":")[0])
        if name not in functions:
            _import_everything()
    return functions[name]


def _import_everything() -> None:
    global _complete
    if _complete:
        return
    import pkgutil

    package = importlib.import_module(RESOURCES)
    for module in pkgutil.walk_packages(package.__path__, f"{RESOURCES}."):
        importlib.import_module(module.name)
    _complete = True
