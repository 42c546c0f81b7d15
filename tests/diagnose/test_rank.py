"""Several ranks failed: which one began, on which host, and who only waited?

Each test lays out logs as a user finds them (a file per rank, one merged file, a directory per host) and asks the
answer of the whole program.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, Optional

import pytest

from envtune.diagnose import diagnose
from envtune.diagnose.diagnosis import DiagnosisReport
from envtune.report.diagnosis.text import render_text

OOM = "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.97 GiB total capacity; 58.10 GiB used)"
AICORE = (
    "[ERROR] RUNTIME({pid},python):{time}.120.004 [stream.cc:1411]{pid} PrintErrorInfo:[DFX_INFO]Aicore kernel execute "
    "failed, device_id=0, stream_id=2, report_stream_id=2, task_id=19, fault kernel_name=te_matmul_4a1b"
)


def wait(rank: int, time: str, pid: Optional[int] = None) -> str:
    """What a rank prints that waited in vain for another one."""
    pid = pid or 100 + rank
    return (
        f"[ERROR] {time} (PID:{pid}, Device:{rank % 8}, RankID:{rank}) ERR02200 DIST call hccl api failed.\n"
        f"EI0002: [PID: {pid}] {time}.000.000 The wait execution of the Notify register times out. Reason: The Notify "
        "register has not received the Notify record from remote rank.\n"
        "        Possible Cause: 1. An exception occurs during the execution on some NPUs in the cluster.\n"
    )


def start(rank: int, time: str = "2024-06-01-10:00:00") -> str:
    return f"[INFO] {time} (PID:{100 + rank}, Device:{rank % 8}, RankID:{rank}) step 1 done, error=0\n"


def summary(rank: int, host: str, exitcode: int, pid: int = 8812) -> str:
    """What torchrun prints at the end; the ranks it ended itself come first."""
    return (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        + "=" * 60
        + f"\ntrain.py FAILED\n{'-' * 60}\nFailures:\n[1]:\n  time      : 2024-06-01_10:05:09\n  host      : {host}\n"
        "  rank      : 5 (local_rank: 5)\n  exitcode  : 1 (pid: 8814)\n  error_file: <N/A>\n"
        f"{'-' * 60}\nRoot Cause (first observed failure):\n[0]:\n  time      : 2024-06-01_10:05:07\n"
        f"  host      : {host}\n  rank      : {rank} (local_rank: {rank % 8})\n  exitcode  : {exitcode} (pid: {pid})\n"
        "  error_file: <N/A>\n  traceback : To enable traceback see: "
        "https://pytorch.org/docs/stable/elastic/errors.html\n" + "=" * 60 + "\n"
    )


@dataclass
class Logs:
    """Files below a directory, and what is answered about them."""

    root: Path

    def write(self, place: str, *texts: str) -> str:
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(text if text.endswith("\n") else text + "\n" for text in texts))
        return str(path)

    def ask(self, arguments: Iterable[str]) -> DiagnosisReport:
        self.answer = diagnose(list(arguments), check=False)
        return self.answer

    def first(self, *arguments: str) -> tuple[str, Optional[int], str]:
        """(entry, rank, host) of the first diagnosis."""
        best = self.ask(arguments or sorted(map(str, self.root.iterdir()))).diagnoses[0].candidate
        return best.entry.id, best.rank, best.host

    def waited(self) -> set[tuple[str, int]]:
        """(host, rank) of all who are said to have only waited."""
        waiting = [d.candidate for d in self.answer.consequences if d.candidate.entry.role == "waiting"]
        return {(h.file.host, r) for c in waiting for h, r in zip(c.hits, c.printed) if r is not None}


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path)


# ---------------------------------------------------------------------- the cases every cluster knows


def test_one_rank_ran_out_of_memory_and_the_others_waited(logs: Logs) -> None:
    oom = f"[ERROR] 2024-06-01-10:05:00 (PID:103, Device:3, RankID:3) ERR00006 PTA memory error\n{OOM}\n"
    for rank in range(8):
        own = oom if rank == 3 else wait(rank, f"2024-06-01-10:35:0{rank}")
        logs.write(f"rank{rank}.log", start(rank), own)
    assert logs.first() == ("F13", 3, "")
    assert logs.waited() == {("", rank) for rank in range(8) if rank != 3}
    text = render_text(logs.answer, "en")
    assert "Only waited for another rank, not the cause:\n  rank 0-2, 4-7: H102" in text
    assert "仅在等待其他 rank，不是根因：\n  rank 0-2、4-7：H102" in render_text(logs.answer, "zh")


def test_the_port_of_one_rank_was_taken(logs: Logs) -> None:
    logs.write(
        "worker_0.log",
        start(0),
        "[PID: 100] 2024-06-01-10:00:02.000.001 Communication_Error_Bind_IP_Port(EJ0003): Failed to bind the IP port. "
        "Reason: The IP address and port have been bound already.",
    )
    for rank in (1, 2, 3):
        logs.write(
            f"worker_{rank}.log",
            start(rank),
            f"EI0006: [PID: {100 + rank}] 2024-06-01-10:02:02.000.001 Getting socket times out. Reason: Remote Rank "
            "did not send the data in time. Please check the reason for the rank being stuck",
        )
    assert logs.first() == ("H110", 0, "")
    assert logs.waited() == {("", 1), ("", 2), ("", 3)}


def test_one_host_has_no_libhccl(logs: Logs) -> None:
    """A directory per host, each with the output of its ranks and the plog tree of a CANN of today."""
    for rank in (0, 1):
        logs.write(
            f"nodeA/ascend/log/debug/plog/plog-{100 + rank}_20240601100000123.log",
            f"[ERROR] HCCL({100 + rank},python):2024-06-01-10:02:00.000.00{rank} [topoinfo_exchange_server.cc:91][2168]"
            "[Get][Connection]topo exchange server get socket timeout! timeout[120 s]",
        )
        logs.write(f"nodeA/rank{rank}.log", start(rank))
    logs.write(
        "nodeB/rank8.log",
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3.9/site-packages/torch_npu/__init__.py", line 12, in <module>',
        "ImportError: libhccl.so: cannot open shared object file: No such file or directory",
    )
    assert logs.first() == ("F06", 8, "nodeB")


def test_a_lost_heartbeat_names_the_device_that_was_lost(logs: Logs) -> None:
    logs.write(
        "rank2.log",
        start(2),
        "[ERROR]HCCL(835695,all_reduce_test):2024-06-01-10:28:06.049.385[task_exception_handler.cc:610][835695]"
        "[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[192.0.2.7/5], "
        "Arrival Time:[Sat Jun 1 10:25:58 2024], Discoverer:[192.0.2.8/2], "
        "ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. Process has exited, 2. Network Disconnected",
    )
    logs.write("rank3.log", start(3), wait(3, "2024-06-01-10:30:00"))
    assert logs.first() == ("H112", None, "192.0.2.7")  # device 5 of that host: nothing says which rank it has
    root = logs.answer.job.root
    assert root is not None and (root.process.device, root.file) == (5, None)


def test_a_killed_rank(logs: Logs) -> None:
    """The kernel ended a rank: it printed nothing, its launcher tells."""
    logs.write("nodeA/rank1.log", start(1), wait(1, "2024-06-01-10:35:00"))
    logs.write("nodeB/rank9.log", start(9))
    logs.write("nodeB/torchrun.log", summary(8, "nodeB", -9))
    assert logs.first(str(logs.root / "nodeA"), str(logs.root / "nodeB")) == ("H117", 8, "nodeB")
    assert logs.waited() == {("nodeA", 1)}


@pytest.mark.parametrize("seconds", ["04:59", "05:01", "05:03"])
def test_the_clock_of_the_host_that_waited_is_two_seconds_early_right_or_late(logs: Logs, seconds: str) -> None:
    logs.write("nodeA/rank0.log", start(0), AICORE.format(pid=100, time="2024-06-01-10:05:01"))
    logs.write("nodeB/rank8.log", start(8), wait(8, f"2024-06-01-10:{seconds}"))
    assert logs.first() == ("R106", 0, "nodeA")
    assert logs.waited() == {("nodeB", 8)}


# ---------------------------------------------------------------------- harder ones


def test_all_ranks_in_one_file_as_torchrun_writes_it(logs: Logs) -> None:
    """Interleaved, with the launcher's prefixes, and torch's own for tracebacks."""
    lines = [f"[default{rank}]:{start(rank)}" for rank in range(4)]
    lines += ["[default3]:[rank3]: Traceback (most recent call last):", "[default0]:step 118 loss 2.1"]
    lines += ['[default3]:[rank3]:   File "train.py", line 88, in <module>', f"[default3]:[rank3]: {OOM}"]
    for rank in (0, 2, 1):
        lines += [f"[default{rank}]:{row}" for row in wait(rank, f"2024-06-01-10:35:0{rank}").splitlines()]
    path = logs.write("job.log", *lines, summary(3, "node1.example", 1))
    assert logs.first(path) == ("F13", 3, "node1.example")
    assert logs.waited() == {("", 0), ("", 1), ("", 2)}


def test_only_the_launchers_summary_says_which_rank_it_was(logs: Logs) -> None:
    path = logs.write("job.log", "epoch 3", "Traceback (most recent call last):", OOM, summary(3, "node1", 1))
    assert logs.first(path) == ("F13", 3, "node1")
    text = render_text(logs.answer, "en")
    assert "rank 3 on node1" in text and "Followed from it, not the cause:\n  H119" in text


def test_the_launchers_summary_decides_where_no_line_has_a_time(logs: Logs) -> None:
    logs.write("rank1.log", "RuntimeError: Device 8 call rtSetDevice failed, ret[107001].")
    logs.write("rank3.log", OOM)
    logs.write("launcher.log", summary(3, "node1", 1))
    assert logs.first() == ("F13", 3, "node1")


def test_the_first_failure_in_time_is_the_root_also_where_a_later_one_is_more_telling(logs: Logs) -> None:
    """Both are causes; the entry of rank 1 has the higher precedence, and happened twenty minutes later."""
    logs.write("rank0.log", start(0), AICORE.format(pid=100, time="2024-06-01-10:05:00"))
    late = "EI0001: [PID: 101] 2024-06-01-10:25:00.000.000 Environment variable [HCCL_RDMA_TC] is invalid."
    logs.write("rank1.log", start(1), late)
    assert logs.first() == ("R106", 0, "")
    assert [d.candidate.entry.id for d in logs.answer.diagnoses] == ["R106", "H101"]


@pytest.mark.parametrize(("second", "sure"), [("04", False), ("30", False), ("04", True)])
def test_two_hosts_fail_and_the_answer_says_whether_their_clocks_can_tell(logs: Logs, second: str, sure: bool) -> None:
    """Their clocks are compared by the steps that both report; without these no difference of times decides."""
    step = start if sure else (lambda rank: "")
    logs.write("nodeA/rank0.log", step(0), AICORE.format(pid=100, time="2024-06-01-10:05:02"))
    logs.write("nodeB/rank9.log", step(9), f"[ERROR] 2024-06-01-10:05:{second} (PID:109, Device:1, RankID:9) {OOM}")
    assert logs.first() == (("R106", 0, "nodeA") if sure else ("F13", 9, "nodeB"))
    assert len(logs.answer.diagnoses) == 2
    said = "the offset between their clocks" in render_text(logs.answer, "en")
    assert logs.answer.undecided_order == said == (not sure)


def test_ranks_that_are_known_from_the_names_of_their_files_only(logs: Logs) -> None:
    for rank in range(4):
        own = OOM if rank == 2 else "EI0002: The wait execution of the Notify register times out."
        logs.write(f"logs/rank_{rank}/stdout.log", "step 1", own)
    places = [str(logs.root / f"logs/rank_{rank}") for rank in range(4)]
    entry, rank, _ = logs.first(*places)
    assert (entry, rank) == ("F13", 2)


def test_a_plog_says_the_process_and_another_file_whose_rank_that_is(logs: Logs) -> None:
    stem = "node1/ascend/log/run/plog"
    for rank in (0, 1, 2):
        pid = 4100 + rank
        logs.write(
            f"{stem}/plog-{pid}_20240601100000{rank:03}.log", f"[INFO] HCCL({pid},python):2024-06-01-10:00:00 ok"
        )
        logs.write("node1/stdout.log", "")
    logs.write(f"{stem}/plog-4101_20240601100000001.log", AICORE.format(pid=4101, time="2024-06-01-10:05:00"))
    logs.write("node1/stdout.log", *(wait(rank, f"2024-06-01-10:35:0{rank}", 4100 + rank) for rank in (0, 1, 2)))
    assert logs.first(str(logs.root / "node1")) == ("R106", 1, "")


def test_lines_with_and_without_a_year_stand_on_one_line_of_time(logs: Logs) -> None:
    """vLLM does not print the year; the runtime does."""
    early = (
        "(Worker_TP1 pid=201) ERROR 06-01 10:05:00 [multiproc_executor.py:699] RuntimeError: NPU out of memory. "
        "Tried to allocate 2.00 GiB"
    )
    late = "EI0001: [PID: 100] 2024-06-01-10:25:00.000.000 Environment variable [HCCL_RDMA_TC] is invalid."
    logs.write("a.log", f"[rank0]: {late}")
    logs.write("b.log", early)
    assert logs.first() == ("F13", 1, "")


def test_everybody_waited(logs: Logs) -> None:
    for rank in range(4):
        logs.write(f"rank{rank}.log", start(rank), wait(rank, f"2024-06-01-10:35:0{rank}"))
    assert logs.first()[0] == "H102"
    assert [d.candidate.entry.id for d in logs.answer.diagnoses] == ["H102"]
    assert "All ranks in these logs only waited" in render_text(logs.answer, "en")


# ---------------------------------------------------------------------- what is no root


def test_a_wrapper_gives_way_to_what_it_wraps(logs: Logs) -> None:
    logs.write(
        "rank0.log",
        "RuntimeError: The Inner error is reported as above. The process exits for this inner error",
        "EI0001: Environment variable [HCCL_RDMA_TC] is invalid.",
    )
    assert logs.first()[0] == "H101"
    assert [d.candidate.entry.id for d in logs.answer.consequences] == ["F04"]


def test_a_harmless_line_does_not_hide_the_real_error(logs: Logs) -> None:
    logs.write(
        "rank0.log",
        "[ERROR] GE(55056,python):2021-01-20-20:18:24.000.001 [op.cc:1]55056 GetInputConstDataOut: ErrorNo: -1(failed)",
        "ModuleNotFoundError: No module named 'torch._C'",
    )
    assert logs.first()[0] == "F16"
    assert [d.candidate.entry.id for d in logs.answer.harmless] == ["F12"]
    assert "Harmless, nothing to do:\n  F12" in render_text(logs.answer, "en")


def test_a_job_whose_script_failed_is_not_diagnosed_by_its_launchers_summary(logs: Logs) -> None:
    path = logs.write("job.log", "import torch_npu", "KeyError: 'weight'", summary(3, "node1", 1))
    assert logs.ask([path]).diagnoses == ()


@pytest.mark.parametrize(
    "line",
    [
        "[Rank {n}] ValueError: bad",
        "(Worker pid={n}, ip=10.0.0.1) ValueError: bad",
        "failed (exitcode: -{n}) local_rank: {n} (pid: {n}) of binary: python",
        "[ERROR] HCCL({n},python):2025-01-01-10:00:00.000.000 [x.cc:1] rank[{n}] not connected rank: [0,{n}]",
        "Cluster Exception Location[IP/ID]:[10.1.1.1/{n}], Arrival Time: x",
    ],
)
def test_a_number_of_thousands_of_digits_is_no_rank(logs: Logs, line: str) -> None:
    logs.write("a.log", line.format(n="9" * 6000))
    logs.write("b.log", "[Rank 1] ValueError: bad")
    job = logs.ask([str(logs.root)]).job
    processes = [root.process for root in (*job.candidates, *filter(None, [job.root]))]
    assert {process.rank for process in processes} <= {None, 1} and processes
