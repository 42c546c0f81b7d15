"""The built-in measurements, each in the process of an interpreter."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.examples import ROOT
from helpers.python37 import NATIVE, environment, imported, simd_built

from envtune.bench.measure import measure, probe_for, probe_named
from envtune.errors import UsageError


@pytest.mark.parametrize(
    ("checks", "probe"),
    [(["CPU001", "CPU002"], "launch"), (["IMG001"], "images"), (["IMG001", "CPU001"], None), (["ENV001"], None)],
)
def test_the_measurement_that_fits_the_checks(checks: list[str], probe: str) -> None:
    assert probe_for(checks) == probe


@pytest.mark.slow
def test_the_loop_of_one_thread() -> None:
    found = measure(probe_named("launch", sys.executable, "", {}))
    assert 0 < found.seconds < 60 and found.about == "30000 calls"


@pytest.mark.slow
def test_reading_a_data_set(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.bin").write_bytes(b"x" * (1 << 20))
    found = measure(probe_named("storage", sys.executable, str(tmp_path), {}))
    assert found.seconds > 0 and found.about == "3 MiB in 3 files"


@pytest.mark.slow
def test_what_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="storage failed: no file to read in"):
        measure(probe_named("storage", sys.executable, str(tmp_path / "missing"), {}))
    with pytest.raises(UsageError, match="launch failed"):
        measure(probe_named("launch", str(tmp_path / "python"), "", {}))


def bench(*words: object, verb: tuple[str, ...], state: Path, status: int = 0) -> str:
    argv = [sys.executable, "-m", "envtune", *verb, "IMG001", "--yes", "--yes-confirm", *map(str, words)]
    environ = {"ENVTUNE_STATE": str(state), "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(argv, capture_output=True, text=True, env=environ, cwd="/", timeout=900)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="pillow-simd is for x86")
def test_pillow_simd_is_measured_and_kept(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Two measurements agree: it resizes several times as fast; the second one keeps it."""
    wheel = simd_built(tmp_path_factory.getbasetemp()).wheel
    python = environment(tmp_path / "env", NATIVE)
    words = ("--python", python, "--wheels", wheel.parent)
    before = imported(python, "PIL.__version__")
    first: Any = json.loads(bench(*words, "--format", "json", verb=("bench",), state=tmp_path / "state"))
    assert imported(python, "PIL.__version__") == before
    second: Any = json.loads(bench(*words, "--format", "json", "--keep", verb=("bench",), state=tmp_path / "state"))
    assert (first["verdict"], second["verdict"], second["kept"]) == ("faster", "faster", True)
    assert first["total"]["low"] < second["total"]["high"] and second["total"]["low"] < first["total"]["high"]
    for found in (first, second):
        (resize,) = [part for part in found["parts"] if part["name"] == "resize"]
        assert resize["ratio"] < 0.5, resize
    assert ".post" in imported(python, "PIL.__version__")
