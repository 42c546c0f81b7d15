"""Limits, control groups and file systems of this machine: set on real processes, groups and mounts."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest
from helpers.mounts import tmpfs

from envtune.audit import examine
from envtune.catalog import load
from envtune.collector.snapshot import take
from envtune.context import Context
from envtune.context.open import open_context
from envtune.errors import NotApplicable
from envtune.host import LocalHost
from envtune.job.target import TargetOptions
from envtune.model import Fact
from envtune.resources.files.kernel import setting
from envtune.resources.system.cgroups import refused_processes, throttled
from envtune.resources.system.output import _inodes, output_mounts
from envtune.snapshot.host import SnapshotHost

CHECKS = {check.id: check for check in load().checks}
YES = {name: Fact(name, "true", "the test") for name in ("ascend", "ascend_job")}


def of(pid: int) -> Context:
    host = LocalHost()
    return Context(host, open_context(host, TargetOptions(pid=pid)).target, YES)


def outcome(id_: str, pid: int) -> list[tuple[str, str]]:
    return [
        (finding.outcome.value, finding.actual.en if finding.actual else "")
        for finding in examine(CHECKS[id_], of(pid))
    ]


@pytest.mark.parametrize(("soft", "verdict"), [(1024, "fail"), (1025, "pass"), (4096, "pass")])
def test_open_files_of_a_child(soft: int, verdict: str) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    code = f"import resource as r; r.setrlimit(r.RLIMIT_NOFILE, ({soft}, {hard})); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-I", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = outcome("SYS113", child.pid)
        child.communicate(b"\n")
    assert found == [(verdict, str(soft))]


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits before it computes without end, so that it can be put into a group first."""
    code = "input()\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-I", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def group(controller: str, child: subprocess.Popen[bytes]) -> Path:
    """A new control group of version 1 or 2 with the child in it; skips where this machine has none to give."""
    root = Path("/sys/fs/cgroup") / controller
    place = (root if root.is_dir() else root.parent) / f"envtune-test-{os.getpid()}"
    if os.geteuid() != 0:
        pytest.skip("needs root")
    try:
        place.mkdir()
        (place / "cgroup.procs").write_text(str(child.pid))
    except OSError as error:
        if place.is_dir():
            place.rmdir()
        pytest.skip(f"no control group: {error}")
    return place


def leave(place: Path, controller: str, child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    place.rmdir()


@pytest.mark.root
def test_a_throttled_process(child: subprocess.Popen[bytes]) -> None:
    place = group("cpu", child)
    try:
        new, old = place / "cpu.max", place / "cpu.cfs_quota_us"
        if new.exists():
            new.write_text("1000 100000")
        elif old.exists():
            old.write_text("1000")
        else:
            pytest.skip("the controller is not delegated")
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
        while _share(child.pid, place) <= 25:  # a hundredth of a CPU is less than any load leaves it
            assert child.poll() is None
        assert "fail" in {verdict for verdict, _ in outcome("CPU103", child.pid)}
    finally:
        leave(place, "cpu", child)


def _share(pid: int, place: Path) -> int:
    try:
        found = {reading.subject: reading.value for reading in throttled(of(pid))}
    except NotApplicable:  # no period has ended yet
        return 0
    return int(found.get(f"/{place.name}", 0))


@pytest.mark.root
def test_a_process_that_was_refused(child: subprocess.Popen[bytes]) -> None:
    place = group("pids", child)
    try:
        if not (place / "pids.max").exists():
            pytest.skip("the controller is not delegated")
        (place / "pids.max").write_text("1")
        shell = f"echo $$ > {place}/cgroup.procs && /bin/true; exit 0"
        subprocess.run(["sh", "-c", shell], capture_output=True, timeout=60)
        readings = {reading.subject: reading.value for reading in refused_processes(of(child.pid))}
        if not (place / "pids.events").exists():
            pytest.skip("this kernel does not count")
        assert readings[f"/{place.name}"] >= 1
    finally:
        leave(place, "pids", child)


@pytest.mark.root
def test_inodes_of_a_file_system(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with tmpfs(tmp_path / "small") as place:
        subprocess.run(["mount", "-o", "remount,nr_inodes=100", str(place)], check=True)
        for number in range(97):
            (place / str(number)).touch()
        reading = _inodes(LocalHost(), "logs", str(place))
    assert reading.value is not None and reading.value < 5


@pytest.mark.root
def test_a_read_only_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with tmpfs(tmp_path / "ro") as place:
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        monkeypatch.setenv("ASCEND_CACHE_PATH", str(place / "cache"))
        host = LocalHost()
        readings = {row.subject: row.value for row in output_mounts(open_context(host, TargetOptions()))}
    assert readings["ASCEND_CACHE_PATH"] == "ro"


def test_live_and_recorded_agree() -> None:
    """As if this machine had an NPU: outcome and subject of each check of this kind."""
    live = LocalHost()
    recorded = SnapshotHost(take({}))
    facts = {**YES, **{name: Fact(name, "false", "the test") for name in ("container", "vm")}}
    ids = [id_ for id_ in CHECKS if re.match("(CPU|SYS|PROC)1|ENV11", id_)]
    assert len(ids) == 33
    told = []
    for host in (live, recorded):
        context = Context(host, open_context(host, TargetOptions()).target, facts)
        found = [finding for id_ in ids for finding in examine(CHECKS[id_], context)]
        told.append({(finding.id, finding.outcome.value, finding.subject) for finding in found})
    assert told[0] == told[1]
    assert not {row for row in told[0] if row[1] == "error"}


def test_settings_of_this_kernel() -> None:
    context = open_context(LocalHost(), TargetOptions())
    (swappiness,) = setting(context, path="/proc/sys/vm/swappiness")
    assert (swappiness.subject, swappiness.value) == (
        "vm.swappiness",
        Path("/proc/sys/vm/swappiness").read_text().strip(),
    )
