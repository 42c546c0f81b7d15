"""Audit many hosts: collect a snapshot of each, check it here, pass on a record of each host."""

from __future__ import annotations

import time
from collections import Counter
from typing import Callable, Optional, Sequence

from envtune.fleet.collected import Answer, Collection, collection_verdict
from envtune.fleet.frame import find_frame
from envtune.fleet.hosts import chunks
from envtune.fleet.judge import Question, Snapshot, judge_all
from envtune.fleet.program import Job, collector_program, remote_command
from envtune.fleet.record import HostRecord
from envtune.fleet.ssh import CHUNK, Ssh, run_everywhere, run_through_gateways
from envtune.records import NamedTuple
from envtune.trust.characters import visible

OnRecord = Callable[[HostRecord], None]


class Progress:
    """Progress of an audit: hosts by collection verdict, and how long the rest may take."""

    def __init__(self, total: int) -> None:
        self.total, self.began = total, time.monotonic()
        self.collected: Counter[Collection] = Counter()
        self.checked = 0

    @property
    def seconds_left(self) -> Optional[float]:
        """Return the remaining time at the speed so far; None until enough hosts are done for an estimate."""
        done = self._done
        if done < min(self.total, 32):
            return None
        return (time.monotonic() - self.began) * (self.total - done) / done

    @property
    def _done(self) -> float:
        """Hosts that are done; one that is collected but not yet checked counts half."""
        failed = sum(self.collected.values()) - self.collected[Collection.OK]
        return failed + (self.collected[Collection.OK] + self.checked) / 2


class Plan(NamedTuple):
    """How hosts are collected."""

    ssh: Ssh
    job: Job = Job()
    become: bool = False
    gateways: Sequence[str] = ()  # through which the others are reached


def audit_hosts(hosts: Sequence[str], plan: Plan, question: Question, progress: Progress, on_record: OnRecord) -> None:
    """Collect and check every host; `on_record` is called with the record of each, including those not collected."""
    program, command = collector_program(plan.job), remote_command(plan.ssh.timeout, plan.become)
    for part in chunks(hosts, CHUNK):
        found = _Collected(part, progress, on_record)
        behind = found.left(plan.gateways) if plan.gateways else ()
        if behind:
            run_through_gateways(behind, plan.gateways, command, program, plan.ssh, found.take_whole)
        alone = found.left()
        if alone:
            run_everywhere(alone, command, program, plan.ssh, found.take)
        found.end()
        for record in judge_all(found.snapshots, question):
            progress.checked += 1
            on_record(record)


class _Collected:
    """The snapshots of one batch of hosts; hosts without one are recorded as they come."""

    def __init__(self, hosts: Sequence[str], progress: Progress, on_record: OnRecord) -> None:
        self.snapshots: list[Snapshot] = []
        self._left = dict.fromkeys(hosts)
        self._progress, self._on_record = progress, on_record

    def left(self, without: Sequence[str] = ()) -> list[str]:
        """Return the hosts that have not been taken."""
        apart = set(without)
        return [host for host in self._left if host not in apart]

    def take_whole(self, host: str, answer: Answer) -> None:
        """Process the answer of a host if it contains a snapshot; else the host is asked again."""
        if collection_verdict(answer, find_frame(answer.output)).collection is Collection.OK:
            self.take(host, answer)

    def take(self, host: str, answer: Answer) -> None:
        """Process the answer of a host."""
        self._left.pop(host, None)
        verdict = collection_verdict(answer, find_frame(answer.output))
        self._progress.collected[verdict.collection] += 1
        if verdict.collection is Collection.OK:
            self.snapshots.append(Snapshot(host, verdict.snapshot, True, answer.seconds))
        else:
            self._on_record(HostRecord(host, verdict.collection, visible(verdict.detail), answer.seconds))

    def end(self) -> None:
        """Record the hosts for which ClusterShell reported nothing."""
        for host in self._left:
            self._progress.collected[Collection.TIMEOUT] += 1
            self._on_record(HostRecord(host, Collection.TIMEOUT))
