"""The expected governor: what the checks expect, which a site's policy may change."""

from __future__ import annotations

from typing import Iterable, Mapping, Sequence

from envtune import expect
from envtune.context import Context
from envtune.errors import Skipped
from envtune.messages import Message, clauses
from envtune.model import Check, Expectation
from envtune.resources.cpu.frequency import GOVERNORS

RUNNING, AT_BOOT = "cpu.governors", "cpu.boot_governor"  # probes


def governor_expectations(checks: Iterable[Check]) -> Mapping[str, Sequence[Expectation]]:
    """Return, by probe, what is expected of the running governor and of the one at boot."""
    found: dict[str, list[Expectation]] = {}
    for check in checks:
        inner = expect.matchers(check.expect)
        if check.probe in (RUNNING, AT_BOOT) and inner:
            found.setdefault(check.probe, []).append(inner)
    return found


def expected_governor(context: Context, probe: str, default: str) -> str:
    """Return `default` if it is as expected or nothing is expected, else the first governor that is. Raises Skipped."""
    stated = context.expectations.get(probe, ())
    for governor in (default, *GOVERNORS):
        if all(_holds(one, governor) for one in stated):
            return governor
    words = clauses(expect.describe(one) for one in stated)
    raise Skipped(Message("envtune does not know the governor {expected}", expected=words))


def _holds(expectation: Expectation, governor: str) -> bool:
    try:
        return expect.matches(expectation, governor)
    except (TypeError, ValueError):  # a number is expected
        return False
