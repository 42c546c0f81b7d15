"""Mutated logs and binary files: an answer in bounded time and memory, never a traceback."""

from __future__ import annotations

import gzip
import random
import resource
import time
from pathlib import Path
from typing import Callable, Sequence

import pytest
from helpers.faq import FILES, entries
from helpers.rows import sampled
from helpers.shipped import parsed

from envtune.diagnose.diagnosis import report_diagnoses
from envtune.diagnose.logs.files import LogFile
from envtune.diagnose.logs.lines import TimeWindow
from envtune.diagnose.patterns import Matcher, patterns_of, select_prefilter
from envtune.diagnose.rank import resolve
from envtune.diagnose.scan import scan
from envtune.report.diagnosis.json import render_json
from envtune.report.diagnosis.markdown import render_markdown
from envtune.report.diagnosis.text import render_text

PATTERNS = patterns_of(entries())
MATCHER = Matcher(PATTERNS)
LONGEST = 30.0  # seconds for one input, on a busy machine; the median is some milliseconds
GROWTH = 100 << 10  # KiB that the process may grow by

Mutation = Callable[[random.Random, bytes], bytes]


def fixture_logs() -> list[bytes]:
    """Logs of a few kilobytes from the examples of the catalog, as ranks and plog write them."""
    rng = random.Random(1)
    lines = [line for path in FILES for text in parsed(path)["examples"]["match"] for line in [text]]
    logs = []
    for number in range(40):
        rows = []
        for step in range(rng.randrange(2, 25)):
            rows.append(f"[INFO] HCCL({number},python):2024-06-01-10:00:{step:02d}.000.000 [c.cc:1]step {step} done")
            if rng.random() < 0.3:
                rows.append(rng.choice(("", "[rank3]: ", "[default1]:", "\x1b[31m")) + rng.choice(lines))
        logs.append("\n".join(rows).encode("utf-8") + b"\n")
    return logs


def cut(rng: random.Random, log: bytes) -> bytes:
    start, end = sorted((rng.randrange(len(log) + 1), rng.randrange(len(log) + 1)))
    return log[start:end]


def swap(rng: random.Random, log: bytes) -> bytes:
    lines = log.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def flip(rng: random.Random, log: bytes) -> bytes:
    changed = bytearray(log)
    for _ in range(rng.randrange(1, 40)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def nuls(rng: random.Random, log: bytes) -> bytes:
    at = rng.randrange(len(log) + 1)
    return log[:at] + b"\0" * rng.randrange(1, 5000) + log[at:]


def one_line(rng: random.Random, log: bytes) -> bytes:
    return log.replace(
        b"\n", rng.choice((b" ", b"\r", b"\\n", b"\0", b"\x0b", b"\x85", b"\xe2\x80\xa8"))
    ) * rng.randrange(1, 8)


def colours(rng: random.Random, log: bytes) -> bytes:
    deep = b"\x1b[" * rng.randrange(1, 300) + b"31m" + b"\x1b]" * rng.randrange(300) + b"\x1b"
    at = rng.randrange(len(log) + 1)
    return log[:at] + deep + log[at:]


def head(rng: random.Random, log: bytes) -> bytes:
    return (
        rng.choice(
            (
                b"\x1f\x8b",
                b"\x1f\x8b\x08\0\0\0\0\0",
                b"\xff\xfe",
                b"\xfe\xff",
                b"\xef\xbb\xbf",
                b"\x7fELF\2\1\1\0",
                b"PK\3\4",
            )
        )
        + log
    )


def packed(rng: random.Random, log: bytes) -> bytes:
    whole = gzip.compress(log, 1) * rng.randrange(1, 3)
    return flip(rng, whole) if rng.random() < 0.5 else cut(rng, whole)


def utf_16(rng: random.Random, log: bytes) -> bytes:
    recoded = log.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-16-le", "utf-16-be")))
    return recoded[rng.randrange(3) :]


def binary(rng: random.Random, log: bytes) -> bytes:
    return rng.randbytes(rng.randrange(1, 4000)) + log[: rng.randrange(200)]


def numbers(rng: random.Random, log: bytes) -> bytes:
    """Dates, ranks and process ids that are none."""
    for digit in rng.sample(b"0123456789", 3):
        log = log.replace(bytes([digit]), rng.choice((b"9", b"99999999999999999999", b"-1", "٣".encode(), b"")))
    return log[:20_000]


MUTATIONS: Sequence[Mutation] = (cut, swap, flip, nuls, one_line, colours, head, packed, utf_16, binary, numbers)


def diagnose(content: bytes, window: TimeWindow) -> None:
    file = LogFile("rank3.log", content=content)
    found = scan([file], MATCHER, select_prefilter(PATTERNS, [file]), window)
    made = report_diagnoses(["rank3.log"], found, resolve(found, entries()), None)
    assert isinstance(render_text(made, "en"), str)
    assert render_json(made, "zh").startswith("{")
    assert isinstance(render_markdown(made, "zh"), str)


def run(number: int, seed: int) -> None:
    rng = random.Random(seed)
    logs = fixture_logs()
    diagnose(logs[0], TimeWindow())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(number):
        log = rng.choice(logs)
        mutations = rng.choices(MUTATIONS, k=rng.randrange(1, 4))
        for mutation in mutations:
            log = mutation(rng, log)
        window = TimeWindow(1717236005.0, 1717236010.0) if rng.random() < 0.1 else TimeWindow()
        start = time.process_time()
        diagnose(log, window)
        took = time.process_time() - start
        assert took < LONGEST, ([mutation.__name__ for mutation in mutations], took, log[:200])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH


def test_mutated_logs() -> None:
    run(20, seed=7)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_thousands_of_mutated_logs() -> None:
    run(2000, seed=11)


@pytest.mark.parametrize(
    "unit", sampled([b"\0", b"\xff", b"\x1b[", b"\x1b]8;", b"E", b"\r", b"\n", b"(PID:", b"[rank", b"0" * 7 + b" "], 2)
)
@pytest.mark.parametrize("size", [200_000, pytest.param(3_000_000, marks=pytest.mark.slow)])
def test_megabytes_of_one_thing(unit: bytes, size: int) -> None:
    start = time.process_time()
    diagnose(unit * (size // len(unit)), TimeWindow())
    assert time.process_time() - start < LONGEST


def test_a_file_that_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "core.log"
    path.write_bytes(random.Random(3).randbytes(500_000))
    file = LogFile(str(path), size=500_000)
    found = scan([file], MATCHER, select_prefilter(PATTERNS, [file]))
    assert not [hit for hit in found.hits if hit.pattern.strength == "strong"]
