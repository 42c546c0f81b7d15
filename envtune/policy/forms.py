"""The form of a policy file; docs/schema/policy.json publishes it.

The existing ids, facts and selectors are known when a file is read: `policy_form` takes the checks.
"""

from __future__ import annotations

from datetime import date
from typing import Any, Callable, Mapping, Optional, Sequence

from envtune.catalog.entries import expectation_of
from envtune.catalog.forms import EXPECT, NAME, REGEX, several
from envtune.catalog.schema import ID, SEVERITY
from envtune.catalog.selection import names, selectors
from envtune.catalog.yaml import Node
from envtune.context import registry
from envtune.expect import matchers
from envtune.messages import Message, Text
from envtune.model import Check, Expectation
from envtune.policy.patterns import is_pattern
from envtune.schema.types import AnyOf, Bool, Const, Field, MapOf, Number, Record, Special, Str, Type
from envtune.schema.validate import Validator

SCHEMA = "envtune.policy/1"
BOUNDS = ("lt", "le", "gt", "ge")
_A_CHECK = Message("the id of a check")
_TEXT = Str(least=1)
_CHECK_ID = Str(ID, "CPU001")
_VALUE = AnyOf(Str(least=1, numbers=True), Bool())
_FACT_MATCHERS = Record(
    *(Field(name, _VALUE) for name in ("eq", "ne")),
    *(Field(name, several(_VALUE)) for name in ("in", "not_in")),
    *(Field(name, Number()) for name in BOUNDS),
    Field("matches", REGEX),
    key=Message("a matcher"),
    form="{eq: ...}",
    least=1,
)
_FACT = AnyOf(*_VALUE.options, several(_VALUE), _FACT_MATCHERS)


def _is_date(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text))
    except ValueError:  # whose words are English
        return False


_DATE = Str(
    "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    name=Message("a date such as 2027-01-31"),
    check=_is_date,
)
_PATTERN = Str(least=1, name=Message("a pattern such as node[01-20],gpu*"), check=is_pattern)


def policy_form(checks: Sequence[Check] = ()) -> Record:
    """Return the form of a policy over these checks; without checks, the published one."""
    settings = _settings(checks)
    return Record(
        Field("schema", Const(SCHEMA), "The version of this form."),
        *settings,
        Field("profile", Str(NAME, "training"), "The profile that is used where --profile names none."),
        Field(
            "profiles",
            MapOf(Record(*settings, least=1), Str(NAME, "training"), least=1),
            "Named sets of these settings; each goes over the settings of the file.",
        ),
        Field("waivers", several(_waiver(checks)), "Findings that are accepted for a time."),
        form="facts, expect, thresholds, severities, profiles, waivers, ...",
    )


def _settings(checks: Sequence[Check]) -> tuple[Field, ...]:
    selectors_ = several(_selector(checks))
    bounded = [check for check in checks if bound_of(check.expect)]
    unbounded = {check.id: _unbounded(check.id) for check in checks if check not in bounded}
    return (
        Field("select", selectors_, "Only these checks: ids, id prefixes, names or tags."),
        Field("ignore", selectors_, "Not these checks."),
        Field("tags", several(_tag(checks)), "Only checks with one of these tags."),
        Field("fail_on", Str(choices=(*SEVERITY.choices, "none")), "The severity from which on check ends with 1."),
        Field("facts", FACTS, "Golden values of facts: a value, a list of values, or matchers."),
        Field("expect", _by_check(checks, _expectation, EXPECT), "What checks expect, in place of the catalog's."),
        Field(
            "thresholds",
            _by_check(bounded, lambda check: Number(), Number(), unbounded),
            "The number in the expectation of a check that has one bound (lt, le, gt or ge).",
        ),
        Field("severities", _by_check(checks, lambda check: SEVERITY, SEVERITY), "The severity of checks."),
    )


def _unbounded(id_: str) -> Text:
    return Message("{check} has not exactly one bound; use `expect`", check=id_)


def bound_of(expect: Expectation) -> Optional[str]:
    """Return the only matcher of an expectation that is a bound, None if there is none or more than one."""
    found = [name for name in matchers(expect) if name in BOUNDS]
    return found[0] if len(found) == 1 else None


def _by_check(
    checks: Sequence[Check], value: Callable[[Check], Type], published: Type, others: Mapping[str, Text] = {}
) -> Special:
    """Return a mapping of ids of these checks; `others` are ids of other checks, and why they are no keys of it."""

    def judge(validator: Validator, node: Node) -> Any:
        fields = {check.id: Field(check.id, value(check)) for check in checks}
        form = Record(*fields.values(), key=_A_CHECK, form="{CPU001: ...}", least=1, others=others)
        return validator.judge(node, form)

    return Special(judge, lambda: MapOf(published, _CHECK_ID, least=1))


def _expectation(check: Check) -> Special:
    """Return the form of an expectation of a check; `{profile: train}` is what the table of variables expects."""

    def judge(validator: Validator, node: Node) -> Any:
        given = validator.judge(node, EXPECT)
        if given is None:
            return None
        try:
            return expectation_of({"expect": given, "probe": {check.probe: check.arguments}})
        except ValueError:
            return validator.report(node, Message("the table of variables has no profile for what this probe reads"))

    return Special(judge, lambda: EXPECT)


def _selector(checks: Sequence[Check]) -> Special:
    def judge(validator: Validator, node: Node) -> Any:
        word = validator.judge(node, _TEXT)
        if word is not None and not any(names(word, check) for check in checks):
            validator.unknown_word(node, Message("an id, an id prefix, a name or a tag of a check"), selectors(checks))
        return word

    return Special(judge, lambda: _TEXT)


def _tag(checks: Sequence[Check]) -> Special:
    def judge(validator: Validator, node: Node) -> Any:
        word, tags = validator.judge(node, _TEXT), sorted({tag for check in checks for tag in check.tags})
        if word is not None and word not in tags:
            validator.unknown_word(node, Message("a tag of a check"), tags)
        return word

    return Special(judge, lambda: _TEXT)


def _waiver(checks: Sequence[Check]) -> Record:
    return Record(
        Field("check", _known_check(checks), "The id of the check.", True),
        Field("subject", _PATTERN, "What it is waived for (npu[2-7], te); all subjects where it is left out."),
        Field("hosts", _PATTERN, "The hosts on which it is waived (node[01-20]); all hosts where it is left out."),
        Field(
            "reason", _TEXT, "Why this is accepted.", True, Message("reason is missing; explain why this is accepted")
        ),
        Field("owner", _TEXT, "Who answers for it.", True, Message("owner is missing; name the person responsible")),
        Field(
            "expires",
            _DATE,
            "The last day on which it holds (UTC).",
            True,
            Message("expires is missing; write the last day on which the waiver is valid, as 2027-01-31"),
        ),
        Field("unknown", Bool(), "true: it also covers checks that are unknown."),
        key=Message("a key of a waiver"),
    )


def _known_check(checks: Sequence[Check]) -> Special:
    def judge(validator: Validator, node: Node) -> Any:
        word, ids = validator.judge(node, _TEXT), [check.id for check in checks]
        if word is not None and word not in ids:
            validator.unknown_word(node, _A_CHECK, ids)
        return word

    return Special(judge, lambda: _CHECK_ID)


def _facts_form() -> Record:
    return Record(*(Field(name, _FACT) for name in registry.fact_names()), key=Message("a fact"), least=1)


FACTS = Special(lambda validator, node: validator.judge(node, _facts_form()), _facts_form)
