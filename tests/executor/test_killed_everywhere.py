"""Changes of every kind on every kind of file system, killed at any moment, finished or undone: all as it was."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Iterator

import pytest
from helpers.executor_runs import last, quiet
from helpers.killed_runs import change, forked, killed_after, killed_at, write
from helpers.mounts import exact, ext4, overlay, tmpfs
from helpers.namespaces import needs

from envtune.executor.history import interrupted_runs, recorded_runs
from envtune.executor.recover import resume_run, undo_run
from envtune.executor.run import apply_plan

pytestmark = [pytest.mark.root, pytest.mark.slow]

KILLS = 306  # in all, a third on every file system: half of them between two steps, half at any moment
SYSCTL = Path("/proc/sys/net/ipv4/ip_local_reserved_ports")  # every network namespace has its own
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of unshare
INSTALL = "cd {root}/site && rm -r pkg && mkdir -p pkg/sub pkg2 && echo new | tee pkg/a pkg/sub/c pkg2/d >/dev/null"


@pytest.fixture
def network() -> Iterator[None]:
    """A network namespace for this process: sysctls and packet filter are its own."""
    needs("nft")
    libc, before = ctypes.CDLL(None, use_errno=True), os.open("/proc/self/ns/net", os.O_RDONLY)
    if libc.unshare(_NEW_NETWORK):
        pytest.skip(f"unshare: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        assert libc.setns(before, 0) == 0
        os.close(before)


def lay(root: Path) -> None:
    files = {"etc/conf": "old\n", "etc/gone": "was here\n", "sys/governor": "powersave\n", "pool/base": ""}
    files.update({"site/pkg/a": "old\n", "site/pkg/local.py": "mine\n", "site/pkg/__pycache__/a.pyc": "compiled"})
    for number, (name, text) in enumerate(files.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod((0o644, 0o640, 0o600)[number % 3])
        os.utime(path, ns=(10**18, 10**18 + number))


def plan(root: Path) -> dict[str, Any]:
    table = ["inet", "envtune-test"]
    rules = {"argv": ["nft", "add", "table", *table], "check": {"argv": ["nft", "list", "table", *table]}}
    pool = {
        "argv": ["touch", f"{root}/pool/wanted", f"{root}/pool/needed"],
        "check": {"argv": ["test", "-e", f"{root}/pool/wanted"]},
        "census": {"argv": ["ls", f"{root}/pool"], "pattern": r"(?m)^(\S+)$"},
        "undo": {"argv": ["sh", "-c", f'cd {root}/pool && rm "$@"', "remove", "{new}"]},
    }
    steps = [["sh", "-c", INSTALL.format(root=root)], ["test", "-e", f"{root}/site/pkg2/d"]]
    swap = {"op": "swap", "root": f"{root}/site", "touches": ["pkg", "pkg2"], "steps": steps, "verify": []}
    return {
        "changes": [
            change("C01", write(root / "etc/conf", b"old\n", b"new\n"), write(root / "etc/gone", b"was here\n", None)),
            change("C02", write(root / "new/er/conf", None, b"new\n")),
            change("C03", write(SYSCTL, b"", b"60000-60015\n")),
            change("C04", write(root / "sys/governor", b"powersave", b"performance\n")),
            change("C05", {"op": "run", **rules, "undo": {"argv": ["nft", "delete", "table", *table]}}),
            change("C06", {"op": "run", **pool}),
            change("C07", swap),
        ]
    }


def state_of(root: Path) -> object:
    """All that the plan changes, to the byte; the times of a kernel file are the kernel's."""
    files = exact(root)
    mode, owner, group, _, attributes, data = files["sys/governor"]
    rules = subprocess.run(["nft", "list", "ruleset"], stdout=subprocess.PIPE, check=True).stdout
    return {**files, "sys/governor": (mode, owner, group, attributes, data)}, SYSCTL.read_text().strip(), rules


def is_finished(root: Path) -> bool:
    files = {name: row[-1] for name, row in exact(root).items() if row[-1] is not None}
    return (files["etc/conf"], files["sys/governor"], files["site/pkg2/d"], SYSCTL.read_text().strip()) == (
        b"new\n",
        b"performance\n",
        b"new\n",
        "60000-60015",
    ) and {"pool/wanted", "pool/needed", "new/er/conf"} <= set(files)


@pytest.mark.parametrize("kind", ["ext4", "overlay", "tmpfs"])
def test_killed_at_any_moment(
    tmp_path: Path, kind: str, network: None, no_sync: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, lower = tmp_path / "root", tmp_path / "lower"
    mount = {"ext4": lambda: ext4(place), "tmpfs": lambda: tmpfs(place), "overlay": lambda: overlay(place, lower)}
    rounds = [f"{number:03}" for number in range(KILLS)]  # more than are killed: some come to their end before
    for name in rounds:
        if kind == "overlay":
            lay(lower / name)
    killed, chance = 0, random.Random(20260101)
    with mount[kind]():
        whole = measured(place / "measure", str(tmp_path / "measured"), monkeypatch)
        for number, name in enumerate(rounds):
            root, state = place / name, str(tmp_path / "state")
            if kind != "overlay":
                lay(root)
            with monkeypatch.context() as patched:
                patched.setattr("envtune.executor.files.KERNEL_DIRECTORIES", (f"{root}/sys/", "/proc/"))
                killed += round_of(root, state, number, chance, whole)
            shutil.rmtree(root)
            shutil.rmtree(state, ignore_errors=True)
            if killed == KILLS // 3:
                break
    assert killed == KILLS // 3


def measured(root: Path, state: str, monkeypatch: pytest.MonkeyPatch) -> float:
    """How long the plan takes, in seconds, so that the moments are spread over it."""
    lay(root)
    with monkeypatch.context() as patched:
        patched.setattr("envtune.executor.files.KERNEL_DIRECTORIES", (f"{root}/sys/", "/proc/"))
        began = time.monotonic()
        os.waitpid(forked(lambda: apply_plan(plan(root), state)), 0)
        whole = time.monotonic() - began
        undo_run(state, last(state).name)
    return whole


def round_of(root: Path, state: str, number: int, chance: random.Random, whole: float) -> bool:
    """Kill a run, or its undo; finish or undo it, and compare. Whether it was killed before its end."""
    before = state_of(root)

    def work() -> object:
        return apply_plan(plan(root), state)

    if number % 4 == 3:  # the undo of a run that came to its end
        apply_plan(plan(root), state)
        work = lambda: undo_run(state, last(state).name)  # noqa: E731
    ended = killed_after(chance.uniform(0, whole), work) if number % 2 else killed_at(chance.randrange(60), work)
    quiet(state)
    for run in interrupted_runs(state):
        if number % 3 and run.in_progress == "apply":
            assert {row["status"] for row in resume_run(state, run.name)} == {"done"} and is_finished(root)
        else:
            assert {row["status"] for row in undo_run(state, run.name)} <= {"undone"}
    if recorded_runs(state):
        assert {row["status"] for row in undo_run(state, last(state).name)} <= {"undone"}
    assert state_of(root) == before
    return not ended
