"""What a job would get, and what the checks would say, if settings were made: only what was judged is claimed."""

from __future__ import annotations

from typing import Iterable, Sequence

from envtune import expect
from envtune.context import Context
from envtune.context.registry import find_probe
from envtune.errors import HostError, NotApplicable, Undetermined
from envtune.job.script import script_environment
from envtune.job.target import JobEnvironment, Target
from envtune.model import Check
from envtune.resources.environment.profile import Setting


def environment_after(context: Context, settings: Iterable[Setting]) -> JobEnvironment:
    """The job's environment with the settings made, one after the other."""
    environment = context.target.environment
    if environment.variables is None:  # judged by the settings alone
        environment = JobEnvironment({}, environment.source)
    for setting in settings:
        if setting.script:
            environment = script_environment(context.host, setting.script, environment)
            continue
        known = dict(environment.variables or {})
        unknown = {name: why for name, why in environment.unknown.items() if name != setting.name}
        known.pop(setting.name, None)
        if setting.value is not None:
            known[setting.name] = setting.value
        environment = environment._replace(variables=known, unknown=unknown)
    return environment


def with_environment(context: Context, environment: JobEnvironment) -> Context:
    """The same host and interpreter with another environment."""
    old = context.target
    return Context(context.host, Target(old.options, old.python, old.python_reason, environment))


def cured(context: Context, checks: Iterable[Check], environment: JobEnvironment) -> tuple[str, ...]:
    """Of failed checks the ids of those that would not fail in that environment."""
    after = with_environment(context, environment)
    return tuple(dict.fromkeys(check.id for check in checks if not fails(check, after)))


def fails(check: Check, context: Context) -> bool:
    """Whether the check fails, or cannot tell: both are no cure."""
    try:
        readings = tuple(find_probe(check.probe)(context, **check.arguments))
    except NotApplicable:
        return False
    except (HostError, Undetermined):
        return True
    if any(reading.reason is not None for reading in readings):
        return True
    return bool(expect.misses(check.expect, readings))


def values(settings: Sequence[Setting], environment: JobEnvironment) -> tuple[Setting, ...]:
    """The settings one by one, for forms that cannot source a script: what it sets, as it would be here."""
    found: list[Setting] = []
    for setting in settings:
        if not setting.script:
            found.append(setting)
            continue
        known = environment.variables or {}
        places = environment.places
        for name in sorted(known):
            if places.get(name, "").partition(":")[0] == setting.script:
                found.append(Setting(name, known[name], setting.reason, setting.checks))
    return tuple(found)
