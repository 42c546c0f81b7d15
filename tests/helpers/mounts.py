"""File systems of every kind for tests, mounted below a temporary directory; the tests that use them need root."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Iterator

import pytest


@contextlib.contextmanager
def mounted(place: Path, *arguments: str) -> Iterator[Path]:
    """Mount there, or skip the test where that is not allowed."""
    place.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *arguments, str(place)], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        pytest.skip(f"mount: {done.stderr}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def tmpfs(place: Path, size: str = "64m") -> contextlib.AbstractContextManager[Path]:
    return mounted(place, "-t", "tmpfs", "-o", f"size={size},mode=755", "envtune-test")


@contextlib.contextmanager
def ext4(place: Path) -> Iterator[Path]:
    image = place.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(32 << 20)
    if subprocess.run(["mkfs.ext4", "-q", str(image)], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no mkfs.ext4")
    with mounted(place, "-o", "loop", str(image)):
        yield place


@contextlib.contextmanager
def overlay(place: Path, lower: Path) -> Iterator[Path]:
    """An overlayfs as a container has it: what lies in `lower` is of its image; all of it on a tmpfs."""
    layers = place.with_name(place.name + ".layers")
    with tmpfs(layers):
        subprocess.run(["cp", "-a", str(lower), str(layers / "lower")], check=True)
        for name in ("upper", "work"):
            (layers / name).mkdir()
        options = f"lowerdir={layers}/lower,upperdir={layers}/upper,workdir={layers}/work"
        with mounted(place, "-t", "overlay", "-o", options, "overlay"):
            yield place


def exact(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything below a directory: kind, mode, owner, times of files and links, attributes, content."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        data: object = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        times = None if path.is_dir() and not path.is_symlink() else status.st_mtime_ns
        names = os.listxattr(path, follow_symlinks=False)
        attributes = {name: os.getxattr(path, name, follow_symlinks=False) for name in names}
        found[str(path.relative_to(root))] = (status.st_mode, status.st_uid, status.st_gid, times, attributes, data)
    return found
