"""Sum the events of a Chrome trace (trace_view.json, timelines of msprof and of torch) without loading it whole."""

from __future__ import annotations

import codecs
import json
import re
from typing import IO, Any, Iterator, Mapping, Optional, Union

from envtune.profile.readers.compiling import FIRST_NUMBER, Compiling, Spans, compiling
from envtune.profile.readers.tables import number
from envtune.records import NamedTuple

_DEVICE = ("Ascend Hardware", "HCCL", "Communication", "AI Core Freq", "Step Trace")  # processes of a trace
_CHUNK = 1 << 20
_LONGEST = 1 << 24  # characters of one event
_STEP = re.compile(r"ProfilerStep#\d+|Iteration \d+", re.ASCII)
_OPTIMIZER = re.compile(r"Optimizer\.step#(.+?)(?:\.step)?$", re.ASCII)
_COMPILE = re.compile(r"(?:AscendCL@)?aclopCompile\w*", re.ASCII)
_START = re.compile(r"\s*(?:\[|\{)")
_EVENTS = re.compile(r'"traceEvents"\s*:\s*\[')


class Trace(NamedTuple):
    """The content of a trace; times in microseconds, summed over its steps."""

    events: int
    steps: float
    step_count: int
    loader: float  # time in which the training waited for its data loader
    loaders: int
    multiprocess: bool  # the loader has worker processes
    optimizer: float
    optimizer_name: str
    compile: float
    compiles: int
    compiling: Optional[Compiling]  # in which steps; None if the trace does not tell
    tail: float  # of iterations of graphs: after backward
    body: float
    device: bool  # whether it contains events of an NPU or GPU
    complete: bool  # False if the file is truncated


class _Sums:
    """The sums while a trace is read."""

    def __init__(self) -> None:
        self.times = dict.fromkeys(("steps", "loader", "optimizer", "compile"), 0.0)
        self.counts = dict.fromkeys(self.times, 0)
        self.events, self.body, self.tail = 0, 0.0, 0.0
        self.optimizer, self.multiprocess, self.device = "", False, False
        self.spans = {"steps": Spans(), "compile": Spans()}
        self.training_starts = False

    def add(self, event: Mapping[str, Any]) -> None:
        """Add one event."""
        self.events += 1
        self.device = self.device or _on_device(event)
        name, duration = event.get("name"), event.get("dur")
        what = _subject(name) if isinstance(name, str) and duration is not None else None
        if what is None or not isinstance(name, str):
            return
        time = number(str(duration)) or 0.0
        self.times[what] += time
        self.counts[what] += 1
        self.multiprocess = self.multiprocess or "_MultiProcessing" in name
        if what in self.spans:
            self.spans[what].add(number(str(event.get("ts"))), time)
            self.training_starts = self.training_starts or name == FIRST_NUMBER
        if what == "optimizer":
            found = _OPTIMIZER.match(name)
            self.optimizer = found[1] if found else self.optimizer
        elif name.startswith("Iteration"):
            body, tail = _iteration(event.get("args"), time)
            self.body += body
            self.tail += tail


def read_trace(stream: IO[bytes]) -> Trace:
    """Return the sums over a trace."""
    sums, complete = _Sums(), True
    for event in events_of(stream):
        if event is False:
            complete = False
            break
        sums.add(event)
    times, counts = sums.times, sums.counts
    return Trace(
        sums.events,
        times["steps"],
        counts["steps"],
        times["loader"],
        counts["loader"],
        sums.multiprocess,
        times["optimizer"],
        sums.optimizer,
        times["compile"],
        counts["compile"],
        compiling(sums.spans["steps"], sums.spans["compile"], sums.training_starts),
        sums.tail,
        sums.body,
        sums.device,
        complete,
    )


def _on_device(event: Mapping[str, Any]) -> bool:
    args = event.get("args")
    if not isinstance(args, Mapping):
        return False
    known = ("Task Type", "stream", "Physic Stream Id", "Stream Id", "Iteration ID", "task type", "fullname")
    return args.get("name") in _DEVICE or any(key in args for key in known)


def _subject(name: str) -> Optional[str]:
    if name.startswith("enumerate(DataLoader)"):
        return "loader"
    if name.startswith("Optimizer.step#"):
        return "optimizer"
    if _STEP.fullmatch(name):
        return "steps"
    return "compile" if _COMPILE.fullmatch(name) else None


def _iteration(args: Any, time: float) -> tuple[float, float]:
    """Return forward and backward, and the tail, of an iteration of a graph, in the unit of its duration."""
    if not isinstance(args, Mapping):
        return 0.0, 0.0
    start, end, last = (number(str(args.get(key))) for key in ("FP Start", "BP End", "Iteration End"))
    if start is None or end is None or last is None or last <= start:
        return 0.0, 0.0
    return time * (end - start) / (last - start), time * (last - end) / (last - start)


def events_of(stream: IO[bytes]) -> Iterator[Union[Mapping[str, Any], Any]]:
    """Yield the events of a trace one by one; False at the end if the file is truncated."""
    decoder, text = json.JSONDecoder(), _Text(stream)
    if not text.skip_to_events():
        yield False
        return
    while True:
        text.skip_blank(",")
        if text.at("]"):
            return
        if text.at_end():
            yield False
            return
        event = text.decode(decoder)
        if event is None:
            yield False
            return
        if isinstance(event, Mapping):
            yield event


class _Text:
    """The text of a stream, keeping only what is being decoded."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._decode = stream, codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._buffer, self._place, self._ended = "", 0, False

    def _more(self) -> bool:
        if self._ended:
            return False
        data = self._stream.read(_CHUNK)
        self._ended = not data
        self._buffer = self._buffer[self._place :] + self._decode(data, final=self._ended)
        self._place = 0
        return True

    def skip_to_events(self) -> bool:
        """Skip the bracket that begins the events; False if there is none."""
        while not self._buffer.strip() and self._more():
            pass
        start = _START.match(self._buffer)
        if start is not None and start.group().endswith("["):
            self._place = start.end()
            return True
        while True:
            found = _EVENTS.search(self._buffer)
            if found is not None:
                self._place = found.end()
                return True
            self._place = max(len(self._buffer) - 64, 0)
            if not self._more():
                return False

    def skip_blank(self, also: str) -> None:
        while True:
            while self._place < len(self._buffer) and (
                self._buffer[self._place].isspace() or self._buffer[self._place] in also
            ):
                self._place += 1
            if self._place < len(self._buffer) or not self._more():
                return

    def at(self, character: str) -> bool:
        return self._buffer.startswith(character, self._place)

    def at_end(self) -> bool:
        return self._place >= len(self._buffer) and self._ended

    def decode(self, decoder: json.JSONDecoder) -> Optional[Any]:
        while True:
            try:
                value, end = decoder.raw_decode(self._buffer, self._place)
            except (ValueError, RecursionError):
                if len(self._buffer) - self._place > _LONGEST or not self._more():
                    return None
                continue
            self._place = end
            return value
