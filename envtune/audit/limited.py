"""Judge what somebody else recorded in a separate process with limited memory and time.

The process is forked when the snapshot is open and no thread runs yet, so that it costs only a fork. Its findings
arrive event by event. A process that does not answer in time, or that exceeds a limit, is killed: the check it was
running is unknown, and another process continues with the next check.
"""

from __future__ import annotations

import io
import os
import pickle
import resource
import select
import signal
import threading
import time
from typing import Any, Callable, Iterator, NamedTuple, NoReturn, Optional, Sequence

from envtune.audit import (
    FACT_DEADLINE,
    Began,
    Event,
    FactsRead,
    FindFixes,
    Found,
    MoreFacts,
    Progress,
    TargetRead,
    check_host,
    events,
    report_of,
    unanswered,
)
from envtune.context.open import DEADLINE, NO_EXPECTATIONS, Expectations
from envtune.context.registry import fact_names
from envtune.context.worker import no_answer
from envtune.errors import UsageError, internal_error_text
from envtune.host import Host
from envtune.job.target import TargetOptions
from envtune.messages import Message, Text
from envtune.model import Check, Fact, Report

MEMORY = 1 << 30  # bytes of address space in addition to those in use at the fork
CPU = 60  # seconds of one process
GRACE = 5.0  # seconds on top of a check's own deadline: a thread that holds the interpreter's lock cannot be abandoned
NO_MEMORY = 71  # exit status, EX_OSERR of sysexits.h
PROCESSES = 3  # started for one report; after that the rest is unknown
MAX_EVENT = 64 << 20  # bytes
_SIZE = 8  # bytes of the length before each event
Judge = Callable[[Sequence[Check]], Iterator[Event]]


class _Failed(NamedTuple):
    """Judging raised an error: a usage error, or a bug in envtune."""

    is_usage: bool
    message: Text


class _Ended(Exception):
    """The process did not finish."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason)
        self.reason = reason


def check_limited(
    host: Host,
    target: TargetOptions,
    checks: Sequence[Check],
    progress: Optional[Progress] = None,
    expectations: Expectations = NO_EXPECTATIONS,
    note: Callable[[str], None] = lambda _: None,
    find_fixes: Optional[FindFixes] = None,
    more_facts: Optional[MoreFacts] = None,
) -> Report:
    """Return the report of these checks, as `check_host` does; `note` is called if no process can be started."""

    def judge(left: Sequence[Check]) -> Iterator[Event]:
        return events(host, target, left, expectations, find_fixes, more_facts)

    try:
        if threading.active_count() > 1:  # a fork would copy locks that nobody releases
            raise OSError("there are other threads")
        process = _Process(judge, checks)
    except OSError as error:
        note(f"judged without limits: {error}")
        return check_host(host, target, checks, progress, expectations, find_fixes, more_facts)
    return report_of(host, _judged(process, judge, checks), progress)


def _judged(process: _Process, judge: Judge, checks: Sequence[Check]) -> Iterator[Event]:
    """Yield the events of the processes, one after the other, until every check has its findings."""
    left, target = list(checks), TargetRead({})
    for attempt in range(1, PROCESSES + 1):
        try:
            for event in process.events():
                if isinstance(event, TargetRead) and target.target:
                    continue
                target = event if isinstance(event, TargetRead) else target
                left = left[1:] if isinstance(event, Found) else left
                yield event
            return
        except _Ended as ended:
            reason = ended.reason
        if not process.checking:
            break
        yield Found((unanswered(left.pop(0), reason),))
        if attempt < PROCESSES:
            process = _Process(judge, left)
    if not target.target:
        yield TargetRead({"environment_reason": reason})
    yield Found(tuple(unanswered(check, reason) for check in left))
    yield FactsRead(tuple(Fact(name, None, "", reason) for name in fact_names()))


class _Process:
    """A forked process that judges, and the pipe on which its events arrive."""

    def __init__(self, judge: Judge, checks: Sequence[Check]) -> None:
        self.checking = False  # a check has begun and has no findings yet
        self._checks, self._buffer = list(checks), bytearray()
        self._reading, writing = os.pipe()
        try:
            self._pid = os.fork()
            if self._pid == 0:
                os.close(self._reading)
                _judge_here(judge, checks, writing)
        except OSError:
            os.close(self._reading)
            raise
        finally:
            os.close(writing)

    def events(self) -> Iterator[Event]:
        """Yield its events; raises _Ended if it does not finish, and UsageError as judging does."""
        deadline = DEADLINE
        try:
            while True:
                event = self._receive(deadline + GRACE)
                deadline, self.checking = FACT_DEADLINE, isinstance(event, Began)
                if isinstance(event, _Failed):
                    raise UsageError(event.message) if event.is_usage else _Ended(event.message)
                if isinstance(event, Began):
                    deadline = self._checks[0].deadline
                    event = Began(self._checks[0])
                elif isinstance(event, Found):
                    check = self._checks.pop(0)
                    noted = check._replace(note=True)  # the other side only sends whether the check is a note here
                    event = Found(tuple(f._replace(check=noted if f.check else check) for f in event.findings))
                yield event
                if isinstance(event, FactsRead):
                    return
        finally:
            self._end()

    def _receive(self, seconds: float) -> Any:
        """Return the next event; raises _Ended when it does not come in time, is too large, or never will."""
        until = time.monotonic() + seconds
        size = int.from_bytes(self._read(_SIZE, until, seconds), "big")
        if size > MAX_EVENT:
            raise _Ended(Message("the result is too large"))
        return pickle.loads(self._read(size, until, seconds))  # our own process wrote it

    def _read(self, size: int, until: float, seconds: float) -> bytes:
        while len(self._buffer) < size:
            if not select.select([self._reading], [], [], max(0.0, until - time.monotonic()))[0]:
                raise _Ended(no_answer(seconds))
            data = os.read(self._reading, 1 << 16)
            if not data:
                raise _Ended(self._why_ended())
            self._buffer += data
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _why_ended(self) -> Text:
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return why_ended(status, CPU)

    def _end(self) -> None:
        os.close(self._reading)
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


def _judge_here(judge: Judge, checks: Sequence[Check], writing: int) -> NoReturn:
    """Judge within the limits in this, the forked process, and exit."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        limit_process(CPU)
        for event in _or_failed(judge(checks)):
            data = _packed(event)
            with open(writing, "wb", closefd=False) as pipe:
                pipe.write(len(data).to_bytes(_SIZE, "big") + data)
        os._exit(0)
    except MemoryError:
        os._exit(NO_MEMORY)
    finally:  # never return to the caller's code or run its exit handlers
        os._exit(1)


def _or_failed(judged: Iterator[Event]) -> Iterator[Any]:
    try:
        yield from judged
    except UsageError as error:
        yield _Failed(True, error.message)
    except MemoryError:
        raise
    except Exception as error:  # a bug in envtune: reported like any other error
        yield _Failed(False, internal_error_text(error))


def limit_process(seconds: Optional[int]) -> None:
    """Limit what this process may still use: MEMORY, and `seconds` of CPU if given; it leaves no core file."""
    with open("/proc/self/statm", encoding="ascii") as pages:
        used = int(pages.read().split()[0]) * resource.getpagesize()
    wanted = [(resource.RLIMIT_AS, used + MEMORY, 0), (resource.RLIMIT_CORE, 0, 0)]
    if seconds is not None:
        wanted.append((resource.RLIMIT_CPU, seconds, 5))  # SIGXCPU shows why it ended; the SIGKILL after it would not
    for which, soft, more in wanted:
        hard = resource.getrlimit(which)[1]
        if hard != resource.RLIM_INFINITY:
            soft, more = min(soft, hard), min(more, hard - min(soft, hard))
        resource.setrlimit(which, (soft, soft + more))


def why_ended(status: int, seconds: Optional[int]) -> Text:
    """Return why a process with these limits was terminated; `status` is that of waitpid."""
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == NO_MEMORY:
        return Message("not enough memory to read it")
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU and seconds is not None:
        return Message("it takes more than {seconds} s of CPU", seconds=seconds)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return Message("the process that ran the check was ended by {signal}", signal=name)
    return Message("the process that ran the check ended with status {status}", status=os.WEXITSTATUS(status))


class _Pickler(pickle.Pickler):
    """Pickles an error inside a text as its message: not every error can be rebuilt from its fields."""

    def reducer_override(self, value: Any) -> Any:
        return (str, (str(value),)) if isinstance(value, BaseException) else NotImplemented


def _packed(event: Any) -> bytes:
    if isinstance(event, Began):
        event = Began(None)  # type: ignore[arg-type]  # the other side has the checks
    elif isinstance(event, Found):
        event = Found(tuple(f._replace(check=f.check.note) for f in event.findings))  # type: ignore[arg-type]
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(event)
    return buffer.getvalue()
