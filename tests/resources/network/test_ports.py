"""Ports of a job: which ones HCCL binds, whether the kernel may give them away, and who sits on them."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any, Mapping

import pytest
from helpers.examples import example_context
from helpers.namespaces import Pair, needs

from envtune.audit import examine
from envtune.catalog import load
from envtune.context import Context
from envtune.context.open import open_context
from envtune.errors import Undetermined
from envtune.host import LocalHost
from envtune.job.target import TargetOptions
from envtune.model import Fact, Finding, Outcome
from envtune.resources.network.ports import hccl_ports, port_list, ports_per_job

RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"
RANGE = "/proc/sys/net/ipv4/ip_local_port_range"


def check(name: str, context: Context) -> tuple[Finding, ...]:
    return examine(next(one for one in load().checks if one.id == name), context)


def host(**example: Any) -> Context:
    return example_context({"like": "net", **example})


def with_cann(version: str) -> Context:
    bare = host()
    return Context(bare.host, bare.target, {"cann": Fact("cann", version, "version.cfg")}, bare.expectations)


@pytest.mark.parametrize(
    ("version", "count"),
    [
        ("20.0", 16), ("20.2.rc1", 16),  # named after the year, before 5.0
        ("5.0.2", 16), ("5.1.RC2.1", 16), ("6.3.RC2", 16), ("8.0.0", 16), ("8.0.0.beta1", 16), ("8.1.RC1", 16),
        ("8.2.RC1", 16), ("8.2.RC1.alpha003", 16), ("8.2.RC2", 32), ("8.2.0", 32), ("8.3.RC1", 32), ("8.5.0", 32),
        ("9.0.0", 32), ("10.0.0", 32), ("none", 32), ("master", 32), ("", 32),
    ],
)  # fmt: skip
def test_ports_by_cann_version(version: str, count: int) -> None:
    found, why, _ = ports_per_job(with_cann(version))
    assert found == count
    assert ("may use 16 or 32" in why.en) == (version in ("8.2.RC2", "8.2.0", "master", ""))


def test_ports_without_a_named_job_are_the_defaults() -> None:
    """Under sudo the job's variables are not known: the defaults are judged, and the reason is said."""
    context = host()
    hidden = context.target.environment._replace(variables=None, reason=None)
    context = context.with_target(context.target._replace(environment=hidden))
    with pytest.raises(Undetermined):
        context.target.variables()
    found = hccl_ports(context)
    assert found.ports == ((60000, 60031),)
    assert "default" in found.why.en
    assert {one.outcome for one in check("NET005", context)} == {Outcome.PASS}


@pytest.mark.parametrize(
    ("variables", "ports"),
    [
        ({"HCCL_IF_BASE_PORT": "50000"}, ((50000, 50031),)),
        ({"HCCL_IF_BASE_PORT": " 50000 "}, ((50000, 50031),)),
        ({"HCCL_IF_BASE_PORT": "65504"}, ((65504, 65535),)),
        ({"HCCL_IF_BASE_PORT": "65505"}, ()),
        ({"HCCL_IF_BASE_PORT": "1023"}, ()),
        ({"HCCL_IF_BASE_PORT": "-1"}, ()),
        ({"HCCL_IF_BASE_PORT": "６００００"}, ()),
        ({"HCCL_HOST_SOCKET_PORT_RANGE": "50000-50010, 50020"}, ((50000, 50010), (50020, 50020))),
        ({"HCCL_HOST_SOCKET_PORT_RANGE": "0-10"}, ()),
        ({"HCCL_HOST_SOCKET_PORT_RANGE": "9-1"}, ()),
        ({"HCCL_HOST_SOCKET_PORT_RANGE": "a-b"}, ()),
    ],
)
def test_ports_the_job_names(variables: Mapping[str, str], ports: Any) -> None:
    found = hccl_ports(host(environ=variables))
    assert found.ports == ports
    assert (found.fault is None) == bool(ports)
    judged = {one.subject: one.outcome for one in check("NET005", host(environ=variables))}
    assert ("HCCL" in judged and judged["HCCL"] is Outcome.FAIL) == (not ports)


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("\n", ()),
        ("60000-60031,8080\n", ((8080, 8080), (60000, 60031))),
        ("1-2,3", ((1, 3),)),
        ("7, 9-10 ,", ((7, 7), (9, 10))),
    ],
)
def test_kernel_lists(text: str, ports: Any) -> None:
    assert port_list(text) == ports


@pytest.mark.parametrize("text", ["60000-", "x", "70000", "10-9", "1-2-3"])
def test_no_kernel_list(text: str) -> None:
    with pytest.raises(ValueError):
        port_list(text)
    assert {one.outcome for one in check("NET005", host(files={RESERVED: text}))} == {Outcome.UNKNOWN}


def test_only_the_ports_in_danger_are_named_and_the_command_keeps_the_list() -> None:
    context = host(files={RANGE: "32768 60015\n", RESERVED: "8080,60000-60003\n"})
    (found,) = (one for one in check("NET005", context) if one.outcome is Outcome.FAIL)
    assert found.actual is not None and found.actual.en.startswith(
        "60004-60015 not reserved (in ip_local_port_range 32768-60015;"
    )
    assert [str(command.line) for command in found.commands] == ["sudo envtune fix NET005 --apply"]
    moved = host(files={RANGE: "32768 60015\n", RESERVED: "8080,40000-40003\n"}, environ={"HCCL_IF_BASE_PORT": "40000"})
    (found,) = (one for one in check("NET005", moved) if one.outcome is Outcome.FAIL)
    assert [command.kind for command in found.commands] == ["fix", "fix"], "sudo would not know of the variable"
    assert found.commands[0].line == "sudo sysctl -w net.ipv4.ip_local_reserved_ports=8080,40000-40031"


def test_the_jobs_own_ports_are_no_conflict() -> None:
    rows = [{"address": "192.0.2.10", "port": 60000, "pid": 12, "process": "python"}]
    table = [
        {"pid": 10, "ppid": 1, "user": "train", "name": "torchrun"},
        {"pid": 11, "ppid": 10, "user": "train", "name": "python"},
        {"pid": 12, "ppid": 11, "user": "train", "name": "python"},
    ]
    files = {"/proc/10/environ": "A=b\0"}
    mine = host(listeners=rows, processes=table, files=files, target={"pid": 10})
    assert {one.outcome for one in check("NET005", mine)} == {Outcome.PASS}
    other = host(listeners=rows, processes=table[:1], files=files, target={"pid": 10})
    assert Outcome.FAIL in {one.outcome for one in check("NET005", other)}


def test_an_owner_that_may_not_be_read_is_said() -> None:
    context = host(environ={"MASTER_PORT": "29688"}, listeners=[{"address": "::", "port": 29688}])
    (found,) = check("NET003", context)
    assert found.outcome is Outcome.FAIL
    assert found.actual is not None and "owner not readable" in found.actual.en


def test_a_real_listener() -> None:
    """A socket of this test, on a port that the kernel picked."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        live = LocalHost()
        live.environ = {"MASTER_PORT": str(port)}
        (found,) = check("NET003", open_context(live, TargetOptions()))
        assert found.outcome is Outcome.FAIL
        assert found.actual is not None and f"({os.getpid()})" in found.actual.en


@pytest.mark.root
def test_ports_of_a_network_namespace() -> None:
    """What is typed after a finding makes the kernel reserve the ports, beside those it already kept."""
    needs()
    with Pair() as pair:
        for before in ("", "8080,30000-30010"):
            pair.run(["sh", "-c", f"echo {before} > {RESERVED}"])
            files = {path: pair.run(["cat", path]).stdout for path in (RESERVED, RANGE)}
            moved = {"HCCL_IF_BASE_PORT": "50000"}
            (found,) = (x for x in check("NET005", host(files=files, environ=moved)) if x.outcome is Outcome.FAIL)
            pair.run(["sh", "-c", str(found.commands[0].line).replace("sudo ", "")])
            files = {path: pair.run(["cat", path]).stdout for path in (RESERVED, RANGE)}
            assert {one.outcome for one in check("NET005", host(files=files, environ=moved))} == {Outcome.PASS}
            assert set(filter(None, before.split(","))) <= set(files[RESERVED].strip().split(","))
        code = "import socket; s = socket.socket(); s.bind(('10.77.0.2', 0)); print(s.getsockname()[1])"
        taken = {int(pair.run([sys.executable, "-c", code]).stdout) for _ in range(5)}
        assert not taken & set(range(50000, 50032))
