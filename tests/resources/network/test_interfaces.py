"""The four forms of HCCL_SOCKET_IFNAME, and what the job's variables name for its traffic."""

from __future__ import annotations

import pytest

from envtune.resources.network.interfaces import selects


@pytest.mark.parametrize(
    ("pattern", "taken"),
    [
        ("eth", {"eth0", "eth1"}),
        ("eth0,enp", {"eth0", "enp3s0"}),
        ("=eth0", {"eth0"}),
        ("=eth,enp3s0", {"enp3s0"}),
        ("^eth", {"enp3s0", "docker0"}),
        ("^=eth0,enp3s0", {"eth1", "docker0"}),
        ("^=", set()),
        ("=", set()),
    ],
)
def test_the_four_forms(pattern: str, taken: set[str]) -> None:
    assert {name for name in ("eth0", "eth1", "enp3s0", "docker0") if selects(pattern, name)} == taken
