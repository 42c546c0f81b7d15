"""The collector by itself: any Python from 3.6 on, from standard input, nothing installed; and `envtune snapshot`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Sequence

import pytest

from envtune.collector.snapshot import pack, take
from envtune.context.open import recorded_options
from envtune.job.environment import read_environment
from envtune.snapshot.open import open_snapshot

SOURCE = Path(collector.__file__)
VERSIONS = ("3.6", "3.7", "3.9", "3.11", "3.13")


def interpreters() -> dict[str, str]:
    """{version: program} of those that are here: pyenv's, and those on PATH."""
    found: dict[str, str] = {}
    roots = [
        Path(root, "versions") for root in (os.environ.get("PYENV_ROOT", ""), os.path.expanduser("~/.pyenv")) if root
    ]
    for version in VERSIONS:
        places = [place for root in roots for place in sorted(root.glob(f"{version}.*/bin/python{version}"))]
        on_path = shutil.which(f"python{version}")
        if on_path is not None and "/shims/" not in on_path:
            places.append(Path(on_path))
        if places:
            found[version] = str(places[0])
    return {**found, "this": sys.executable}


PRESENT = interpreters()


def test_ci_has_several_pythons() -> None:
    assert len(PRESENT) >= 3 or not os.environ.get("CI"), PRESENT


@pytest.mark.parametrize("version", PRESENT)
def test_from_standard_input(version: str, tmp_path: Path) -> None:
    with SOURCE.open("rb") as source:
        done = subprocess.run(
            [PRESENT[version], "-"], stdin=source, cwd=tmp_path, capture_output=True, timeout=120, check=False
        )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    (tmp_path / "host.tar.gz").write_bytes(done.stdout)
    host = open_snapshot(tmp_path / "host.tar.gz")
    assert host.name == os.uname().nodename
    assert host.cwd == str(tmp_path)
    assert host.read("/proc/version") == Path("/proc/version").read_text()
    assert os.getpid() in {row.pid for row in host.processes()}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["host.tar.gz"], "it writes nothing else"


def run(*arguments: str, program: Sequence[str] = (str(SOURCE),), **more: object) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, *program, *arguments]
    return subprocess.run(argv, capture_output=True, timeout=120, check=False, **more)  # type: ignore[call-overload,no-any-return]


def test_as_a_program_with_a_file(tmp_path: Path) -> None:
    path = tmp_path / "host.tgz"
    assert run("-o", str(path)).returncode == 0
    assert path.stat().st_mode & 0o777 == 0o600
    again = run("-o", str(path))
    assert again.returncode == 2 and b"File exists" in again.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["host.tgz"]


def test_a_terminal_is_refused() -> None:
    leader, follower = os.openpty()
    try:
        argv = [sys.executable, str(SOURCE)]
        done = subprocess.run(argv, stdout=follower, stderr=subprocess.PIPE, timeout=60, check=False)
    finally:
        os.close(leader)
        os.close(follower)
    assert done.returncode == 2
    assert b"add -o FILE" in done.stderr


def test_another_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/hostname").write_text("image\n")
    (root / "etc/hosts").symlink_to("/etc/hostname")
    (root / "etc/os-release").symlink_to("../../../../../../../../etc/shadow")
    assert run("--root", str(root), "-o", str(tmp_path / "image.tgz")).returncode == 0
    host = open_snapshot(tmp_path / "image.tgz")
    assert host.read("/etc/hosts") == "image\n"
    assert host.data["files"]["/etc/shadow"] is None, (
        "the link was followed inside the root, where there is no such file"
    )
    assert "processes" not in host.data and "commands" not in host.data


def test_options_are_kept_with_absolute_paths(tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text("export RANK=0\n. ./more.sh\n")
    (tmp_path / "more.sh").write_text("export A=1\n")
    path = tmp_path / "host.tgz"
    done = run("-o", str(path), "--script", "train.sh", "--python", "/opt/p", "--pid", str(os.getpid()), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    host = open_snapshot(path)
    script = str(tmp_path / "train.sh")
    assert host.data["target"] == {"python": "/opt/p", "pid": os.getpid(), "script": script}
    assert host.read(script) == "export RANK=0\n. ./more.sh\n"
    assert host.read(str(tmp_path / "more.sh")) == "export A=1\n"
    assert b"PATH=" in host.read_bytes(f"/proc/{os.getpid()}/environ")


def test_the_same_snapshot_packs_to_the_same_bytes() -> None:
    snapshot = take({})
    assert pack(snapshot) == pack(snapshot)


# ---------------------------------------------------------------------------------------------------- envtune snapshot


def envtune(*arguments: str, **more: object) -> subprocess.CompletedProcess[bytes]:
    return run("snapshot", *arguments, program=("-m", "envtune"), **more)


def test_the_verb_writes_one_file_and_one_line(tmp_path: Path) -> None:
    path = tmp_path / "host.tar.gz"
    done = envtune("-o", str(path), "--lang", "en")
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    line = done.stderr.decode()
    assert line.startswith(f"{path}: ") and " KiB in " in line and line.count("\n") == 1
    assert path.stat().st_mode & 0o777 == 0o600
    assert open_snapshot(path).name == os.uname().nodename


def test_the_verb_refuses_to_replace(tmp_path: Path) -> None:
    path = tmp_path / "host.tar.gz"
    path.write_text("mine")
    done = envtune("-o", str(path), "--lang", "en")
    assert (done.returncode, path.read_text()) == (2, "mine")
    assert b"--force" in done.stderr
    assert envtune("-o", str(path), "--force").returncode == 0
    assert open_snapshot(path).live is False


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


def test_the_verb_to_standard_output(tmp_path: Path) -> None:
    done = envtune()
    (tmp_path / "host.tgz").write_bytes(done.stdout)
    assert open_snapshot(tmp_path / "host.tgz").euid == os.geteuid()
    assert b"KiB" in done.stderr


def test_the_verb_records_scripts_that_only_following_tells(tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text("for name in one two; do\n  . ./$name.sh\ndone\npython3 train.py\n")
    (tmp_path / "one.sh").write_text("export TASK_QUEUE_ENABLE=1\n")
    (tmp_path / "two.sh").write_text("export HCCL_BUFFSIZE=200\n")
    assert envtune("-o", "host.tgz", "--script", "train.sh", cwd=tmp_path).returncode == 0
    host = open_snapshot(tmp_path / "host.tgz")
    recorded = read_environment(host, recorded_options(host.data["target"])).variables
    assert recorded is not None
    assert (recorded["TASK_QUEUE_ENABLE"], recorded["HCCL_BUFFSIZE"]) == ("1", "200")
