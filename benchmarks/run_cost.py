"""What `envtune run` costs for the output of its command: CPU seconds per GB, compared with programs that copy it.

    python benchmarks/run_cost.py                      1 GB each, 5 rounds
    python benchmarks/run_cost.py --mb 200 --rounds 3

In every round each program runs once, one after the other. CPU is that of the program and of all children it waited
for, less what the command itself used to write the output (which it prints when it ends). The reader at the other end
is a separate process and not counted. `start` is a run of `true`.
"""

from __future__ import annotations

import argparse
import os
import pty
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Mapping, NamedTuple, Sequence

WRITER = """
import os, resource, sys
block = (b"x" * 79 + b"\\n") * 819
left = int(sys.argv[1])
while left > 0:
    left -= os.write(1, block[:left])
used = resource.getrusage(resource.RUSAGE_SELF)
with open(sys.argv[2], "w") as file:
    file.write(str(used.ru_utime + used.ru_stime))
"""
ENVTUNE = [str(Path(sys.executable).parent / "envtune"), "run", "--no-preflight", "--profile", "none", "--"]


class Cost(NamedTuple):
    """Cost of one run: CPU seconds (without and with the writer's), wall seconds, peak MiB."""

    cpu: float
    total: float
    wall: float
    memory: float


def to_pipe(argv: Sequence[str], folder: Path) -> tuple[int, Callable[[], object]]:
    """Started with a pipe as stdout, which `cat` reads."""
    reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert reader.stdin is not None
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=reader.stdin)
    reader.stdin.close()
    return child.pid, reader.wait


def to_file(argv: Sequence[str], folder: Path) -> tuple[int, Callable[[], object]]:
    """Started with a file as stdout."""
    with (folder / "out").open("wb") as file:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=file).pid, lambda: None


def to_null(argv: Sequence[str], folder: Path) -> tuple[int, Callable[[], object]]:
    """Started with /dev/null as stdout."""
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).pid, lambda: None


def to_terminal(argv: Sequence[str], folder: Path) -> tuple[int, Callable[[], object]]:
    """Started on a pseudo terminal, which this program reads."""
    pid, master = pty.fork()
    if pid == 0:
        os.execvp(argv[0], list(argv))

    def drain() -> None:
        try:
            while os.read(master, 65536):
                pass
        except OSError:
            os.close(master)

    return pid, drain


def programs(
    argv: Sequence[str],
) -> Mapping[str, tuple[Callable[..., tuple[int, Callable[[], object]]], Sequence[str]]]:
    """{name: (where its output goes, argv)} for a command that writes."""
    words = " ".join(f"'{word}'" for word in argv)
    found = {
        "pipe: envtune run": (to_pipe, [*ENVTUNE, *argv]),
        "pipe: cat": (to_pipe, ["bash", "-c", f"{words} | cat"]),
        "pipe: tee": (to_pipe, ["bash", "-c", f"{words} | tee /dev/null"]),
        "file: envtune run": (to_file, [*ENVTUNE, *argv]),
        "/dev/null: envtune run": (to_null, [*ENVTUNE, *argv]),
        "terminal: the command alone": (to_terminal, argv),
        "terminal: envtune run": (to_terminal, [*ENVTUNE, *argv]),
    }
    if shutil.which("script"):
        found["terminal: script"] = (to_terminal, ["script", "-qc", words, "/dev/null"])
    return found


def run(way: Callable[..., tuple[int, Callable[[], object]]], argv: Sequence[str], folder: Path) -> Cost:
    """Run once to completion."""
    used = folder / "used"
    used.write_text("0")
    began = time.perf_counter()
    pid, drain = way(argv, folder)
    drain()
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"{' '.join(argv)}: wait status {status}")
    total = usage.ru_utime + usage.ru_stime
    return Cost(total - float(used.read_text()), total, time.perf_counter() - began, usage.ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writer = folder / "writer.py"
        writer.write_text(WRITER)
        command = [sys.executable, "-S", "-E", str(writer), str(chosen.mb * 1_000_000), str(folder / "used")]
        found = {"start: envtune run": (to_null, [*ENVTUNE, "true"]), **programs(command)}
        costs: dict[str, list[Cost]] = {name: [] for name in found}
        for number in range(chosen.rounds):
            for name, (way, argv) in found.items():
                costs[name].append(run(way, argv, folder))
            sys.stderr.write(f"\rround {number + 1} of {chosen.rounds}")
    print(f"\n{chosen.mb} MB, {chosen.rounds} rounds, Python {sys.version.split()[0]}, {os.cpu_count()} CPUs\n")
    print("| where: program | CPU s per GB | min-max | with the command's | wall s per GB | peak MiB |")
    print("|---|---|---|---|---|---|")
    for name, own in costs.items():
        size = chosen.mb / 1000 if not name.startswith("start") else 1
        cpu = [cost.cpu / size for cost in own]
        total = statistics.median(cost.total / size for cost in own)
        wall = statistics.median(cost.wall / size for cost in own)
        memory = max(cost.memory for cost in own)
        middle = f"{statistics.median(cpu):.2f} | {min(cpu):.2f}-{max(cpu):.2f} | {total:.2f}"
        print(f"| {name} | {middle} | {wall:.1f} | {memory:.0f} |")


if __name__ == "__main__":
    main()
