"""What `envtune fleet` costs for thousands of hosts: an audit, nights in the store, questions, the HTML page.

    .venv/bin/python benchmarks/fleet_scale.py                      10,000 hosts, 30 nights: 15 minutes
    .venv/bin/python benchmarks/fleet_scale.py --hosts 1000 --nights 5
    .venv/bin/python benchmarks/fleet_scale.py --keep DIR           keeps the store and the page in DIR

ssh is a stub that discards its input and prints a frame of one of the 40 hosts of tests/helpers/fleet.py, so that
everything but the network is included: ClusterShell, the frames, checking, the store. CPU time is user and system time
of the process and all its children; memory is the proportional share (PSS) of the process and all below it, at its
peak.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple, Sequence

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
FRAMES = 40
CHURN = 0.01  # of all outcomes and facts, a night
MISSED = 0.01  # of the hosts, a night
STUB = """\
#!/bin/sh
[ "$1" = -V ] && exit 0
cat >/dev/null
for word; do case $word in node*) number=${word#node} ;; esac; done
while [ "${number#0}" != "$number" ]; do number=${number#0}; done
exec cat "%s/$((${number:-0} %% 40))"
"""


class Cost(NamedTuple):
    """CPU and wall seconds; MiB."""

    cpu: float
    wall: float
    memory: float = 0.0


class Row(NamedTuple):
    """A row of the table: what was run, what was measured."""

    what: str
    budget: str
    found: str
    holds: bool


def names(hosts: int) -> list[str]:
    return [f"node{number:05d}" for number in range(1, hosts + 1)]


def make_frames(folder: Path) -> list[bytes]:
    """Write the frames of the 40 hosts, and the stub."""
    from helpers import fleet

    from envtune.collector.frame import framed, packed_for_frame

    frames = [framed(packed_for_frame({"schema": "envtune.snapshot/1", **host})) for host in fleet.deviating().values()]
    (folder / "frames").mkdir()
    for number, frame in enumerate(frames):
        (folder / "frames" / str(number)).write_bytes(frame)
    stub = folder / "ssh"
    stub.write_text(STUB % (folder / "frames"))
    stub.chmod(0o755)
    return frames


def measured(work: Callable[[], object]) -> Cost:
    """Run a function in a separate process."""
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    sampler = _Sampler(pid)
    _, status, usage = os.wait4(pid, 0)
    peak = sampler.end()
    if status:
        sys.exit("a part of the measurement failed")
    return Cost(usage.ru_utime + usage.ru_stime, time.monotonic() - began, peak)


class _Sampler:
    """Samples the memory of a process and its descendants every half second."""

    def __init__(self, pid: int) -> None:
        self._pid, self._peak, self._over = pid, 0, threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.5):
            self._peak = max(self._peak, sum(_share(pid) for pid in _below(self._pid)))

    def end(self) -> float:
        self._over.set()
        self._thread.join()
        return self._peak / 1024


def _below(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        try:
            found += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
        except OSError:
            continue
    return found


def _share(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def question() -> Any:
    from envtune.catalog import load, select
    from envtune.fleet.judge import Question
    from envtune.model import Severity

    catalogue = load()
    return Question(select(catalogue.checks, (), (), (), Severity.INFO), catalogue.expectations)


def bare(hosts: Sequence[str], folder: Path) -> None:
    """ClusterShell alone, with the same ssh: `true` on every host, a thousand at a time."""
    from ClusterShell.Task import task_self

    task = task_self()
    task.set_info("ssh_path", str(folder / "ssh"))
    task.set_info("fanout", 64)
    task.set_default("stdout_msgtree", False)
    for start in range(0, len(hosts), 1000):
        task.shell("true", nodes=",".join(hosts[start : start + 1000]), stdin=False)
        task.resume()


def collect(hosts: Sequence[str], folder: Path) -> None:
    """Our part: the program is sent, frames are found."""
    from envtune.fleet.collected import Collection, collection_verdict
    from envtune.fleet.frame import find_frame
    from envtune.fleet.hosts import chunks
    from envtune.fleet.program import Job, collector_program, remote_command
    from envtune.fleet.ssh import CHUNK, Ssh, run_everywhere

    found = []

    def take(host: str, answer: Any) -> None:
        found.append(collection_verdict(answer, find_frame(answer.output)).collection)

    for part in chunks(hosts, CHUNK):
        run_everywhere(part, remote_command(60, False), collector_program(Job()), Ssh(path=str(folder / "ssh")), take)
    assert found == [Collection.OK] * len(hosts)


def audit(hosts: Sequence[str], folder: Path, store: Path) -> None:
    """Collect, check and store every host."""
    from envtune.fleet.audit import Plan, Progress, audit_hosts
    from envtune.fleet.ssh import Ssh
    from envtune.fleet.store.schema import open_store
    from envtune.fleet.store.write import Writer

    writer = Writer(open_store(store), "ssh", started=NIGHT_ONE)
    audit_hosts(hosts, Plan(Ssh(path=str(folder / "ssh"))), question(), Progress(len(hosts)), writer.add)
    writer.finish()


def judge(frames: Sequence[bytes], hosts: Sequence[str]) -> list[Any]:
    """Check the frames of every host."""
    from envtune.fleet.frame import find_frame
    from envtune.fleet.judge import Snapshot, judge_all

    snapshots = (
        Snapshot(host, find_frame(frames[number % FRAMES]).snapshot, True) for number, host in enumerate(hosts)
    )
    return list(judge_all(snapshots, question()))


NIGHT_ONE = 1_790_000_000.0


def nights(records: Sequence[Any], hosts: Sequence[str], store: Path, count: int) -> list[Cost]:
    """Write nights, each in a separate process; return what each cost. One percent changes or is missing."""
    state = [
        records[number % FRAMES]._replace(
            host=host, checks=dict(records[number % FRAMES].checks), facts=dict(records[number % FRAMES].facts)
        )
        for number, host in enumerate(hosts)
    ]
    costs = []
    for night in range(1, count + 1):
        _change(state, random.Random(night))
        lost = set(random.Random(-night).sample(hosts, max(1, int(len(hosts) * MISSED))))
        costs.append(measured(lambda night=night, lost=lost: _night(state, store, night, lost)))
    return costs


def _change(state: Sequence[Any], chosen: random.Random) -> None:
    """Change that many outcomes and facts."""
    cells = sum(len(record.checks) + len(record.facts) for record in state)
    for _ in range(int(cells * CHURN)):
        record = chosen.choice(state)
        rows = record.checks if chosen.random() < 0.7 else record.facts
        name = chosen.choice(list(rows))
        if rows is record.checks:
            rows[name] = rows[name]._replace(outcome="fail" if rows[name].outcome != "fail" else "pass")
        elif rows[name].value is not None:
            rows[name] = rows[name]._replace(value=f"{rows[name].value.partition('~')[0]}~{chosen.random()}", own=None)


def _night(state: Sequence[Any], store: Path, night: int, lost: set[str]) -> None:
    from envtune.fleet.collected import Collection
    from envtune.fleet.record import HostRecord
    from envtune.fleet.store.schema import open_store
    from envtune.fleet.store.write import Writer

    opened = open_store(store)
    writer = Writer(opened, "ssh", started=NIGHT_ONE + 86400 * night)
    for record in state:
        missed = HostRecord(record.host, Collection.TIMEOUT, "Connection timed out")
        writer.add(missed if record.host in lost else record)
    writer.finish()
    _require_missed(opened, lost)


def _require_missed(opened: Any, lost: set[str]) -> None:
    """A host that was missed has no data for that night."""
    from envtune.fleet.store.read import Store

    store = Store(opened)
    last = max(store.runs())
    said = {host for host, _, _ in store.outcomes_in(last)}
    assert lost and not said & lost, "a missed night reads as if it had been collected"


QUESTIONS: Sequence[Sequence[str]] = (
    ("report",),
    ("report", "--format", "json"),
    ("report", "--format", "csv"),
    ("drift",),
    ("host", "node00007"),
    ("since", "2026-10-10"),
    ("golden",),
)


def ask(store: Path, folder: Path, words: Sequence[str]) -> Cost:
    """One query through the command line."""
    policy = folder / "site.yaml"
    policy.write_text("schema: envtune.policy/1\nfacts:\n  driver: 25.0.rc1.1\n")
    more = ["--policy", str(policy)] if words[0] == "golden" else []
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "envtune", "fleet", *words, *more, "--store", str(store)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT, env=_environ())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"{' '.join(command)}: {done.stderr.decode()}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(cpu, time.monotonic() - began)


def _environ() -> dict[str, str]:
    """Compile the modules once, as in an installed envtune."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "envtune-compiled"),
    }


def audit_rows(count: int, folder: Path) -> Iterator[Row]:
    """An audit of that many hosts; the cost of collecting is measured on some of them."""
    hosts, some = names(count), names(min(count, 2000))
    alone, ours = measured(lambda: bare(some, folder)), measured(lambda: collect(some, folder))
    each, base = (cost.cpu / len(some) * 1000 for cost in (ours, alone))
    text = f"{each - base:.1f} ms ({each:.1f} and {base:.1f})"
    yield Row("CPU per host beyond ClusterShell with `true`, stub ssh", "6 ms", text, each - base <= 6)
    whole = measured(lambda: audit(hosts, folder, folder / "audit.db"))
    checking = whole.cpu / count * 1000 - each
    yield Row("checking and storing a host, CPU", "30 ms", f"{checking:.1f} ms", checking <= 30)
    yield Row(f"an audit of {count} hosts", "", f"{whole.cpu:.0f} s of CPU, {whole.wall:.0f} s", True)
    yield Row("its memory, all processes", "300 MiB", f"{whole.memory:.0f} MiB", whole.memory < 300)


def store_rows(count: int, number_of_nights: int, frames: Sequence[bytes], folder: Path) -> Iterator[Row]:
    """Nights in the store, the questions, and the page."""
    store, hosts = folder / "fleet.db", names(count)
    costs = nights(_sorted(judge(frames, hosts[:FRAMES])), hosts, store, number_of_nights)
    most = max(cost.cpu for cost in costs)
    yield Row(f"writing {count} checked hosts, the costliest night", "15 s of CPU", f"{most:.1f} s", most < 15)
    size = sum(path.stat().st_size for path in folder.glob("fleet.db*")) / 1e6
    what = f"the store after {number_of_nights} nights, 1 % changed a night"
    yield Row(what, "100 MB", f"{size:.0f} MB", size < 100)
    for words in QUESTIONS:
        cost = ask(store, folder, words)
        yield Row(f"`envtune fleet {' '.join(words)}`", "2 s", f"{cost.cpu:.2f} s of CPU", cost.cpu < 2)
    page = folder / "fleet.html"
    cost = ask(store, folder, ("report", "--format", f"html={page}"))
    text = f"{page.stat().st_size / 1e6:.2f} MB, {cost.cpu:.1f} s of CPU"
    yield Row("the HTML page", "5 MB", text, page.stat().st_size < 5e6)


def _sorted(records: Sequence[Any]) -> list[Any]:
    return sorted(records, key=lambda record: str(record.host))


HEADING = "| what | at most | measured | holds |\n|---|---|---|---|\n"


def line(row: Row) -> str:
    return f"| {row.what} | {row.budget} | {row.found} | {'yes' if row.holds else 'NO'} |\n"


def table(rows: Sequence[Row]) -> str:
    return HEADING + "".join(map(line, rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--nights", type=int, default=30)
    parser.add_argument("--only", choices=("audit", "store"))
    parser.add_argument("--keep", type=Path, metavar="DIR")
    chosen = parser.parse_args()
    holds = True
    title = f"{chosen.hosts} hosts, {FRAMES} different frames; Python {sys.version.split()[0]}, {os.cpu_count()} CPUs"
    sys.stdout.write(f"{title}\n\n{HEADING}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frames = make_frames(folder)
        parts = {
            "audit": lambda: audit_rows(chosen.hosts, folder),
            "store": lambda: store_rows(chosen.hosts, chosen.nights, frames, folder),
        }
        for part, rows in parts.items():
            for row in rows() if chosen.only in (None, part) else ():
                sys.stdout.write(line(row))
                sys.stdout.flush()
                holds = holds and row.holds
        if chosen.keep is not None:
            chosen.keep.mkdir(parents=True, exist_ok=True)
            for path in (*folder.glob("fleet.db"), *folder.glob("fleet.html")):
                shutil.copy(path, chosen.keep)
    sys.exit(not holds)


if __name__ == "__main__":
    main()
