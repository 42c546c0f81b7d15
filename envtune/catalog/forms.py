"""The forms with special rules: probe, expect, applies, example and steps."""

from __future__ import annotations

import collections.abc
import inspect
import typing
from typing import Any, Callable, Mapping, Union

from envtune import expect as matchers
from envtune.catalog.signatures.tokens import is_token
from envtune.catalog.yaml import Node
from envtune.context import registry
from envtune.messages import N_, Message, enumerated
from envtune.schema.types import (
    AnyOf,
    Anything,
    Bool,
    Const,
    Field,
    ListOf,
    MapOf,
    Null,
    Number,
    Record,
    Scalar,
    Special,
    Str,
    Type,
    optional,
)
from envtune.schema.validate import Validator, regular_expression
from envtune.snapshot.schema import SNAPSHOT

NAME = "[a-z0-9]+([.-][a-z0-9]+)*"
TEXT = Str(least=1)
REGEX = Str(name=Message("a regular expression"), check=regular_expression, keywords={"format": "regex"})
TOKEN = Str(name=Message("words such as notify wait, alternatives between |"), check=is_token)
STEP_KINDS: Mapping[str, str] = {
    "cpu.set_governor": N_("Set the governor of all CPUs until the next boot."),
    "sysctl.set": N_("Set a kernel parameter now and at every boot."),
    "sysfs.write": N_("Write a value to files below /sys, until the next boot."),
    "service.enable": N_("Enable an installed service at boot, without starting it now."),
    "file.dropin": N_("Write a file to a drop-in directory below /etc, without changing other files."),
    "environment.export": N_(
        "Set the variables that failed checks require, in the job's launch script or environment file."
    ),
    "images.install_pillow": N_("Replace Pillow in the job's Python with the build that suits the CPU."),
    "images.install_opencv": N_("Keep one of several OpenCV packages in the job's Python."),
    "cann.install_te": N_("Replace te, topi and hccl in the job's Python with those of the active CANN."),
    "torch.install_requirements": N_("Install the Python packages that CANN's operator compiler needs."),
    "torch.install_companions": N_("Install the torchvision and torchaudio versions for the installed torch."),
    "torch.keep_package": N_("Remove a package that overwrites another one, and reinstall the other one."),
    "images.patch_torchvision": N_("Patch a known line of an installed Python file."),
    "packages.install": N_("Install packages with the system's package manager."),
    "cpu.set_governor_at_boot": N_("Set the performance governor at every boot."),
    "firewall.allow": N_("Allow the job's ports between the peers."),
    "processes.terminate": N_("End leftover processes."),
    "instructions": N_("Manual steps: {en: [...], zh: [...]}; a site's playbook may also give a plain list."),
}


def several(item: Type) -> ListOf:
    """Return the type of a non-empty list."""
    return ListOf(item, least=1)


def either(record: Record, *names: str) -> Special:
    """Return the type of a record with exactly one of these fields."""

    def judge(validator: Validator, node: Node) -> Any:
        given = [name for name in names if node.kind == "mapping" and node.get(name) is not None]
        if node.kind == "mapping" and len(given) != 1:
            return validator.report(node, Message("write one of {names}", names=enumerated(names)))
        return validator.judge(node, record)

    return Special(judge, lambda: record)


LINES = several(TEXT)


def in_any_language(item: Type) -> Special:
    """Return the form of a text (or list of texts) of a site: plain, or `{en: ..., zh: ...}` with one or both.

    A missing language is taken from the other.
    """
    record = Record(Field("en", item), Field("zh", item), form="{en: ..., zh: ...}", least=1)

    def judge(validator: Validator, node: Node) -> Any:
        if node.kind != "mapping":
            words = validator.judge(node, item)
            return None if words is None else {"en": words, "zh": words}
        found = validator.judge(node, record)
        return found and {"en": found.get("en", found.get("zh")), "zh": found.get("zh", found.get("en"))}

    return Special(judge, lambda: AnyOf(item, record))


# ---------------------------------------------------------------------- probe


def _probe(validator: Validator, node: Node) -> Any:
    """Validate `{kind: {argument: value}}` against the signature of the Python function."""
    form = "{kind: {argument: value}}"
    if not validator.filled(node, "mapping", form):
        return None
    if len(node.value) != 1:
        return validator.report(node, Message("a check has one probe: {form}", form=form))
    ((kind, arguments),) = node.value
    try:
        function = _imported(validator, kind, registry.find_probe)
    except KeyError:
        return validator.unknown_word(kind, Message("a probe (see `envtune list probes`)"), registry.probe_names())
    return {kind.text: _call(validator, kind, arguments, function, registry.probe_arguments)}


def _imported(validator: Validator, kind: Node, find: Callable[[str], Any]) -> Any:
    """Return a probe or an action; raises KeyError if there is none; None if it cannot be imported."""
    try:
        return find(kind.text or "")
    except KeyError:
        raise
    except Exception as error:  # a resource module that cannot be imported is a bug in envtune, but must be reported
        validator.report(kind, Message("its Python code cannot be imported: {error!r}", error=error))
    return None


def _call(
    validator: Validator,
    kind: Node,
    arguments: Node,
    function: Any,
    parameters_of: Callable[[str], Mapping[str, inspect.Parameter]],
) -> Any:
    """Return the arguments of a probe or an action, validated against its signature; empty means no arguments."""
    if function is None:
        return None
    parameters, scope = parameters_of(kind.text or ""), getattr(inspect.unwrap(function), "__globals__", {})
    for name, parameter in parameters.items():
        if arguments.get(name) is None and parameter.default is inspect.Parameter.empty:
            validator.report(kind, Message("the argument {name} is missing", name=name))
    fields = (Field(name, argument_type(_hint(parameter.annotation, scope))) for name, parameter in parameters.items())
    return validator.judge(arguments, optional(Record(*fields, form="{argument: value}")))


def _hint(annotation: Any, scope: Mapping[str, Any]) -> Any:
    """Return the type an annotation names; Any if it cannot be resolved (names imported for type checkers only)."""
    holder = type("holder", (), {"__annotations__": {"it": annotation}})
    try:
        return typing.get_type_hints(holder, dict(scope))["it"]
    except Exception:
        return Any


def argument_type(hint: Any) -> Type:
    """Return the schema type for a parameter of that Python type."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Union:
        options = [argument_type(one) for one in inner]
        return Anything() if any(isinstance(one, Anything) for one in options) else AnyOf(*options)
    if origin is typing.Literal and all(isinstance(word, str) for word in inner):
        return Str(choices=inner)
    if origin is not None and issubclass(origin, collections.abc.Mapping):
        return MapOf(argument_type(inner[1]))
    if origin is not None and issubclass(origin, collections.abc.Iterable):
        return ListOf(argument_type(inner[0]))
    return Anything()


_PLAIN: Mapping[Any, Type] = {
    str: Str(),
    int: Number(whole=True),
    float: Number(),
    bool: Bool(),
    type(None): Null(),
}


def _probe_form() -> Type:
    names = (*registry.probe_names(), *registry.former_names("probes"))
    return MapOf(optional(Record(closed=False)), Str(choices=names), least=1, most=1)


PROBE = Special(_probe, _probe_form)


# ---------------------------------------------------------------------- expect


_MATCHERS: Mapping[str, Type] = {
    **dict.fromkeys(matchers.MATCHERS, Scalar()),
    **dict.fromkeys(("in", "not_in"), several(Scalar())),
    **dict.fromkeys(("lt", "le", "gt", "ge"), Number()),
    "matches": REGEX,
    "empty": Bool(),
}
_MATCHER = Message("a matcher")
_MATCHED = Record(*(Field(*matcher) for matcher in _MATCHERS.items()), key=_MATCHER, form="{eq: ...}", least=1)
_QUANTIFIED = (
    *(Field("all", _MATCHED, "", True), Field("any", _MATCHED, "", True), Field("same", Const(True), "", True)),
    Field("profile", Str(choices=("train",)), "", True),  # of the table of variables (entries.expectation_of)
)
_EXPECTATION = Record(
    *_MATCHED.fields,
    *(field._replace(required=False) for field in _QUANTIFIED),
    key=_MATCHER,
    form="{all: {eq: ...}}",
    least=1,
)


def _expect(validator: Validator, node: Node) -> Any:
    """Validate a quantifier over matchers, or matchers; never empty, so that nothing passes unchecked."""
    for key, _ in node.members():
        if key.text in (*matchers.QUANTIFIERS, "profile") and len(node.members()) > 1:
            message = Message("{quantifier} must be the only key; put the matchers into it", quantifier=key.text)
            return validator.report(node, message)
    return validator.judge(node, _EXPECTATION)


EXPECT = Special(_expect, lambda: AnyOf(_MATCHED, *map(Record, _QUANTIFIED)))


# ---------------------------------------------------------------------- applies


_FACT = AnyOf(Str(), Bool())
_FACTS = several(_FACT)
_WANTED_FACT = AnyOf(_FACT, _FACTS, Record(Field("not", AnyOf(_FACT, _FACTS), "", True)))


def _applies_form() -> Record:
    """Return the form `{fact: value}`; a value is a text, true or false, a list (any of them) or `{not: ...}`."""
    fields = (Field(name, _WANTED_FACT) for name in registry.fact_names())
    return Record(*fields, key=Message("a fact (see `envtune list facts`)"), form="{fact: value}", least=1)


APPLIES = Special(lambda validator, node: validator.judge(node, _applies_form()), _applies_form)


# ---------------------------------------------------------------------- example


# a small recorded host: `like` and `arch` of examples.py, what to expect, and a snapshot's keys
_RECORDED = ("host", "uname", "euid", "cwd", "now", "taken", "environ", "covered")
_TABLES = ("files", "commands", "processes", "listeners", "interfaces", "disks", "target")
EXAMPLE_HOST = Record(
    Field("expect", Record(*(Field(name, Str()) for name in ("subject", "actual", "severity", "reason")))),
    Field("like", AnyOf(Str(), ListOf(Str()))),
    Field("arch", Str()),
    Field("options", Anything()),
    *(SNAPSHOT.by_name[name] for name in (*_RECORDED, *_TABLES)),
)
EXAMPLE = Special(
    lambda validator, node: validator.judge(node, EXAMPLE_HOST),
    lambda: Record(*(Field(name, Anything()) for name in EXAMPLE_HOST.by_name)),
)


# ---------------------------------------------------------------------- steps


_INSTRUCTIONS = Record(Field("en", LINES, "", True), Field("zh", LINES, "", True), form="{en: [...], zh: [...]}")


def _steps_with(instructions: Type) -> Special:
    """Return the form `[{kind: {arguments}}]` with kinds from a closed list."""

    def judge(validator: Validator, node: Node) -> Any:
        if not validator.filled(node, "list", "[{kind: {...}}]"):
            return None
        return [_step(validator, step, instructions) for step in node.items()]

    return Special(judge, lambda: _steps_form(instructions))


def _step(validator: Validator, step: Node, instructions: Type) -> Any:
    if not validator.filled(step, "mapping", "{kind: {...}}"):
        return None
    if len(step.value) != 1:
        return validator.report(step, Message("a step is one key, {kind: {...}}"))
    ((kind, arguments),) = step.value
    if kind.text not in STEP_KINDS:
        return validator.unknown_word(kind, Message("a kind of step (see `envtune list steps`)"), STEP_KINDS)
    if kind.text == "instructions":
        return {kind.text: _instructions(validator, arguments, instructions)}
    try:
        function = _imported(validator, kind, registry.find_action)
    except KeyError:
        return validator.report(kind, Message("no action {name} yet; use instructions", name=kind.text))
    return {kind.text: _call(validator, kind, arguments, function, registry.action_arguments)}


def _instructions(validator: Validator, node: Node, form: Type) -> Any:
    lines = validator.judge(node, form)
    en, zh = node.get("en"), node.get("zh")
    if en is not None and zh is not None and en.kind == zh.kind == "list" and len(en.value) != len(zh.value):
        message = Message(
            "{english} steps in English, {chinese} in Chinese", english=len(en.value), chinese=len(zh.value)
        )
        validator.report(zh, message)
    return lines


def _steps_form(instructions: Type) -> Type:
    kinds = {name: Field(name, Record(closed=False), doc) for name, doc in STEP_KINDS.items()}
    kinds["instructions"] = kinds["instructions"]._replace(type=instructions)
    for former, name in registry.former_names("actions").items():
        kinds.setdefault(
            former, Field(former, Record(closed=False), f"The former name of {name}, for one more release.")
        )
    return several(Record(*kinds.values(), least=1, most=1))


STEPS = _steps_with(_INSTRUCTIONS)
SITE_STEPS = _steps_with(in_any_language(LINES))
