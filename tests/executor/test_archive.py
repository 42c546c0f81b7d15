"""Trees brought back on an overlayfs, whatever was killed: same bytes, owners, modes, attributes and times."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest
from helpers.executor_runs import apply, last, quiet
from helpers.killed_runs import killed_at, write
from helpers.mounts import exact, overlay, tmpfs

from envtune.executor.history import interrupted_runs, recorded_runs
from envtune.executor.recover import resume_run, undo_run

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]
SITE = "lib/python3.9/site-packages"


def layout(touches: list[str], old: list[str], new: list[str]) -> dict[str, Any]:
    return {"touches": [f"{SITE}/{name}" for name in touches], "old": old, "new": new}


# As their wheels install them, with files that somebody added (local, patched, compiled).
LAYOUTS = {
    "te": layout(
        ["te", "te-*.dist-info", "topi"],
        ["te/__init__.py", "te/lang/cce.py", "te/local.py", "te/__pycache__/a.pyc", "te-0.4.0.dist-info/RECORD"],
        ["te/__init__.py", "te/lang/cce.py", "te/platform.py", "te-0.5.0.dist-info/RECORD", "topi/__init__.py"],
    ),
    "pillow": layout(
        ["PIL", "[Pp]illow.libs", "[Pp]illow-*.dist-info"],
        ["PIL/Image.py", "PIL/_imaging.so", "PIL/patched.py", "Pillow.libs/z.so.1", "Pillow-6.2.1.dist-info/RECORD"],
        ["PIL/Image.py", "PIL/_imaging.so", "pillow.libs/z.so.1", "pillow-10.0.0.dist-info/RECORD"],
    ),
    "opencv": layout(
        ["cv2", "opencv_python*"],
        ["cv2/cv2.so", "cv2/data/a.xml", "cv2/qt/fonts/x.ttf", "cv2/own/mine.py", "opencv_python-4.5.dist-info/RECORD"],
        ["cv2/cv2.so", "cv2/version.py", "opencv_python-4.9.dist-info/RECORD", "opencv_python.libs/y.so"],
    ),
}
INSTALL = """#!/bin/sh
# As pip does: the old files away one by one, the new ones in.
cd "$1"
for name in {OLD}; do rm "$name"; rmdir -p "$(dirname "$name")" 2>/dev/null; done
[ -z "$2" ] || exit 1
for name in {NEW}; do mkdir -p "$(dirname "$name")"; echo new >"$name"; done
"""


class Package:
    """One package in a site-packages directory, and the change that replaces it."""

    def __init__(self, name: str, lower: Path) -> None:
        self.layout = LAYOUTS[name]
        site = lower / SITE
        for number, file in enumerate(self.layout["old"]):
            path = site / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"old {file}" * 100)
            path.chmod((0o644, 0o755, 0o600, 0o4755)[number % 4])
            os.utime(path, ns=(10**18, 10**18 + number))
            os.chown(path, number, number)
            with contextlib.suppress(OSError):
                os.setxattr(path, "user.note", b"\0\xff")
        (path.parent / "link").symlink_to("RECORD")
        os.lchown(path.parent / "link", 7, 7)
        (site / "other.py").write_text("not ours")
        script = lower / "install"
        words = {name.upper(): " ".join(self.layout[name]) for name in ("old", "new")}
        script.write_text(INSTALL.format(**words))

    def operation(self, place: Path, stop: str = "") -> dict[str, Any]:
        step = ["/bin/sh", str(place / "install"), str(place / SITE), stop]
        return {"op": "swap", "root": str(place), "touches": self.layout["touches"], "steps": [step], "verify": []}


def is_new(package: Package, place: Path) -> bool:
    """Whether all of the new package is there; what the installer does not know of stays, as with pip."""
    site = place / SITE
    return all((site / file).read_text() == "new\n" for file in package.layout["new"])


def end(package: Package, place: Path, state: str, before: Any, number: int) -> None:
    """Undo what was killed, or finish it and undo it then."""
    for run in interrupted_runs(state):
        if number % 2:
            results = resume_run(state, run.name)
            assert {row["status"] for row in results} <= {"done", "undone", "failed"}, results
    if recorded_runs(state):
        assert {row["status"] for row in undo_run(state, last(state).name)} <= {"undone"}
    assert exact(place) == before
    assert not list(Path(state).rglob("work"))


Work = Callable[[Package, Path, str], Any]
# what is killed at every boundary: a replacement, one that fails and puts itself back, and an undo
KILLED: dict[str, tuple[Work, Work]] = {
    "applied": (lambda *_: None, lambda package, place, state: apply(state, package.operation(place))),
    "failed": (lambda *_: None, lambda package, place, state: apply(state, package.operation(place, stop="1"))),
    "undone": (
        lambda package, place, state: apply(state, package.operation(place)),
        lambda package, place, state: undo_run(state, last(state).name),
    ),
}


@pytest.mark.parametrize("killed", KILLED)
@pytest.mark.parametrize("name", LAYOUTS)
def test_killed_at_every_boundary_on_an_overlayfs(tmp_path: Path, no_sync: None, name: str, killed: str) -> None:
    lower = tmp_path / "lower"
    lower.mkdir()
    package = Package(name, lower)
    prepare, work = KILLED[killed]
    for number in range(200):
        with overlay(tmp_path / "root", lower) as place:
            state, before = str(tmp_path / f"state{number}"), exact(place)
            with pytest.raises(OSError, match="cross-device"):
                os.rename(place / SITE, place / "elsewhere")
            prepare(package, place, state)
            ended = killed_at(number, lambda place=place, state=state: work(package, place, state))  # type: ignore[misc]
            quiet(state)
            if ended and killed == "applied":
                assert is_new(package, place)
            end(package, place, state, before, number)
        shutil.rmtree(state)
        if ended:
            break
    assert number > 10


MIB = 1 << 20


def filled(place: Path) -> None:
    with contextlib.suppress(OSError), open(place / "ballast", "wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


def test_an_undo_on_a_disk_that_is_full(tmp_path: Path) -> None:
    """Package, archive and state on one small file system, and somebody else has filled the rest of it."""
    with tmpfs(tmp_path / "small", "24m") as small:
        place, state = small / "root", str(small / "state")
        (place / "pkg").mkdir(parents=True)
        for name in ("one", "two", "three"):
            (place / "pkg" / name).write_bytes(name[:1].encode() * (2 * MIB))
        (place / "conf").write_bytes(b"o" * MIB)
        before = exact(place)
        step = ["sh", "-c", f"for name in one two four; do head -c {2 * MIB} /dev/zero >{place}/pkg/$name; done"]
        swap = {"op": "swap", "root": str(place), "touches": ["pkg"], "steps": [step], "verify": []}
        result = apply(state, swap, write(place / "conf", b"o" * MIB, b"n" * MIB))
        assert result["status"] == "done", result
        filled(small)
        assert os.statvfs(small).f_bavail == 0
        assert {row["status"] for row in undo_run(state, result["run"])} == {"undone"}
        assert exact(place) == before


def test_a_killed_preparation_leaves_no_work_tree(tmp_path: Path, no_sync: None) -> None:
    prepare = [["sh", "-c", "echo wheel >{work}/wheel"], ["sh", "-c", "echo more >{work}/more"]]
    (tmp_path / "pkg").mkdir()
    swap = {"op": "swap", "root": str(tmp_path), "touches": ["pkg"], "steps": [], "verify": [], "prepare": prepare}
    for number, end_run in enumerate((undo_run, resume_run)):
        state = str(tmp_path / f"state{number}")
        killed_at(1, lambda state=state: apply(state, swap), "tree-command-ended")  # type: ignore[misc]
        (run,) = interrupted_runs(state)
        assert (Path(run.directory) / "work/more").exists() and not run.steps
        end_run(state, run.name)
        assert not (Path(run.directory) / "work").exists()


@pytest.mark.parametrize("flag", "ia")
def test_a_file_that_chattr_keeps_as_it_is(tmp_path: Path, flag: str) -> None:
    """Refused before pip begins, which would stop half way, and whose way back would, too."""
    path = tmp_path / "root/pkg/kept"
    path.parent.mkdir(parents=True)
    path.write_text("old")
    if subprocess.run(["chattr", f"+{flag}", str(path)], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no chattr here")
    try:
        swap = {"op": "swap", "root": str(tmp_path / "root"), "touches": ["pkg"], "steps": [["false"]], "verify": []}
        result = apply(str(tmp_path / "state"), swap)
        assert result["status"] == "refused" and f"attribute {flag} of chattr" in result["error"]
        assert not list((tmp_path / "state").rglob("*.orig")) and not list((tmp_path / "state").rglob("work"))
    finally:
        subprocess.run(["chattr", f"-{flag}", str(path)], check=True)


def test_root_installs_nothing_in_the_tree_of_another_user(tmp_path: Path) -> None:
    (tmp_path / "env/pkg").mkdir(parents=True)
    os.chown(tmp_path / "env", 12345, 12345)
    touched = tmp_path / "touched"
    swap = {"op": "swap", "root": str(tmp_path / "env"), "touches": ["pkg"], "verify": []}
    operation = {**swap, "steps": [["touch", str(touched)]], "prepare": [["touch", str(touched)]]}
    result = apply(str(tmp_path / "state"), operation)
    assert result["status"] == "refused" and "run envtune as that user" in result["error"]
    assert not touched.exists()
