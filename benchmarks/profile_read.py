#!/usr/bin/env python3
"""What `envtune profile` costs on large tables: CPU time and peak memory of the whole process.

    python benchmarks/profile_read.py                 1 GB of each kind of table
    python benchmarks/profile_read.py --size 100M     the same with less, in proportion
    python benchmarks/profile_read.py --kind kernel_details --rounds 5

Writes a table with the columns and cells of a real one (quoted shapes, a start time followed by a tab), reads it with
`envtune profile --no-check` in a separate process on one CPU, and prints the smallest of the rounds: other load on the
machine (caches, hyper-threads) can only increase a process's CPU time; the load is printed. In the same rounds it reads
the table with Python's csv.reader alone, and with `wc -l`: the ratios hold on a loaded machine, too. Tables of steps
have tens of rows, and the rest is never read. Exits with 1 if 1 GB would take more than 6 s of CPU or memory is above
200 MiB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable, Iterator, Mapping, NamedTuple, Sequence

ROOT = Path(__file__).resolve().parents[1]
UNITS = {"K": 10**3, "M": 10**6, "G": 10**9}
CSV_READER = "import csv, sys\nfor row in csv.reader(open(sys.argv[1], newline='')): pass"
CPU_SECONDS, MEMORY = 6.0, 200  # for 1 GB; MiB
ROWS = 1000  # that are repeated with different times
KINDS = (
    "MatMulV2",
    "TransData",
    "Cast",
    "Mul",
    "Add",
    "LayerNormV3",
    "Conv2D",
    "ForeachAddList",
    "Slice",
    "hcom_allReduce_",
)
SHAPES = '"""64,3,224,224;64,3,11,11;64"""'
KERNELS = (
    "Step Id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,"
    "Output Formats,Context ID,aicore_time(us),aic_total_cycles,aic_mac_ratio,aic_scalar_ratio,aic_mte1_ratio,"
    "aic_mte2_ratio,aic_fixpipe_ratio,aiv_time(us),aiv_vec_ratio,aiv_scalar_ratio,aiv_mte2_ratio,aiv_mte3_ratio,"
    "cube_utilization(%)"
)
SUMMARY = (
    "Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),"
    "Task Wait Time(us),Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,"
    "Output Shapes,Output Data Types,"
    "Output Formats,Context ID"
)


class Cost(NamedTuple):
    """CPU seconds, and peak memory in MiB."""

    cpu: float
    memory: float


def start_of(number: int) -> str:
    """Return when a kernel starts: some of them overlap, and there are gaps."""
    return f"{1717490000000000 + number * 60}.{number % 1000:03d}\t"


def kernel_details(number: int) -> str:
    """Return a row of kernel_details.csv."""
    kind = KINDS[number % len(KINDS)]
    core = "HCCL" if kind.startswith("hcom") else ("AI_CORE", "AI_VECTOR_CORE", "MIX_AIC")[number % 3]
    names = f"aclnn{kind}_{number % 977},{kind},dynamic,{core}"
    head = f"{number // 100000},4294967295,{number % 65536},2,{names},{start_of(number)}"
    ratios = "51.2,1893331,0.61,0.021,0.33,0.74,0.12,0,0,0,0,0,79.5"
    return (
        f'{head},{number % 97 + 0.48:.2f},0.5,24,0,NO,{SHAPES},FLOAT16;FLOAT16;FLOAT,ND;ND;ND,"""64,64,55,55""",'
        f"FLOAT16,ND,N/A,{ratios}\n"
    )


def op_summary(number: int) -> str:
    """Return a row of op_summary_*.csv."""
    kind = KINDS[number % len(KINDS)]
    return (
        f"4294967295,{number % 65536},2,aclnn{kind}_{number % 977},{kind},static,AI_CORE,{start_of(number)},"
        f"{number % 97 + 0.48:.2f},0.5,24,0,NO,{SHAPES},FLOAT16;FLOAT16;FLOAT,ND;ND;ND,"
        '"""64,64,55,55""",FLOAT16,ND,N/A\n'
    )


class Table(NamedTuple):
    """A kind of table: its file, its header, and how to build a row."""

    file: str
    header: str
    row: Callable[[int], str]


TABLES: Mapping[str, Table] = {
    "kernel_details": Table("kernel_details.csv", KERNELS, kernel_details),
    "op_summary": Table("op_summary_20260301000000.csv", SUMMARY, op_summary),
}


def write(directory: Path, table: Table, size: int) -> int:
    """Write a table of about `size` bytes; return its size."""
    path = directory / table.file
    with path.open("w", encoding="utf-8") as file:
        file.write(table.header + "\n")
        written = 0
        for rows in blocks(table):
            file.write(rows)
            written += len(rows)
            if written >= size:
                break
    return path.stat().st_size


def blocks(table: Table) -> Iterator[str]:
    """Yield rows in large chunks."""
    start = 0
    while True:
        yield "".join(table.row(number) for number in range(start, start + ROWS))
        start += ROWS


def read(directory: Path) -> Cost:
    """Run `envtune profile` on a directory; return what it cost."""
    return cost([sys.executable, "-m", "envtune", "profile", "--no-check", str(directory)])


def cost(argv: Sequence[str]) -> Cost:
    """Run a command on one CPU; return what it cost."""
    cpu = str(max(os.sched_getaffinity(0)))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
    child = subprocess.Popen(["taskset", "-c", cpu, *argv], env=environment, stdout=subprocess.DEVNULL, cwd="/")
    _, status, usage = os.wait4(child.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1, 3):
        raise SystemExit(f"{argv[0]} ended with {code}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def size_of(text: str) -> int:
    """Return 500M as 500,000,000."""
    return int(float(text[:-1]) * UNITS[text[-1].upper()]) if text[-1:].upper() in UNITS else int(text)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="CPU time and memory of envtune profile on large tables.")
    parser.add_argument("--size", type=size_of, default=size_of("1G"))
    parser.add_argument("--kind", choices=sorted(TABLES), action="append")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    is_over = False
    for kind in options.kind or TABLES:
        with tempfile.TemporaryDirectory() as folder:
            size = write(Path(folder), TABLES[kind], options.size)
            path = str(Path(folder) / TABLES[kind].file)
            costs, parsed, counted = [], [], []
            for _ in range(options.rounds):  # in turn, so that load from others affects all of them
                costs.append(read(Path(folder)))
                parsed.append(cost([sys.executable, "-c", CSV_READER, path]).cpu)
                counted.append(cost(["wc", "-l", path]).cpu)
        cpu, memory = min(cost.cpu for cost in costs), max(cost.memory for cost in costs)
        of_a_gigabyte = cpu * 1e9 / size
        is_over |= of_a_gigabyte > CPU_SECONDS or memory > MEMORY
        rounds = ", ".join(f"{cost.cpu:.2f}" for cost in costs)
        sys.stdout.write(
            f"{kind}: {size / 1e6:.0f} MB in {cpu:.2f} s of CPU ({rounds}), {of_a_gigabyte:.1f} s for 1 GB, "
            f"{cpu / min(parsed):.2f} of csv.reader ({min(parsed):.2f} s), "
            f"{cpu / max(min(counted), 0.01):.0f} of wc -l, "
            f"{memory:.0f} MiB, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs\n"
        )
    sys.exit(is_over)


if __name__ == "__main__":
    main()
