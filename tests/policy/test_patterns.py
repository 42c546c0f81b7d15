"""Patterns of a policy for hosts and subjects."""

from __future__ import annotations

import pytest

from envtune.policy.patterns import is_pattern, matches, matches_host


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("*", "", True),
        ("*", "npu3", True),
        ("npu3", "npu3", True),
        ("npu3", "npu33", False),
        ("npu[2-7]", "npu2", True),
        ("npu[2-7]", "npu8", False),
        ("npu[2-7]", "npu07", True),
        ("node[01-20]", "node07", True),
        ("node[01-20]", "node7", False),
        ("node[1-3,9]", "node9", True),
        ("node[1-3,9]", "node4", False),
        ("node[1-3,9],gpu*", "gpu-a", True),
        ("r[1-2]n[1-4]", "r2n4", True),
        ("r[1-2]n[1-4]", "r3n4", False),
        ("te?t", "test", True),
        ("a.b", "axb", False),
        ("port 60003", "port 60003", True),
    ],
)
def test_matches(pattern: str, name: str, expected: bool) -> None:
    assert matches(pattern, name) is expected


def test_a_host_is_meant_by_its_short_name_too() -> None:
    assert matches_host("node[1-3]", "node2.cluster.example")
    assert matches_host("node2.*", "node2.cluster.example")
    assert not matches_host("node[1-3]", "node4.cluster.example")


@pytest.mark.parametrize("text", ["npu[a]", "npu[", "npu]", "npu[3-1]", "npu[]", "a,,b", ",", "npu[1-]"])
def test_what_is_no_pattern(text: str) -> None:
    with pytest.raises(ValueError, match=r"between|number|brackets"):
        is_pattern(text)
