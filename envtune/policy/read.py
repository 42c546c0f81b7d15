"""A policy file -> `Policy`. Pure: problems raise a PolicyError with file, line and column of each."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

from envtune.catalog.yaml import Diagnostics, read_yaml
from envtune.errors import PolicyError, UsageError
from envtune.messages import Message, alternatives, enumerated, nearest
from envtune.model import Check, Expectation, Waiver
from envtune.policy.forms import policy_form
from envtune.policy.golden import CHECK as GOLDEN
from envtune.records import NamedTuple
from envtune.schema.validate import Validator


class Settings(NamedTuple):
    """What a file or one of its profiles sets; empty where it sets nothing."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    fail_on: str = ""
    facts: Mapping[str, Expectation] = {}
    expect: Mapping[str, Expectation] = {}
    thresholds: Mapping[str, float] = {}
    severities: Mapping[str, str] = {}


class Policy(NamedTuple):
    """A policy with one of its profiles: `layers` are the settings of the file and of the profile, lowest first."""

    file: str
    profile: str
    layers: tuple[Settings, ...]
    waivers: tuple[Waiver, ...]

    def last(self, name: str) -> Any:
        """Return the value of a setting in the highest layer that has it; an empty one if none has it."""
        found = [getattr(layer, name) for layer in self.layers if getattr(layer, name)]
        return found[-1] if found else getattr(Settings(), name)

    @property
    def facts(self) -> Mapping[str, Expectation]:
        """The golden values of all layers."""
        return {name: value for layer in self.layers for name, value in layer.facts.items()}


def read_policy(content: bytes, file: str, checks: Sequence[Check], profile: Optional[str] = None) -> Policy:
    """Return the policy of a file with one of its profiles; `checks` are those it may name.

    Raises PolicyError with every diagnostic, UsageError for a profile that it does not have.
    """
    diagnostics = Diagnostics(file)
    node = read_yaml(content, diagnostics)
    data: Mapping[str, Any] = {}
    if node is not None:
        known = [*(check for check in checks if check.id != GOLDEN.id), GOLDEN]
        data = Validator(diagnostics.report).judge(node, policy_form(known)) or {}
        default = node.get("profile")
        if default is not None and data.get("profile") not in {*(data.get("profiles") or {}), None}:
            diagnostics.report(default, Message("no such profile in `profiles`"))
    if diagnostics.found:
        raise PolicyError([one.message() for one in sorted(diagnostics.found, key=lambda one: (one.line, one.column))])
    chosen = profile or data.get("profile") or ""
    layers = [_settings(data)]
    if chosen:
        layers.append(_settings(_profile(chosen, data.get("profiles") or {}, file)))
    return Policy(file, chosen, tuple(layers), tuple(Waiver(**row) for row in data.get("waivers", ())))


def _profile(name: str, profiles: Mapping[str, Any], file: str) -> Mapping[str, Any]:
    if name in profiles:
        found: Mapping[str, Any] = profiles[name]
        return found
    near = nearest(name, profiles)
    message = Message("--profile {name}: {file} has no such profile", name=name, file=file)
    if near:
        guess = alternatives(near)
        message = Message("{message}; did you mean {guess}?", message=message, guess=guess)
    elif profiles:
        message = Message("{message}; known: {names}", message=message, names=enumerated(list(profiles)))
    raise UsageError(message)


def _settings(data: Mapping[str, Any]) -> Settings:
    return Settings(
        select=tuple(data.get("select", ())),
        ignore=tuple(data.get("ignore", ())),
        tags=tuple(data.get("tags", ())),
        fail_on=data.get("fail_on", ""),
        facts={name: _golden(value) for name, value in data.get("facts", {}).items()},
        expect=data.get("expect", {}),
        thresholds=data.get("thresholds", {}),
        severities=data.get("severities", {}),
    )


def _golden(value: Any) -> Expectation:
    """Return the expectation for a fact, whose values are texts."""
    if isinstance(value, Mapping):
        return {"all": {name: _text(operand) for name, operand in value.items()}}
    return {"all": {"in": _text(value)} if isinstance(value, list) else {"eq": _text(value)}}


def _text(value: Any) -> Any:
    if isinstance(value, list):
        return [_text(one) for one in value]
    return str(value).lower() if isinstance(value, bool) else value
