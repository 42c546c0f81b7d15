"""As whom root opens the files that it is told to read: no link of a user's leads it to what that user may not read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.examples import ROOT

from envtune.diagnose import diagnose
from envtune.errors import UsageError
from envtune.host.input import open_input
from envtune.host.text_file import read_text_file
from envtune.messages import Message

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]
USER = 12345


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A user's directory of logs, beside a file that only root may read."""
    for path in (tmp_path, *(p for p in tmp_path.parents if p.name.startswith("pytest-"))):
        path.chmod(0o755)
    (tmp_path / "closed").write_text("RuntimeError: only root knows this\n")
    (tmp_path / "closed").chmod(0o600)
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "own.log").write_text("RuntimeError: the user's own\n")
    (folder / "link.log").symlink_to("../closed")
    for path in (folder, *folder.iterdir()):
        os.lchown(path, USER, USER)
    return folder


def test_a_link_among_the_logs_leads_to_nothing_its_user_may_not_read(logs: Path) -> None:
    found = diagnose([str(logs)], check=False)
    assert found.unreadable == ((f"{logs}/link.log", Message("Permission denied")),)
    assert found.first_error is not None and found.first_error[1].text == "RuntimeError: the user's own"


def test_nor_a_link_that_is_named(logs: Path) -> None:
    with pytest.raises(UsageError, match="Permission denied"):
        read_text_file("--hostfile", logs / "link.log", 1 << 20)
    assert read_text_file("--hostfile", logs / "own.log", 1 << 20).startswith("RuntimeError")


def test_root_s_own_files_and_pipes_are_read(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(logs.parent)
    with open_input("closed") as file:
        assert b"only root" in file.read()
    code = "import sys; from envtune.host.input import open_input; print(open_input(sys.argv[1]).readall())"
    line = f'"{sys.executable}" -c "$0" <(echo through a pipe)'
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", line, code], capture_output=True, text=True, env=env, check=False)
    assert done.stdout == "b'through a pipe\\n'\n", done.stderr
