"""What root reads for the owner of a job, and what it leaves: by a script, an env file, a process, a link."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Mapping

import pytest
from helpers.examples import ROOT

from envtune.collector.machine import Machine
from envtune.collector.owners import acting_as
from envtune.collector.snapshot import take, write_new
from envtune.context.open import open_context
from envtune.errors import Denied
from envtune.host import LocalHost
from envtune.job.target import TargetOptions

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]
OWNER = 12345
CONTENT = "export ONLY_ROOT_KNOWS=1\n"


class Place:
    """A directory of a user's, beside a file that only root may read and one that everybody may."""

    def __init__(self, folder: Path) -> None:
        for path in (folder, *(p for p in folder.parents if p.name.startswith(("pytest-", "popen-")))):
            path.chmod(0o755)
        self.closed, self.open, self.theirs = folder / "closed.sh", folder / "open.sh", folder / "theirs"
        for path, mode in ((self.closed, 0o600), (self.open, 0o644)):
            path.write_text(CONTENT)
            path.chmod(mode)
        self.theirs.mkdir()

    def give_away(self) -> None:
        for path in (self.theirs, *self.theirs.rglob("*")):
            os.chown(path, OWNER, OWNER, follow_symlinks=False)


def by_name(place: Place, file: Path) -> Mapping[str, Any]:
    (place.theirs / "train.sh").write_text(f"source {file}\npython3 train.py\n")
    return {"script": str(place.theirs / "train.sh")}


def by_link(place: Place, file: Path) -> Mapping[str, Any]:
    (place.theirs / "more.sh").symlink_to(file)
    (place.theirs / "train.sh").write_text(f"source {place.theirs}/more.sh\npython3 train.py\n")
    return {"script": str(place.theirs / "train.sh")}


def as_env_file(place: Place, file: Path) -> Mapping[str, Any]:
    (place.theirs / "job.env").symlink_to(file)
    return {"env_file": str(place.theirs / "job.env")}


@pytest.mark.parametrize("way", [by_name, by_link, as_env_file])
def test_root_reads_for_a_user_what_the_user_may_read(
    way: Callable[[Place, Path], Mapping[str, Any]], tmp_path: Path
) -> None:
    place = Place(tmp_path)
    for file, told in ((place.open, True), (place.closed, False)):
        for old in place.theirs.iterdir():
            old.unlink()
        target = way(place, file)
        place.give_away()
        recorded = take(target, Machine(), {})["files"]
        assert ("ONLY_ROOT_KNOWS" in str(recorded)) == told
        assert told or recorded[str(file)] == {"size": len(CONTENT), "mode": "0600", "error": "EACCES"}
        context = open_context(LocalHost(), TargetOptions(**target))
        assert ("ONLY_ROOT_KNOWS" in (context.target.environment.variables or {})) == told


def test_what_a_process_names_is_read_as_its_owner(tmp_path: Path) -> None:
    place = Place(tmp_path)
    code = f"import os; os.setgroups([]); os.setgid({OWNER}); os.setuid({OWNER}); print(1, flush=True); input()"
    argv = [sys.executable, "-I", "-c", code]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"1\n"
        host = LocalHost()
        open_context(host, TargetOptions(pid=child.pid))
        assert host.read(str(place.open)) == CONTENT
        with pytest.raises(Denied):
            host.read(str(place.closed))
        child.communicate(b"\n")


def theirs_in_root_s_script(place: Place) -> Mapping[str, Any]:
    (place.theirs / "more.sh").write_text(f"source {place.closed}\n")
    script = place.theirs.parent / "root.sh"
    script.write_text(f"source {place.theirs}/more.sh\npython3 train.py\n")
    return {"script": str(script)}


def anybody_s_script(place: Place) -> Mapping[str, Any]:
    script = place.theirs.parent / "everybody.sh"
    script.write_text(f"source {place.closed}\npython3 train.py\n")
    script.chmod(0o666)
    return {"script": str(script)}


def their_python(place: Place) -> Mapping[str, Any]:
    (place.theirs / "python3").symlink_to(place.closed)
    return {"python": str(place.theirs / "python3")}


def their_wrapper(place: Place) -> Mapping[str, Any]:
    (place.theirs / "python3").write_text(f"#!/bin/sh\nexec {place.closed}\n")
    (place.theirs / "python3").chmod(0o755)
    return {"python": str(place.theirs / "python3")}


def their_path_file(place: Place) -> Mapping[str, Any]:
    inner = place.theirs.parent / "closed"
    (inner / "torch").mkdir(parents=True)
    (inner / "torch/version.py").write_text("__version__ = 'ONLY_ROOT_KNOWS'\n")
    inner.chmod(0o700)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place.theirs / "venv")], check=True)
    (site,) = place.theirs.glob("venv/lib/python*/site-packages")
    (site / "more.pth").write_text(f"{inner}\n")
    return {"python": str(place.theirs / "venv/bin/python")}


def their_list_of_names(place: Place) -> Mapping[str, Any]:
    inner = place.theirs.parent / "closed"
    inner.mkdir(mode=0o700)
    (inner / "ONLY_ROOT_KNOWS.so").write_text("")
    (place.theirs / "job.env").write_text(f"ASCEND_HOME_PATH={inner}\nPYTHONPATH={inner}\nLD_LIBRARY_PATH={inner}\n")
    return {"env_file": str(place.theirs / "job.env")}


WAYS = [theirs_in_root_s_script, anybody_s_script, their_python, their_wrapper, their_path_file, their_list_of_names]


@pytest.mark.parametrize("way", WAYS)
def test_who_could_write_a_name_says_who_may_read_it(way: Callable[[Place], Mapping[str, Any]], tmp_path: Path) -> None:
    place = Place(tmp_path)
    target = way(place)
    place.give_away()
    assert "ONLY_ROOT_KNOWS" not in str(take(target, Machine(), {"PATH": "/usr/bin:/bin"})["files"])


def test_what_the_groups_of_a_process_may_read_is_kept(tmp_path: Path) -> None:
    """Of the process itself: a user without a name has no groups that the system knows of."""
    place = Place(tmp_path)
    os.chown(place.closed, 0, 23456)
    place.closed.chmod(0o640)
    code = "import os; os.setgroups([{}]); os.setgid({}); os.setuid({}); print(1, flush=True); input()"
    for user, groups, told in ((OWNER + 1, "23456", True), (OWNER + 2, "", False)):
        argv = [sys.executable, "-I", "-c", code.format(groups, user, user)]
        with subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"HCCL_WHITELIST_FILE": str(place.closed)}
        ) as child:
            assert child.stdout is not None and child.stdout.readline() == b"1\n"
            assert ("ONLY_ROOT_KNOWS" in str(take({"pid": child.pid}, Machine(), {})["files"])) == told
            child.communicate(b"\n")


def test_root_s_own_job_and_rights_are_as_ever(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assert "ONLY_ROOT_KNOWS" in str(take(by_name(place, place.closed), Machine(), {})["files"])
    with acting_as(OWNER), pytest.raises(PermissionError):
        place.closed.read_text()
    assert place.closed.read_text() == CONTENT and os.getgroups() is not None


@pytest.mark.parametrize(
    ("place", "mode", "owner", "expected"),
    [
        ("open", 0o755, 0, CONTENT),
        ("closed", 0o755, 0, "EACCES"),
        ("open", 0o700, 0, "EACCES"),  # nobody gets to it
        ("closed", 0o700, OWNER, CONTENT),  # the owner's own
    ],
)
def test_root_without_the_right_to_act_as_another_user(
    place: str, mode: int, owner: int, expected: str, tmp_path: Path
) -> None:
    """A container started with `--cap-drop ALL`: owner and mode decide, as far as they tell."""
    for path in (tmp_path, *(p for p in tmp_path.parents if p.name.startswith("pytest-"))):
        path.chmod(0o755)
    folder = tmp_path / "folder"
    folder.mkdir(mode=mode)
    file = folder / "file"
    file.write_text(CONTENT)
    file.chmod(0o644 if place == "open" else 0o600)
    for path in (folder, file):
        os.chown(path, owner, owner)
    program = (
        "import errno, os, sys\nfrom envtune.collector.owners import open_as\n"
        "try:\n    print(os.read(open_as(sys.argv[1], os.O_RDONLY, [int(sys.argv[2])]), 99).decode(), end='')\n"
        "except OSError as error:\n    print(errno.errorcode[error.errno], end='')\n"
    )
    drop = ["setpriv", "--bounding-set", "-setuid,-setgid", "--inh-caps", "-setuid,-setgid"]
    argv = [*drop, sys.executable, "-c", program, str(file), str(OWNER)]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == (expected, "")


def test_a_snapshot_is_written_through_no_link_of_another_user(tmp_path: Path) -> None:
    theirs, protected = tmp_path / "theirs", tmp_path / "protected"
    for path in (theirs / "real", protected):
        path.mkdir(parents=True)
    (theirs / "link").symlink_to(protected)
    (tmp_path / "own").symlink_to("theirs/real")
    os.lchown(theirs / "link", OWNER, OWNER)
    with pytest.raises(OSError, match="link of another user"):
        write_new(str(theirs / "link/host.tar.gz"), b"x")
    assert not list(protected.iterdir())
    write_new(str(tmp_path / "own/host.tar.gz"), b"x")
    with pytest.raises(FileExistsError):
        write_new(str(tmp_path / "own/host.tar.gz"), b"y")
    write_new(str(tmp_path / "own/host.tar.gz"), b"z", replace=True)
    assert [(path.name, path.read_bytes()) for path in (theirs / "real").iterdir()] == [("host.tar.gz", b"z")]
