"""Processes that use what a change replaces are named; where nobody is asked, they are not disturbed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest
from helpers.fix_world import World
from helpers.killed_runs import write

from envtune.errors import Denied
from envtune.host import LocalHost
from envtune.model import Change, Process
from envtune.resources.processes.running import find_running
from envtune.snapshot.host import SnapshotHost

HOLD = """
import mmap, sys
file = open(sys.argv[1], "rb")
kept = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
if sys.argv[2] == "mapped":
    file.close()
print("ready", flush=True)
sys.stdin.read()
"""


def replacing(root: Path, **more: object) -> Change:
    """A change that replaces a package of a Python."""
    swap = {"op": "swap", "root": str(root), "touches": ["PIL"], "steps": [], "verify": []}
    fields = {"operations": (swap,), "disruption": "job", "id": "C01", **more}
    return Change("X1", "", "", "", str(root), "", "", "job", **fields)  # type: ignore[arg-type]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "lib/python3.9/site-packages"
    (folder / "PIL").mkdir(parents=True)
    (folder / "PIL/_imaging.so").write_bytes(b"\x7fELF" * 2000)
    return folder


@pytest.fixture(params=["mapped", "open"])
def job(site: Path, request: pytest.FixtureRequest) -> Iterator[int]:
    path = str(site / "PIL/_imaging.so")
    argv = [sys.executable, "-c", HOLD, path, request.param, "--token=S3CRET"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        yield child.pid
        child.communicate()


def test_who_has_a_module_mapped_or_open(site: Path, job: int) -> None:
    (use,) = find_running(LocalHost(), [replacing(site)]).uses["C01"]
    assert use.process.pid == job and use.used == str(site / "PIL/_imaging.so")
    assert use.text.en.startswith(f"pid {job} (") and "S3CRET" not in use.text.en


def test_envtune_itself_and_other_places_do_not_count(site: Path, tmp_path: Path) -> None:
    with open(site / "PIL/_imaging.so", "rb"):
        assert find_running(LocalHost(), [replacing(site), replacing(tmp_path / "other", id="C02")]).uses == {}


def test_who_is_on_the_npu_when_a_driver_is_concerned() -> None:
    rows = [
        {"pid": 7, "ppid": 1, "user": "alice", "name": "python", "argv": ["python", "train.py"]},
        {"pid": 8, "ppid": 1, "user": "bob", "name": "sleep"},
    ]
    rows[0]["devices"] = ["/dev/davinci0"]
    host = SnapshotHost({"processes": rows})
    change = replacing(Path("/x"), operations=(), disruption="service")
    assert [use.process.pid for use in find_running(host, [change]).uses["C01"]] == [7]
    assert find_running(host, [change._replace(disruption="none")]).uses == {}


def test_what_may_not_be_looked_at_is_counted(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = LocalHost()
    monkeypatch.setattr(host, "processes", lambda: (Process(99999, 1, "other", "python"),))

    def denied(path: str) -> str:
        raise Denied(path)

    monkeypatch.setattr(host, "read", denied)
    assert find_running(host, [replacing(site)]).unreadable == 1


# ---------------------------------------------------------------------- the command line


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Path) -> World:
    """The fix of SYS901 replaces a file of that Python, too, and would interrupt a job."""
    world = World(tmp_path, monkeypatch)
    world.operations["SYS901"] = lambda path: [
        write(path, b"bad\n", b"good\n"),
        write(site / "PIL/new.txt", None, b"x = 1\n"),
    ]
    world.own["SYS901"] = {"disruption": "job"}
    return world


def test_they_are_named_before_the_question(world: World, job: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envtune.cli.fix.is_interactive", lambda: True)
    done = world.run("fix", "SYS901", "--apply", input="n\n")
    before, _, _ = done.stderr.partition("Make this change?")
    assert f"pid {job} (" in before and "_imaging.so" in before and "S3CRET" not in done.output
    assert world.run("fix", "SYS901", "--apply", input="y\n").exit_code == 0  # who was asked has decided


def test_unattended_a_running_job_is_not_disturbed(world: World, job: int) -> None:
    done = world.run("fix", "--apply", "--yes")
    assert done.exit_code == 1 and world.contents() == ("bad", "good")
    assert f"used by pid {job} (" in " ".join(done.stdout.split()) and "--yes-confirm" in done.stdout
    assert "1 change waits for processes to end" in done.stdout
    data = json.loads(world.run("fix", "--apply", "--yes", "--format", "json").stdout)
    assert [(row["change"], row["why"]) for row in data["held"]] == [("C01", "running")]
    assert world.run("fix", "--apply", "--yes", "--yes-confirm").exit_code == 0
    assert world.contents() == ("good", "good")


@pytest.mark.parametrize("disruption", ["job", "none"])
def test_refuse_running_refuses_whoever_is_there(
    world: World, job: int, monkeypatch: pytest.MonkeyPatch, disruption: str
) -> None:
    world.own["SYS901"] = {"disruption": disruption}
    monkeypatch.setattr("envtune.cli.fix.is_interactive", lambda: True)
    done = world.run("fix", "SYS901", "--apply", "--yes", "--yes-confirm", "--refuse-running")
    assert done.exit_code == 1 and world.contents()[0] == "bad" and f"pid {job}" in done.stdout
    assert os.path.exists(f"/proc/{job}")
