"""The forms with rules of their own: probe, expect, applies, example and steps."""

from __future__ import annotations

import collections.abc
import inspect
import typing
from typing import Any, Callable, Mapping, Optional, Union

from envtune import expect as matchers
from envtune.catalog.yaml import Complaints, Node
from envtune.messages import Message, Text
from envtune.schema import types as schema
from envtune.schema.validate import judge, known_keys, regex, unknown_word, wanted

SCALARS = ("text", "int", "bool")
NUMBERS = ("int", "float")


# ---------------------------------------------------------------------- probe


def probe(node: Node, complaints: Complaints) -> None:
    """`{kind: {argument: value}}` against the signature of the Python function."""
    form = "{kind: {argument: value}}"
    if not wanted(node, "mapping", complaints, form):
        return
    if len(node.value) != 1:
        complaints.about(node, Message("a check has one probe: {form}", form=form))
        return
    ((kind, arguments),) = node.value
    parameters = _parameters(kind, complaints)
    if parameters is None:
        return
    _call(kind, arguments, parameters, complaints)


def _call(kind: Node, arguments: Node, parameters: Mapping[str, inspect.Parameter], complaints: Complaints) -> None:
    """The arguments of a probe or an action against its signature; none at all may be written as nothing."""
    if arguments.kind == "null" or not arguments.value:
        arguments = Node("mapping", (), arguments.line, arguments.column)
    elif not wanted(arguments, "mapping", complaints, "{argument: value}"):
        return
    known_keys(arguments, parameters, complaints)
    _arguments(kind, arguments, parameters, complaints)


def _parameters(kind: Node, complaints: Complaints) -> Optional[Mapping[str, inspect.Parameter]]:
    from envtune.context import registry as resources

    try:
        try:
            return resources.probe_arguments(kind.value)
        except KeyError:
            unknown_word(kind, Message("a probe"), resources.probe_names(), complaints)
    except Exception as error:  # a resource module that cannot be imported is our fault, and still must be named
        complaints.about(kind, Message("its Python code cannot be imported: {error!r}", error=error))
    return None


def _arguments(
    kind: Node, arguments: Node, parameters: Mapping[str, inspect.Parameter], complaints: Complaints
) -> None:
    from envtune.context.registry import find_action, find_probe

    function = find_action(kind.value) if kind.value in schema.STEPS else find_probe(kind.value)
    scope = getattr(inspect.unwrap(function), "__globals__", {})
    for name, parameter in parameters.items():
        value = arguments.get(name)
        hint = _hint(parameter.annotation, scope)
        if value is not None:
            if not value.spoiled and not fits(value, hint):
                words = str(parameter.annotation)
                complaints.about(value, Message("{name} must be {words}", name=name, words=words))
        elif parameter.default is inspect.Parameter.empty:
            complaints.about(kind, Message("the argument {name} is missing", name=name))


def _hint(annotation: Any, scope: Mapping[str, Any]) -> Any:
    """The type an annotation names; Any where it cannot be resolved (names imported for type checkers only)."""
    holder = type("holder", (), {"__annotations__": {"it": annotation}})
    try:
        return typing.get_type_hints(holder, dict(scope))["it"]
    except Exception:
        return Any


def fits(node: Node, hint: Any) -> bool:
    """Whether a value may be given for a parameter of that type."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return node.kind in _PLAIN[hint]
    if origin is Union:
        return any(fits(node, one) for one in inner)
    if origin is typing.Literal:
        return any(node.value == one and type(node.value) is type(one) for one in inner)
    if origin is not None and issubclass(origin, collections.abc.Mapping):
        return node.kind == "mapping" and all(fits(value, inner[1]) for _, value in node.value)
    if origin is not None and issubclass(origin, collections.abc.Iterable):
        return node.kind == "list" and all(fits(item, inner[0]) for item in node.value)
    return True


_PLAIN: Mapping[Any, tuple[str, ...]] = {
    str: ("text",),
    int: ("int",),
    float: NUMBERS,
    bool: ("bool",),
    type(None): ("null",),
}


# ---------------------------------------------------------------------- expect


def expect(node: Node, complaints: Complaints) -> None:
    """A quantifier over matchers, or matchers; never empty, so that nothing passes unjudged."""
    if not wanted(node, "mapping", complaints, "{all: {eq: ...}}"):
        return
    keys = [key.value for key, _ in node.value]
    quantified = [key for key in keys if key in (*matchers.QUANTIFIERS, "profile")]
    if not quantified:
        _matchers(node, complaints, (*matchers.MATCHERS, *matchers.QUANTIFIERS, "profile"))
    elif len(keys) > 1:
        words = quantified[0]
        complaints.about(node, Message("{words} stands alone; put the matchers into it", words=words))
    elif keys[0] in _ALONE:
        value, (form, only_value) = node.value[0][1], _ALONE[keys[0]]
        if value.value != only_value or type(value.value) is not type(only_value):
            complaints.about(value, form)
    elif wanted(node.value[0][1], "mapping", complaints, "{eq: ...}"):
        _matchers(node.value[0][1], complaints, tuple(matchers.MATCHERS))


# key of an expectation that has one value only -> what to write, and the value
_ALONE: Mapping[str, tuple[Text, Any]] = {
    "same": (Message("write `same: true`"), True),
    "profile": (Message("write `profile: train`"), "train"),
}


def _matchers(node: Node, complaints: Complaints, known: tuple[str, ...]) -> None:
    for key, value in node.value:
        if key.value not in known:
            unknown_word(key, Message("a matcher"), known, complaints)
        else:
            _MATCHER_RULES.get(key.value, _scalar)(value, complaints)


def _scalar(node: Node, complaints: Complaints) -> None:
    if node.kind == "float":
        complaints.about(node, Message('{raw} is a number in YAML; write "{raw}" with quotes', raw=node.raw))
    elif node.kind not in SCALARS:
        complaints.about(node, Message("write one text, whole number, true or false"))


def _scalars(node: Node, complaints: Complaints) -> None:
    if wanted(node, "list", complaints, "[...]"):
        for item in node.value:
            _scalar(item, complaints)


def _measure(node: Node, complaints: Complaints) -> None:
    if node.kind not in NUMBERS:
        complaints.about(node, Message("write a number"))


def _truth(node: Node, complaints: Complaints) -> None:
    wanted(node, "bool", complaints)


def _pattern(node: Node, complaints: Complaints) -> None:
    if wanted(node, "text", complaints):
        regex(node, complaints)


_MATCHER_RULES: Mapping[str, Callable[[Node, Complaints], None]] = {
    **dict.fromkeys(("in", "not_in"), _scalars),
    **dict.fromkeys(("lt", "le", "gt", "ge"), _measure),
    "matches": _pattern,
    "empty": _truth,
}


# ---------------------------------------------------------------------- applies


def applies(node: Node, complaints: Complaints) -> None:
    """`{fact: value}`; a value is a text, true or false, a list (any of them) or `{not: ...}`."""

    from envtune.context.registry import fact_names

    if not wanted(node, "mapping", complaints, "{fact: value}"):
        return
    facts = fact_names()
    for key, value in node.value:
        if key.value not in facts:
            unknown_word(key, Message("a fact"), facts, complaints)
        _wanted_fact(value, complaints)


def _wanted_fact(node: Node, complaints: Complaints) -> None:
    if node.kind == "mapping":
        known_keys(node, ("not",), complaints)
        inner = node.get("not")
        if inner is None:
            complaints.about(node, Message("write {not: value}"))
        else:
            _wanted_fact(inner, complaints)
    elif node.kind == "list":
        if wanted(node, "list", complaints, "[...]"):
            for item in node.value:
                _wanted_fact(item, complaints)
    elif node.kind != "bool":
        wanted(node, "text", complaints)


# ---------------------------------------------------------------------- example


def example(node: Node, complaints: Complaints) -> None:
    """A small recorded host: the keys of a snapshot, its texts as texts."""
    if not wanted(node, "mapping", complaints, "{files: {...}}"):
        return
    known_keys(node, schema.EXAMPLE_KEYS, complaints)
    files, environ, told = node.get("files"), node.get("environ"), node.get("expect")
    for path, entry in files.value if files is not None and files.kind == "mapping" else ():
        if not path.value.startswith("/"):
            complaints.about(path, Message("{value}: write an absolute path", value=path.value))
        if entry.kind not in ("text", "mapping", "null"):
            complaints.about(entry, Message("the content of a file is a text; quote it"))
    for _, value in environ.value if environ is not None and environ.kind == "mapping" else ():
        if value.kind not in ("text", "null"):
            complaints.about(value, Message("the value of a variable is a text; quote it"))
    if told is not None and wanted(told, "mapping", complaints, "{subject: ...}"):
        known_keys(told, schema.EXAMPLE_EXPECT, complaints)


# ---------------------------------------------------------------------- steps


def steps(node: Node, complaints: Complaints) -> None:
    """`[{kind: {arguments}}]` with kinds of a closed list."""
    if not wanted(node, "list", complaints, "[{kind: {...}}]"):
        return
    for step in node.value:
        if not wanted(step, "mapping", complaints, "{kind: {...}}"):
            continue
        if len(step.value) != 1:
            complaints.about(step, Message("a step is one key, {kind: {...}}"))
            continue
        ((kind, arguments),) = step.value
        if kind.value not in schema.STEPS:
            unknown_word(kind, Message("a kind of step"), schema.STEPS, complaints)
        elif kind.value == "instructions":
            _instructions(arguments, complaints)
        else:
            parameters = _action_parameters(kind, complaints)
            if parameters is not None:
                _call(kind, arguments, parameters, complaints)


def _action_parameters(kind: Node, complaints: Complaints) -> Optional[Mapping[str, inspect.Parameter]]:
    from envtune.context import registry as resources

    try:
        return resources.action_arguments(kind.value)
    except KeyError:
        complaints.about(kind, Message("there is no action {name} yet; write instructions", name=kind.value))
    except Exception as error:  # as for probes
        complaints.about(kind, Message("its Python code cannot be imported: {error!r}", error=error))
    return None


def _instructions(node: Node, complaints: Complaints) -> None:
    if not wanted(node, "mapping", complaints, "{en: [...], zh: [...]}"):
        return
    lines = schema.Field("", schema.LINES, "").type
    type_ = schema.Record((schema.Field("en", lines, "", True), schema.Field("zh", lines, "", True)))
    judge(node, type_, complaints)
    en, zh = node.get("en"), node.get("zh")
    if en is not None and zh is not None and en.kind == zh.kind == "list" and len(en.value) != len(zh.value):
        complaints.about(
            zh,
            Message("{count} steps in English, {count_2} in Chinese", count=len(en.value), count_2=len(zh.value)),
        )


FORMS: Mapping[str, Callable[[Node, Complaints], None]] = {
    "probe": probe,
    "expect": expect,
    "applies": applies,
    "example": example,
    "steps": steps,
}
