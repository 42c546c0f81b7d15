"""A stranger's snapshot is judged in a process that ends at its limits; what it had no time for is unknown."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from typing import Callable, Iterable

import pytest
from helpers.recorded import host_data
from helpers.rows import marked_slow, sampled

from envtune import catalog
from envtune.audit import check_host, limited
from envtune.audit.limited import check_limited
from envtune.context import Context
from envtune.context.open import UNNAMED
from envtune.context.registry import probe
from envtune.errors import UsageError
from envtune.job.target import TargetOptions
from envtune.messages import Literal
from envtune.model import Check, Evidence, Outcome, Reading, Report, Severity
from envtune.snapshot.host import SnapshotHost

DEADLINE = 0.5
HOST = SnapshotHost({"files": {}})


@probe("test.answers")
def answers(context: Context) -> Iterable[Reading]:
    return [Reading("x", 1, Evidence("test"))]


@probe("test.holds_the_lock")
def holds_the_lock(context: Context) -> Iterable[Reading]:
    re.match(r"(a+)+$", "a" * 40 + "b")  # one call of C, which no other thread interrupts
    return []


@probe("test.takes_memory")
def takes_memory(context: Context) -> Iterable[Reading]:
    bytearray(1 << 32)
    return []


@probe("test.is_killed")
def is_killed(context: Context) -> Iterable[Reading]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


@probe("test.exits")
def exits(context: Context) -> Iterable[Reading]:
    os._exit(9)


@probe("test.error_in_text")
def error_in_text(context: Context) -> Iterable[Reading]:
    return [*context.host.read("/not/recorded")]  # type: ignore[list-item]


def check(number: int, kind: str) -> Check:
    words = Literal(kind)
    deadline = DEADLINE if kind == "test.holds_the_lock" else 60  # what answers does so on a busy machine too
    return Check(
        f"TST{number:03d}", kind, words, "stable", Severity.LOW, words, "seed", kind, {}, {"eq": 1}, deadline=deadline
    )


def judged(*kinds: str, judge: Callable[..., Report] = check_limited) -> list[tuple[str, str, str]]:
    """The checks of these probes: id, outcome, reason."""
    checks = [check(number, f"test.{kind}") for number, kind in enumerate(kinds)]
    report = judge(HOST, UNNAMED, checks)
    return [(found.id, found.outcome.value, found.reason.en if found.reason else "") for found in report.findings]


@pytest.fixture(autouse=True)
def no_process_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterable[None]:
    monkeypatch.setattr(limited, "GRACE", 0.5)
    while threading.active_count() > 1:  # those of the test before end when they are scheduled again
        time.sleep(0.01)
    yield
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.parametrize(
    "name", ["container-without-driver", *sampled(["plain-debian12", "910b-openeuler2203-troubled"], 2)]
)
def test_the_report_is_the_same(name: str) -> None:
    catalogue, host, seen = catalog.load(), SnapshotHost(host_data(name)), []
    checks = catalogue.checks
    report = check_limited(host, UNNAMED, checks, seen.append, catalogue.expectations)
    assert seen == list(checks)
    plain = check_host(host, UNNAMED, checks, None, catalogue.expectations)
    assert report._replace(seconds=0) == plain._replace(seconds=0)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        marked_slow(("holds_the_lock", "no response within 1 s")),  # whose second is one of CPU
        ("takes_memory", "not enough memory"),
        ("is_killed", "ended by SIGKILL"),
        ("exits", "ended with status 9"),
        ("error_in_text", ""),
    ],
)
def test_what_ends_the_process_costs_only_its_check(kind: str, words: str) -> None:
    first, second, third = judged("answers", kind, "answers")
    assert (first, third) == (("TST000", "pass", ""), ("TST002", "pass", ""))
    assert second[:2] == ("TST001", "unknown") and words in second[2]


def test_not_more_than_some_processes_are_started() -> None:
    rows = judged("answers", *["is_killed"] * 6, "answers")
    assert [outcome for _, outcome, _ in rows] == ["pass", *["unknown"] * 7]
    assert len({number for number, _, _ in rows}) == 8


def test_where_nothing_can_be_started_it_is_judged_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    notes: list[str] = []
    monkeypatch.setattr(os, "fork", refuse)
    report = check_limited(HOST, UNNAMED, [check(0, "test.answers")], note=notes.append)
    assert [found.outcome for found in report.findings] == [Outcome.PASS]
    assert "Resource temporarily unavailable" in notes[0]


def test_a_mistake_of_the_user_is_said_as_ever() -> None:
    with pytest.raises(UsageError, match=r"--script /gone.sh: No such file"):
        check_limited(HOST, TargetOptions(script="/gone.sh"), [check(0, "test.answers")])
