"""What an audit of real SSH servers costs the machine that runs it, compared with ClusterShell alone.

    .venv/bin/python benchmarks/fleet_hosts.py            as root: 64 servers on loopback addresses, 3 rounds
    .venv/bin/python benchmarks/fleet_hosts.py --servers 8 --rounds 1

In every round ClusterShell runs `true` on every server, then the program is sent and frames are found, with the same
options of ssh (curve25519); then the snapshots are checked. CPU time is that of the process and its children (ssh),
without the servers. The servers are those of tests/helpers/sshd_farm.py.
"""

from __future__ import annotations

import argparse
import os
import pickle
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, Sequence

from fleet_scale import Cost, Row, measured, question, table

ROOT = Path(__file__).resolve().parents[1]


def bare(hosts: Sequence[str], ssh_options: str) -> None:
    from ClusterShell.Task import task_self

    task = task_self()
    task.set_info("ssh_options", ssh_options)
    task.set_info("fanout", 64)
    task.shell("true", nodes=",".join(hosts), stdin=False)
    task.resume()
    assert {status for status, _ in task.iter_retcodes()} == {0}


def collect(hosts: Sequence[str], ssh_options: str, program: bytes, kept: Path) -> None:
    from envtune.fleet.collected import collection_verdict
    from envtune.fleet.frame import find_frame
    from envtune.fleet.program import remote_command
    from envtune.fleet.ssh import Ssh, run_everywhere

    found: dict[str, bytes] = {}

    def take(host: str, answer: Any) -> None:
        found[host] = collection_verdict(answer, find_frame(answer.output)).snapshot

    run_everywhere(hosts, remote_command(60, False), program, Ssh(ssh_options), take)
    assert len(found) == len(hosts) and all(found.values())
    kept.write_bytes(pickle.dumps(found))


def check(kept: Path) -> None:
    from envtune.fleet.collected import Collection
    from envtune.fleet.judge import Snapshot, judge_all

    found = pickle.loads(kept.read_bytes())
    snapshots = [Snapshot(host, data, True) for host, data in found.items()]
    assert all(record.collection is Collection.OK for record in judge_all(snapshots, question()))


def check_nothing(kept: Path) -> None:
    """What checking costs before the first host: the catalog, the imports."""
    from envtune.fleet.judge import _import_probes

    pickle.loads(kept.read_bytes())
    _import_probes(question().checks)


def run(servers: int, rounds: int) -> list[Row]:
    from helpers.sshd_farm import Target, farm

    from envtune.fleet.program import Job, collector_program

    program = collector_program(Job())  # assembled beforehand, as in a wheel

    hosts = [f"h{number:03d}" for number in range(1, servers + 1)]
    costs: list[tuple[Cost, ...]] = []
    with tempfile.TemporaryDirectory() as name, farm(Path(name), [Target(host) for host in hosts]) as running:
        options, kept = running.ssh_options, Path(name) / "snapshots"
        for _ in range(rounds):
            costs.append(
                (
                    measured(lambda: bare(hosts, options)),
                    measured(lambda: collect(hosts, options, program, kept)),
                    measured(lambda: check_nothing(kept)),
                    measured(lambda: check(kept)),
                )
            )
        left = running.processes(5)
    return _rows(servers, costs, left)


def _rows(servers: int, costs: Sequence[tuple[Cost, ...]], left: Sequence[str]) -> list[Row]:
    def median(values: Sequence[float]) -> float:
        return statistics.median(values) / servers * 1000

    alone, ours = (median([cost[place].cpu for cost in costs]) for place in (0, 1))
    beyond = median([cost[1].cpu - cost[0].cpu for cost in costs])
    checking = median([cost[3].cpu - cost[2].cpu for cost in costs])
    again = median([cost[3].cpu for cost in costs])
    memory = max(cost[place].memory for cost in costs for place in (1, 3))
    return [
        Row("CPU per host beyond ClusterShell", "6 ms", f"{beyond:.1f} ms ({ours:.1f} and {alone:.1f})", beyond <= 6),
        Row("checking a host, CPU", "30 ms", f"{checking:.1f} ms ({again:.1f} with the start)", checking <= 30),
        Row("memory, all processes", "300 MiB", f"{memory:.0f} MiB", memory < 300),
        Row("processes left on the servers", "0", str(len(left)), not left),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    rows = run(chosen.servers, chosen.rounds)
    title = f"{chosen.servers} servers, {chosen.rounds} rounds; Python {sys.version.split()[0]}, {os.cpu_count()} CPUs"
    sys.stdout.write(f"{title}\n\n{table(rows)}\n")
    sys.exit(not all(row.holds for row in rows))


if __name__ == "__main__":
    main()
