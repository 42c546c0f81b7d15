"""Readers of what strangers write: their cost grows with the size of the input, not with its square."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import pytest
from helpers.growth import cpu, growth, is_linear

from envtune.collector.python.wrappers import expanded
from envtune.collector.snapshot import kept_processes
from envtune.collector.wheels import record_digest
from envtune.context.open import open_context
from envtune.errors import HostError
from envtune.host import descendants, realpath
from envtune.model import Process
from envtune.resources.cann.tree import resolve_existing
from envtune.resources.environment.search_paths import path_defects
from envtune.resources.firewall.frontends import ufw_table
from envtune.resources.images.build_requirements import installed_in
from envtune.resources.npu.assigned import Limits, _list_problems, parse_ids
from envtune.resources.npu.smi import parse_info
from envtune.resources.processes.usage import orphan_sign
from envtune.resources.python.metadata import parse_finder
from envtune.snapshot.host import SnapshotHost

HEADER = "| NPU   Name | Health | Bus-Id |\n| 0  910B | OK | "


class Case(NamedTuple):
    """An input of a size, and what reads it; `size` is the smaller of the two that are compared."""

    name: str
    make: Callable[[int], Any]
    read: Callable[[Any], Any]
    size: int = 16_000


def quietly(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def attempt(value: Any) -> Any:
        try:
            return read(value)
        except HostError:
            return None

    return attempt


def host(**tables: Any) -> SnapshotHost:
    return SnapshotHost({"host": "h", "now": 1, "covered": [], **tables})


def deep(size: int) -> tuple[SnapshotHost, str]:
    path = "/a" * (size // 2)
    return host(files={path + "/file": "x"}), path


def adopted(number: int) -> list[dict[str, Any]]:
    return [{"pid": pid, "ppid": pid - 1, "name": "python"} for pid in range(2, number)]


def covered(number: int) -> SnapshotHost:
    return host(covered=[f"/x{n}/*/{n}" for n in range(number)])


def ask(answering: SnapshotHost) -> None:
    for number in range(len(answering.data["covered"])):
        with pytest.raises(HostError):
            answering.stat(f"/x{number}/y/z")


def judge_processes(rows: list[dict[str, Any]]) -> None:
    context = open_context(host(processes=rows))
    for process in context.host.processes():
        orphan_sign(context, process)


def problems(text: str) -> Any:
    numbers = parse_ids(text) or ()
    return list(_list_problems(numbers, Limits(tuple(range(8)), "910B", False, True), range(8), "X"))


def search_path(size: int) -> str:
    return ":".join(f"/a{n}" for n in range(size // 8))


KNOWN = {"0": "/opt/job/run.sh", "A": "x" * 100}
CASES = (
    Case("$(cd and spaces", lambda n: "$(cd" + " " * n, lambda t: expanded(t, KNOWN), 4_000),
    Case("many $(cd", lambda n: "$(cd " * (n // 5), lambda t: expanded(t, KNOWN), 4_000),
    Case("variables in a word", lambda n: "$A" * (n // 2), lambda t: expanded(t, KNOWN), 4_000),
    Case("MAPPING={", lambda n: "MAPPING={\n" * (n // 10), parse_finder, 8_000),
    Case("MAPPING and spaces", lambda n: "MAPPING" + " " * n, parse_finder),
    Case("npu-smi x", lambda n: "| npu-smi " + "npu-smi xxxx " * (n // 13) + "|", parse_info, 8_000),
    Case("npu-smi cell of spaces", lambda n: HEADER + " " * n + "x |", parse_info),
    Case("npu-smi cell of slashes", lambda n: HEADER + " / " * (n // 3) + "x |", parse_info),
    Case("npu-smi rows", lambda n: HEADER + "x |\n" + "| 0 x | OK | x |\n" * (n // 17), parse_info, 8_000),
    Case("dpkg status", lambda n: "Package: x\n" * (n // 11), lambda t: installed_in(t, ["x"]), 50_000),
    Case("dpkg status line", lambda n: "Package: x\nStatus: " + "a " * n, lambda t: installed_in(t, ["x"])),
    Case("ufw spaces", lambda n: "a" + " " * n + "b", lambda t: ufw_table(t, 4)),
    Case("ufw actions", lambda n: "  ALLOW" * (n // 7), lambda t: ufw_table(t, 4)),
    Case("search path", search_path, lambda t: path_defects(host(), t), 16_000),
    Case("search path, one entry", lambda n: "/a:" * (n // 3), lambda t: path_defects(host(), t), 64_000),
    Case("visible devices", lambda n: ",".join(str(i % 5000) for i in range(n)), problems, 3_000),
    Case("ranges of devices", lambda n: "0-9999," * (n // 7) + "0", lambda t: parse_ids(t, ranges=True)),
    Case("deep path", deep, quietly(lambda d: realpath(*d)), 1_000),
    Case("path that is too long", lambda n: "/a" * n, quietly(lambda t: realpath(host(), t)), 64_000),
    Case("path that partly exists", deep, quietly(lambda d: resolve_existing(d[0], d[1] + "/b" * 400)), 500),
    Case("covered patterns", covered, ask, 500),
    Case("parents of processes", adopted, judge_processes, 1_000),
    Case("descendants", lambda n: [Process(i, i - 1, "", "") for i in range(2, n)], lambda t: descendants(t, 2), 3_000),
    Case("argument of a process", lambda n: [{"pid": 9, "name": "python", "argv": ["x" * n]}],
         lambda t: kept_processes(t, None, "")),
    Case("RECORD", lambda n: "a,sha256=b,1\n" * (n // 13), record_digest),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_larger_input_costs_in_proportion(case: Case) -> None:
    seconds = growth(case.make, case.read, case.size)
    assert is_linear(seconds), seconds


@pytest.mark.parametrize("case", CASES[::3], ids=lambda case: case.name)
def test_a_small_input_costs_next_to_nothing(case: Case) -> None:
    assert cpu(case.read, case.make(case.size // 4)) < 1


def test_values_of_a_script_cannot_double_for_ever() -> None:
    known = {"0": "/run.sh", "A": "x" * 10}
    for _ in range(60):
        known["A"] = expanded("$A$A", known)
    assert len(known["A"]) <= 16384
