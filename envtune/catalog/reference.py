"""What probes, facts and steps are for and what they take: from their docstrings and signatures, in both languages.

The first paragraph of a docstring is a message like any other (scripts/messages.py collects it), and the description of
an argument is in its annotation: `Annotated[str, N_("Absolute path.")]`. `envtune list`, `envtune explain` and
docs/generate.py show it.
"""

from __future__ import annotations

import inspect
import pkgutil
import typing
from typing import Any, Callable, Mapping, Optional

from envtune.catalog.forms import STEP_KINDS, argument_type
from envtune.context import registry
from envtune.messages import Literal, Message, Text, enumerated, in_context
from envtune.records import NamedTuple
from envtune.schema.types import ListOf, MapOf, Number, Str
from envtune.schema.validate import name_of

REQUIRED = inspect.Parameter.empty
KINDS = ("probes", "steps", "facts")
PLACEHOLDER = "SITE101"  # the id of the check in the examples


class Argument(NamedTuple):
    """One argument; `default` is REQUIRED if it must be given."""

    name: str
    type: Text
    default: Any
    summary: Text
    placeholder: str = ""  # a value of this type, as YAML


class Reference(NamedTuple):
    """What a probe, a step or a fact is for; `kind` is one of KINDS."""

    id: str
    kind: str
    summary: Text
    arguments: tuple[Argument, ...] = ()


def references(kind: str) -> tuple[Reference, ...]:
    """Return all of a kind, sorted by name; the steps in the order of their table."""
    return tuple(reference(kind, name) for name in _names(kind))


def find_reference(word: str) -> Reference:
    """Return the probe, the step or the fact of that name, in this order; raises KeyError if there is none."""
    kind = next((kind for kind in KINDS if word in _names(kind)), None)
    if kind is None:
        raise KeyError(word)
    return reference(kind, word)


def _names(kind: str) -> tuple[str, ...]:
    if kind == "steps":
        return tuple(STEP_KINDS)
    return registry.probe_names() if kind == "probes" else registry.fact_names()


def reference(kind: str, name: str) -> Reference:
    """Return the reference of one; raises KeyError if there is none of that name."""
    if kind == "facts":
        return Reference(name, kind, Message(summary_of(registry.find_fact(name))))
    if kind == "probes":
        return Reference(name, kind, Message(summary_of(registry.find_probe(name))), _arguments(kind, name))
    return Reference(name, kind, Message(STEP_KINDS[name]), _arguments(kind, name))


def summary_of(function: Callable[..., Any]) -> str:
    """Return the first paragraph of a docstring in one line, without the source of the rule."""
    paragraph = (function.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(paragraph.split()).partition(" Source: ")[0]


def summaries() -> tuple[str, ...]:
    """Return every summary that comes from a docstring: messages in addition to those marked in the code."""
    found: list[Callable[..., Any]] = [registry.find_probe(name) for name in registry.probe_names()]
    found += [registry.find_fact(name) for name in registry.fact_names()]
    return tuple(summary_of(function) for function in found)


def _arguments(kind: str, name: str) -> tuple[Argument, ...]:
    if name == "instructions":
        return ()
    function: Callable[..., Any] = registry.find_probe(name) if kind == "probes" else registry.find_action(name)
    parameters = registry.probe_arguments(name) if kind == "probes" else registry.action_arguments(name)
    hints = _hints(function, parameters)
    return tuple(_argument(key, hints[key], parameter.default) for key, parameter in parameters.items())


def _hints(function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter]) -> Mapping[str, Any]:
    """Return only the types of these arguments: other parameters may use names imported for type checkers only."""
    annotations = {name: parameter.annotation for name, parameter in parameters.items()}
    holder = type("holder", (), {"__annotations__": annotations})
    return typing.get_type_hints(holder, vars(inspect.getmodule(function)), include_extras=True)


_PLACEHOLDERS: Mapping[type, str] = {Number: "1", ListOf: "[change-this]", MapOf: "{change: this}"}


def _argument(name: str, hint: Any, default: Any) -> Argument:
    form = argument_type(typing.get_args(hint)[0] if hasattr(hint, "__metadata__") else hint)
    words = next((word for word in getattr(hint, "__metadata__", ()) if isinstance(word, str)), "")
    summary = Message(words) if words else Literal("")
    if isinstance(form, Str) and form.choices:
        choices = enumerated(choice or '""' for choice in form.choices)
        words_of_type = in_context("type", "one of {choices}", choices=choices)
        return Argument(name, words_of_type, default, summary, form.choices[0])
    return Argument(name, name_of(form), default, summary, _PLACEHOLDERS.get(type(form), "change-this"))


def example_text(folder: str, name: str) -> Optional[str]:
    """Return the example of a probe (`probes`), a step (`steps`) or the FAQ entry (`.`, `faq`), None if missing."""
    try:
        data = pkgutil.get_data("envtune", f"data/examples/{folder}/{name}.yaml".replace("/./", "/"))
    except OSError:
        return None
    return None if data is None else data.decode("utf-8")
