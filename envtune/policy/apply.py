"""Apply a policy to a catalog: what checks expect, how severe they are, and what is waived."""

from __future__ import annotations

from typing import Any, Mapping

from envtune.catalog import Catalogue
from envtune.model import Check, Expectation, Severity
from envtune.policy.forms import bound_of
from envtune.policy.golden import golden_checks
from envtune.policy.read import Policy
from envtune.policy.wording import reworded


def apply_policy(policy: Policy, catalogue: Catalogue) -> Catalogue:
    """Return the catalog as modified by the policy, with the checks of its golden facts."""
    checks = (*catalogue.checks, *golden_checks(policy.facts))
    return catalogue.with_checks([_changed(check, policy) for check in checks])


def _changed(check: Check, policy: Policy) -> Check:
    shipped = check.expect
    for layer in policy.layers:
        if check.id in layer.expect:
            check = check._replace(expect=layer.expect[check.id], expected=None)
        if check.id in layer.thresholds:
            check = check._replace(expect=_with_bound(check.expect, layer.thresholds[check.id]), expected=None)
        if check.id in layer.severities:
            check = check._replace(severity=Severity(layer.severities[check.id]), severity_by=())
    check = reworded(check, shipped)
    return check._replace(waivers=tuple(waiver for waiver in policy.waivers if waiver.check == check.id))


def _with_bound(expect: Expectation, number: float) -> Expectation:
    """Return the expectation with another number as its bound."""
    bound = bound_of(expect)
    if bound is None:  # a profile sets a bound where the check's file has none
        return expect
    quantifier = next((name for name in ("all", "any") if name in expect), None)
    inner: Mapping[str, Any] = {**(expect[quantifier] if quantifier else expect), bound: number}
    return {quantifier: inner} if quantifier else inner
