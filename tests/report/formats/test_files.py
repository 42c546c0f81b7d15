"""A document is written whole or not at all, over the file that was there, and nowhere where others could profit."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Iterator

import pytest
from helpers.exchanges import USER

from envtune.report.formats.files import NotWrittenError, require_writable, write_file


def test_a_new_file_has_the_mode_of_the_shell(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    before = os.umask(0o027)
    try:
        write_file(str(path), b"{}\n")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"{}\n" and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "envtune.prom"
    path.write_bytes(b"old")
    path.chmod(0o604)
    with path.open("rb") as reader:  # whoever reads it now sees the old one to its end
        write_file(str(path), b"new")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new" and stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NotWrittenError, match="No space left on device"):
        write_file(str(path), b"new")
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


def test_what_is_no_regular_file_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    link, folder, pipe = tmp_path / "link", tmp_path / "folder", tmp_path / "pipe"
    link.symlink_to(target)
    folder.mkdir()
    os.mkfifo(pipe)
    for path in (link, folder, pipe, Path("/dev/null")):
        with pytest.raises(NotWrittenError, match="not a regular file"):
            write_file(str(path), b"x")
    assert target.read_bytes() == b"precious" and link.is_symlink()


def test_a_missing_directory_is_found_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(NotWrittenError, match=r"the directory .*none does not exist"):
        require_writable(str(tmp_path / "none" / "report.json"))
    require_writable(str(tmp_path / "report.json"))
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as made:  # not below pytest's, which its user alone may enter
        os.chmod(made, 0o755)
        yield Path(made)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_writes_where_others_can_write_as_them_or_not_at_all(open_folder: Path) -> None:
    home, shared = open_folder / "home", open_folder / "shared"
    home.mkdir()
    os.chown(home, USER, USER)
    write_file(str(home / "report.json"), b"{}")
    assert (home / "report.json").stat().st_uid == USER
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(NotWrittenError, match="other than root"):
        write_file(str(shared / "report.json"), b"{}")
    assert list(shared.iterdir()) == []
