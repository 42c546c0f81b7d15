"""The collector by itself: any Python from 3.6 on, from standard input, nothing installed."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.assembled import collector_file
from helpers.recorded import host_data, host_names
from helpers.recording import RecordedMachine
from helpers.rows import sampled

from envtune.collector.snapshot import pack, take
from envtune.snapshot.host import SnapshotHost
from envtune.snapshot.open import open_snapshot

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


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return collector_file(tmp_path_factory.mktemp("assembled"))


def test_ci_has_several_pythons() -> None:
    assert len(PRESENT) >= 3 or not os.environ.get("CI"), PRESENT


@pytest.mark.parametrize(
    "version",
    sampled(PRESENT, len(PRESENT)),  # the oldest
)
def test_from_standard_input(version: str, collector: Path, tmp_path: Path) -> None:
    with collector.open("rb") as source:
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


def run(*arguments: object, **more: object) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, timeout=120, check=False, **more)  # type: ignore[call-overload,no-any-return]


@pytest.mark.slow
def test_as_a_program_with_a_file(collector: Path, tmp_path: Path) -> None:
    path = tmp_path / "host.tgz"
    root = tmp_path / "root"
    root.mkdir()
    assert run(collector, "--root", root, "-o", path).returncode == 0
    assert path.stat().st_mode & 0o777 == 0o600
    again = run(collector, "--root", root, "-o", path)
    assert again.returncode == 2 and b"File exists" in again.stderr
    assert run(collector, "--root", root, "-o", path, "--force", "--lang", "zh").returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["host.tgz", "root"]


def test_a_terminal_is_refused(collector: Path) -> None:
    leader, follower = os.openpty()
    try:
        argv = [sys.executable, str(collector)]
        done = subprocess.run(argv, stdout=follower, stderr=subprocess.PIPE, timeout=60, check=False)
    finally:
        os.close(leader)
        os.close(follower)
    assert done.returncode == 2
    assert b"add -o FILE" in done.stderr


def test_another_root(collector: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/hostname").write_text("image\n")
    (root / "etc/hosts").symlink_to("/etc/hostname")
    (root / "etc/os-release").symlink_to("../../../../../../../../etc/shadow")
    assert run(collector, "--root", root, "-o", tmp_path / "image.tgz").returncode == 0
    host = open_snapshot(tmp_path / "image.tgz")
    assert host.read("/etc/hosts") == "image\n"
    assert host.data["files"]["/etc/shadow"] is None, (
        "the link was followed inside the root, where there is no such file"
    )
    assert "processes" not in host.data and "commands" not in host.data


def test_options_are_kept_with_absolute_paths(collector: Path, tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text("export RANK=0\n. ./more.sh\n")
    (tmp_path / "more.sh").write_text("export A=1\n")
    path = tmp_path / "host.tgz"
    done = run(collector, "-o", path, "--script", "train.sh", "--python", "/opt/p", "--pid", os.getpid(), cwd=tmp_path)
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


@pytest.fixture(scope="module")
def assembled(collector: Path) -> dict[str, Any]:
    """The names of the one file."""
    names: dict[str, Any] = {"__name__": "assembled"}
    exec(compile(collector.read_text("utf-8"), str(collector), "exec"), names)
    return names


QUICK = ("container-without-driver",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in host_names()]
)
def test_it_records_what_the_package_records(name: str, assembled: dict[str, Any]) -> None:
    host = SnapshotHost(host_data(name))
    target = {"python": None, "pid": None, "script": None, "env_file": None, **host.data["target"]}
    snapshot = take(target, RecordedMachine(host), host.environ)
    assert len(snapshot["files"]) > 20
    assert assembled["pack"](assembled["take"](target, RecordedMachine(host), host.environ)) == pack(snapshot)


def test_python_3_6_can_read_it_and_it_imports_nothing_of_envtune(collector: Path) -> None:
    tree = ast.parse(collector.read_text("utf-8"), feature_version=(3, 6))
    imports = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert imports and not [line for line in imports if "envtune" in line or line.startswith("from .")]
