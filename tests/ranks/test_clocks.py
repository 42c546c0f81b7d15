"""How far the clocks of hosts are apart is found from what happens on both, or not at all."""

from __future__ import annotations

import pytest

from envtune.ranks.clocks import Clocks
from envtune.ranks.records import Note, Process

A, B, C = Process("a"), Process("b"), Process("c")


def step(process: Process, number: int, time: float) -> tuple[Process, Note]:
    return process, Note("seen", f"{process.host}.log", -number, time, f"step {number}/500 loss 2.3")


def ready(process: Process, time: float) -> tuple[Process, Note]:
    text = "HcclCommInitRootInfo success,take time [1]us, rankNum[2], rank[0],rootInfo identifier[w], server[10.0.0.1]"
    return process, Note("start", f"{process.host}.log", 1, time, text)


@pytest.mark.parametrize("ahead", [-7200.0, 0.0, 433.5])
def test_steps_give_the_difference(ahead: float) -> None:
    clocks = Clocks(
        [pair for n in range(9) for pair in (step(A, n, 10.0 * n), step(B, n, 10.0 * n + ahead + n % 2 / 4))]
    )
    assert clocks.later(B, 500 + ahead, A, 100) == pytest.approx(400, abs=1)
    assert clocks.later(A, 100, B, 500 + ahead) == pytest.approx(-400, abs=1)
    assert clocks.later(B, 100.4 + ahead, A, 100) == 0.0  # within the error


def test_hosts_are_compared_by_way_of_another() -> None:
    clocks = Clocks([step(A, 1, 0), step(B, 1, 100), ready(B, 205), ready(C, 5)])
    assert clocks.later(C, 50, A, 0) == pytest.approx(150, abs=1)


def test_without_pairs_nothing_is_known_but_within_a_host() -> None:
    clocks = Clocks([step(A, 1, 0), step(B, 2, 100)])
    assert clocks.later(A, 1000, B, 0) is None
    assert clocks.later(A, 1000, Process("a"), 0) == 1000
