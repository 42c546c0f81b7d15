"""The one file for hosts on which nothing can be installed: pure, small, and it runs on every supported Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Sequence

import pytest
from helpers.assembled import assembled
from helpers.examples import ROOT

from envtune.snapshot.open import open_snapshot

pytestmark = pytest.mark.slow  # fetches the dependencies and builds
LIMIT = 4 * 1024 * 1024


def find_python(which: str) -> str:
    return subprocess.run(
        [str(ROOT / "scripts/find-python"), which], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("pyz") / "envtune.pyz"
    script = str(ROOT / "scripts/make_pyz.py")
    subprocess.run([find_python("oldest"), script, str(target)], check=True, capture_output=True)
    return target


def run(python: str, pyz: Path, *arguments: str, home: str, prefix: Sequence[str] = ()) -> tuple[int, str, str]:
    environ = {"PATH": os.environ["PATH"], "HOME": home, "LC_ALL": "C.UTF-8"}
    # -S: nothing that is installed for this Python can help; -I: nor what lies about.
    argv = [*prefix, python, "-IS", str(pyz), *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, env=environ, timeout=120, cwd="/")
    return done.returncode, done.stdout, done.stderr


def every_verb(python: str, pyz: Path, home: str, out: Path, prefix: Sequence[str] = ()) -> None:
    code, text, errors = run(python, pyz, "check", "--format", "json", home=home, prefix=prefix)
    assert (code in (0, 1, 3), errors) == (True, "")
    report = json.loads(text)
    assert report["schema"] == "envtune.report/2"
    assert report["counts"]["outcomes"]["error"] == 0, [f for f in report["findings"] if f["outcome"] == "error"]
    assert report["counts"]["outcomes"]["pass"] > 0
    code, text, errors = run(python, pyz, "explain", "CPU001", home=home, prefix=prefix)
    assert (code, errors) == (0, "")
    assert "governor-not-performance" in text
    code, text, errors = run(python, pyz, "list", "checks", "--format", "json", home=home, prefix=prefix)
    assert (code, errors) == (0, "")
    assert {"CPU001", "SYS001"} <= {row["id"] for row in json.loads(text)}
    code, _, errors = run(python, pyz, "snapshot", "-o", str(out), home=home, prefix=prefix)
    assert code == 0, errors
    assert out.stat().st_size > 0
    code, text, errors = run(python, pyz, "explain", "sysctl.value", home=home, prefix=prefix)
    assert "/proc/sys/vm/max_map_count" in text, errors
    for arguments in (["new", "check", "SITE101", "--catalog"], ["test-catalog"]):
        code, text, errors = run(python, pyz, *arguments, str(out.parent / "site"), home=home, prefix=prefix)
        assert (code, errors) == (0, ""), text + errors


def test_it_is_pure_and_small(pyz: Path) -> None:
    names = zipfile.ZipFile(pyz).namelist()
    assert pyz.stat().st_size < LIMIT
    assert not [name for name in names if name.endswith((".so", ".pyd", ".pyc"))]
    assert not [name for name in names if name.startswith("psutil/")]
    assert {f"envtune/_data/{name}" for name in ("catalog.json", "collector.py", "executor.py")} <= set(names)
    assert not [name for name in names if name.endswith("direct_url.json")]


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_every_verb_runs_with_nothing_installed(which: str, pyz: Path, tmp_path: Path) -> None:
    every_verb(find_python(which), pyz, str(tmp_path), tmp_path / "host.tar.gz")


@pytest.mark.parametrize("which", ["oldest", "newest"])
@pytest.mark.parametrize("spelling", ["envtune.pyz", "./envtune.pyz", "../here/envtune.pyz", ".//x/..//envtune.pyz"])
def test_it_is_started_by_any_spelling_of_its_path(spelling: str, which: str, pyz: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "x").mkdir(parents=True)
    shutil.copy(pyz, here)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    for verb in (["check", "--format", "json"], ["list", "checks"], ["explain", "CPU001"], ["collector"]):
        argv = [find_python(which), "-IS", spelling, *verb]
        done = subprocess.run(argv, cwd=here, env=environ, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode in (0, 1, 3), done.stderr) == (True, "")
    done = subprocess.run(["./envtune.pyz", "list", "checks"], cwd=here, env=environ, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def old_pythons() -> dict[str, str]:
    """{version: program} of the Pythons before 3.9 that are here: pyenv's, and those on PATH."""
    found = {}
    for version in ("3.6", "3.7", "3.8"):
        places = [str(path) for path in Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
        on_path = shutil.which(f"python{version}")
        if on_path is not None and "/shims/" not in on_path:
            places.append(on_path)
        if places:
            found[version] = places[0]
    return found


OLD = old_pythons()


@pytest.mark.parametrize("version", OLD or ["3.6 to 3.8"])
def test_an_old_python_records_and_says_what_the_rest_needs(version: str, pyz: Path, tmp_path: Path) -> None:
    if version not in OLD:
        pytest.skip("no Python older than 3.9 here")
    python, out = OLD[version], tmp_path / "host.tar.gz"
    (tmp_path / "train.sh").write_text("export RANK=3\n")
    options = ["--script", str(tmp_path / "train.sh"), "--env-file", "/none", "--python", "python3", "--lang", "zh"]
    for force in ([], ["--force"]):
        code, text, errors = run(python, pyz, "snapshot", "-o", str(out), *force, *options, home=str(tmp_path))
        assert (code, text, errors) == (0, "", "")
    host = open_snapshot(out)
    assert host.data["target"]["python"] == "python3"
    assert host.read(str(tmp_path / "train.sh")) == "export RANK=3\n"
    code, _, errors = run(python, pyz, "snapshot", "--output", str(out), home=str(tmp_path))
    assert code == 2 and "File exists" in errors
    assert run(python, pyz, "collector", home=str(tmp_path)) == (0, assembled("collector"), "")
    for arguments in (["check"], ["--help"], []):
        code, text, errors = run(python, pyz, *arguments, home=str(tmp_path))
        assert (code, text) == (2, "")
        assert "needs Python 3.9" in errors and "snapshot" in errors


@pytest.mark.root
@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_from_a_noexec_mount_with_a_read_only_home(which: str, pyz: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    mounted, home, out = tmp_path / "mount", tmp_path / "home", tmp_path / "out"
    for folder in (mounted, home, out):
        folder.mkdir()
    script = (
        'mount --make-rprivate / && mount -t tmpfs -o noexec,nosuid none "$0" && cp "$1" "$0/envtune.pyz" &&'
        ' mount -t tmpfs -o ro,mode=755 none "$2" && ! touch "$2/x" 2>/dev/null && shift 2 && exec "$@"'
    )
    prefix = ["unshare", "-m", "sh", "-c", script, str(mounted), str(pyz), str(home)]
    inside = mounted / "envtune.pyz"
    every_verb(find_python(which), inside, str(home), out / "host.tar.gz", prefix)
