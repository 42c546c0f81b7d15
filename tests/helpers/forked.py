"""What a call costs in a process of its own: CPU seconds, and memory on top of what the process had at the fork."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import time
from typing import Any, Callable, NamedTuple

ENOUGH = 60  # CPU seconds after which the process is ended, with no answer


class Cost(NamedTuple):
    """`value` is what the call returned, None where a signal ended the process."""

    value: Any
    seconds: float
    megabytes: int


def cost_of(call: Callable[[], Any], seconds: int = ENOUGH) -> Cost:
    """Run the call in a fork of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGXCPU, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            before = _resident()
            began = time.process_time()
            value = call()
            took = time.process_time() - began
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            with open(writing, "wb") as pipe:
                pickle.dump(Cost(value, took, max(0, peak - before) // 1024), pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    if not data:
        return Cost(None, float(seconds), 0)
    cost: Cost = pickle.loads(data)
    return cost


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as pages:
        return int(pages.read().split()[1]) * resource.getpagesize() // 1024
