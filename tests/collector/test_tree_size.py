"""How much lies below a directory: what counts, what does not, and where the answer is a part only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envtune.collector import files
from envtune.collector.files import tree_size
from envtune.collector.machine import Machine
from envtune.collector.recorder import Recorder
from envtune.errors import Missing
from envtune.host import LocalHost


def fill(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 5000)


def used(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def test_files_at_every_depth_count(tmp_path: Path) -> None:
    fill(tmp_path, "run/plog/plog-1.log", "run/device-0/device-1.log", "debug/plog/plog-1.log", "a")
    assert tree_size(str(tmp_path)) == f"bytes:{used(tmp_path)} files:4 complete"


def test_links_are_not_followed_and_nothing_is_opened(tmp_path: Path) -> None:
    fill(tmp_path, "logs/a")
    fill(tmp_path, "elsewhere/b")
    os.symlink(tmp_path / "elsewhere", tmp_path / "logs/link")
    os.symlink(tmp_path / "elsewhere/b", tmp_path / "logs/file")
    os.mkfifo(tmp_path / "logs/pipe")
    assert tree_size(str(tmp_path / "logs")).split()[1:] == ["files:1", "complete"]


def test_many_names_are_looked_at_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "TREE_LIMIT", 3)
    fill(tmp_path, "a", "b", "c")
    assert tree_size(str(tmp_path)).endswith("files:3 complete")
    fill(tmp_path, "d", "e/f")
    assert tree_size(str(tmp_path)).endswith("files:3 partial")


def test_deep_directories_are_looked_at_in_part(tmp_path: Path) -> None:
    fill(tmp_path, "1/2/3/4/a")
    assert tree_size(str(tmp_path)).endswith("files:1 complete")
    fill(tmp_path, "1/2/3/4/5/a")
    assert tree_size(str(tmp_path)).endswith("files:1 partial")


def test_an_empty_directory_and_none(tmp_path: Path) -> None:
    assert tree_size(str(tmp_path)) == "bytes:0 files:0 complete"
    with pytest.raises(Missing):
        LocalHost().tree_size(str(tmp_path / "none"))


def test_a_recording_holds_what_the_host_says(tmp_path: Path) -> None:
    fill(tmp_path, "run/plog/plog-1.log")
    recorder = Recorder(Machine(), {}, {})
    assert recorder.tree_size(str(tmp_path)) == LocalHost().tree_size(str(tmp_path))
    assert recorder.files[os.path.realpath(tmp_path)]["tree_size"].endswith("files:1 complete")
    assert not [path for path in recorder.files if path.endswith("plog-1.log")]
