"""A misspelled variable is found, and no name that is real is taken for one."""

from __future__ import annotations

from typing import Optional

import pytest

from envtune.collector.sources.job import CONTAINED, PATH_VARIABLES
from envtune.resources.environment.names import intended
from envtune.resources.environment.reference import documented, path_variables, table

NAMES = [
    ("TASK_QUEUE_ENBLE", "TASK_QUEUE_ENABLE"),  # left out
    ("TASK_QUEUE_ENABLEE", "TASK_QUEUE_ENABLE"),  # added
    ("TASK_QUEUE_ENABLR", "TASK_QUEUE_ENABLE"),  # replaced
    ("TASK_QUEUE_EANBLE", "TASK_QUEUE_ENABLE"),  # exchanged
    ("HCCL_CONNECT_TIMEOT", "HCCL_CONNECT_TIMEOUT"),
    ("HCCL_WHITELIST_DISABL", "HCCL_WHITELIST_DISABLE"),
    ("PYTORCH_NPU_ALOC_CONF", "PYTORCH_NPU_ALLOC_CONF"),
    ("ASCEND_RT_VISIBLE_DEVICE", "ASCEND_RT_VISIBLE_DEVICES"),
    ("MASTER_ADR", "MASTER_ADDR"),
    ("HCCL__BUFFSIZE", "HCCL_BUFFSIZE"),
    ("GLOO_SOCKET_IFNME", "GLOO_SOCKET_IFNAME"),
    ("TP_SOCKET_IFNAM", "TP_SOCKET_IFNAME"),
    ("LD_LIBRAY_PATH", "LD_LIBRARY_PATH"),
    ("RANK_SZIE", "RANK_SIZE"),
    # real, of others, of a series, or like none
    ("TASK_QUEUE_ENABLE", None),
    ("NCCL_SOCKET_IFNAME", None),
    ("NCCL_ALGO", None),
    ("NCCL_BUFFSIZE", None),
    ("TORCH_NCCL_ASYNC_ERROR_HANDLING", None),
    ("PYTORCH_CUDA_ALLOC_CONF", None),
    ("GLOO_SOCKET_IFNAME", None),
    ("RANK_SIZE", None),
    ("PYTHON_PATH", None),
    ("MASTER_PORT2", None),
    ("MASTER_PORTS", None),
    ("_MASTER_PORT", None),
    ("RANK", None),
    ("PATHS", None),
    ("MY_TASK_QUEUE_ENABLE", None),
    ("task_queue_enable", None),
    ("", None),
]


@pytest.mark.parametrize(("name", "right"), NAMES)
def test_a_name_and_the_one_that_was_meant(name: str, right: Optional[str]) -> None:
    assert intended(name) == right


def test_no_known_name_is_misspelt() -> None:
    assert [name for name in {*documented(), *table()["reads"]} if intended(name)] == []


def test_every_name_has_a_source() -> None:
    assert all(row["source"] for row in path_variables().values()) and all(table()["names"])
    listed = [name for names in table()["names"].values() for name in names]
    assert len(listed) == len(set(listed)) and not set(listed) & {*table()["variables"], *path_variables()}


def test_the_collector_records_the_places_of_every_path() -> None:
    """It travels without the table."""
    assert set(PATH_VARIABLES) == set(path_variables())
    assert {row["holds"] for row in path_variables().values() if "holds" in row} == {CONTAINED}
