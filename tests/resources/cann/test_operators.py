"""Operator packages are judged by the release notes and by what the packages state, never by a missing pair."""

from __future__ import annotations

import pytest
from helpers.examples import example_context

from envtune.resources.cann.operators import operators_match
from envtune.resources.cann.version_files import requirement_met, same_release, version_key

TREE = "/usr/local/Ascend/cann-8.5.0"


@pytest.mark.parametrize(
    ("ops", "toolkit", "value"),
    [
        ("9.0.1", "9.0.1", "match"),
        ("9.0.1", "9.0.0", "match"),
        ("9.0.1", "8.5.2", "match"),
        ("9.0.0", "9.0.7", "match"),  # 9.0.X since the notes of 9.1.1
        ("8.5.2", "9.1.1", "match"),
        ("9.1.1", "9.1.3", "match"),
        ("8.5.2", "8.5.1", None),
        ("8.5.0", "9.0.0", None),
        ("9.1.1", "8.5.0", None),
        ("9.3.0", "9.3.0", "match"),  # one release
    ],
)
def test_ops_and_toolkit(ops: str, toolkit: str, value: object) -> None:
    context = example_context(
        {
            "like": "cann-new",
            "files": {
                f"{TREE}/aarch64-linux/ascend_toolkit_install.info": f"version={toolkit}\n",
                f"{TREE}/aarch64-linux/ascend_ops_install.info": f"package_name=Ascend-cann-ops\nversion={ops}\n",
                f"{TREE}/opp/version.info": None,
                f"{TREE}/share/info/opp/version.info": None,
            },
        }
    )
    (reading,) = operators_match(context)
    assert (reading.subject, reading.value) == ("Ascend-cann-ops", value)
    assert value is not None or (reading.reason is not None and "published pairs of 2026-11" in reading.reason.en)


@pytest.mark.parametrize(
    ("version", "requirement", "met"),
    [
        ("8.2.0.0.201", "8.2", True),
        ("8.2.0.0.201", ">=7.6, <=8.2", True),
        ("8.3.0.1.200", ">=7.6, <=8.2", False),
        ("7.5.0.1.200", ">=7.6, <=8.2", False),
        ("8.3.T5.0.B028", ">=7.6, <=8.3", True),
    ],
)
def test_requirements_between_packages(version: str, requirement: str, met: bool) -> None:
    assert requirement_met(version, requirement) is met


@pytest.mark.parametrize(("version", "requirement"), [("8.2.0", ""), ("8.2.0", "~8"), ("", "8.2"), ("8.2", ">=")])
def test_a_requirement_that_makes_no_sense_decides_nothing(version: str, requirement: str) -> None:
    with pytest.raises(ValueError):
        requirement_met(version, requirement)


def test_versions_in_the_order_of_their_release() -> None:
    texts = ["8.2.RC1", "8.2.RC2", "8.2.0", "8.5.0-beta.1", "8.5.0", "9.1.0-alpha.1", "9.1.0-beta.1", "9.1.0", "9.1.X"]
    keys = [version_key(text) for text in texts]
    assert None not in keys and keys == sorted(keys, key=lambda key: key or ((), 0, 0))
    assert version_key("garbage") is None


@pytest.mark.parametrize(
    ("version", "row", "same"),
    [
        ("9.1.0", "9.1.X", True),
        ("9.1.12", "9.1.x", True),
        ("9.1.0-beta.1", "9.1.X", False),
        ("9.10.0", "9.1.X", False),
        ("8.5.2", "8.5.2", True),
        ("8.2.rc1", "8.2.RC1", True),
    ],
)
def test_ranges_of_patch_levels(version: str, row: str, same: bool) -> None:
    assert same_release(version, row) is same
