"""Where processes run: on real processes with an affinity of their own, and on recorded ones."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from typing import Any, Iterator, Mapping

import pytest
from helpers.examples import shared_host

from envtune.audit import examine
from envtune.catalog import load
from envtune.catalog.examples import example_host
from envtune.context import Context
from envtune.context.open import open_context
from envtune.host import LocalHost
from envtune.job.target import TargetOptions
from envtune.model import Fact
from envtune.resources.cpu.topology import allowed_cpus, cpu_text
from envtune.resources.npu.topology import parse_topology
from envtune.resources.processes import placement

CHECKS = {check.id: check for check in load().checks}
# Public listing of a server with eight 910B: one column after the matrix.
TABLE = (
    "\t   NPU0       NPU1       NPU2       CPU Affinity\n"
    "NPU0       X          HCCS       HCCS       144-167\n"
    "NPU1       HCCS       X          HCCS       144-167\n"
    "NPU2       HCCS       HCCS       X          96-119\n\n"
    "Legend:\n  X    = Self\n  HCCS = Connection traversing HCCS.\n"
)


class Ranks(LocalHost):
    """This machine, on which the named processes hold NPUs."""

    def __init__(self, devices: Mapping[int, str]) -> None:
        super().__init__()
        self.held = devices

    def processes(self) -> Any:
        return tuple(
            row._replace(devices=(self.held[row.pid],)) if row.pid in self.held else row for row in super().processes()
        )


@pytest.fixture
def child() -> Iterator[int]:
    """A process that a test may bind."""
    with subprocess.Popen([sys.executable, "-I", "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.communicate(b"\n")


def on(host: LocalHost) -> Context:
    context = open_context(host, TargetOptions())
    return Context(host, context.target, {name: Fact(name, "true", "the test") for name in ("ascend", "ascend_job")})


def outcomes(id_: str, context: Context) -> list[tuple[str, str]]:
    return [(finding.outcome.value, finding.subject) for finding in examine(CHECKS[id_], context)]


def test_a_bound_process_shows_its_cpus(child: int) -> None:
    cpu = min(os.sched_getaffinity(0))
    os.sched_setaffinity(child, {cpu})
    (rank,) = placement.ranks(on(Ranks({child: "/dev/davinci0"})))
    assert rank.cpus == (cpu,) and rank.nodes == (0,)


def test_two_processes_bound_to_one_cpu(child: int) -> None:
    cpu = min(os.sched_getaffinity(0))
    command = ["taskset", "-c", str(cpu), sys.executable, "-I", "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        os.sched_setaffinity(child, {cpu})
        assert other.stdout is not None
        other.stdout.readline()
        host = Ranks({child: "/dev/davinci0", other.pid: "/dev/davinci1"})
        first, second = sorted((child, other.pid))
        found = outcomes("PROC103", on(host))
        other.communicate(b"\n")
    assert found == [("fail", f"process {first}, process {second}")]


def test_memory_of_this_machine_is_not_in_swap(child: int) -> None:
    assert outcomes("PROC102", on(Ranks({child: "/dev/davinci0"}))) == [("pass", f"process {child}")]


def test_a_process_that_may_lock_little_memory(child: int) -> None:
    most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    resource.prlimit(child, resource.RLIMIT_MEMLOCK, (65536, most))
    assert outcomes("PROC105", on(Ranks({child: "/dev/davinci0"}))) == [("fail", f"process {child}")]


def test_a_forked_worker_is_not_taken_for_a_rank() -> None:
    code = "import os; child = os.fork(); child and print(child, flush=True); os.read(0, 1)"
    with subprocess.Popen([sys.executable, "-I", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as rank:
        assert rank.stdout is not None
        worker = int(rank.stdout.readline())
        found = placement.ranks(on(Ranks({rank.pid: "/dev/davinci0", worker: "/dev/davinci0"})))
        other = placement.ranks(on(Ranks({rank.pid: "/dev/davinci0", worker: "/dev/davinci1"})))
        rank.communicate(b"\n\n")
    assert [one.process.pid for one in found] == [rank.pid]
    assert {one.process.pid for one in other} == {rank.pid, worker}


@pytest.mark.parametrize("bound", [False, True])
def test_a_variable_that_bound_or_did_not(bound: bool) -> None:
    cpus = os.sched_getaffinity(0)
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    environ = {**os.environ, "CPU_AFFINITY_CONF": "1"}
    with subprocess.Popen([sys.executable, "-I", "-c", "input()"], stdin=subprocess.PIPE, env=environ) as process:
        if bound:
            os.sched_setaffinity(process.pid, {min(cpus)})
        found = outcomes("PROC104", on(Ranks({process.pid: "/dev/davinci0"})))
        process.communicate(b"\n")
    assert found == [("pass" if bound else "fail", f"process {process.pid}")]


@pytest.mark.parametrize(
    ("id_", "files", "outcome"),
    [
        ("PROC101", {"/proc/4242/status": "VmSwap:\t0 kB\nCpus_allowed_list:\t0-23\n"}, "fail"),
        ("PROC101", {"/proc/4242/status": "VmSwap:\t0 kB\nCpus_allowed_list:\t23,190\n"}, "pass"),
        ("PROC101", {"/sys/bus/pci/devices/0000:c2:00.0/local_cpulist": "0-3\n"}, "fail"),
        ("PROC102", {"/proc/4242/status": "VmSwap:\t 976 kB\nCpus_allowed_list:\t0-23\n"}, "pass"),
        ("PROC102", {"/proc/4242/status": "VmSwap:\t 2048 kB\nCpus_allowed_list:\t0-23\n"}, "fail"),
        ("PROC103", {"/proc/4242/status": "Cpus_allowed_list:\t0\n"}, "pass"),
        ("PROC104", {"/proc/4200/status": "Cpus_allowed_list:\t168-191\n"}, "fail"),
    ],
)
def test_one_change_of_a_recorded_host(id_: str, files: Mapping[str, str], outcome: str) -> None:
    host = example_host({"like": "npu-910b-bound", "files": dict(files)}, shared_host)
    (finding,) = examine(CHECKS[id_], open_context(host, TargetOptions()))
    assert finding.outcome.value == outcome


def test_they_are_unknown_where_the_snapshot_lacks_what_they_read() -> None:
    host = example_host({"like": "npu-910b-bound", "files": {"/proc/4242/status": None}}, shared_host)
    told = {
        (finding.outcome.value, finding.reason.en)
        for id_ in ("PROC101", "PROC102", "PROC103", "PROC104")
        for finding in examine(CHECKS[id_], open_context(host, TargetOptions()))
        if finding.reason is not None
    }
    assert told == {("unknown", "/proc/4242/status is not in the snapshot")}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (TABLE, {0: range(144, 168), 1: range(144, 168), 2: range(96, 120)}),
        (TABLE.replace("CPU Affinity", "CPU Affinity  NUMA Affinity").replace("144-167", "144-167   6"), None),
        (TABLE.replace("NPU0   ", "Phy-ID0").replace("144-167", "144-155,160-161"), None),
        ("\tNPU ID                         : 0\n\tCPU Affinity                   : 48-71\n", {0: range(48, 72)}),
        ("This device does not support querying topo.\n", {}),
        ("", {}),
        ("CPU Affinity\nNPU0 X HCCS NA\nNPU99999999999 X 1-2\n", {}),
    ],
)
def test_the_topology_of_npu_smi(text: str, found: Any) -> None:
    told = {number: list(cpus) for number, cpus in parse_topology(text).items()}
    if found is None:
        assert set(told) == {0, 1, 2} and told[0][0] == 144
    else:
        assert told == {number: list(cpus) for number, cpus in found.items()}


def test_cpus_as_the_kernel_lists_them() -> None:
    assert allowed_cpus("Name:\tx\nCpus_allowed_list:\t0-2,5\n") == (0, 1, 2, 5)
    assert allowed_cpus("Name:\tx\n") == ()
    assert (cpu_text((5, 0, 1, 2)), cpu_text(())) == ("0-2,5", "-")
