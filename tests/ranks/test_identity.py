"""Who printed a line, and what a path says."""

from __future__ import annotations

from typing import Any, Optional

import pytest

from envtune.ranks.identity import Identity, Place, identity_of, places_of
from envtune.ranks.records import Note, Source
from envtune.ranks.table import Naming


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[rank3]: Traceback", {"rank": 3}),
        ("[rank3]:[E324 13:00:25.4 compiler_depend.ts:574] [Rank 3] Watchdog caught", {"rank": 3}),
        ("[default2]:[rank10]: x", {"rank": 10, "local_rank": 2}),
        ("[default2]:step 3", {"local_rank": 2}),
        ("[E420 21:27:54.629452030] [PG ID 1 PG GUID 0(default_pg) Rank 5] Watchdog caught", {"rank": 5}),
        ("[1,3]<stderr>:EI0002", {"rank": 3}),
        ("7: step 3", {"label": 7}),
        ("[1]: see the manual", {"label": 1}),
        ("worker-1: [rank9]: x", {"rank": 9, "host": "worker-1"}),
        ("10.0.0.7: epoch 1", {"host": "10.0.0.7"}),
        ("(PID:13075, Device:1, RankID:8) ERR00100", {"pid": 13075, "device": 1, "rank": 8}),
        ("(PID:13075, Device:0, RankID:-1) ERR00100", {"pid": 13075, "device": 0}),
        ("EI0006: [PID: 15618] 2025-10-11-11:32:29.335.888 Getting socket times out.", {"pid": 15618}),
        ("[ERROR] HCCL(69395,python3):2024-04-08 rank[443] failed", {"pid": 69395}),
        ("[ERROR] DEVICE(105395,fffdda7fc0f0,python):2022-11-29 x", {"pid": 105395}),
        ("[ERROR] HCCP(13722,hccp_service.bin):2023-11-29-11:55:41.806.183 [ra_adp.c:1425]tid:13722", {}),
        ("[ERROR] DRV(28499, hccp_service.bin):2026-02-09-11:36:23.530.484 [devdrv_pcie.c:1064]", {}),
        ("[ERROR] HCCL(54711,aicpu_scheduler):2025-03-04-10:16:00.834.048 [aicpu_communicator.cc:3083]", {}),
        ("(Worker_TP11 pid=15618) ERROR 10-11", {"pid": 15618, "rank": 11, "worker": "Worker_TP11"}),
        ("(Worker_DP1_TP3 pid=15618) ERROR", {"pid": 15618, "worker": "Worker_DP1_TP3"}),
        ("(WorkerDict pid=7435, ip=10.0.0.3) x", {"pid": 7435, "host": "10.0.0.3", "worker": "WorkerDict"}),
        ("GetRankBasicInfo from rank[443] failed, ret[9]", {}),
        ("connect from rank 2 to rank 4 failed", {}),
        ("RuntimeError: NPU out of memory", {}),
    ],
)
def test_the_prefixes_of_a_line(line: str, expected: dict[str, Any]) -> None:
    assert identity_of(line) == Identity(**expected)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/l/nodeA/plog/plog-4711_20240601080000000.log", {"host": "nodeA", "pid": 4711}),
        (
            "/l/worker-0/debug/device-3/device-4711_20240601080000000.log",
            {"host": "worker-0", "pid": 4711, "device": 3},
        ),
        (
            "/l/10.0.0.7/process_log/rank_76/debug/plog/plog-5_20230704214646084.log",
            {"host": "10.0.0.7", "rank": 76, "pid": 5},
        ),
        ("/l/rank-3.txt", {"rank": 3}),
        ("/l/local_rank_3.log", {"local_rank": 3}),
        ("/l/node_rank_1.log", {"host": "node1"}),
        ("/l/node1_rank12.log", {"host": "node1", "rank": 12}),
        ("/l/worker_7.log", {"weak_rank": 7}),
        ("/l/none_x1/attempt_0/5/stderr.log", {"local_rank": 5}),
        ("/l/session/logs/worker-4d3556a9beb35ddb4bd6-01000000-2105.err", {"pid": 2105}),
    ],
)
def test_what_a_path_says(path: str, expected: dict[str, Any]) -> None:
    places = places_of({path: "", "/l/other/x": ""})
    assert places[path]._replace(host=places[path].host if "host" in expected else "") == Place(**expected)


def test_directories_that_are_no_hosts() -> None:
    paths = ("/j/debug/plog/a.log", "/j/run/plog/b.log")
    assert {place.host for place in places_of(dict.fromkeys(paths, "")).values()} == {""}


def test_files_that_are_numbered() -> None:
    places = places_of({f"/j/train_{number}.log": "" for number in range(3)})
    assert [place.weak_rank for place in places.values()] == [0, 1, 2]


@pytest.mark.parametrize(
    ("lines", "ranks"),
    [
        (["[1]: RuntimeError: a", "text"], [None, None]),  # a footnote or the item of a list
        (["1: RuntimeError: a", "1: b"], [None, None]),
        (["0: step 3", "5: RuntimeError: a"], [0, 5]),  # srun --label
        (["[0]: step 3", "[5]: RuntimeError: a"], [0, 5]),
        (["[1,3]<stderr>: RuntimeError: a"], [3]),  # of one launcher only: its form says so
        (["[1]: [rank3]: RuntimeError: a", "[rank3]: b"], [3, 3]),
    ],
)
def test_a_number_alone_is_a_rank_where_lines_have_several(lines: list[str], ranks: list[Optional[int]]) -> None:
    notes = [Note("error", "train.log", number, None, text) for number, text in enumerate(lines, 1)]
    naming = Naming([Source("train.log")], notes)
    assert [naming.identity(note).rank for note in notes] == ranks
