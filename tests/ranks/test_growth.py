"""Jobs of thousands of ranks: the time grows with their number."""

from __future__ import annotations

import time
from typing import Callable

import pytest

from envtune.ranks.records import Note, Source
from envtune.ranks.root import investigate

MOST = 1024  # ranks


def chain(rank: int, path: str, _size: int) -> list[Note]:
    return [
        Note(
            "notify",
            path,
            2,
            2000.0,
            "Task run failed, base information is taskType[Notify Wait], tag[AllReduce_g], index[3]",
        ),
        Note("notify.peer", path, 3, 2000.0, f"para information is notify, remote rank:[{rank + 1}]."),
    ]


def circle(rank: int, path: str, size: int) -> list[Note]:
    return chain((rank + 1) % size - 1, path, size)


def failure(rank: int, path: str, _size: int) -> list[Note]:
    return [Note("error", path, 2, 100.0 + rank, "KeyError: 'x'", {"meaning": "own"})]


def seconds(size: int, says: Callable[[int, str, int], list[Note]]) -> float:
    notes: list[Note] = []
    sources = []
    for rank in range(size):
        path = f"/l/node{rank // 8}/plog/plog-{1000 + rank}_20250304100000123.log"
        sources.append(Source(path, f"node{rank // 8}", 0.0, 2000.0))
        start = f"SetupAgent rankNum[{size}], rank[{rank}], rootInfo identifier[g], server[10.0.{rank // 8}.1]"
        notes += [Note("start", path, 1, 1.0, start), *says(rank, path, size)]
    began = time.process_time()
    investigate(sources, notes)
    return time.process_time() - began


@pytest.mark.slow
@pytest.mark.parametrize("says", [chain, circle, failure])
def test_twice_the_ranks_take_about_twice_the_time(says: Callable[[int, str, int], list[Note]]) -> None:
    assert seconds(2 * MOST, says) < 6 * seconds(MOST, says) + 0.5
