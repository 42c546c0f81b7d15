"""Where there is no /proc, psutil tells the same: compared with /proc on a machine that has both."""

from __future__ import annotations

import os
import socket

import pytest

from envtune.collector.network import listening_sockets, network_interfaces
from envtune.collector.processes import process_table
from envtune.errors import Missing
from envtune.host import LocalHost, psutil_tables


def test_processes_are_the_same() -> None:
    mine = os.getpid()
    own = next(row for row in process_table() if row["pid"] == mine)
    told = next(row for row in psutil_tables.process_table() if row["pid"] == mine)
    assert {key: told[key] for key in ("pid", "ppid", "user", "argv")} == {
        key: own[key] for key in ("pid", "ppid", "user", "argv")
    }
    assert abs(told["started"] - own["started"]) < 2


def test_a_listening_socket_is_in_both() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for rows in (listening_sockets(), psutil_tables.listening_sockets()):
            assert ("127.0.0.1", port) in {(row["address"], row["port"]) for row in rows}


def test_interfaces_are_the_same() -> None:
    def addresses(rows: list[dict[str, object]]) -> dict[object, set[object]]:
        return {row["name"]: set(row["addresses"]) for row in rows if row["addresses"]}  # type: ignore[call-overload]

    assert addresses(psutil_tables.network_interfaces()) == addresses(network_interfaces())


def test_linux_without_proc_is_not_asked_by_psutil(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where /proc is not mounted psutil finds nothing, or fails: the table is unknown."""

    def no_proc(path: str, *_: object) -> bytes:
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr("os.path.exists", lambda path: False)
    monkeypatch.setattr("envtune.collector.processes.read_bytes", no_proc)
    with pytest.raises(Missing):
        LocalHost().processes()
