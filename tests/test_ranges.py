"""What a finding speaks about is named as a person would write it."""

from __future__ import annotations

import pytest

from envtune.ranges import join_subjects


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
