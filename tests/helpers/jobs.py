"""Jobs whose bottleneck is known, as a training is built: a main thread that dispatches, workers that load data.

    python jobs.py KIND SECONDS

What stands for the NPU is a sleep: like a synchronization with a device, it costs no CPU.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import queue
import sys
import tempfile
import threading
import time
from typing import Any, Callable

END = time.monotonic() + float(sys.argv[2]) if len(sys.argv) > 2 else 0.0


def burn(seconds: float) -> None:
    """Compute for that much CPU time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(200))


def over() -> bool:
    return time.monotonic() > END


def idle() -> None:
    """Wait for the end, as a worker does whose queue is full."""
    while not over():
        time.sleep(0.1)


def load(batches: Any, work: Callable[[], None]) -> None:
    while not over():
        work()
        try:
            batches.put(b"batch", timeout=1)
        except queue.Full:
            continue


def train(work: Callable[[], None], workers: int, dispatch: float, device: float, threads: bool = False) -> None:
    """Steps of a batch from the workers, `dispatch` seconds of CPU and `device` seconds of waiting."""
    batches: Any = queue.Queue(4) if threads else multiprocessing.Queue(4)
    started: list[Any] = []
    for _ in range(workers):
        kind = threading.Thread if threads else multiprocessing.Process
        started.append(kind(target=load, args=(batches, work), daemon=True))
        started[-1].start()
    while not over():
        try:
            batches.get(timeout=1)
        except queue.Empty:
            continue
        burn(dispatch)
        time.sleep(device)
    for one in started:
        if not threads:
            one.terminate()


def healthy() -> None:
    """Workers keep up; the main thread waits for the device most of the time."""
    train(lambda: burn(0.01), workers=2, dispatch=0.01, device=0.06)


def main_thread() -> None:
    """The main thread dispatches all the time; its workers have nothing to do."""
    workers = [multiprocessing.Process(target=idle, daemon=True) for _ in range(2)]
    for one in workers:
        one.start()
    while not over():
        burn(0.05)


def starved_loader() -> None:
    """One worker decodes more than it can."""
    train(lambda: burn(0.08), workers=1, dispatch=0.005, device=0.005)


def loader_thread() -> None:
    """A thread of the same process decodes more than it can."""
    train(lambda: burn(0.08), workers=1, dispatch=0.0, device=0.005, threads=True)


def storage() -> None:
    """Workers write and read through to the disk."""
    directory = tempfile.mkdtemp(dir=os.environ.get("JOB_DIRECTORY"))

    def work() -> None:
        with open(os.path.join(directory, str(os.getpid())), "wb", buffering=0) as file:
            for _ in range(20):
                file.write(os.urandom(1 << 14))
                os.fsync(file.fileno())

    train(work, workers=2, dispatch=0.002, device=0.002)


def squeezed() -> None:
    """Main thread and workers share one CPU."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    train(lambda: burn(0.02), workers=3, dispatch=0.02, device=0.0)


def mapped() -> None:
    """The main thread reads a mapped file that is not in memory."""
    directory = os.environ.get("JOB_DIRECTORY")
    with tempfile.TemporaryFile(dir=directory) as file:
        size = 1 << 26
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        with mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as memory:
            memory.madvise(mmap.MADV_RANDOM)
            while not over():
                memory.madvise(mmap.MADV_DONTNEED)
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                for place in range(0, size, mmap.PAGESIZE * 4):
                    memory[place]
                    if over():
                        break


KINDS = {
    function.__name__: function
    for function in (healthy, main_thread, starved_loader, loader_thread, storage, squeezed, mapped)
}

if __name__ == "__main__":
    KINDS[sys.argv[1]]()
