#!/usr/bin/env python3
"""What `envtune diagnose` costs on big logs, compared with ripgrep and the same expressions: CPU time of the process.

    python benchmarks/diagnose_speed.py                          200 MB, 3 rounds, 1 GB on standard input
    python benchmarks/diagnose_speed.py --size 1G --stream 10G   as in docs/benchmarks.md

Makes three logs (diagnose_logs.py): one in which no line matches, one in which 1 % do, and one in which 20 % hold a
literal of a signature, but do not match it. In every round each program runs once, one after the other, on one
processor; the ratio is the median of those within the rounds. ripgrep (from PATH, `apt-get install ripgrep`) gets every
signature in a file, with `--no-unicode`, which is its fastest way. Of signatures that span lines it gets the part for
the first line; those with look-around, which it does not support, are left out. Then: the pure-Python path, the first
answer on a log of 20 KB of an installed envtune with nothing in the cache and a home that cannot be written, and the
memory for a stream on standard input.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator, Mapping, NamedTuple, Optional, Sequence

from diagnose_logs import CHATTY, FAILING, lines

ROOT = Path(__file__).resolve().parents[1]
UNITS = {"K": 10**3, "M": 10**6, "G": 10**9}
NO_HYPERSCAN = "raise ImportError('left out for a measurement')\n"
LOGS: Mapping[str, tuple[float, Sequence[str]]] = {
    "no line matches": (0.0, ()),
    "1 % of the lines match": (0.01, FAILING),
    "20 % of the lines hold a literal of a signature and do not match": (0.2, CHATTY),
}


class Cost(NamedTuple):
    """CPU seconds of the process and its children, and peak memory in MiB."""

    cpu: float
    memory: float


def run(argv: Sequence[str], environ: Mapping[str, str], stdin: Optional[Iterator[bytes]] = None) -> Cost:
    """Run to completion on one processor and discard the output."""
    child = subprocess.Popen(
        ["taskset", "-c", str(max(os.sched_getaffinity(0))), *argv],
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd="/",  # `python -m` looks for modules here first
    )
    if stdin is not None:
        assert child.stdin is not None
        for chunk in stdin:
            child.stdin.write(chunk)
        child.stdin.close()
    assert child.stderr is not None
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        sys.exit(f"{' '.join(argv)}: {child.returncode}\n{errors.decode()[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def write_log(path: Path, size: int, share: float, put_in: Sequence[str]) -> None:
    """At least `size` bytes of log."""
    with path.open("wb") as out:
        for chunk in lines(share, put_in=put_in):
            out.write(chunk)
            if out.tell() >= size:
                return


def for_ripgrep() -> tuple[list[str], int]:
    """The signatures in ripgrep's syntax, and how many it does not support."""
    from envtune import catalog
    from envtune.diagnose.patterns import patterns_of

    signatures = [p for p in patterns_of(catalog.load(()).faq) if p.role == "signature"]
    taken = []
    for pattern in signatures:
        text = pattern.regex
        if re.search(r"\(\?(?:[=!]|<[=!])", text):
            continue
        if pattern.multiline:
            text = re.split(r":?\\s\*\\n|\[\^\\n\]\*\\n|\[\\s\\S\]|\\s\{", text)[0]
        text = re.sub(r"\(\?P<\w+>", "(?:", text).replace(r"[^\n]", ".")
        text = re.sub(r"\\([\"'`])", r"\1", text)
        taken.append(_as_bytes(text))
    return taken, len(signatures) - len(taken)


def _as_bytes(text: str) -> str:
    """Without characters beyond ASCII, which `--no-unicode` refuses."""

    def alternatives(found: re.Match[str]) -> str:
        inside = found[0][1:-1]
        return found[0] if inside.isascii() else "(?:" + "|".join(map(re.escape, inside)) + ")"

    text = re.sub(r"\[(?:\\.|[^\]\\])*\]", alternatives, text)
    return "".join(
        one if one.isascii() else "(?:" + "".join(f"\\x{byte:02X}" for byte in one.encode()) + ")" for one in text
    )


def programs(folder: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    """{name: (argv, environment)}; the caller appends the log."""
    ours = [sys.executable, "-m", "envtune", "diagnose", "--no-check"]
    found = {
        "envtune diagnose": (ours, {}),
        "envtune diagnose, pure Python": (ours, {"PYTHONPATH": os.pathsep.join([str(folder / "no"), *sys.path[1:]])}),
    }
    (folder / "no").mkdir()
    (folder / "no" / "hyperscan.py").write_text(NO_HYPERSCAN, "utf-8")
    ripgrep = shutil.which("rg")
    if ripgrep is None:
        sys.stderr.write("no rg on PATH: measured without it\n")
        return found
    signatures, left = for_ripgrep()
    expressions = folder / "signatures"
    expressions.write_text("\n".join(signatures) + "\n", "utf-8")
    found["rg --no-unicode"] = ([ripgrep, "-a", "-j1", "--no-unicode", "-f", str(expressions)], {})
    sys.stderr.write(f"ripgrep gets {len(signatures)} signatures, {left} left out\n")
    return found


def require_chatty() -> None:
    """Exit unless the line meant to contain a literal of some signature does, and no signature matches it."""
    from envtune import catalog
    from envtune.catalog.signatures.literals import required_literals
    from envtune.diagnose.patterns import patterns_of
    from envtune.diagnose.prefilter.hyperscan import TAIL  # characters that it looks for at least

    for line in CHATTY:
        signatures = [p for p in patterns_of(catalog.load(()).faq) if p.role == "signature"]
        needs = [option for p in signatures for option, *_ in required_literals(p.regex, p.multiline)]
        held = any(literal.text[:TAIL] in line for option in needs for literal in option if len(literal.text) >= TAIL)
        if not held or any(re.search(p.regex, line) for p in signatures):
            sys.exit(f"no literal of a signature, or a match of one: {line}")


def table(folder: Path, size: int, rounds: int) -> Iterator[str]:
    """CPU seconds per GB of each program on both logs, and its ratio to ours."""
    found = programs(folder)
    require_chatty()
    for title, (share, put_in) in LOGS.items():
        log = folder / "plog.log"
        write_log(log, size, share, put_in)
        costs: dict[str, list[Cost]] = {name: [] for name in found}
        for number in range(rounds + 1):  # the first one warms the caches
            for name, (argv, environ) in found.items():
                cost = run([*argv, str(log)], environ)
                if number:
                    costs[name].append(cost)
        gigabytes = log.stat().st_size / 1e9
        yield f"\n| {title} | CPU s per GB | MB per CPU s | times envtune's CPU | peak MiB |\n|---|---|---|---|---|"
        for name, own in costs.items():
            ratio = statistics.median(one.cpu / base.cpu for one, base in zip(own, costs["envtune diagnose"]))
            median = statistics.median(cost.cpu for cost in own) / gigabytes
            yield f"| {name} | {median:.2f} | {1000 / median:.0f} | {ratio:.2f} | {max(c.memory for c in own):.0f} |"


def first_answer(folder: Path, rounds: int) -> str:
    """CPU seconds of an installed envtune for a first answer, including the checks."""
    site = folder / "site"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "--target",
            site,
            str(ROOT),
        ],
        check=True,
    )
    log = folder / "short.log"
    chunk = next(lines(0.01))
    log.write_bytes(
        chunk[: chunk.rfind(b"\n", 0, 20_000) + 1] + b"RuntimeError: Initialize:/a/npu_sys_ctrl.cpp:9 NPU error\n"
    )
    nowhere = str(log / "home")  # nothing can be created below a file
    environ = {"PYTHONPATH": str(site), "HOME": nowhere, "XDG_CACHE_HOME": nowhere}
    costs = [run([sys.executable, "-m", "envtune", "diagnose", str(log)], environ).cpu for _ in range(rounds + 2)]
    return f"first answer on 20 KB, checks run: {statistics.median(costs):.2f} s CPU (most {max(costs):.2f})"


def stream(folder: Path, size: int) -> str:
    """Peak memory for that many bytes on standard input: 256 MB of log, repeated."""

    def chunks() -> Iterator[bytes]:
        written, log = 0, []
        for chunk in lines(0.01):
            log.append(chunk)
            if sum(map(len, log)) > min(size, 256 * 10**6):
                break
        while written < size:
            for chunk in log:
                yield chunk
                written += len(chunk)

    cost = run([sys.executable, "-m", "envtune", "diagnose", "--no-check", "-"], {}, chunks())
    return f"{size / 1e9:.0f} GB on standard input: {cost.memory:.0f} MiB, {cost.cpu:.1f} s CPU"


def size_of(text: str) -> int:
    return int(float(text.rstrip("KMG")) * UNITS.get(text[-1], 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=size_of, default=size_of("200M"), metavar="200M")
    parser.add_argument("--stream", type=size_of, default=size_of("1G"), metavar="1G")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for line in table(Path(folder), chosen.size, chosen.rounds):
            print(line, flush=True)
        print()
        print(first_answer(Path(folder), chosen.rounds), flush=True)
        print(stream(Path(folder), chosen.stream), flush=True)


if __name__ == "__main__":
    main()
