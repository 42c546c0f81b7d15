"""A policy file read: what it says, and what is wrong with it, where, and the way out."""

from __future__ import annotations

import pytest
from helpers.policies import shipped

from envtune.errors import PolicyError, UsageError
from envtune.model import Waiver
from envtune.policy.read import Policy, read_policy

WAIVER = "waivers: [{check: CPU001, reason: why, owner: who, expires: 2027-01-31}]"


def read(text: str, profile: str = "") -> Policy:
    return read_policy(text.encode(), "p.yaml", shipped().checks, profile or None)


def test_a_policy_says() -> None:
    policy = read(
        "facts: {driver: 25.0, npu_count: 8, container: false, cann: [8.10, 8.2], kernel: {matches: '5.*'}}\n"
        "thresholds: {SYS005: 1}\nseverities: {CPU001: low}\nexpect: {CPU001: {eq: ondemand}}\n" + WAIVER
    )
    assert policy.facts == {
        "driver": {"all": {"eq": "25.0"}},
        "npu_count": {"all": {"eq": "8"}},
        "container": {"all": {"eq": "false"}},
        "cann": {"all": {"in": ["8.10", "8.2"]}},
        "kernel": {"all": {"matches": "5.*"}},
    }
    assert policy.waivers == (Waiver("CPU001", "why", "who", "2027-01-31"),)
    assert policy.layers[0].thresholds == {"SYS005": 1}


PROFILES = """
select: [SYS]
fail_on: high
facts: {arch: aarch64, driver: old}
profile: day
profiles:
  day: {fail_on: low}
  night: {select: [CPU, NET], facts: {driver: new}}
"""


@pytest.mark.parametrize(
    ("profile", "select", "fail_on", "driver"),
    [("", ("SYS",), "low", "old"), ("night", ("CPU", "NET"), "high", "new")],
)
def test_a_profile_goes_over_the_file(profile: str, select: tuple[str, ...], fail_on: str, driver: str) -> None:
    policy = read(PROFILES, profile)
    assert (policy.last("select"), policy.last("fail_on")) == (select, fail_on)
    assert policy.facts == {"arch": {"all": {"eq": "aarch64"}}, "driver": {"all": {"eq": driver}}}


def test_a_profile_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"p\.yaml has no such profile; did you mean night"):
        read(PROFILES, "nigth")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("fact: {a: b}", "1:1", "did you mean facts?"),
        ("facts: {drivr: 1}", "1:9", "drivr is not a fact; did you mean driver?"),
        ("expect: {CPU0001: {eq: x}}", "1:10", "CPU0001 is not the id of a check; did you mean CPU001"),
        ("expect:\n  CPU001: {equals: x}", "2:12", "equals is not a matcher"),
        ("expect: {SYS001: {profile: train}}", "1:18", "no profile"),
        ("thresholds: {CPU001: 3}", "1:14", "CPU001 has not exactly one bound; use `expect`"),
        ("thresholds: {ENV001: 3}", "1:14", "exactly one bound"),
        ("thresholds: {SYS999: 3}", "1:14", "SYS999 is not the id of a check; did you mean SYS"),
        ("thresholds: {SYS005: much}", "1:22", "must be a number"),
        ("severities: {CPU001: hihg}", "1:22", "did you mean high?"),
        ("fail_on: never", "1:10", "never is not one of"),
        ("select: [CPUX]", "1:10", "is not an id, an id prefix, a name or a tag of a check; did you mean CPU"),
        ("tags: [preflght]", "1:8", "did you mean preflight?"),
        ("profile: day\nprofiles: {night: {select: [CPU]}}", "1:10", "no such profile in `profiles`"),
        ("profiles: {night: {waivers: []}}", "1:20", "waivers is not a known key"),
        (WAIVER.replace("reason: why, ", ""), "1:11", "reason is missing; explain why this is accepted"),
        (WAIVER.replace("owner: who, ", ""), "1:11", "owner is missing; name the person responsible"),
        (WAIVER.replace(", expires: 2027-01-31", ""), "1:11", "expires is missing; write the last day"),
        (WAIVER.replace("2027-01-31", "2027-02-30"), "1:61", "must be a date such as 2027-01-31"),
        (WAIVER.replace("2027-01-31", "soon"), "1:61", "a date such as 2027-01-31"),
        (WAIVER.replace("why", '""'), "1:35", "empty"),
        (WAIVER.replace("CPU001", "CPU0001"), "1:19", "did you mean CPU001"),
        (WAIVER.replace("owner: who", 'owner: who, subject: "npu[a]"'), "1:61", "brackets hold numbers"),
        ("schema: envtune.policy/2", "1:9", 'must be "envtune.policy/1"'),
        ("select: [CPU]\nselect: [NET]", "2:1", "duplicate key"),
    ],
)
def test_what_is_wrong(text: str, place: str, words: str) -> None:
    with pytest.raises(PolicyError) as error:
        read(text)
    assert [line for line in error.value.diagnostics if line.startswith(f"p.yaml:{place}: ") and words in line]
    assert error.value.message.zh != error.value.message.en


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(PolicyError) as error:
        read("facts: {drivr: 1}\nselect: [CPUX]\n" + WAIVER.replace("why", '""'))
    assert [line.split(":")[1] for line in error.value.diagnostics] == ["1", "2", "3"]
