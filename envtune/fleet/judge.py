"""Check the snapshots of many hosts in separate processes, one per CPU.

A process checks one host after the other, within limits of memory, CPU and time for each. If a host's snapshot brings a
process down, only that host has no verdict; another process continues with the next host. The result is the record of a
host, which is small. `audit/limited.py` does the same for one host and keeps what was found until then.
"""

from __future__ import annotations

import gc
import io
import os
import pickle
import resource
import select
import signal
import time
from itertools import chain
from typing import Any, Callable, Iterable, Iterator, NoReturn, Optional, Sequence

from envtune.audit.limited import limit_process, why_ended
from envtune.audit.settings import read_settings
from envtune.context import Context, worker
from envtune.context.open import Expectations, describe_target, open_context, resolve_target
from envtune.context.registry import fact_names, find_fact, find_probe
from envtune.errors import EnvtuneError, internal_error_text
from envtune.fleet.alike.check import Alike
from envtune.fleet.collected import Collection
from envtune.fleet.record import HostRecord, record_of
from envtune.job.target import JobEnvironment, TargetOptions
from envtune.messages import Message, Text
from envtune.model import Check, Fact, Finding, Report
from envtune.records import NamedTuple
from envtune.snapshot.host import SnapshotHost
from envtune.snapshot.open import read_snapshot
from envtune.trust.characters import visible

CPU = 30  # seconds for one host
DEADLINE = 120.0  # seconds for one host
MAX_REPLY = 16 << 20  # bytes
MAX_NAME = 255  # characters of a host name
_SIZE = 8
SESSION = Message("the session that recorded the host")
NO_JOB = Message("no job specified: use --python, --env-file or --job")


class Snapshot(NamedTuple):
    """The packed snapshot of a host. `by_ssh`: recorded in a session, which is not a job.

    `named_by_snapshot`: the host is named as in the snapshot, and `host` is where it came from. `reason` says why there
    is no data.
    """

    host: str
    data: bytes
    by_ssh: bool
    seconds: float = 0.0
    named_by_snapshot: bool = False
    reason: str = ""


class Question(NamedTuple):
    """What is checked on each host; `work` replaces `judge_one` for other processing of a snapshot."""

    checks: Sequence[Check]
    expectations: Expectations
    work: Optional[Callable[[Snapshot, Question], Any]] = None


def judge_all(
    snapshots: Iterable[Snapshot], question: Question, processes: Optional[int] = None
) -> Iterator[HostRecord]:
    """Yield the record of each host, in the order in which they are done."""
    rows = iter(snapshots)
    first = next(rows, None)
    if first is None:
        return
    _import_probes(question.checks)
    pool = _Pool(question)
    try:
        waiting: Optional[Snapshot] = first
        wanted = processes or len(os.sched_getaffinity(0))
        while waiting is not None or pool.busy:
            while waiting is not None and len(pool.busy) < wanted:
                pool.give(waiting)
                waiting = next(rows, None)
            yield from pool.answers()
    finally:
        pool.end()


def _import_probes(checks: Sequence[Check]) -> None:
    """Import what the checks need once here instead of in each process."""
    for check in checks:
        find_probe(check.probe)
    for name in fact_names():
        find_fact(name)
    Message("no reason given").to("zh")


class _Pool:
    """Processes that check hosts; `busy` has those with a host, by the descriptor on which they answer."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.busy: dict[int, _Process] = {}
        self._idle: list[_Process] = []

    def give(self, snapshot: Snapshot) -> None:
        """Assign a host to a process."""
        process = self._idle.pop() if self._idle else _Process(self._question, [*self.busy.values(), *self._idle])
        process.begin(snapshot)
        self.busy[process.reading] = process

    def answers(self) -> Iterator[HostRecord]:
        """Wait, and yield the records of hosts that are done, including those whose process died."""
        soonest = min(process.until for process in self.busy.values())
        ready = select.select(list(self.busy), [], [], max(0.0, soonest - time.monotonic()))[0]
        late = [number for number, process in self.busy.items() if process.until <= time.monotonic()]
        for number in {*ready, *late}:
            process = self.busy[number]
            record = process.read(number in ready)
            if record is not None:
                del self.busy[number]
                if process.alive:
                    self._idle.append(process)
                yield record

    def end(self) -> None:
        """End every process."""
        for process in (*self._idle, *self.busy.values()):
            process.end()


class _Process:
    """A forked process that checks one host after the other."""

    def __init__(self, question: Question, others: Sequence[_Process]) -> None:
        tasks, self._writing = os.pipe()
        self.reading, answers = os.pipe()
        self.alive, self.until = True, 0.0
        self._snapshot: Optional[Snapshot] = None
        self._buffer = bytearray()
        self._pid = os.fork()
        if self._pid == 0:
            for other in others:
                os.close(other.reading)
                os.close(other._writing)
            os.close(self._writing)
            os.close(self.reading)
            _serve(question, tasks, answers)
        os.close(tasks)
        os.close(answers)

    def begin(self, snapshot: Snapshot) -> None:
        """Send a host."""
        self._snapshot, self.until = snapshot, time.monotonic() + DEADLINE
        data = pickle.dumps(tuple(snapshot), pickle.HIGHEST_PROTOCOL)
        try:
            with open(self._writing, "wb", closefd=False) as pipe:
                pipe.write(len(data).to_bytes(_SIZE, "big") + data)
        except BrokenPipeError:  # it has ended: reading will show that
            pass

    def read(self, ready: bool) -> Optional[HostRecord]:
        """Return the record if it is complete, or why there will be none; None if more data is expected."""
        snapshot = self._snapshot
        if snapshot is None:
            raise AssertionError("no host was sent")
        if not ready:
            return self._lost(snapshot, worker.no_answer(DEADLINE))
        data = os.read(self.reading, 1 << 18)
        if not data:
            return self._lost(snapshot, None)
        self._buffer += data
        size = int.from_bytes(self._buffer[:_SIZE], "big")
        if len(self._buffer) >= _SIZE and size > MAX_REPLY:
            return self._lost(snapshot, Message("the result is too large"))
        if len(self._buffer) < _SIZE + size or len(self._buffer) < _SIZE:
            return None
        found = pickle.loads(bytes(self._buffer[_SIZE:]))  # written by our own process
        self._buffer.clear()
        record: HostRecord = found
        return record

    def _lost(self, snapshot: Snapshot, reason: Optional[Text]) -> HostRecord:
        if reason is not None:
            os.kill(self._pid, signal.SIGKILL)
        _, status = os.waitpid(self._pid, 0)
        reason = reason or why_ended(status, CPU)
        self._pid = 0
        self.end()
        return _damaged(snapshot, reason)

    def end(self) -> None:
        """End the process, and close the pipes to it."""
        if self.alive:
            os.close(self._writing)
            os.close(self.reading)
        self.alive = False
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0


def _serve(question: Question, tasks: int, answers: int) -> NoReturn:
    """Check hosts until there are none left; never returns to the caller."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 0)
        worker.has_deadlines = False
        gc.freeze()
        limit_process(None)
        alike = Alike(question.checks)
        with open(tasks, "rb") as source:
            while size := source.read(_SIZE):
                snapshot = Snapshot(*pickle.loads(source.read(int.from_bytes(size, "big"))))
                _limit_cpu()
                work = question.work
                answer = work(snapshot, question) if work else judge_one(snapshot, question, alike)
                data = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
                with open(answers, "wb", closefd=False) as pipe:
                    pipe.write(len(data).to_bytes(_SIZE, "big") + data)
        os._exit(0)
    except MemoryError:
        os._exit(71)
    finally:
        os._exit(1)


def _limit_cpu() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = int(used.ru_utime + used.ru_stime) + 1 + CPU
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def judge_one(snapshot: Snapshot, question: Question, alike: Optional[Alike] = None) -> HostRecord:
    """Return the record of one host; a host with an unreadable snapshot counts as damaged.

    `alike` remembers what was checked before.
    """
    alike = alike or Alike(question.checks)
    if snapshot.reason:
        return HostRecord(snapshot.host, Collection.CORRUPT, snapshot.reason, snapshot.seconds)
    try:
        host = read_snapshot(io.BytesIO(snapshot.data), snapshot.host)
        name = visible(host.name)[:MAX_NAME] if snapshot.named_by_snapshot and host.name else snapshot.host
        record = record_of(name, _report(host, snapshot.by_ssh, question, alike))
    except Exception as error:
        return failed_host(snapshot, error)
    return record._replace(seconds=snapshot.seconds)


def failed_host(snapshot: Snapshot, error: Exception) -> HostRecord:
    """Return the record of a host whose snapshot could not be judged, even due to a bug: only this host is affected.

    Raises the error if it is a MemoryError, which is about this process.
    """
    if isinstance(error, MemoryError):
        raise error
    return _damaged(snapshot, error.message if isinstance(error, EnvtuneError) else internal_error_text(error))


def _damaged(snapshot: Snapshot, reason: Text) -> HostRecord:
    return HostRecord(snapshot.host, Collection.CORRUPT, visible(reason.en)[:300], snapshot.seconds)


def _report(host: SnapshotHost, by_ssh: bool, question: Question, alike: Alike) -> Report:
    context = collected_context(host, by_ssh, question.expectations)
    facts, findings = alike.check(host, context)
    return report_of(host, context, facts, tuple(chain(*findings)))


def collected_context(host: SnapshotHost, by_ssh: bool, expectations: Expectations) -> Context:
    """Return the context of a collected host; the session in which it was recorded is not a job."""
    options = resolve_target(host)
    context = open_context(host, options, expectations)
    return _without_session(context, options, host.data.get("target") or {}) if by_ssh else context


def report_of(host: SnapshotHost, context: Context, facts: tuple[Fact, ...], findings: tuple[Finding, ...]) -> Report:
    """Return the report of a host, with the settings of its job."""
    settings = read_settings(context)
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(host.now))
    return Report(host.name, started, 0.0, describe_target(context.target), facts + settings, findings)


def _without_session(context: Context, options: TargetOptions, named: Any) -> Context:
    """Return the context in which the Python and variables of the session do not count as a job."""
    reason: Text = NO_JOB
    if named.get("job") is not None and options.pid is None:
        reason = Message("no process named {name} found", name=visible(str(named["job"]))[:100])
    target = context.target
    if not options.named:
        target = target._replace(environment=JobEnvironment(None, SESSION, reason))
    if options.python is None and not options.named:
        target = target._replace(python=None, python_reason=reason)
    return Context(context.host, target, expectations=context.expectations)
