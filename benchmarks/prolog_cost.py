"""What a prolog adds to the start of a job: CPU seconds of `envtune hook slurm-prolog` with a stored verdict.

    python benchmarks/prolog_cost.py                20 rounds
    python benchmarks/prolog_cost.py --rounds 5

In every round each program runs once, one after the other. CPU is user and system time of the process and all its
children. The verdict has an outcome for each of 300 checks; as it has no problem, Slurm is not queried.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Mapping, Sequence

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from envtune.hook.records import Outcome, Verdict, verdict_data  # noqa: E402
from envtune.hook.state import boot_id  # noqa: E402

CHECKS = 300
PROLOG = [sys.executable, "-m", "envtune", "hook", "slurm-prolog"]


def spent(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[float, float]:
    """CPU and wall milliseconds of a program that must exit with 0."""
    start = time.monotonic()
    null = [(os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_WRONLY, 0) for number in (1, 2)]
    pid = os.posix_spawn(argv[0], argv, environ, file_actions=null)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, argv
    return (usage.ru_utime + usage.ru_stime) * 1000, (time.monotonic() - start) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        verdict = Verdict({f"NET{n:03}": Outcome("pass", "high") for n in range(CHECKS)}, True, time.time(), boot_id())
        (Path(folder) / "verdict.json").write_text(json.dumps(verdict_data(verdict)))
        prolog = [*PROLOG, "--state", folder, "--max-age", "1e9"]
        programs = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "envtune hook slurm-prolog": prolog,
            "the same, read by typer": [*prolog, "--lang", "en"],
        }
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
        for _ in range(rounds):
            for name, argv in programs.items():
                found[name].append(spent(argv, environ))
    print("| program | CPU ms | min-max | wall ms |")
    print("|---|---|---|---|")
    for name, rows in found.items():
        cpu, wall = zip(*rows)
        print(
            f"| {name} | {statistics.median(cpu):.0f} | {min(cpu):.0f}-{max(cpu):.0f} | {statistics.median(wall):.0f} |"
        )


if __name__ == "__main__":
    main()
