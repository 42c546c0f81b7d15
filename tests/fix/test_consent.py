"""Consent: a downgrade is called one, says what is lost, and asks on its own."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.cases import planned, the_case
from helpers.fix_world import World

from envtune.fix.consent import Consent, downgrade_texts, downgrades, sort_changes
from envtune.model import Change, VersionChange
from envtune.report.plan.text import render


def change(before: str, after: str, **more: Any) -> Change:
    versions = (VersionChange("Pillow", before, after),)
    return Change("X1", "", "", "images.x", "/site", "", "", "job", (), id="C01", versions=versions, **more)


@pytest.mark.parametrize(
    ("before", "after", "down", "major"),
    [
        ("12.0.0", "9.5.0", True, True),
        ("9.5.0", "9.4.0.post1", True, False),
        ("9.5.0", "9.5.0.post2", False, False),
        ("9.5", "9.5.0", False, False),
        ("8.0.RC2", "8.0.RC10", False, False),
        ("8.0.RC10", "8.0.RC2", True, False),
        ("8.0.0", "8.0.RC2", True, False),
        ("6.3.RC2.alpha003", "7.0.0.1.231", False, False),
        ("10.0.0", "9.9.9", True, True),
        ("v2.1.0", "2.1.0rc1", True, False),
        ("unknown", "unknown", False, False),
    ],
)
def test_what_a_downgrade_is(before: str, after: str, down: bool, major: bool) -> None:
    made = change(before, after)
    texts = [text.en for text in downgrade_texts(made)]
    assert bool(downgrades(made)) == down and len(texts) == down + major
    if down:
        assert texts[0].startswith(f"downgrades Pillow from {before} to {after}: ") and "security fixes" in texts[0]


@pytest.mark.parametrize(
    ("case", "shown"),
    [
        ("images/install_pillow/another-package-is-content-with-an-older-one", "Pillow from 10.1.0 to 9.5.0"),
        ("images/install_pillow/the-release-nearest-to-an-old-pillow", ""),
        ("cann/install_te/both-packages-in-one-change", ""),
    ],
)
def test_the_actions_give_the_versions(case: str, shown: str) -> None:
    plan = planned(the_case(case)).plan
    assert all(change.versions for change in plan.changes)
    assert (f"downgrades {shown}" in " ".join(render(plan, "en").split())) == bool(shown)


def test_an_action_says_that_a_change_lasts_until_the_next_boot_only() -> None:
    (change,) = planned(the_case("sysctl/set/no-name-of-ours-comes-behind")).plan.changes
    assert "/etc/sysctl.d/zzzz.conf" in str(change.until_reboot)


@pytest.mark.parametrize(
    ("consent", "ready"),
    [
        (Consent(), False),
        (Consent(words=("X1",)), False),  # naming the check is no consent to what its fix loses
        (Consent(changes=("C01",)), True),
        (Consent(everything=True), True),
    ],
)
@pytest.mark.parametrize("safety", ["safe", "confirm"])
def test_it_is_consented_to_on_its_own(consent: Consent, ready: bool, safety: str) -> None:
    made, withheld = sort_changes([change("12.0.0", "9.5.0", safety=safety)], consent, True)
    assert bool(made) == ready and [one.why for one in withheld] == ([] if ready else ["consent"])
    assert ready or "--change C01" in withheld[0].reason.en
    up = sort_changes([change("9.5.0", "9.5.0.post2")], consent, True)[0]
    assert up or consent.changes == ("C02",)


def test_on_a_terminal_it_is_a_question_of_its_own(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envtune.cli.fix.is_interactive", lambda: True)
    world.own["SYS901"] = {"versions": (VersionChange("Pillow", "12.0.0", "9.5.0"),)}
    done = world.run("fix", "--apply", input="n\ny\n")
    assert "downgrades Pillow from 12.0.0 to 9.5.0" in " ".join(done.stdout.split())
    assert done.stderr.count("Make this change?") == 2 and world.contents() == ("bad", "good")
