"""Values of facts in words."""

from __future__ import annotations

from typing import Optional

import pytest

from envtune.compare.facts import fact_row
from envtune.compare.hosts import Value
from envtune.report.comparison.text import package_texts
from envtune.report.comparison.values import contrast, value_text

LONG = ":".join(f"/usr/local/Ascend/ascend-toolkit/latest/lib64/{name}" for name in "abcdef")


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("driver", "25.0.rc1.1", "25.0.rc1.1"),
        ("driver", "none", "none"),
        ("container", "true", "yes"),
        ("variable:TASK_QUEUE_ENABLE", None, "not set"),
        ("variable:TASK_QUEUE_ENABLE", "", "empty"),
        ("variable:X", "true", "true"),  # a variable's value is shown as it is
        ("package:numpy", None, "not installed"),
        ("variable:X", "\x1b[2J", "\\x1b[2J"),
        ("variable:X", "x" * 200, "x" * 100 + "..."),
    ],
)
def test_value(name: str, value: Optional[str], shown: str) -> None:
    assert value_text(name, value).en == shown


@pytest.mark.parametrize(
    ("value", "other", "shown"),
    [
        ("1", "2", "1"),
        (f"{LONG}:/opt/x", LONG, "also has /opt/x"),
        (LONG, f"{LONG}:/opt/x", "lacks /opt/x"),
        (f"{LONG}:/opt/y", f"/opt/x:{LONG}", "lacks /opt/x; also has /opt/y"),
        (":".join(LONG.split(":")[::-1]), LONG, "the same entries in another order"),
        (None, LONG, "not set"),
    ],
)
def test_a_long_list_of_paths_is_shown_by_what_differs(value: Optional[str], other: Optional[str], shown: str) -> None:
    assert contrast("variable:PYTHONPATH", value, other).en == shown


def test_packages_in_which_the_same_host_differs_take_one_line() -> None:
    def values(version: Optional[str]) -> list[tuple[str, Value]]:
        return [(label, Value(text, text)) for label, text in (("n1", "1"), ("n2", "1"), ("n3", version))]

    rows = [fact_row(f"package:p{number}", values(None if number else "2")) for number in range(5)]
    assert [text.en for text in package_texts(rows)] == [
        "5 Python packages",
        "n3: p0 2 (others: 1), p1 not installed (others: 1), p2 not installed (others: 1), 2 more (-v shows all)",
    ]
    assert [text.en for text in package_texts(rows[:1])] == ["p0: 2 of 3 have 1", "n3: 2"]
