"""Times as loggers of every kind write them."""

from __future__ import annotations

import calendar

import pytest

from envtune.diagnose.logs.lines import NO_YEAR, time_of


@pytest.mark.parametrize(
    ("line", "year", "fraction"),
    [
        ("[ERROR] HCCL(7,python):2024-06-01-10:00:05.123.456 [a.cc:1] late", 2024, 0.123456),
        ("06-01 10:00:05,250 INFO step 1", NO_YEAR, 0.25),
        ("Jun  1 10:00:05 node1 kernel: [ 8123.456789] oom-kill:constraint=CONSTRAINT_NONE", NO_YEAR, 0.0),
        ("Jun 01 10:00:05 node1 kernel: oom-kill:constraint=CONSTRAINT_NONE", NO_YEAR, 0.0),
        ("Jun 01 10:00:05.250000 node1 kernel: oom-kill:constraint=CONSTRAINT_NONE", NO_YEAR, 0.25),
        ("<4>Jun  1 10:00:05 node1 kernel: oom-kill:constraint=CONSTRAINT_NONE", NO_YEAR, 0.0),
        ("Sat Jun  1 10:00:05 node1 kernel: oom-kill:constraint=CONSTRAINT_NONE", NO_YEAR, 0.0),
        ("[Sat Jun  1 10:00:05 2024] oom-kill:constraint=CONSTRAINT_NONE", 2024, 0.0),
        ("2024-06-01T10:00:05+0800 node1 kernel: oom-kill:constraint=CONSTRAINT_NONE", 2024, 0.0),
    ],
)
def test_a_time(line: str, year: int, fraction: float) -> None:
    assert time_of(line) == pytest.approx(calendar.timegm((year, 6, 1, 10, 0, 5)) + fraction, abs=1e-6)


@pytest.mark.parametrize(
    "line",
    [
        "[ 8123.456789] oom-kill:constraint=CONSTRAINT_NONE",
        "[ 8123.456789][ T4711] oom-kill:constraint=CONSTRAINT_NONE",
        "June 31 10:00:05 is no date",
        "Jun 31 10:00:05 node1 kernel: no date either",
    ],
)
def test_no_time_of_day(line: str) -> None:
    assert time_of(line) is None
