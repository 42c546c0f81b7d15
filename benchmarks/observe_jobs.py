"""Jobs of every kind that `envtune observe` handles, each self-contained, as a user's script would be.

    python observe_jobs.py KIND SECONDS

The expected answers are in observe_accuracy.py. A wait for a device is a sleep: it costs no CPU.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import mmap
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

END = time.monotonic() + float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
FOLDER = os.environ.get("JOB_DIRECTORY") or tempfile.gettempdir()
TEXT = json.dumps([{"id": number, "text": "word " * 20} for number in range(200)])
DATA = random.Random(7).randbytes(1 << 20) if hasattr(random, "randbytes") else os.urandom(1 << 20)


def ends() -> bool:
    """Return whether the time is over."""
    return time.monotonic() > END


def cpu_bound() -> None:
    """The main thread prepares every step in Python, and never waits."""
    while not ends():
        rows = json.loads(TEXT)
        rows.sort(key=lambda row: -row["id"])


def _compress(batches: Any) -> None:
    while not ends():
        batches.put(len(zlib.compress(DATA, 9)))


def starved() -> None:
    """Two workers compress all the time; the step needs next to nothing."""
    batches: Any = multiprocessing.Queue(2)
    for _ in range(2):
        multiprocessing.Process(target=_compress, args=(batches,), daemon=True).start()
    while not ends():
        batches.get()
        time.sleep(0.002)


def _read(path: str, batches: Any) -> None:
    buffer = mmap.mmap(-1, 1 << 16)  # aligned, as O_DIRECT requires
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    places = os.fstat(descriptor).st_size >> 16
    while not ends():
        for _ in range(50):
            os.preadv(descriptor, [buffer], random.randrange(places) << 16)
        batches.put(1)


def io_bound() -> None:
    """Two workers read a data set that is not in memory."""
    path = os.path.join(FOLDER, "data")
    with open(path, "wb") as file:
        for _ in range(64):
            file.write(DATA)
        os.fsync(file.fileno())
    batches: Any = multiprocessing.Queue(2)
    for _ in range(2):
        multiprocessing.Process(target=_read, args=(path, batches), daemon=True).start()
    while not ends():
        batches.get()
        time.sleep(0.001)


def limited() -> None:
    """Main thread and workers compute; a control group limits them to a fraction of a CPU."""
    _beside(lambda: zlib.compress(DATA, 6), 2)
    cpu_bound()


def _forever(work: Callable[[], Any]) -> None:
    while not ends():
        work()


def _beside(work: Callable[[], Any], count: int) -> None:
    for _ in range(count):
        multiprocessing.Process(target=_forever, args=(work,), daemon=True).start()


def one_core() -> None:
    """As taskset does: everything on one CPU."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    _beside(lambda: zlib.compress(DATA, 6), 2)
    cpu_bound()


def many_threads() -> None:
    """A dozen threads and the main thread compute without holding the interpreter's lock, on all CPUs."""
    pool = ThreadPoolExecutor(12)
    for _ in range(12):
        pool.submit(_forever, lambda: hashlib.sha256(DATA).digest())
    _forever(lambda: hashlib.sha256(DATA).digest())


def waits_for_device() -> None:
    """Healthy: the main thread reads a pipe, as a wait for the device does, and the loader is ahead."""
    reader, writer = os.pipe()

    def device() -> None:
        while not ends():
            time.sleep(0.05)
            os.write(writer, b"x")

    threading.Thread(target=device, daemon=True).start()
    batches: Any = multiprocessing.Queue(8)
    multiprocessing.Process(target=_read_slowly, args=(batches,), daemon=True).start()
    while not ends():
        batches.get()
        json.loads(TEXT)
        os.read(reader, 1)


def _read_slowly(batches: Any) -> None:
    while not ends():
        batches.put(zlib.crc32(DATA))
        time.sleep(0.01)


def lock() -> None:
    """Five threads of Python, the main one among them, take turns with the interpreter's lock."""
    for _ in range(4):
        threading.Thread(target=_forever, args=(lambda: json.loads(TEXT),), daemon=True).start()
    cpu_bound()


def subprocesses() -> None:
    """Every sample is decoded by a program started for it, two at a time."""
    program = "import zlib,os\nfor _ in range(4): zlib.compress(os.urandom(1 << 20), 6)"
    with ThreadPoolExecutor(2) as pool:
        while not ends():
            list(pool.map(lambda _: subprocess.call([sys.executable, "-S", "-c", program]), range(2)))
            time.sleep(0.005)


def map_churn() -> None:
    """The main thread maps memory, touches it and unmaps it: page faults without a disk."""
    while not ends():
        with mmap.mmap(-1, 1 << 26) as memory:
            for place in range(0, 1 << 26, mmap.PAGESIZE):
                memory[place] = 1


def logs() -> None:
    """Everything is logged, with a flush for each line."""
    handler = logging.FileHandler(os.path.join(FOLDER, "train.log"))
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s [%(process)d] %(message)s"))
    logger = logging.getLogger("train")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    while not ends():
        for number in range(1000):
            logger.debug("step %d loss %.4f state %s", number, 1 / (number + 1), {"a": number})
        handler.stream.truncate(0)


def collects() -> None:
    """Cyclic garbage, and the collector called in every step."""
    kept: list[Any] = [[number] for number in range(200_000)]
    while not ends():
        for _ in range(1000):
            one: list[Any] = []
            one.append(one)
        gc.collect()
    kept.clear()


def saves() -> None:
    """The main thread writes a checkpoint through to the disk after every short step."""
    with open(os.path.join(FOLDER, "model"), "wb", buffering=0) as file:
        while not ends():
            time.sleep(0.005)
            file.seek(0)
            for _ in range(64):
                file.write(DATA)
            os.fsync(file.fileno())


KINDS = {
    function.__name__: function
    for function in (
        *(cpu_bound, starved, io_bound, limited, one_core, many_threads, waits_for_device),
        *(lock, subprocesses, map_churn, logs, collects, saves),
    )
}

if __name__ == "__main__":
    KINDS[sys.argv[1]]()
