"""The value that a variable should have in training: what the catalog expects of it, else the profile of the table.

A check about one variable may leave its values to the table (`expect: {profile: train}`). If it states its own
expectation, as a site's check may, everything that deals with the variable follows it: `envtune env`, the playbook that
sets variables, and the checks about debugging settings and running processes.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Optional, Sequence

from envtune import expect
from envtune.context import Context
from envtune.messages import Message, Text, alternatives, clauses, in_context
from envtune.model import Check, Expectation
from envtune.records import NamedTuple
from envtune.resources.environment.reference import TorchNpu, about, has_advice, is_advised, names, torch_npu_of

UNSET = "unset"  # the value of a variable that is not set
QUEUE = "TASK_QUEUE_ENABLE"
_ONE_VARIABLE = ("environment.variable", "environment.torch_npu_variable")


class TrainingValue(NamedTuple):
    """What training expects of one variable; every expectation must hold."""

    name: str
    expectations: tuple[Expectation, ...]

    def accepts(self, value: str) -> bool:
        """Return whether the value (`unset` for none) is as expected."""
        return all(_holds(expectation, value) for expectation in self.expectations)

    @property
    def preferred(self) -> Optional[str]:
        """The value to set: `unset` only if nothing else is accepted, None if no known value is accepted."""
        row = about(self.name)
        listed = [value for expectation in self.expectations for value in values_in(expectation)]
        known = (*listed, *row.get("train", ()), *row.get("form", {}).get("in", ()), UNSET)
        accepted = [value for value in known if self.accepts(value)]
        return next((value for value in accepted if value != UNSET), UNSET if accepted else None)

    @property
    def text(self) -> Text:
        """The expected values as text."""
        return clauses(value_words(self.name, one) or expect.describe(one) for one in self.expectations)


def _holds(expectation: Expectation, value: Any) -> bool:
    try:
        return expect.matches(expectation, value)
    except (TypeError, ValueError):  # a number is expected, and this is not one
        return False


def values_in(expectation: Expectation) -> tuple[str, ...]:
    """Return the values that an expectation lists; none for one that does not list any."""
    wanted = expect.only(expectation, "in")
    if wanted is None:
        single = expect.only(expectation, "eq")
        wanted = () if single is None else (single,)
    return tuple(value for value in wanted if isinstance(value, str))


def value_words(name: str, expectation: Expectation) -> Optional[Text]:
    """Express an expectation that lists values of a variable: `3, or unset (the default is 3)`; None for any other."""
    listed = values_in(expectation)
    if not listed:
        return None
    named = [value for value in listed if value != UNSET]
    if not named:
        return in_context("variables", "unset")
    values = alternatives(named)
    if UNSET not in listed:
        return values
    default = about(name).get("default")
    if default:
        return Message("{values}, or unset (the default is {default})", values=values, default=default)
    return Message("{values}, or unset", values=values)


def train_expectation(name: str) -> Optional[Expectation]:
    """Return the table's profile of a variable as an expectation of its value; None if the table expects nothing."""
    values = about(name).get("train", ())
    return ({"in": values} if len(values) > 1 else {"eq": values[0]}) if values else None


def training_value(context: Context, name: str) -> Optional[TrainingValue]:
    """Return what training expects of the variable; None if nothing is expected."""
    stated = tuple(context.expectations.get(name, ()))
    profile = train_expectation(name)
    if set(map(repr, stated)) <= {repr(profile)} and not _is_for_the_job(context, name):
        return None  # what the table wants was meant for another torch_npu
    if stated:
        return TrainingValue(name, stated)
    return None if profile is None else TrainingValue(name, (profile,))


def _is_for_the_job(context: Context, name: str) -> bool:
    """Return whether the table's profile is meant for the job's torch_npu."""
    if not has_advice(name):
        return True
    found = torch_npu_of(context)
    return isinstance(found, TorchNpu) and is_advised(found, name) is True


def known_names(context: Context) -> tuple[str, ...]:
    """Return every variable of the table, and those only in the catalog; a name with a dot belongs to a probe."""
    return (*names(), *(name for name in sorted(context.expectations) if "." not in name and not about(name)))


def catalogue_expectations(checks: Iterable[Check]) -> Mapping[str, Sequence[Expectation]]:
    """Return, by name, what the checks about a single variable expect of its value."""
    found: dict[str, list[Expectation]] = {}
    for check in checks:
        inner = expect.matchers(check.expect)
        if check.probe in _ONE_VARIABLE and inner:
            found.setdefault(str(check.arguments["name"]), []).append(inner)
        elif check.probe == "environment.task_queue" and inner:
            found.setdefault(QUEUE, []).append(_queue_values(inner))
    return found


def _queue_values(levels: Expectation) -> Expectation:
    """Return the expectation of TASK_QUEUE_ENABLE that accepts these levels of the queue; each level is a value."""
    return {"in": [str(level) for level in (1, 2, 0) if _holds(levels, level)]}
