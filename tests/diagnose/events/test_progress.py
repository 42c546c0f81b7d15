"""Which lines show that a run ended well or goes on, and which only look like it."""

from __future__ import annotations

import pytest

from envtune.diagnose.events.progress import progress_of

ENDS_WELL = {
    "Finished: SUCCESS": True,
    "2026-03-02T08:15:07Z Finished: SUCCESS": True,
    "[INFO] 2025-07-15 09:16:02 服务正常退出": True,
    "2025-07-15 09:16:02 训练已完成，共 3 轮": True,
    "Finished: FAILURE": False,
    "[ERROR] 2025-07-15 09:16:02 工作进程非正常退出": False,
    "[ERROR] 2025-07-15 09:16:02 子进程未正常退出，等待超时": False,
    "2025-07-15 09:16:02 任务结束，状态：失败": False,
    "2025-07-15 09:16:02 推理结束：异常": False,
}
SERVED = {
    "[INFO] req_id=1000 prompt=329 gen=227 ttft=123.3ms tpot=24.2ms status=OK": True,
    "[INFO] request_id: 17 status=200 latency 12 ms": True,
    "[ERROR] req_id=1000 prompt=329 gen=0 ttft=0.0ms status=FAILED": False,
    "[WARN] req_id=1000 ttft=60000ms aborted: timeout": False,
}


@pytest.mark.parametrize(("line", "ends"), ENDS_WELL.items())
def test_what_ends_well(line: str, ends: bool) -> None:
    assert bool(progress_of(line.encode(), 1).succeeded) is ends


@pytest.mark.parametrize(("line", "served"), SERVED.items())
def test_what_is_served(line: str, served: bool) -> None:
    assert bool(progress_of(line.encode(), 1).steps) is served
