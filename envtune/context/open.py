"""Puts host, facts and target together: what every verb that reads a host starts from."""

from __future__ import annotations

from typing import Any, Mapping, Sequence, Union

from envtune.context import Context
from envtune.host import Host
from envtune.job.environment import read_environment
from envtune.job.interpreter import find_python
from envtune.job.target import JobEnvironment, PythonTarget, Target, TargetOptions
from envtune.messages import Text
from envtune.model import Expectation, Source

UNNAMED = TargetOptions()
NO_EXPECTATIONS: Mapping[str, Sequence[Expectation]] = {}


def open_context(
    host: Host, options: TargetOptions = UNNAMED, expectations: Mapping[str, Sequence[Expectation]] = NO_EXPECTATIONS
) -> Context:
    """Return the context of one run. Reads only what names the target; everything else is read when a check asks.

    `expectations` are those of the catalogue about single variables (Catalogue.expectations).
    """
    environment = read_environment(host, options)
    found = _python_of(host, options, environment)
    python, reason = (None, found) if isinstance(found, Text) else (found, None)
    return Context(host, Target(options, python, reason, environment), expectations=expectations)


def _python_of(host: Host, options: TargetOptions, environment: JobEnvironment) -> Union[PythonTarget, Text]:
    """The job's interpreter by its own PATH; a script or env file that is judged alone gets the reader's."""
    known = environment.variables
    if known is not None and options.python is None and options.pid is None:
        reason = environment.why_unknown("PATH")
        if reason is not None:
            return reason
        if "PATH" not in known and "PATH" in host.environ:
            known = {**known, "PATH": host.environ["PATH"]}
    return find_python(host, options, known)


def recorded_options(target: Mapping[str, Any]) -> TargetOptions:
    """The options a snapshot was taken with (its `target` mapping); `peers` where an example names them."""
    names = ("python", "pid", "script", "env_file")
    named = {name: target[name] for name in names if target.get(name) is not None}
    return TargetOptions(**named, peers=tuple(target.get("peers", ())))


def describe_target(target: Target) -> dict[str, Source]:
    """Return the target as a report shows it."""
    description: dict[str, Source] = {"environment": target.environment.source}
    reason = target.environment.reason
    if target.environment.variables is None and reason is not None:
        description["environment_reason"] = reason
    python = target.python
    if python is not None:
        description.update(python=python.path, python_real=python.real, python_version=python.version)
        description.update(python_kind=python.kind, python_chosen=python.chosen)
    elif target.python_reason is not None:
        description["python_reason"] = target.python_reason
    return description
