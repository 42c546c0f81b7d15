"""A policy over the catalog."""

from __future__ import annotations

import pytest
from helpers.policies import shipped

from envtune.model import Check, Severity
from envtune.policy.apply import apply_policy
from envtune.policy.read import read_policy


def checks(text: str, profile: str = "") -> dict[str, Check]:
    policy = read_policy(text.encode(), "p.yaml", shipped().checks, profile or None)
    return {check.id: check for check in apply_policy(policy, shipped()).checks}


@pytest.mark.parametrize(
    ("text", "id_", "expect"),
    [
        ("expect: {CPU001: {eq: ondemand}}", "CPU001", {"eq": "ondemand"}),
        ("thresholds: {SYS005: 1024}", "SYS005", {"ge": 1024}),
        ("thresholds: {SYS006: 1}", "SYS006", {"any": {"ge": 1}}),
        ("thresholds: {SYS011: 50}", "SYS011", {"all": {"ge": 50}}),
        ("thresholds: {SYS005: 1024}\nprofiles: {a: {thresholds: {SYS005: 2}}}", "SYS005", {"ge": 2}),
        ("profiles: {a: {expect: {SYS005: {lt: 3}}, thresholds: {SYS005: 2}}}", "SYS005", {"lt": 2}),
    ],
)
def test_expectations(text: str, id_: str, expect: object) -> None:
    assert checks(text, "a" if "profiles" in text else "")[id_].expect == expect


def test_a_severity_holds_on_every_host() -> None:
    changed = checks("severities: {CANN003: info, POL001: critical}\nfacts: {arch: aarch64}")
    assert (changed["CANN003"].severity, changed["CANN003"].severity_by) == (Severity.INFO, ())
    assert changed["POL001"].severity is Severity.CRITICAL


def test_a_variable_is_exported_as_the_policy_wants_it() -> None:
    policy = read_policy(b"expect: {ENV003: {eq: '1'}}", "p.yaml", shipped().checks)
    assert {"eq": "1"} in apply_policy(policy, shipped()).expectations["ASCEND_GLOBAL_LOG_LEVEL"]


def test_what_the_policy_does_not_name_stays() -> None:
    assert checks("fail_on: low") == {c.id: c for c in shipped().checks}


def test_a_title_says_that_the_policy_is_meant() -> None:
    """What the catalog recommends is another number, and a number without its unit says little."""
    changed = checks("thresholds: {SYS005: 1024}")["SYS005"]
    assert changed.title.en == "Memory is below the recommendation for an eight-NPU host (by the site's policy)"
    assert changed.title.zh == "内存低于八卡主机的推荐值（按站点策略）"
    assert changed.remedy is not None and "1024" not in changed.remedy.en
