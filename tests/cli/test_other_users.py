"""`envtune fix --script` and `undo` as root, for a launch script in the home of a user who exchanges its directory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator

import pytest
from helpers.examples import ROOT
from helpers.exchanges import USER, attacker, everything

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

SCRIPT = "#!/bin/bash\nexport DUMP_GE_GRAPH=2\npython3 train.py\n" + "# a long comment\n" * 100_000


def envtune(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8", "PYTHONPATH": str(ROOT)}
    env.update(ENVTUNE_STATE=str(folder / "state"), ENVTUNE_HOST_LOCK=str(folder / "lock"))
    argv = [sys.executable, "-m", "envtune", *words]
    return subprocess.run(argv, capture_output=True, text=True, env=env, cwd=folder)


def undo(folder: Path) -> subprocess.CompletedProcess[str]:
    asks = "--yes" in envtune(folder, "undo", "--help").stdout
    return envtune(folder, "undo", *(["--yes"] if asks else []))


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as made:  # not below pytest's, which its user alone may enter
        os.chmod(made, 0o755)
        yield filled(Path(made))


def filled(tmp_path: Path) -> Path:
    (shipped,) = (ROOT / "checks" / "environment").glob("ENV004-*.yaml")
    own = tmp_path / "own" / "checks" / "environment" / shipped.name
    own.parent.mkdir(parents=True)
    own.write_text(shipped.read_text("utf-8").replace("applies: {ascend: true}", "applies: {system: Linux}"), "utf-8")
    for place in ("home/job", "protected"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "train.sh").write_text(SCRIPT)
    (tmp_path / "home/link").symlink_to("../protected")
    for path in (tmp_path / "home", *(tmp_path / "home").rglob("*")):
        os.lchown(path, USER, USER)
    return tmp_path


def test_fixed_and_undone_as_the_user(folder: Path) -> None:
    script = folder / "home/job/train.sh"
    fixed = envtune(folder, "fix", "ENV004", "--script", str(script), "--apply", "--yes", "--catalog", "own")
    assert fixed.returncode == 0 and "unset DUMP_GE_GRAPH" in script.read_text(), fixed
    assert {path.lstat().st_uid for path in (folder / "home").rglob("*")} == {USER}
    undone = undo(folder)
    assert undone.returncode == 0 and script.read_text() == SCRIPT, undone
    assert {path.lstat().st_uid for path in (folder / "home").rglob("*")} == {USER}


def test_exchanged_meanwhile(folder: Path) -> None:
    script, before = folder / "home/job/train.sh", everything(folder / "protected")
    words = ("fix", "ENV004", "--script", str(script), "--apply", "--yes", "--catalog", "own")
    for waits in (True, False):
        with attacker(folder / "home", "job", "link", waits):
            assert "Traceback" not in envtune(folder, *words).stderr
        assert everything(folder / "protected") == before
    envtune(folder, *words)
    with attacker(folder / "home", "job", "link", True):
        assert "Traceback" not in undo(folder).stderr
    assert everything(folder / "protected") == before
    assert {path.lstat().st_uid for path in (folder / "home").rglob("*")} == {USER}
