#!/usr/bin/env python3
"""How often `envtune observe` says what a job waits for: jobs whose bottleneck is known, each many times.

    python benchmarks/observe_accuracy.py                        every job 20 times, 4 seconds each: 15 minutes
    python benchmarks/observe_accuracy.py --rounds 2 --kind healthy

The jobs are those of the tests (tests/helpers/jobs.py) and those of observe_jobs.py, which were written after the
thresholds were chosen; one after the other, with a nice value of 10. A verdict is right if its bound and one cause are
those of the job. On a machine loaded by others, "it waits for a CPU" (oversubscribed) is true of every job, and a job
that had no CPU for half of the time shows little else: that is counted separately, as "others", if the load exceeded
the number of CPUs, else as wrong. Prints the load and what the sampling cost. Exits with 1 if fewer than 7 of 8 jobs
are right in 19 of 20 rounds, the healthy job is misreported even once, or a cost is above 1 %.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Iterator, Mapping, NamedTuple, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from envtune.observe.judge import judge
from envtune.observe.sampling import observe

JOBS = Path(__file__).resolve().parents[1] / "tests" / "helpers" / "jobs.py"
MORE = Path(__file__).with_name("observe_jobs.py")
GROUPS = Path("/sys/fs/cgroup/cpu")  # control groups, version 1
STARTS, LIMIT, NICE = 1.5, 0.01, 10
SHARE = 0.95  # of its rounds that must be right for a job to count as right


class Job(NamedTuple):
    """A job, and the right answers for it."""

    kind: str
    bound: str
    cause: str = ""
    quota: int = 0  # microseconds of CPU in 100 ms, set by a control group
    script: Path = JOBS


JOBS_OF: Mapping[str, Job] = {
    "healthy": Job("healthy", "balanced"),
    "main thread": Job("main_thread", "host", "main-thread"),
    "starved loader": Job("starved_loader", "data", "workers"),
    "loader in a thread": Job("loader_thread", "data", "loader-thread"),
    "loader on storage": Job("storage", "data", "storage"),
    "one CPU for all": Job("squeezed", "host", "affinity"),
    "page faults from a file": Job("mapped", "data", "storage"),
    "throttled": Job("main_thread", "host", "throttled", quota=20_000),
    "2: CPU-bound main thread": Job("cpu_bound", "host", "main-thread", script=MORE),
    "2: starved loader": Job("starved", "data", "workers", script=MORE),
    "2: loader reads from the disk": Job("io_bound", "data", "storage", script=MORE),
    "2: throttled with workers": Job("limited", "host", "throttled", quota=60_000, script=MORE),
    "2: taskset to one CPU": Job("one_core", "host", "affinity", script=MORE),
    "2: more threads than CPUs": Job("many_threads", "host", "oversubscribed", script=MORE),
    "2: waits for the device": Job("waits_for_device", "balanced", script=MORE),
    "2: threads share a lock": Job("lock", "host", "serialized", script=MORE),
    "2: a program for each sample": Job("subprocesses", "data", "children", script=MORE),
    "2: maps and unmaps memory": Job("map_churn", "host", "main-thread", script=MORE),
    "2: logs everything": Job("logs", "host", "main-thread", script=MORE),
    "2: collects garbage": Job("collects", "host", "main-thread", script=MORE),
    "2: saves all the time": Job("saves", "host", "storage", script=MORE),
}


class Answer(NamedTuple):
    """One answer about a job."""

    bound: str
    causes: tuple[str, ...]
    cost: float
    load: float
    waiting: float  # share of the time in which the main thread waited for a CPU

    def is_right(self, job: Job) -> bool:
        """Return whether it is the job's bottleneck."""
        return self.bound == job.bound and (not job.cause or job.cause in self.causes)

    @property
    def is_others(self) -> bool:
        """Whether the main thread had no CPU for half of the time and nothing else is named."""
        if self.load <= (os.cpu_count() or 1):
            return False
        return self.causes == ("oversubscribed",) or (
            self.waiting >= 0.5 and self.causes in ((), ("oversubscribed", "main-thread"))
        )


def group_of(job: Job) -> Optional[Path]:
    """Return a new control group with the job's limit; raises OSError if none can be created."""
    if not job.quota:
        return None
    path = GROUPS / f"envtune-benchmark-{os.getpid()}"
    path.mkdir()
    (path / "cpu.cfs_quota_us").write_text(str(job.quota))
    return path


def ask(job: Job, seconds: float) -> Answer:
    """Start the job, observe it, and end it."""
    group = group_of(job)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "JOB_DIRECTORY": folder}
        argv = ["nice", "-n", str(NICE), sys.executable, str(job.script), job.kind, str(seconds + 10)]
        process = subprocess.Popen(argv, env=environment, start_new_session=True)
        try:
            if group is not None:
                (group / "cgroup.procs").write_text(str(process.pid))
            time.sleep(STARTS)
            found = observe(process.pid, seconds)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if group is not None:
                time.sleep(0.3)
                group.rmdir()
    judged = judge(found)
    waiting = max((usage.waiting for usage in found.usages if usage.is_main), default=0.0)
    causes = tuple(cause.name for cause in judged.causes)
    return Answer(judged.bound.value, causes, found.cost, os.getloadavg()[0], waiting)


def rounds_of(jobs: Mapping[str, Job], rounds: int, seconds: float) -> Iterator[tuple[str, Answer]]:
    """Yield the answers about the jobs, which take turns, so that load from others affects all of them."""
    for _ in range(rounds):
        for name, job in jobs.items():
            try:
                yield name, ask(job, seconds)
            except PermissionError as error:
                sys.stdout.write(f"{name}: left out: {error}\n")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How often envtune observe says what a job waits for.")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--kind", choices=sorted(JOBS_OF), action="append")
    options = parser.parse_args()
    jobs = {name: JOBS_OF[name] for name in options.kind or JOBS_OF}
    answers: dict[str, list[Answer]] = {}
    for name, answer in rounds_of(jobs, options.rounds, options.seconds):
        answers.setdefault(name, []).append(answer)
        if not answer.is_right(jobs[name]):
            words = f"{answer.bound} {', '.join(answer.causes)}; load {answer.load:.1f}, waits {answer.waiting:.0%}"
            sys.stdout.write(f"{name}: {words}\n")
            sys.stdout.flush()
    sys.exit(report(jobs, answers))


def report(jobs: Mapping[str, Job], answers: Mapping[str, list[Answer]]) -> bool:
    """Print the counts; return whether they miss the target."""
    right = 0
    for name, own in answers.items():
        good = sum(answer.is_right(jobs[name]) for answer in own)
        others = sum(answer.is_others and not answer.is_right(jobs[name]) for answer in own)
        right += good >= SHARE * (len(own) - others)
        sys.stdout.write(f"{name}: {good} of {len(own)} right, {others} of them others, ")
        sys.stdout.write(f"{len(own) - good - others} wrong, cost at most {max(a.cost for a in own):.2%}\n")
    every = [answer for own in answers.values() for answer in own]
    loads = sorted(answer.load for answer in every)
    sys.stdout.write(f"load {loads[0]:.1f} to {loads[-1]:.1f}, in the middle {loads[len(loads) // 2]:.1f}\n")
    healthy = answers.get("healthy", [])
    alarms = sum(not answer.is_right(jobs["healthy"]) and not answer.is_others for answer in healthy)
    return right * 8 < 7 * len(answers) or alarms > 0 or max(answer.cost for answer in every) > LIMIT


if __name__ == "__main__":
    main()
