"""Journals that envtune 0.1.0 wrote are shown, finished and undone; journal-0.1.0.jsonl is one of them."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from pathlib import Path

import pytest
from helpers.killed_runs import tree

from envtune.executor.history import RecordedRun, interrupted_runs
from envtune.executor.journal import encode_record
from envtune.executor.recover import resume_run, undo_run
from envtune.executor.state import ensure_state_directory

RUN = "20250102-030405"
OLD = {"conf": b"old\n", "site/pkg/a": b"one\n", "pool/base": b""}
NEW = {
    "conf": b"new\n",
    "new.d/conf": b"new\n",
    "site/pkg/b": b"two\n",
    "pool/base": b"",
    "pool/needed": b"",
    "pool/wanted": b"",
}


def lay(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def digest_of_tree(folder: Path, files: dict[str, bytes]) -> str:
    """What 0.1.0 says of a tree: names and the digests of what they hold."""
    state = hashlib.sha256(f"{folder}\0".encode())
    for name, content in files.items():
        state.update(f"{folder / name}\0".encode() + hashlib.sha256(content).digest())
    return "sha256:" + state.hexdigest()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The files as that run left them, and its directory."""
    folder, directory, package = tmp_path / "state", tmp_path / "state/runs" / RUN, tmp_path / "site/pkg"
    ensure_state_directory(str(folder))
    directory.mkdir()
    lay(tmp_path, OLD)
    with tarfile.open(directory / "0003.orig", "w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(package, arcname="pkg")
    (package / "a").unlink()
    lay(tmp_path, NEW)
    lay(directory, {"0001.orig": b"old\n", "0002.orig": b"base", "0002.orig.new": b"needed\nwanted"})
    values = {
        "@ROOT@": str(tmp_path),
        "@RUN@": str(directory),
        "@WAS@": digest_of_tree(package, {"a": b"one\n"}),
        "@NOW@": digest_of_tree(package, {"b": b"two\n"}),
        "@SHA256@": hashlib.sha256((directory / "0003.orig").read_bytes()).hexdigest(),
        '"@UID@"': str(os.getuid()),
        '"@GID@"': str((tmp_path / "conf").stat().st_gid),
    }
    text = Path(__file__).with_name("journal-0.1.0.jsonl").read_text()
    for name, value in values.items():
        text = text.replace(name, value)
    (directory / "journal.jsonl").write_bytes(b"".join(encode_record(json.loads(line)) for line in text.splitlines()))
    return folder


def test_undone(tmp_path: Path, state: Path) -> None:
    run = RecordedRun(str(state), RUN)
    assert run.status == "partly" and [result["status"] for result in run.results()] == ["done"] * 3 + ["refused"]
    assert not run.damaged and interrupted_runs(str(state)) == []
    assert {row["status"] for row in undo_run(str(state), RUN)} == {"undone"}
    assert tree(tmp_path) == OLD and not (tmp_path / "new.d").exists()
    assert RecordedRun(str(state), RUN).status == "undone"


@pytest.mark.parametrize("killed_in", ["C01", "C02", "C03"])
def test_killed_and_finished(tmp_path: Path, state: Path, killed_in: str) -> None:
    journal = state / "runs" / RUN / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if b'"intent"' in line and killed_in.encode() in line)
    journal.write_bytes(b"".join(lines[: last + 1]))
    assert [run.name for run in interrupted_runs(str(state))] == [RUN]
    results = {result["change"]: result["status"] for result in resume_run(str(state), RUN)}
    assert results == {"C01": "done", "C02": "done", "C03": "done", "C04": "refused"}
    assert tree(tmp_path) == NEW
    assert {row["status"] for row in undo_run(str(state), RUN)} == {"undone"}
    assert tree(tmp_path) == OLD
