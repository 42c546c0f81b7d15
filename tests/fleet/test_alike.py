"""A host that is checked by what it has in common with earlier ones is said to be what it is said to be alone."""

from __future__ import annotations

import random
from functools import cache
from typing import Any, Callable

import pytest
from helpers import fleet

from envtune.audit import examine, read_facts
from envtune.catalog import load, select
from envtune.collector.snapshot import pack
from envtune.fleet.alike import reads
from envtune.fleet.alike.check import MOST, Alike, Found
from envtune.fleet.judge import Question, Snapshot, judge_one
from envtune.fleet.record import HostRecord
from envtune.messages import Literal, Message
from envtune.model import FileStat, Severity

CHANGES = 25  # hosts with something changed at random


@cache
def question() -> Question:
    catalogue = load()
    return Question(select(catalogue.checks, (), (), (), Severity.INFO), catalogue.expectations)


class Alone(Alike):
    """Every host by itself, and nothing noted."""

    def check(self, host: Any, context: Any) -> Found:
        return read_facts(context), tuple(examine(check, context) for check in self._checks)


def record(data: dict[str, Any], alike: Alike, by_ssh: bool = False) -> HostRecord:
    host = Snapshot("host", pack({"schema": "envtune.snapshot/1", **data}), by_ssh)
    return judge_one(host, question(), alike)


@pytest.mark.slow
def test_every_host_of_a_fleet_is_what_it_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    alike, examined = Alike(question().checks), _counted(monkeypatch)
    hosts = [host for name, host in fleet.deviating().items() if name in fleet.DEVIATIONS or name[-1] in "12"]
    for host in hosts:
        together = record(host, alike, by_ssh=True)
        assert together == record(host, Alone(question().checks), by_ssh=True)
    assert len(alike._kept) >= len(fleet.KINDS)
    left = len(hosts) - len(alike._kept)  # of their checks, most were taken over
    assert len(examined) < (len(alike._kept) + left / 3) * len(question().checks)


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    from envtune.fleet.alike import check as alike

    found: list[str] = []

    def counting(check: Any, context: Any) -> Any:
        found.append(check.id)
        return examine(check, context)

    monkeypatch.setattr(alike, "examine", counting)
    return found


def _lose_a_file(host: dict[str, Any], own: random.Random) -> None:
    del host["files"][own.choice(sorted(host["files"]))]


def _change_a_file(host: dict[str, Any], own: random.Random) -> None:
    path = own.choice(sorted(host["files"]))
    entry = host["files"][path]
    if isinstance(entry, str):
        host["files"][path] = own.choice(["", entry[:-3], entry + "0", entry.replace("1", "2"), entry.upper()])
    else:
        host["files"][path] = own.choice(["x", {"error": "EACCES"}, {"size": 3, "mode": "0777"}, {"dir": []}])


def _replace_by_a_link(host: dict[str, Any], own: random.Random) -> None:
    paths = sorted(host["files"])
    host["files"][own.choice(paths)] = {"link": own.choice([*paths, "/nowhere", "../x"])}


def _add_a_file(host: dict[str, Any], own: random.Random) -> None:
    near = own.choice(sorted(host["files"]))
    host["files"][near.rpartition("/")[0] + f"/{own.choice(['0', 'new', 'policy999', 'zz.conf'])}"] = "1\n"


def _close_a_directory(host: dict[str, Any], own: random.Random) -> None:
    near = own.choice(sorted(host["files"]))
    host["files"][near.rpartition("/")[0] or "/opt"] = {"error": "EACCES"}


def _change_a_command(host: dict[str, Any], own: random.Random) -> None:
    rows = host.get("commands") or {}
    if isinstance(rows, dict) and rows:
        rows[own.choice(sorted(rows))] = own.choice(["", "x", {"rc": 1, "stderr": "no"}, {"error": "timeout"}])


def _change_a_variable(host: dict[str, Any], own: random.Random) -> None:
    environ = host["environ"]
    environ.pop(own.choice(sorted(environ)))
    environ[own.choice(["HCCL_CONNECT_TIMEOUT", "TASK_QUEUE_ENABLE", "PATH"])] = own.choice(["", "7"])


def _change_the_rest(host: dict[str, Any], own: random.Random) -> None:
    name = own.choice(["uname", "processes", "listeners", "interfaces", "disks", "euid", "now", "cwd"])
    if name == "uname":
        host["uname"][own.choice(["release", "machine", "nodename"])] = "5.1"
    elif name in ("euid", "now"):
        host[name] = 1000
    elif name == "cwd":
        host[name] = "/tmp"
    else:
        host[name] = own.choice([None, [], {"error": "EACCES"}])


WAYS: tuple[Callable[[dict[str, Any], random.Random], None], ...] = (
    _lose_a_file,
    _change_a_file,
    _replace_by_a_link,
    _add_a_file,
    _close_a_directory,
    _change_a_command,
    _change_a_variable,
    _change_the_rest,
)


@pytest.mark.slow
def test_whatever_changes_on_a_host_is_found() -> None:
    alike = Alike(question().checks)
    kept = "910b-openeuler2203-cann82"
    first = fleet.twin(kept, "node1", 0, 1)
    record(first, alike)
    for number in range(CHANGES):
        own = random.Random(number)
        host = fleet.twin(kept, own.choice(["node1", "node2"]), 0, 1)
        host["files"]["/etc/ssl/cert.pem"] = "x"
        ways = [own.choice(WAYS) for _ in range(own.choice([1, 1, 1, 4]))]
        for way in ways:
            way(host, own)
        named = f"{number}: {[way.__name__ for way in ways]}"
        assert record(host, alike) == record(host, Alone(question().checks)), named


@pytest.mark.slow
def test_few_hosts_are_kept() -> None:
    alike = Alike(question().checks)
    for number in range(MOST + 3):
        host = fleet.twin("vm-ubuntu2204", f"vm{number}", 0, 1)
        host["uname"]["release"] = f"5.{number}"
        host["files"] = {path: entry for path, entry in host["files"].items() if hash(path) % 11 != number}
        record(host, alike)
    assert 0 < len(alike._kept) <= MOST


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ((1, "a", None, b"x", 2.5, frozenset(["a"])), True),
        ({"a": (1, FileStat("file"))}, True),
        (Message("{a}: {b}", a="x", b=Literal("y")), True),
        (Message("{a}", a=object()), False),
        (lambda: 1, False),
        ((1, [object()]), False),
        (reads.ReadStat("file"), False),
    ],
)
def test_only_plain_values_are_shared_by_hosts(value: Any, plain: bool) -> None:
    assert reads.is_plain(value) is plain
