"""What `envtune check --format json` costs: CPU time of the whole process, children included, and peak memory.

    make bench                       20 rounds
    make bench ARGS="--rounds 5"
    make bench ARGS="--no-neighbour"      without pytest-testinfra, which is fetched once
    make bench ARGS="--against COMMIT"    compared with another commit of this project, same interpreter
    make bench ARGS="--bare-metal 192"    as root, in a mount namespace that shows that many frequency policies and a
                                          CPU without the hypervisor flag, so that the checks for bare metal run, too
    make bench ARGS="--checks"            the ten checks that cost most on this host, in one process
    make bench ARGS="--checks HOST"       on a recorded host of tests/hosts

In every round each program runs once, one after the other, so that a busy machine slows all of them; ratios are taken
within a round and their median is shown. The first round warms the caches (bytecode, catalog) and is not counted.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Mapping, NamedTuple, Sequence, Tuple

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "bench"
NO_OP = """\
import typer

app = typer.Typer()


@app.command()
def main(name: str = typer.Option("", help="Nothing.")) -> None:
    pass


app()
"""
NEIGHBOUR = "pytest-testinfra, 30 checks"
BASE = "typer no-op"
OURS = "envtune check --format json"


BARE_METAL = """\
set -e
mount --make-rprivate /
tree=$2
mkdir -p "$tree"
mount -t tmpfs none "$tree"
mkdir "$tree/cpufreq"
echo "0-$(($1 - 1))" >"$tree/online"
for i in $(seq 0 $(($1 - 1))); do
  mkdir "$tree/cpufreq/policy$i"
  cd "$tree/cpufreq/policy$i"
  echo performance | tee scaling_governor scaling_available_governors >/dev/null
  echo 2600000 | tee scaling_max_freq cpuinfo_max_freq >/dev/null
  echo cppc_cpufreq >scaling_driver
  echo "$i" >affected_cpus
done
sed "s/ hypervisor//" /proc/cpuinfo >"$tree/cpuinfo"
mount --bind "$tree/cpuinfo" /proc/cpuinfo
mount --rbind "$tree" /sys/devices/system/cpu
# Such a server has cpupower: without it, whether CPU004 can be fixed is asked of apt-get, which reads package lists.
mount -t tmpfs none /usr/local/sbin
install -m 755 /bin/true /usr/local/sbin/cpupower
cd /
shift 2
exec "$@"
"""


class Cost(NamedTuple):
    """Of one run: user and system time of the process and its children, wall time (seconds); peak memory (MiB).

    The memory is not a number where it is not known.
    """

    cpu: float
    wall: float
    memory: float


def run(argv: Sequence[str], more: Mapping[str, str]) -> Cost:
    """Run to the end, with the output thrown away; a program that cannot do its work is no measurement.

    The kernel counts what this process had at its peak as memory of the child, until that executes the program
    (`ru_maxrss`, getrusage(2)): what is not above that peak is not known.
    """
    began = time.perf_counter()
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | dict(more)
    child = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", env=environ
    )
    assert child.stderr is not None
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1, 3):
        sys.exit(f"{' '.join(argv)}: {child.returncode}\n{errors.decode()}")
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory = usage.ru_maxrss / 1024 if usage.ru_maxrss > own else math.nan
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - began, memory)


Program = Tuple[Sequence[str], Mapping[str, str]]  # argv, and variables


def programs(neighbour: bool, against: str) -> Mapping[str, Program]:
    """{name: program}; creates what the programs need."""
    CACHE.mkdir(parents=True, exist_ok=True)
    no_op = CACHE / "no_op.py"
    no_op.write_text(NO_OP, "utf-8")
    check = [sys.executable, "-m", "envtune", "check", "--format", "json"]
    found: dict[str, Program] = {
        "python -c pass": ([sys.executable, "-c", "pass"], {}),
        BASE: ([sys.executable, str(no_op)], {}),
        OURS: (check, {"PYTHONPATH": str(ROOT)}),
    }
    if against:
        found[f"the same at {against}"] = (check, {"PYTHONPATH": str(checkout(against))})
    if neighbour:
        words = [
            *(str(testinfra()), "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("--hosts=local://", str(ROOT / "benchmarks" / "neighbour_checks.py"), f"--rootdir={CACHE}"),
        ]
        found[NEIGHBOUR] = (words, {})
    return found


def checkout(commit: str) -> Path:
    """A checkout of a commit."""
    folder = CACHE / f"at-{commit}"
    if not folder.exists():
        folder.mkdir(parents=True)
        # Through a pipe: the peak memory of this process would count as that of every program it starts (see `run`).
        with subprocess.Popen(["git", "-C", str(ROOT), "archive", commit], stdout=subprocess.PIPE) as archive:
            unpacked = subprocess.run(["tar", "-x", "-C", str(folder)], stdin=archive.stdout, check=False)
        if archive.returncode or unpacked.returncode:
            shutil.rmtree(folder)
            sys.exit(f"{commit}: git archive ended with {archive.returncode}, tar with {unpacked.returncode}")
    return folder


def testinfra() -> Path:
    """The Python of a virtual environment that holds pytest-testinfra."""
    folder = CACHE / "testinfra"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        sys.stderr.write("fetching pytest-testinfra, once\n")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "-q", "install", "pytest-testinfra"], check=True)
        (folder / "ready").touch()
    return python


def measure(found: Mapping[str, Program], rounds: int) -> dict[str, list[Cost]]:
    """`rounds` costs of each, taken in turn."""
    costs: dict[str, list[Cost]] = {name: [] for name in found}
    for number in range(rounds + 1):
        for name, program in found.items():
            cost = run(*program)
            if number > 0:
                costs[name].append(cost)
        sys.stderr.write(f"\rround {number} of {rounds}" + ("\n" if number == rounds else ""))
    return costs


def table(costs: Mapping[str, Sequence[Cost]]) -> str:
    """Medians with their range, and the median of the ratios to the no-op within each round."""
    lines = [
        f"| program | CPU ms | min-max | wall ms | peak MiB | CPU, times the {BASE} |",
        "|---|---|---|---|---|---|",
    ]
    for name, own in costs.items():
        ratio = statistics.median(cost.cpu / base.cpu for cost, base in zip(own, costs[BASE]))
        of = _column(own)
        lines.append(
            f"| {name} | {of(lambda c: c.cpu * 1000, statistics.median):.0f} "
            f"| {of(lambda c: c.cpu * 1000, min):.0f}-{of(lambda c: c.cpu * 1000, max):.0f} "
            f"| {of(lambda c: c.wall * 1000, statistics.median):.0f} "
            f"| {_memory(own)} | {ratio:.2f} |"
        )
    return "\n".join(lines)


def _memory(costs: Sequence[Cost]) -> str:
    """The peak of all rounds, or that it was below the peak of this process."""
    known = [cost.memory for cost in costs if not math.isnan(cost.memory)]
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"{max(known):.1f}" if known else f"below {own:.0f}"


def _column(costs: Sequence[Cost]) -> Callable[[Callable[[Cost], float], Callable[[list[float]], float]], float]:
    return lambda value, summary: summary([value(cost) for cost in costs])


def check_costs(recorded: str, rounds: int) -> tuple[int, dict[str, list[float]]]:
    """The number of checks, and {check: milliseconds of CPU in each round}, including the programs it starts.

    Every round reads the host anew, first the facts, which checks share. The first round imports modules and is not
    counted.
    """
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    from envtune.audit import examine, read_facts
    from envtune.catalog import load
    from envtune.context.open import open_context, recorded_options
    from envtune.host import LocalHost

    checks = load().checks
    costs: dict[str, list[float]] = {"the facts": []}
    for number in range(rounds + 1):
        if recorded:
            from helpers.recorded import host_data

            from envtune.snapshot.host import SnapshotHost

            data = host_data(recorded)
            context = open_context(SnapshotHost(data), recorded_options(data.get("target", {})))
        else:
            context = open_context(LocalHost())
        began = _spent()
        read_facts(context)
        costs["the facts"][number:] = [_spent() - began]
        for check in checks:
            began = _spent()
            examine(check, context)
            costs.setdefault(f"{check.id} ({check.probe})", [])[number:] = [_spent() - began]
    return len(checks), {name: own[1:] for name, own in costs.items()}


def _spent() -> float:
    """CPU milliseconds of this process and of the children it has waited for."""
    children = os.times()
    return (time.process_time() + children.children_user + children.children_system) * 1000


def slowest(count: int, costs: Mapping[str, Sequence[float]]) -> str:
    """The ten most expensive checks, and the total of all."""
    medians = {name: statistics.median(own) for name, own in costs.items()}
    facts = medians["the facts"]
    rows = sorted(((value, name) for name, value in medians.items() if name != "the facts"), reverse=True)
    lines = ["| check (probe) | CPU ms | min-max |", "|---|---|---|"]
    lines += [f"| {name} | {value:.2f} | {min(costs[name]):.2f}-{max(costs[name]):.2f} |" for value, name in rows[:10]]
    lines.append(f"| all {count} checks | {sum(value for value, _ in rows):.1f} | |")
    return "\n".join([*lines, f"| the facts that they share | {facts:.1f} | |"])


def machine() -> str:
    """What the figures depend on: interpreter, CPUs, firewall programs."""
    from importlib.metadata import version

    tools = [name for name in ("firewall-cmd", "ufw", "nft", "iptables-save") if shutil.which(name)]
    return (
        f"Python {platform.python_version()}, typer {version('typer')}, {os.cpu_count()} CPUs, {platform.machine()}; "
        f"firewall programs: {', '.join(tools) or 'none'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--no-neighbour", action="store_true")
    parser.add_argument("--against", default="", metavar="COMMIT")
    parser.add_argument("--bare-metal", type=int, metavar="CPUS")
    parser.add_argument("--checks", nargs="?", const="", metavar="HOST")
    chosen = parser.parse_args()
    if chosen.checks is not None:
        where = f"recorded host {chosen.checks}" if chosen.checks else "this host"
        table_of = slowest(*check_costs(chosen.checks, chosen.rounds))
        sys.stdout.write(f"{machine()}; {where}; {chosen.rounds} rounds\n\n{table_of}\n")
        return
    if chosen.bare_metal:
        again = [arg for arg in sys.argv[1:] if arg not in ("--bare-metal", str(chosen.bare_metal))]
        script = ["bash", "-c", BARE_METAL, "bash", str(chosen.bare_metal), str(CACHE / "tree")]
        os.execvp("unshare", ["unshare", "-m", *script, sys.executable, __file__, *again])
    costs = measure(programs(not chosen.no_neighbour, chosen.against), chosen.rounds)
    sys.stdout.write(f"{machine()}; {chosen.rounds} rounds\n\n{table(costs)}\n")


if __name__ == "__main__":
    main()
