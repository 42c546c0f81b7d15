"""Wheels that root has pip install: pinned by hash, and of nobody else."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from envtune.executor.operations.wheels import fetched, pin_wheels
from envtune.executor.problems import RefusedError


def test_what_pip_gets_is_what_the_journal_names(tmp_path: Path) -> None:
    """`pip install --require-hashes -r` takes these lines, and refuses what was exchanged since."""
    wheel, checksum = tmp_path / "a b-1-py3-none-any.whl", hashlib.sha256(b"wheel").hexdigest()
    wheel.write_bytes(b"wheel")
    assert pin_wheels([str(wheel)], str(tmp_path)) == [{"name": wheel.name, "sha256": checksum}]
    path = str(wheel).replace(" ", "%20")
    assert (tmp_path / "requirements.txt").read_text() == f"file://{path} --hash=sha256:{checksum}\n"
    assert (tmp_path / "requirements.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_wheel_that_others_can_change_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "a-1-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    os.chown(wheel, 12345, 12345)
    with pytest.raises(RefusedError, match="12345"):
        pin_wheels([str(wheel)], str(tmp_path))
    assert not (tmp_path / "requirements.txt").exists()


def test_where_it_came_from_is_kept_without_credentials() -> None:
    output = (
        "Looking in indexes: https://user:secret@mirror.example/simple\n"
        "  Downloading https://mirror.example/a-1.whl?sig=secret (3 kB)\n"
        "Building wheel for b (pyproject.toml): started\n"
    )
    found = fetched(output, uses_index=True)
    assert found == [
        "Looking in indexes: https://mirror.example/simple",
        "Downloading https://mirror.example/a-1.whl",
        "Building wheel for b",
    ]
    assert fetched("", uses_index=True) == ["Looking in indexes: https://pypi.org/simple"]
    assert fetched("", uses_index=False) == []
