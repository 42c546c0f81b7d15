"""Undo a run on every host where it left something, and find out what a killed run has left."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Sequence

from envtune.fleet.fix.folder import RunFolder
from envtune.fleet.fix.playbook import Ansible, play
from envtune.fleet.fix.program import executor_program, packed_request, remote_command
from envtune.fleet.fix.rollout import Way, read_answers
from envtune.fleet.fix.stages import BEGUN, PLANNED, UNDONE, UNREACHABLE, WRITTEN
from envtune.fleet.store.fixes import Fixes, FixHost, FixRun
from envtune.messages import Message

KILLED = Message("the envtune that ran it was ended in the middle")


def hosts_to_undo(fixes: Fixes, run: FixRun) -> list[FixHost]:
    """Return the hosts on which a run left, or may have left, something."""
    return [host for host in fixes.hosts(run) if host.state in WRITTEN]


def undo(
    fixes: Fixes, run: FixRun, folder: RunFolder, ansible: Ansible, way: Way, force: bool, on_wait: Callable[[], None]
) -> list[FixHost]:
    """Undo a run, store the result of each host, and return it."""
    hosts = hosts_to_undo(fixes, run)
    folder.make()
    folder.clear()
    folder.write("program", executor_program())
    folder.write("command", remote_command(way.seconds, way.become).encode("ascii"))
    request = packed_request({"action": "undo", "run": run.name, "force": force})
    for host in hosts:
        folder.write(f"requests/{host.host}", request)
    names = [host.host for host in hosts]
    play(ansible, "undo.yml", folder, names, way.ssh, {}, (), on_wait)
    answers = read_answers(folder, names, run.name, way)
    found = []
    for host in hosts:
        answer = answers[host.host]
        if answer.state in (PLANNED, UNREACHABLE, BEGUN, "refused"):  # unchanged
            found.append(host._replace(detail=answer.detail))
        else:
            state = UNDONE if answer.state in ("unchanged", "failed") else answer.state
            found.append(host._replace(state=state, run=answer.run or host.run, detail=answer.detail))
    fixes.update(run, found)
    return found


def interrupted_runs(fixes: Fixes, store: Path) -> list[FixRun]:
    """Return the runs whose controller ended prematurely, the oldest first; not one in progress."""
    return [run for run in reversed(fixes.runs()) if run.ended is None and not RunFolder(store, run.name).in_use]


def reconcile_run(fixes: Fixes, run: FixRun, store: Path, way: Way) -> Sequence[FixHost]:
    """Find out what an interrupted run has left on its hosts, store it, and return its hosts.

    Then the run is over, unless a host that was begun does not answer: it is asked again the next time.
    """
    folder = RunFolder(store, run.name)
    before = {host.host: host for host in fixes.hosts(run)}
    begun = [host.host for host in before.values() if host.state == BEGUN]
    answers = read_answers(folder, begun, run.name, way)
    rows = [
        before[name]._replace(state=answer.state, run=answer.run, detail=answer.detail)
        for name, answer in answers.items()
    ]
    fixes.update(run, rows)
    if all(row.state != BEGUN for row in rows):
        fixes.end(run, (KILLED.en, KILLED.zh))
    return fixes.hosts(run)
