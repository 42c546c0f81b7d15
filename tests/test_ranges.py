"""Ranges of numbers in text, and what a finding speaks about named as a person would write it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envtune.ranges import cpu_numbers, join_subjects, whole_number


@pytest.mark.parametrize(
    ("names", "joined"),
    [
        (["cpu0", "cpu1", "cpu2", "cpu7"], "cpu0-2, cpu7"),
        (["cpu0-3", "cpu4-7"], "cpu0-7"),
        (["cpu0, cpu96", "cpu1, cpu97"], "cpu0-1, cpu96-97"),
        (["npu3"], "npu3"),
        (["npu7", "npu1", "npu0"], "npu0-1, npu7"),
        (["te", "topi"], "te, topi"),
        (["npu", "npu3"], "npu, npu3"),
        (["cpu1", "te", "cpu2"], "cpu1-2, te"),
        (["TASK_QUEUE_ENABLE"], "TASK_QUEUE_ENABLE"),
        (["numpy 1.21.6", "numpy 1.21.7"], "numpy 1.21.6, numpy 1.21.7"),
        (["60000-60031"], "60000-60031"),
        (["cpu7-3"], "cpu3, cpu7"),
        ([""], ""),
        ([], ""),
    ],
)
def test_join(names: list[str], joined: str) -> None:
    assert join_subjects(names) == joined


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0 1 2 3\n", (0, 1, 2, 3)),
        ("0-3,8\n", (0, 1, 2, 3, 8)),
        ("0,96\n", (0, 96)),
        ("\n", ()),
        ("zero one", ()),
        ("3-x", ()),
        ("0-999999999999", ()),
    ],
)
def test_cpu_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert cpu_numbers(text) == numbers


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2600000\n", 2600000),
        (" 0 ", 0),
        ("9" * 18, 10**18 - 1),
        ("9" * 5000, None),
        ("-1", None),
        ("٣", None),
        ("", None),
    ],
)
def test_whole_number(text: str, number: Any) -> None:
    assert whole_number(text) == number


@given(st.text())
def test_no_text_breaks_a_parser(text: str) -> None:
    assert all(number >= 0 for number in cpu_numbers(text))
