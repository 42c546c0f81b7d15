"""A job on a file system that does not answer: the report comes all the same, and says so."""

from __future__ import annotations

import queue
import threading
from typing import Any, Callable, Iterable, Optional, TypeVar

import pytest

from envtune.context import open as opening
from envtune.context.open import open_context, resolve_target
from envtune.context.worker import Worker
from envtune.errors import UsageError
from envtune.job.target import TargetOptions
from envtune.snapshot.host import SnapshotHost

T = TypeVar("T")
RELEASE = threading.Event()
ASKED = threading.Event()  # the mount was asked for something
TEXT = {"/job/train.sh": "export A=1\npython3 t.py\n", "/job/job.env": "A=1\n"}


class DeadMount(SnapshotHost):
    """A host on which /dead answers stat and never a read."""

    def read_bytes(self, path: str) -> bytes:
        self._wait_for(path)
        return super().read_bytes(path)

    def readlink(self, path: str) -> str:
        self._wait_for(path)
        return super().readlink(path)

    def stat(self, path: str, follow: bool = True) -> Any:
        self._wait_for(path, "/gone")
        return super().stat(path, follow)

    def _wait_for(self, path: str, mount: str = "/dead") -> None:
        if path.startswith(mount):
            ASKED.set()
            RELEASE.wait(30)


class PunctualWorker(Worker):
    """Its deadline has passed when the mount was asked, not after a time: a busy machine makes nothing late."""

    def call(self, function: Callable[[], T], deadline: float) -> Optional[T]:
        def ask() -> None:
            answers.put(super(PunctualWorker, self).call(function, 60))

        ASKED.clear()
        answers: queue.SimpleQueue[Optional[T]] = queue.SimpleQueue()
        threading.Thread(target=ask, daemon=True).start()
        while not ASKED.is_set():
            try:
                return answers.get(timeout=0.01)
            except queue.Empty:
                pass
        return None


@pytest.fixture(autouse=True)
def punctual(monkeypatch: pytest.MonkeyPatch) -> Iterable[None]:
    monkeypatch.setattr(opening, "Worker", PunctualWorker)
    RELEASE.clear()
    yield
    RELEASE.set()


@pytest.mark.parametrize(
    "options", [TargetOptions(script="/dead/train.sh"), TargetOptions(env_file="/dead/job.env")], ids=str
)
def test_an_environment_that_cannot_be_read_is_unknown(options: TargetOptions) -> None:
    context = open_context(DeadMount({"files": {"/dead/train.sh": "A=1\n", "/dead/job.env": "A=1\n"}}), options)
    reason = context.target.environment.why_unknown("A")
    assert reason is not None and "no response within 20 s" in reason.en


def test_a_python_that_cannot_be_read_is_unknown() -> None:
    host = DeadMount({"files": TEXT})
    context = open_context(host, TargetOptions(script="/job/train.sh", python="/gone/bin/python3"))
    assert context.target.environment.variables == {"A": "1"}
    assert context.target.python is None and context.target.python_reason is not None
    assert "no response within 20 s" in context.target.python_reason.en


def test_what_may_be_there_is_no_mistake_of_the_user() -> None:
    host = DeadMount({"files": {}})
    assert resolve_target(host, TargetOptions(script="/gone/train.sh")).script == "/gone/train.sh"
    with pytest.raises(UsageError):
        resolve_target(host, TargetOptions(script="/job/train.sh"))


def test_a_target_that_answers_is_read() -> None:
    context = open_context(DeadMount({"files": TEXT}), TargetOptions(script="/job/train.sh", env_file="/job/job.env"))
    assert context.target.environment.variables == {"A": "1"}
