"""Pillow and te replaced in real environments: done, proved, refused when it fails, taken back without a network."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import fixing
from helpers.python37 import NATIVE, Built, environment, imported, need_headers, simd_built
from helpers.wheels import NO_INDEX, Cann, make_wheel

from envtune.executor.history import RecordedRun
from envtune.fix.plan import Plan
from envtune.host import LocalHost
from envtune.job.target import TargetOptions
from envtune.model import FixOptions, Outcome
from envtune.resources.images.pillow import cpu_flags

pytestmark = pytest.mark.slow
x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="pillow-simd is for x86")
# Nothing answers there: whatever asks an index fails at once.


def tree(folder: Path) -> dict[str, str]:
    """Every file and link of an environment by its content; bytecode is made anew at any time."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = "-> " + str(path.readlink())
        elif path.is_file() and not name.endswith(".pyc"):
            found[name] = f"{path.stat().st_mode:o} " + hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def plan_for(python: Path, *ids: str, **options: Any) -> Plan:
    context = fixing.local_context(target=TargetOptions(python=str(python)))
    return fixing.plan(context, *ids, options=FixOptions(**options))


def outcomes(python: Path, *ids: str) -> set[Outcome]:
    context = fixing.local_context(target=TargetOptions(python=str(python)))
    return {finding.outcome for finding in fixing.find(context, *ids)}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return simd_built(tmp_path_factory.getbasetemp())


@pytest.fixture
def native(tmp_path: Path) -> Path:
    return environment(tmp_path / "env", NATIVE)


# ---------------------------------------------------------------------- pillow -> pillow-simd


@x86
@pytest.mark.compiler
def test_pillow_simd_is_built_for_this_cpu_and_takes_the_place_of_pillow(built: Built) -> None:
    assert built.result["status"] == "done", built.result
    assert imported(built.python, "PIL.__version__").startswith("9.5.0.post")
    assert outcomes(built.python, "IMG001") == {Outcome.PASS}
    environ = built.change.operations[0]["env"]
    if "avx2" in cpu_flags(LocalHost()):
        assert environ["CC"].endswith(" -mavx2") and built.change.after.endswith("(AVX2)")
        code = subprocess.run(["objdump", "-d", imported(built.python, "PIL.Image.core.__file__")], capture_output=True)
        assert b"%ymm" in code.stdout  # 256 bits wide, which SSE4 is not
    else:
        assert "CC" not in environ


@x86
@pytest.mark.compiler
def test_resize_gives_the_same_picture_within_two_of_255(built: Built, native: Path, tmp_path: Path) -> None:
    """pillow-simd rounds at other places. On white noise, which no picture exceeds, single values of RGB and L differ
    by at most 2 of 255, fewer than one in fifty differ at all, and averaging (BOX) is exact. Pixels that are almost
    transparent (RGBA) may differ by more: there both divide by an alpha near 0."""
    script = tmp_path / "resize.py"
    script.write_text(
        "import sys, random\n"
        "from PIL import Image\n"
        "random.seed(7)\n"
        "for mode, bands in (('RGB', 3), ('L', 1)):\n"
        "    noise = bytes(random.getrandbits(8) for _ in range(211 * 157 * bands))\n"
        "    image = Image.frombytes(mode, (211, 157), noise)\n"
        "    for method in (Image.BOX, Image.BILINEAR, Image.HAMMING, Image.BICUBIC, Image.LANCZOS):\n"
        "        for size in ((50, 37), (224, 224), (400, 300)):\n"
        "            print(method == Image.BOX, image.resize(size, method).tobytes().hex())\n"
    )
    outputs = [
        subprocess.run([str(p), str(script)], capture_output=True, text=True, check=True)
        for p in (built.python, native)
    ]
    for simd, pillow in zip(outputs[0].stdout.splitlines(), outputs[1].stdout.splitlines()):
        exact, ours = simd.split()
        theirs = pillow.split()[1]
        differences = [abs(a - b) for a, b in zip(bytes.fromhex(ours), bytes.fromhex(theirs))]
        assert max(differences) <= (0 if exact == "True" else 2)
        assert sum(map(bool, differences)) < len(differences) / 50


@x86
@pytest.mark.compiler
def test_a_build_that_fails_leaves_pillow_as_it_was(
    native: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_headers()
    before = tree(native.parents[1])
    monkeypatch.setenv("CC", "/bin/false")
    plan = plan_for(native, "IMG001")
    assert plan.changes[0].operations[0]["env"]["CC"].startswith("/bin/false")
    run, results = fixing.apply(plan, str(tmp_path / "state"))
    (result,) = results.values()
    assert result["status"] == "failed" and "pip wheel" in result["error"], result
    assert tree(native.parents[1]) == before
    assert imported(native, "PIL.__version__") == "9.5.0"
    assert not any(record["type"] == "intent" for record in RecordedRun(str(tmp_path / "state"), run).records)


@x86
@pytest.mark.compiler
def test_undo_brings_the_very_files_back_without_a_network(
    built: Built, native: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(native.parents[1])
    for name, value in NO_INDEX.items():
        monkeypatch.setenv(name, value)
    plan = plan_for(native, "IMG001", wheels=str(built.wheel.parent))
    run, results = fixing.apply(plan, str(tmp_path / "state"))
    assert {result["status"] for result in results.values()} == {"done"}, results
    assert outcomes(native, "IMG001", "IMG007") == {Outcome.PASS}
    assert tree(native.parents[1]) != before
    unplugged = [shutil.which("unshare"), "-n", sys.executable, "-m", "envtune.executor", "undo", run]
    command = unplugged if _may_unplug() else unplugged[2:]
    env = {"ENVTUNE_STATE": str(tmp_path / "state"), "ENVTUNE_HOST_LOCK": os.environ["ENVTUNE_HOST_LOCK"]}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert tree(native.parents[1]) == before
    assert imported(native, "PIL.__version__") == "9.5.0"


def _may_unplug() -> bool:
    return (
        shutil.which("unshare") is not None
        and subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode == 0
    )


@x86
@pytest.mark.compiler
def test_of_pillow_and_pillow_simd_side_by_side_one_is_left(built: Built, native: Path, tmp_path: Path) -> None:
    subprocess.run([str(native), "-m", "pip", "-q", "install", "--no-deps", "--no-index", str(built.wheel)], check=True)
    assert Outcome.FAIL in outcomes(native, "IMG007")
    before = tree(native.parents[1])
    plan = plan_for(native, "IMG007", wheels=str(built.wheel.parent))
    run, results = fixing.apply(plan, str(tmp_path / "state"))
    assert {result["status"] for result in results.values()} == {"done"}, results
    assert outcomes(native, "IMG001", "IMG007") == {Outcome.PASS}
    assert not list(native.parents[1].glob("lib/python3.7/site-packages/Pillow-9.5.0.dist-info"))
    assert fixing.undo(run, str(tmp_path / "state")) == []
    assert tree(native.parents[1]) == before


@x86
def test_a_pillow_that_cannot_be_imported_is_taken_back(native: Path, tmp_path: Path) -> None:
    """The wheel installs, every file is as in the wheel, and yet it does not work: the old one comes back."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    make_wheel(
        wheels,
        "Pillow-SIMD",
        "9.5.0.post9",
        {"PIL/__init__.py": "__version__ = '9.5.0.post9'\n", "PIL/Image.py": "import _imaging\n"},
    )
    before = tree(native.parents[1])
    _, results = fixing.apply(plan_for(native, "IMG001", wheels=str(wheels)), str(tmp_path / "state"))
    (result,) = results.values()
    assert result["status"] == "failed" and "No module named '_imaging'" in result["error"], result
    assert tree(native.parents[1]) == before
    assert imported(native, "PIL.__version__") == "9.5.0"


@x86
def test_the_plan_is_refused_when_pillow_was_exchanged_meanwhile(native: Path, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    make_wheel(wheels, "Pillow-SIMD", "9.5.0.post9", {"PIL/__init__.py": ""})
    plan = plan_for(native, "IMG001", wheels=str(wheels))
    subprocess.run([str(native), "-m", "pip", "-q", "install", "--no-deps", "pillow==9.4.0"], check=True)
    before = tree(native.parents[1])
    _, results = fixing.apply(plan, str(tmp_path / "state"))
    (result,) = results.values()
    assert result["status"] == "refused" and "not what the plan expected" in result["error"]
    assert tree(native.parents[1]) == before


@x86
def test_the_plan_starts_nothing(native: Path, tmp_path: Path) -> None:
    """An interpreter that leaves a trace when it is started."""
    trace = tmp_path / "started"
    link = native.parent / "python3.7"
    target = native.resolve()
    for name in ("python", "python3", "python3.7"):
        path = native.parent / name
        path.unlink()
    link.write_bytes(target.read_bytes()[:64] + b"\0" * 4096)  # looks like a program and is none
    link.chmod(0o755)
    (native.parent / "python").symlink_to("python3.7")
    site = native.parents[1] / "lib/python3.7/site-packages"
    (site / "trace.pth").write_text(f"import pathlib; pathlib.Path({str(trace)!r}).touch()\n")
    plan = plan_for(native, "IMG001")
    assert [change.finding for change in plan.changes] == ["IMG001"]
    assert not trace.exists()


# ---------------------------------------------------------------------- one of several OpenCVs


def test_of_several_opencvs_the_recommended_one_is_left_whole(tmp_path: Path) -> None:
    """Small packages of these names: the later one has overwritten files of the one that is kept."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name, version in (("opencv-python", "3.4.10.37"), ("opencv-python-headless", "4.5.1.48")):
        files = {"cv2/__init__.py": f"from .version import opencv_version as v\nname = {name!r}\n"}
        make_wheel(folder, name, version, {**files, "cv2/version.py": f"opencv_version = {version!r}\n"})
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = tmp_path / "env/bin/python"
    wheels = [str(path) for path in sorted(folder.iterdir())]
    subprocess.run([str(python), "-m", "pip", "-q", "install", "--no-index", "--no-deps", *wheels], check=True)
    before = tree(tmp_path / "env")
    assert outcomes(python, "IMG101") == {Outcome.FAIL}
    run, results = fixing.apply(plan_for(python, "IMG101", wheels=str(folder)), str(tmp_path / "state"))
    assert {result["status"] for result in results.values()} == {"done"}, results
    assert outcomes(python, "IMG101") == {Outcome.PASS}
    said = subprocess.run([str(python), "-c", "import cv2; print(cv2.name, cv2.v)"], capture_output=True, text=True)
    assert said.stdout == "opencv-python 3.4.10.37\n"
    assert fixing.undo(run, str(tmp_path / "state")) == []
    assert tree(tmp_path / "env") == before


# ---------------------------------------------------------------------- te and topi of a CANN tree


@pytest.fixture
def cann(tmp_path: Path) -> Cann:
    return Cann(tmp_path)


def test_te_040_is_replaced_by_the_te_040_of_this_cann(cann: Cann, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same version with other content: `pip install --upgrade` does nothing, and this does."""
    for name, value in NO_INDEX.items():
        monkeypatch.setenv(name, value)
    before = tree(cann.env)
    assert cann.outcomes() == {"te": "fail", "topi": "fail"}
    plan = fixing.plan(cann.context(), "CANN003")
    assert [(c.subject, c.before) for c in plan.changes] == [("te, topi", "te 0.4.0 + topi 0.4.0")]
    run, results = fixing.apply(plan, str(cann.state))
    assert {result["status"] for result in results.values()} == {"done"}, results
    assert cann.outcomes() == {"te": "pass", "topi": "pass"}
    assert (cann.release("te"), cann.release("topi")) == ("new", "new")
    host = LocalHost()
    site = next(cann.env.glob("lib/python*/site-packages"))
    for name in ("te", "topi"):
        record = f"{site}/{name}-0.4.0.dist-info/RECORD"
        assert host.record_digest(record) == host.record_digest(str(cann.wheels / f"{name}-0.4.0-py3-none-any.whl"))
    shutil.rmtree(cann.root)  # the way back needs neither a network nor the tree
    assert fixing.undo(run, str(cann.state)) == []
    assert tree(cann.env) == before
    assert cann.release("te") == "old"


def test_a_wheel_that_was_exchanged_between_plan_and_apply_is_installed_as_it_is_now_or_not_at_all(cann: Cann) -> None:
    plan = fixing.plan(cann.context(), "CANN003")
    make_wheel(cann.wheels, "te", "0.4.0", {"te/__init__.py": "", "somebody_elses/__init__.py": ""})
    before = tree(cann.env)
    _, results = fixing.apply(plan, str(cann.state))
    (result,) = results.values()
    assert result["status"] == "refused" and "somebody_elses" in result["error"], result
    assert tree(cann.env) == before


def test_a_te_that_an_older_cann_left_is_removed_under_cann_7(cann: Cann) -> None:
    for wheel in cann.wheels.iterdir():
        wheel.unlink()
    tree_te = cann.root / "python/site-packages/te"
    tree_te.mkdir(parents=True)
    (tree_te / "__init__.py").write_text("release = 'tree'\n")
    before = tree(cann.env)
    plan = fixing.plan(cann.context(), "CANN003")
    steps = [step for change in plan.changes for step in change.operations[0]["steps"]]
    assert steps == [[str(cann.python), "-I", "-m", "pip", "uninstall", "-y", "te", "topi"]], plan.skipped
    run, results = fixing.apply(plan, str(cann.state))
    assert {result["status"] for result in results.values()} == {"done"}, results
    assert "te" not in {path.name for path in next(cann.env.glob("lib/python*/site-packages")).iterdir()}
    assert fixing.undo(run, str(cann.state)) == []
    assert tree(cann.env) == before


def test_a_plan_survives_the_way_through_a_file(cann: Cann) -> None:
    from envtune.fix.document import load_plan, render

    plan = fixing.plan(cann.context(), "CANN003")
    again = load_plan(json.dumps(json.loads(render(plan, "en"))))
    _, results = fixing.apply(again, str(cann.state))
    assert {result["status"] for result in results.values()} == {"done"}, results
    assert cann.release("te") == "new"
