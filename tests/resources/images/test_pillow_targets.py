"""Real Python 3.7 environments with pillow and OpenCV 3.4.10, with pillow-simd, and with both: the verdicts on them.

Building pillow-simd takes about a minute and needs a C compiler, the headers of libjpeg and zlib, and a package index.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.python37 import environment, run, simd_built

from envtune import catalog
from envtune.audit import audit
from envtune.collector.snapshot import take
from envtune.context.open import open_context
from envtune.host import Host, LocalHost
from envtune.job.target import TargetOptions
from envtune.model import Check, Finding
from envtune.snapshot.host import SnapshotHost

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="pillow-simd is for x86"),
]
OPENCV = "opencv-python==3.4.10.37"


@pytest.fixture(scope="session")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = environment(tmp_path_factory.mktemp("native") / "env")
    run(python, "-m", "pip", "-q", "install", "pillow", OPENCV)
    return python


@pytest.fixture(scope="session")
def simd_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simd_built(tmp_path_factory.getbasetemp()).wheel


@pytest.fixture(scope="session")
def simd(simd_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = environment(tmp_path_factory.mktemp("simd") / "env")
    run(python, "-m", "pip", "-q", "install", simd_wheel)
    return python


@pytest.fixture(scope="session")
def both(simd_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = environment(tmp_path_factory.mktemp("both") / "env")
    run(python, "-m", "pip", "-q", "install", "pillow")
    run(python, "-m", "pip", "-q", "install", "--no-deps", simd_wheel)
    return python


def checks() -> list[Check]:
    return [check for check in catalog.load().checks if check.family == "IMG"]


def verdicts(host: Host, python: Path) -> dict[str, Finding]:
    findings = audit(checks(), open_context(host, TargetOptions(python=str(python))))
    assert all(finding.evidence.source for finding in findings)
    return {finding.id: finding for finding in findings if finding.id != "IMG006"}


def outcomes(found: dict[str, Finding]) -> dict[str, str]:
    return {id_: found[id_].outcome.value for id_ in ("IMG001", "IMG004", "IMG005", "IMG007", "IMG101")}


def test_native_pillow_with_the_recommended_opencv(native: Path) -> None:
    found = verdicts(LocalHost(), native)
    assert outcomes(found) == {
        "IMG001": "fail",
        "IMG004": "notapplicable",
        "IMG005": "pass",
        "IMG007": "pass",
        "IMG101": "pass",
    }
    assert found["IMG001"].actual is not None and found["IMG001"].actual.en.startswith("pillow 9.")
    assert found["IMG005"].actual is not None and found["IMG005"].actual.en == "3.4.10.37"


def test_pillow_simd(simd: Path) -> None:
    found = verdicts(LocalHost(), simd)
    assert outcomes(found) == {
        "IMG001": "pass",
        "IMG004": "notapplicable",
        "IMG005": "notapplicable",
        "IMG007": "pass",
        "IMG101": "notapplicable",
    }


def test_both_at_once_and_which_one_is_imported(both: Path) -> None:
    found = verdicts(LocalHost(), both)
    asked = subprocess.run(
        [both, "-c", "import PIL; print(PIL.__version__)"], capture_output=True, text=True, check=True
    )
    assert outcomes(found)["IMG007"] == "fail"
    actual = found["IMG007"].actual
    assert actual is not None and f"imported: pillow-simd {asked.stdout.strip()}" in actual.en
    assert outcomes(found)["IMG001"] == "pass"


@pytest.mark.parametrize("name", ["native", "both"])
def test_recording_gives_the_same_verdicts(name: str, request: pytest.FixtureRequest) -> None:
    python = request.getfixturevalue(name)
    recorded = SnapshotHost(take({"python": str(python)}))
    live, later = verdicts(LocalHost(), python), verdicts(recorded, python)
    told = {id_: (f.outcome, f.subject, f.expected, f.actual) for id_, f in live.items()}
    assert told == {id_: (f.outcome, f.subject, f.expected, f.actual) for id_, f in later.items()}


def test_the_command_line_says_the_same(native: Path, tmp_path: Path) -> None:
    import json

    argv = [sys.executable, "-m", "envtune", "check", "--select", "IMG", "--format", "json", "--python", str(native)]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    report = json.loads(done.stdout)
    assert done.returncode == 1, "IMG001 is of medium severity"
    told = {row["id"]: row["outcome"] for row in report["findings"]}
    assert (told["IMG001"], told["IMG005"], told["IMG007"]) == ("fail", "pass", "pass")
    assert report["facts"]["python"] == f"{native} (3.7)"
