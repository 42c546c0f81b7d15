"""Several ranks failed: which one began, and who only waited?"""

from __future__ import annotations

from typing import Optional

from test_faq_examples import entries, matcher

from envtune.diagnose.patterns import choose
from envtune.diagnose.resolve import Resolution, resolve
from envtune.diagnose.scan import scan
from envtune.diagnose.sources import LogFile

WAITED = (
    "[ERROR] {time} (PID:{pid}, Device:{rank}, RankID:{rank}) ERR02200 DIST call hccl api failed.\n"
    "EI0002: [PID: {pid}] {time}.000.000 The wait execution of the Notify register times out. "
    "Reason: The Notify register has not received the Notify record from remote rank.\n"
)


def log(rank: int, text: str, host: str = "", start: str = "2024-06-01-10:00:00") -> LogFile:
    head = f"[INFO] {start} (PID:{100 + rank}, Device:{rank}, RankID:{rank}) step 1 done\n"
    return LogFile(f"{host or 'host'}/rank{rank}.log", host, rank, content=(head + text).encode("utf-8"))


def waiting(rank: int, time: str, host: str = "") -> LogFile:
    return log(rank, WAITED.format(time=time, pid=100 + rank, rank=rank), host)


def judged(*files: LogFile) -> Resolution:
    found = scan(files, matcher(), choose(matcher().patterns, files))
    return resolve(found, entries())


def first(resolution: Resolution) -> tuple[str, Optional[int], str]:
    best = resolution.diagnoses[0]
    return best.entry.id, best.rank, best.host


def test_one_rank_ran_out_of_memory_and_the_others_waited() -> None:
    oom = log(
        3,
        "[ERROR] 2024-06-01-10:05:00 (PID:103, Device:3, RankID:3) ERR00006\n"
        "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.97 GiB total capacity; 58.1 GiB)\n",
    )
    answer = judged(
        waiting(0, "2024-06-01-10:35:00"), waiting(1, "2024-06-01-10:35:01"), oom, waiting(2, "2024-06-01-10:35:02")
    )
    assert first(answer) == ("F13", 3, "")
    waited = next(c for c in answer.consequences if c.entry.id == "H102")
    assert waited.ranks == (0, 1, 2)


def test_the_port_of_one_rank_was_taken() -> None:
    taken = log(
        0,
        "[PID: 100] 2024-06-01-10:00:02.000.001 Communication_Error_Bind_IP_Port(EJ0003): Failed to bind the "
        "IP port. Reason: The IP address and port have been bound already.\n",
    )
    late = log(
        1,
        "EI0006: [PID: 101] 2024-06-01-10:02:02.000.001 Getting socket times out. Reason: Remote Rank did not "
        "send the data in time.\n",
    )
    assert first(judged(late, taken)) == ("H110", 0, "")


def test_one_host_has_no_libhccl() -> None:
    broken = log(8, "ImportError: libhccl.so: cannot open shared object file: No such file or directory\n", "nodeB")
    others = [
        log(
            r,
            "[ERROR] HCCL(7,python):2024-06-01-10:02:00.000.000 [topoinfo_exchange_server.cc:91][2168][Get]"
            "[Connection]topo exchange server get socket timeout! timeout[120 s]\n",
            "nodeA",
        )
        for r in (0, 1)
    ]
    assert first(judged(*others, broken)) == ("F06", 8, "nodeB")


def test_a_lost_heartbeat_names_the_rank_that_was_lost() -> None:
    line = (
        "[ERROR]HCCL(835695,all_reduce_test):2024-06-01-10:28:06.049.385[task_exception_handler.cc:610][835695]"
        "[TaskExecStage][HeartbeatAbnormal]Cluster Exception Location[IP/ID]:[192.0.2.7/5], "
        "Arrival Time:[Sat Jun 1 10:25:58 2024], Discoverer:[192.0.2.8/2], "
        "ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. Process has exited, 2. Network Disconnected\n"
    )
    assert first(judged(log(2, line), waiting(3, "2024-06-01-10:30:00"))) == ("H112", 5, "192.0.2.7")


def test_a_killed_rank() -> None:
    agent = log(
        0,
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n  exitcode  : -9 (pid: 8812)\n"
        "  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 8812\n",
        "nodeB",
    )
    assert first(judged(waiting(1, "2024-06-01-10:35:00", "nodeA"), agent)) == ("H117", 0, "nodeB")


def test_clocks_of_two_hosts_two_seconds_apart() -> None:
    # nodeB's clock is two seconds early: its waiting rank seems to fail before nodeA's real failure.
    real = log(
        0,
        "[ERROR] RUNTIME(7,python):2024-06-01-10:05:01.000.000 [stream.cc:1]7 PrintErrorInfo:[DFX_INFO]Aicore "
        "kernel execute failed, device_id=0, stream_id=2, fault kernel_name=te_matmul_1\n",
        "nodeA",
    )
    assert first(judged(waiting(8, "2024-06-01-10:04:59", "nodeB"), real)) == ("R106", 0, "nodeA")


def test_everybody_waited() -> None:
    answer = judged(*(waiting(rank, f"2024-06-01-10:35:0{rank}") for rank in range(4)))
    assert first(answer)[0] == "H102"
    assert [c.entry.id for c in answer.diagnoses] == ["H102"]


def test_a_wrapper_gives_way_to_what_it_wraps() -> None:
    answer = judged(
        log(
            0,
            "RuntimeError: The Inner error is reported as above. The process exits for this inner error\n"
            "EI0001: Environment variable [HCCL_RDMA_TC] is invalid.\n",
        )
    )
    assert first(answer)[0] == "H101"
    assert [c.entry.id for c in answer.consequences] == ["F04"]


def test_a_harmless_line_does_not_hide_the_real_error() -> None:
    answer = judged(
        log(
            0,
            "[ERROR] GE(55056,python):2021-01-20-20:18:24.000.001 [op.cc:1]55056 GetInputConstDataOut: "
            "ErrorNo: -1(failed)\nModuleNotFoundError: No module named 'torch._C'\n",
        )
    )
    assert [c.entry.id for c in answer.diagnoses] == ["F16"]
    assert [c.entry.id for c in answer.harmless] == ["F12"]
