"""`envtune snapshot`: one file, one line, and why it could not be written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.program import program

from envtune.context.open import recorded_options
from envtune.job.environment import read_environment
from envtune.snapshot.open import open_snapshot


def envtune(*arguments: str, cwd: str = ".") -> subprocess.CompletedProcess[bytes]:
    ended = program("snapshot", *arguments, before=lambda: os.chdir(cwd))
    return subprocess.CompletedProcess(arguments, ended.status, ended.out, ended.err)


def test_the_verb_writes_one_file_and_one_line(tmp_path: Path) -> None:
    path = tmp_path / "host.tar.gz"
    done = envtune("-o", str(path), "--lang", "en")
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    line = done.stderr.decode()
    assert line.startswith(f"{path}: ") and " KiB in " in line and line.count("\n") == 1
    assert path.stat().st_mode & 0o777 == 0o600
    assert open_snapshot(path).name == os.uname().nodename


@pytest.mark.slow
def test_the_verb_refuses_to_replace(tmp_path: Path) -> None:
    path = tmp_path / "host.tar.gz"
    path.write_text("mine")
    done = envtune("-o", str(path), "--lang", "en")
    assert (done.returncode, path.read_text()) == (2, "mine")
    assert b"--force" in done.stderr
    assert envtune("-o", str(path), "--force").returncode == 0
    assert open_snapshot(path).live is False


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_verb_says_why_it_cannot_write(tmp_path: Path, lang: str) -> None:
    for target in (tmp_path, tmp_path / "none" / "host.tgz", Path("/proc/host.tgz")):
        done = envtune("-o", str(target), "--lang", lang)
        assert done.returncode == 2
        assert str(target).encode() in done.stderr or str(target.parent).encode() in done.stderr
        assert b"Traceback" not in done.stderr


def test_no_space_leaves_nothing_behind(tmp_path: Path) -> None:
    import resource

    def limit() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))  # as a full disk: the write ends early

    argv = [sys.executable, "-m", "envtune", "snapshot", "-o", str(tmp_path / "host.tgz"), "--lang", "en"]
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(argv, capture_output=True, timeout=120, preexec_fn=limit, env=environ, check=False)
    assert done.returncode == 2
    assert b"not written" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_verb_to_standard_output(tmp_path: Path) -> None:
    done = envtune()
    (tmp_path / "host.tgz").write_bytes(done.stdout)
    assert open_snapshot(tmp_path / "host.tgz").euid == os.geteuid()
    assert b"KiB" in done.stderr


@pytest.mark.slow
def test_the_verb_records_scripts_that_only_following_tells(tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text("for name in one two; do\n  . ./$name.sh\ndone\npython3 train.py\n")
    (tmp_path / "one.sh").write_text("export TASK_QUEUE_ENABLE=1\n")
    (tmp_path / "two.sh").write_text("export HCCL_BUFFSIZE=200\n")
    assert envtune("-o", "host.tgz", "--script", "train.sh", cwd=str(tmp_path)).returncode == 0
    host = open_snapshot(tmp_path / "host.tgz")
    recorded = read_environment(host, recorded_options(host.data["target"])).variables
    assert recorded is not None
    assert (recorded["TASK_QUEUE_ENABLE"], recorded["HCCL_BUFFSIZE"]) == ("1", "200")


@pytest.mark.slow
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    """Looking it up is an error of its own, like a directory this user may not enter, or a mount that is gone."""
    done = envtune("-o", str(tmp_path / ("x" * 300)), "--lang", "en")
    assert (done.returncode, b"internal error" in done.stderr) == (2, False), done.stderr


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_writes_through_no_link_of_another_user_s(tmp_path: Path) -> None:
    """Who owns the directory may exchange it, or a directory above it, for a link to one of root's."""
    theirs, protected = tmp_path / "theirs", tmp_path / "protected"
    for folder in (theirs / "job", protected):
        folder.mkdir(parents=True)
    (protected / "host.tar.gz").write_text("root's")
    (theirs / "link").symlink_to(protected)
    for path in (theirs, *theirs.rglob("*")):
        os.lchown(path, 12345, 12345)
    done = envtune("-o", str(theirs / "link/host.tar.gz"), "--force", "--lang", "en")
    assert done.returncode == 2 and b"symbolic link" in done.stderr, done.stderr
    assert (protected / "host.tar.gz").read_text() == "root's"
    made = theirs / "job/host.tar.gz"
    assert envtune("-o", str(made)).returncode == 0
    assert (made.stat().st_uid, made.stat().st_mode & 0o777) == (0, 0o600)
