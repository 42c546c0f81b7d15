"""Whose a file must be before it is read as what the user said."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable

import pytest

from envtune.errors import UsageError
from envtune.host.text_file import read_own_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    path = tmp_path / "plan.json"
    path.write_text("{}")
    path.chmod(0o644)
    return path


def replaced(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def spoil(path: Path) -> object:
        path.unlink()
        return make(path)

    return spoil


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "group": (lambda path: path.chmod(0o664), "can be written by others (mode 664)"),
    "others": (lambda path: path.chmod(0o602), "can be written by others (mode 602)"),
    "folder": (lambda path: path.parent.chmod(0o777), "others can write"),
    "fifo": (replaced(os.mkfifo), "not a regular file"),
    "link": (replaced(lambda path: path.symlink_to("/etc/hostname")), "a symbolic link"),
    "directory": (replaced(lambda path: path.mkdir()), "Is a directory"),
    "nothing": (replaced(lambda path: None), "No such file"),
    "large": (lambda path: path.write_text("x" * (1 << 20 | 1)), "larger than 1 MiB"),
    "binary": (lambda path: path.write_bytes(b"\xff"), "not UTF-8"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_file_that_others_may_have_written_is_not_read(file: Path, name: str) -> None:
    assert read_own_file("--plan", file, 1 << 20) == "{}"
    spoil, words = SPOILED[name]
    spoil(file)
    with pytest.raises(UsageError) as caught:
        read_own_file("--plan", file, 1 << 20)
    assert f"--plan {file}: " in str(caught.value) and words in str(caught.value)
    assert caught.value.to("zh") != str(caught.value) or name in ("directory", "nothing")


def test_a_folder_where_everybody_keeps_their_own_is_all_right(file: Path) -> None:
    file.parent.chmod(0o1777)
    assert read_own_file("--plan", file, 100) == "{}"


@pytest.mark.root
@pytest.mark.parametrize("what", ["file", "folder"])
def test_root_reads_no_file_of_a_user(file: Path, what: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give a file away")
    os.chown(file if what == "file" else file.parent, 65534, 65534)
    with pytest.raises(UsageError, match="belongs to uid 65534" if what == "file" else "others can write"):
        read_own_file("--plan", file, 100)


@pytest.mark.root
def test_a_directory_that_a_user_leads_elsewhere_is_none_of_root(file: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give a link away")
    link = tmp_path / "link"
    link.symlink_to(file.parent)
    assert read_own_file("--plan", link / file.name, 100) == "{}"
    os.chown(link, 65534, 65534, follow_symlinks=False)
    with pytest.raises(UsageError, match=f"others can write to {link}"):
        read_own_file("--plan", link / file.name, 100)
