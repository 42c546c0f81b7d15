"""What samples of a job amount to: cases as data, without a job."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import pytest

from envtune.observe.judge import judge
from envtune.observe.sampling import Machine, Observation, Usage, are_on_faults

MACHINE = Machine(64, 64, 0.0, 0.0, 0.0, 0.0, 1.0, None)


def usage(is_main: bool = True, **values: float) -> Usage:
    known: dict[str, Any] = {
        "pid": 7,
        "name": "python",
        "rank": "0",
        "seconds": 30.0,
        "cpu": 0.0,
        "waiting": 0.0,
        "disk": 0.0,
        "whole": 0.0,
        "busiest_thread": 0.0,
        "major_faults": 0.0,
        "children": 0.0,
        "writes": False,
        "series": (),
    }
    return Usage(is_main=is_main, **{**known, **values})


def observation(usages: Sequence[Usage], machine: Machine = MACHINE, npu: Sequence[float] = ()) -> Observation:
    use = (("npu0.0", tuple(npu)),) if npu else ()
    return Observation(30.0, 300, 0.003, tuple(usages), machine, use, False)


WORKER = usage(False, cpu=0.1, whole=0.1)
FULL_WORKER = usage(False, cpu=0.95, whole=0.95)
CASES = [
    ("healthy", [usage(cpu=0.4), WORKER, WORKER], {}, (), "balanced", []),
    ("main thread", [usage(cpu=0.97), WORKER], {}, (), "host", ["main-thread"]),
    ("main thread, but the NPU computes", [usage(cpu=0.97), WORKER], {}, (97.0, 95.0), "compute", []),
    ("oversubscribed", [usage(cpu=0.6, waiting=0.39)], {}, (), "host", ["oversubscribed", "main-thread"]),
    ("affinity", [usage(cpu=0.5, waiting=0.5), WORKER], {"allowed": 1}, (), "host", ["affinity"]),
    (
        "main thread, and others use the CPUs",
        [usage(cpu=0.1, waiting=0.9)],
        {},
        (),
        "host",
        ["oversubscribed", "main-thread"],
    ),
    (
        "one of many threads that all compute",
        [usage(cpu=0.2, waiting=0.74, whole=1.9, busiest_thread=1.0)],
        {},
        (),
        "host",
        ["oversubscribed", "main-thread"],
    ),
    (
        "a main thread without a CPU beside threads that compute",
        [usage(cpu=0.05, waiting=0.9, whole=1.9, busiest_thread=1.0)],
        {},
        (),
        "host",
        ["oversubscribed"],
    ),
    (
        "storage, and a main thread without a CPU for most of the time",
        [usage(cpu=0.22, waiting=0.7, disk=0.08)],
        {},
        (),
        "data",
        ["storage"],
    ),
    ("hardly ever on a CPU", [usage(cpu=0.01, waiting=0.99), WORKER], {}, (), "host", ["oversubscribed"]),
    ("healthy, and others use some CPU", [usage(cpu=0.1, waiting=0.4), WORKER], {}, (), "balanced", []),
    ("healthy, and others use the CPUs", [usage(cpu=0.1, waiting=0.8), WORKER], {}, (), "host", ["oversubscribed"]),
    (
        "workers with time, and others use the CPUs",
        [usage(cpu=0.1), usage(False, cpu=0.2, waiting=0.7)],
        {},
        (),
        "balanced",
        [],
    ),
    ("storage, and others use the CPUs", [usage(), usage(False, disk=0.1, waiting=0.8)], {}, (), "data", ["storage"]),
    ("throttled", [usage(cpu=0.2, waiting=0.8)], {"throttled": 0.6}, (), "host", ["throttled"]),
    ("swap", [usage(cpu=0.2, disk=0.5, major_faults=900.0)], {"swapped_in": 900.0}, (), "host", ["swap"]),
    ("mapped file", [usage(cpu=0.2, disk=0.5, major_faults=900.0)], {}, (), "data", ["storage"]),
    ("worker on storage", [usage(cpu=0.05), usage(False, disk=0.6, cpu=0.1)], {}, (), "data", ["storage"]),
    ("workers at their limit", [usage(cpu=0.05), FULL_WORKER, FULL_WORKER], {}, (), "data", ["workers"]),
    ("one of four is busy", [usage(cpu=0.3), FULL_WORKER, WORKER, WORKER, WORKER], {}, (), "balanced", []),
    ("loader thread", [usage(cpu=0.05, busiest_thread=0.98)], {}, (), "data", ["loader-thread"]),
    ("thread beside workers", [usage(cpu=0.3, busiest_thread=0.98), WORKER], {}, (), "balanced", []),
    ("threads that take turns", [usage(cpu=0.2, whole=0.99, busiest_thread=0.3)], {}, (), "host", ["serialized"]),
    ("threads beside each other", [usage(cpu=0.5, whole=1.4, busiest_thread=0.5)], {}, (), "balanced", []),
    ("a loader thread and little else", [usage(whole=1.0, busiest_thread=0.9)], {}, (), "data", ["loader-thread"]),
    ("programs that it starts", [usage(cpu=0.02, children=1.8)], {}, (), "data", ["children"]),
    ("a worker that ended", [usage(cpu=0.3, children=0.2), WORKER], {}, (), "balanced", []),
    ("checkpoints", [usage(disk=0.5, writes=True), WORKER], {}, (), "host", ["storage"]),
    ("workers that fill a cache", [usage(disk=0.5, writes=True), usage(False, disk=0.5)], {}, (), "data", ["storage"]),
    ("nothing ran", [], {}, (), "unknown", []),
]


@pytest.mark.parametrize(("usages", "machine", "npu", "bound", "causes"), [case[1:] for case in CASES])
def test_samples_amount_to_a_verdict(
    usages: list[Usage], machine: dict[str, Any], npu: Sequence[float], bound: str, causes: list[str]
) -> None:
    found = judge(observation(usages, MACHINE._replace(**machine), npu))
    assert (found.bound.value, [cause.name for cause in found.causes]) == (bound, causes)


def test_waiting_for_a_cpu_is_noted() -> None:
    found = judge(observation([usage(cpu=0.1, waiting=0.4)]))
    assert "The main thread has no CPU for 40% of the time." in [note.en for note in found.notes]


@pytest.mark.parametrize(("pressure", "said"), [(0.97, True), (0.2, False), (None, False)])
def test_a_machine_with_too_much_to_do_is_named_where_nothing_else_is(pressure: Optional[float], said: bool) -> None:
    found = judge(observation([usage(cpu=0.1), WORKER], MACHINE._replace(cpu_pressure=pressure)))
    notes = [note.en for note in found.notes]
    assert found.bound.value == "balanced" and any("observe again" in note for note in notes) is said


def test_notes_are_no_verdict() -> None:
    machine = MACHINE._replace(frequency=0.5, remote=0.8)
    found = judge(observation([usage(cpu=0.4)], machine, (95.0, 2.0, 0.0)))
    said = "\n".join(note.en for note in found.notes)
    assert found.bound.value == "balanced"
    assert "50% of their maximum frequency" in said and "80% of its memory" in said and "idle in 2 of 3" in said


@pytest.mark.parametrize(
    ("sleeps", "faults", "expected"),
    [
        pytest.param(10_000, 9_900, True, id="each sleep is a page that is read"),
        pytest.param(10_000, 300, False, id="a page now and then"),
        pytest.param(5, 0, False, id="asleep, no faults"),
        pytest.param(0, 0, False, id="never asleep"),
        pytest.param(None, 9_900, False, id="not told by the kernel"),
    ],
)
def test_sleeps_are_for_pages_only_where_the_faults_account_for_them(
    sleeps: Optional[int], faults: int, expected: bool
) -> None:
    assert are_on_faults(sleeps, faults) is expected
