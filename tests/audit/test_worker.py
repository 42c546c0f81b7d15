"""A hung check costs only itself, and an audit leaves nothing running."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Iterable

import pytest
from helpers.examples import example_context

from envtune import audit
from envtune.context import Context
from envtune.context.registry import probe
from envtune.context.worker import Worker
from envtune.messages import Literal
from envtune.model import Check, Evidence, Outcome, Reading, Severity

RELEASE = threading.Event()


@probe("test.stuck")
def stuck(context: Context) -> Iterable[Reading]:
    RELEASE.wait(30)
    return [Reading("x", 1, Evidence("test"))]


@probe("test.quick")
def quick(context: Context) -> Iterable[Reading]:
    return [Reading("x", 1, Evidence("test"))]


def check(number: int, kind: str) -> Check:
    words = Literal(kind)
    deadline = 0.2 if kind == "test.stuck" else 60  # what answers does so on a busy machine too
    return Check(
        f"TST{number:03d}", kind, words, "stable", Severity.LOW, words, "seed", kind, {}, {"eq": 1}, deadline=deadline
    )


@pytest.fixture(autouse=True)
def let_go() -> Iterable[None]:
    RELEASE.clear()
    yield
    RELEASE.set()


def wait_for_threads(count: int) -> int:
    end = time.monotonic() + 60
    while threading.active_count() > count and time.monotonic() < end:
        time.sleep(0.01)
    return threading.active_count()


def test_a_hung_check_costs_only_itself() -> None:
    before = threading.active_count()
    context = example_context({"files": {}})
    findings = audit.audit([check(1, "test.quick"), check(2, "test.stuck"), check(3, "test.quick")], context)
    assert [f.outcome for f in findings] == [Outcome.PASS, Outcome.UNKNOWN, Outcome.PASS]
    assert findings[1].reason is not None
    assert "no response within 0.2 s" in findings[1].reason.en
    RELEASE.set()
    assert wait_for_threads(before) <= before


def test_an_audit_leaves_no_thread() -> None:
    before = threading.active_count()
    for _ in range(20):
        audit.audit([check(1, "test.quick")], example_context({"files": {}}))
    assert wait_for_threads(before) <= before


def test_a_row_of_calls_has_one_thread_until_one_hangs() -> None:
    threads: list[int] = []
    worker = Worker()
    names = worker.call_each(
        [(partial(named, threads, name), 0.2 if name == "stuck" else 60.0) for name in ("a", "b", "stuck", "c", "d")]
    )
    RELEASE.set()
    worker.end()
    assert names == ["a", "b", None, "c", "d"]
    first, second, third, *others = threads
    assert first == second == third and {*others} == {others[0]} and others[0] != first


def named(threads: list[int], name: str) -> str:
    threads.append(threading.get_ident())
    if name == "stuck":
        RELEASE.wait(30)
    return name


def test_a_call_that_fails_ends_the_row() -> None:
    threads: list[int] = []
    worker = Worker()
    with pytest.raises(ZeroDivisionError):
        worker.call_each([(partial(named, threads, "a"), 60.0), (lambda: str(1 // 0), 60.0)])
    assert worker.call(partial(named, threads, "b"), 60.0) == "b" and threads[0] == threads[1]
    worker.end()


def test_who_watches_sees_a_check_before_it_is_done() -> None:
    context, checks = example_context({"files": {}}), [check(1, "test.quick"), check(2, "test.quick")]
    events = audit.audited(checks, context)
    assert next(events) == audit.Began(checks[0])
    assert [type(event) for event in events] == [audit.Found, audit.Began, audit.Found]
    assert [*audit.audited(checks, context, watched=False)] == [*audit.audited(checks, context)]
