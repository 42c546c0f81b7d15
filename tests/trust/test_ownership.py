"""Who can change what is at a path: every component counts, wherever links lead."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Callable, Optional

import pytest

from envtune.trust.ownership import exposed_below, who_can_change

OTHER = 12345
Build = Callable[[Path], Path]


def make(path: Path, uid: int = 0, gid: int = 0, mode: Optional[int] = None) -> Path:
    """A directory, or a file where the name has a suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix:
        path.write_text("x")
    else:
        path.mkdir(exist_ok=True)
    os.chown(path, uid, gid)
    path.chmod((0o644 if path.suffix else 0o755) if mode is None else mode)
    return path


def link(path: Path, to: Path, uid: int = 0) -> Path:
    path.symlink_to(to)
    os.chown(path, uid, uid, follow_symlinks=False)
    return path


def inside(top: Path, **attributes: int) -> Path:
    """A file in a directory with these attributes."""
    make(top / "dir", **attributes)
    return make(top / "dir/file.py")


def linked(top: Path, **attributes: int) -> Path:
    """A link of root's to a file in a directory with these attributes."""
    return link(top / "link.py", inside(top, **attributes))


def relative(top: Path) -> Path:
    make(top / "own/file.py")
    make(top / "other", uid=OTHER)
    link(top / "other/link", Path("../own"))
    return link(top / "start", Path("other/../other/link/file.py"))


# what is made -> the component that others can change, below the test's directory; None: nobody can
CASES: dict[str, tuple[Build, Optional[str]]] = {
    "root's": (lambda top: inside(top), None),
    "another user's file": (lambda top: make(top / "file.py", uid=OTHER), "file.py"),
    "another user's directory": (lambda top: inside(top, uid=OTHER), "dir"),
    "a directory of a group": (lambda top: inside(top, gid=OTHER, mode=0o775), "dir"),
    "a directory of root's group": (lambda top: inside(top, mode=0o775), None),
    "a directory for everybody": (lambda top: inside(top, mode=0o757), "dir"),
    "root's file in a sticky directory": (lambda top: inside(top, mode=0o1777), None),
    "a sticky directory itself": (lambda top: make(top / "dir", mode=0o1777), "dir"),
    "another's file in a sticky directory": (
        lambda top: make(make(top / "dir", mode=0o1777) / "file.py", uid=OTHER),
        "dir/file.py",
    ),
    "a file for everybody": (lambda top: make(top / "file.py", mode=0o666), "file.py"),
    "a link into another user's directory": (lambda top: linked(top, uid=OTHER), "dir"),
    "another user's link": (lambda top: link(top / "link.py", inside(top), OTHER), "link.py"),
    "a relative way through another user's directory": (relative, "other"),
}


@pytest.mark.root
@pytest.mark.parametrize("case", CASES)
def test_the_first_component_that_others_can_change(case: str, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give files away")
    build, expected = CASES[case]
    exposure = who_can_change(str(build(tmp_path)))
    assert (exposure and exposure.path) == (expected and str(tmp_path / expected))


@pytest.mark.root
def test_an_access_control_list_counts(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    path = make(tmp_path / "file.py")
    entries = ((0x01, 6, 2**32 - 1), (0x02, 6, OTHER), (0x04, 4, 2**32 - 1), (0x10, 6, 2**32 - 1), (0x20, 4, 2**32 - 1))
    words = b"".join(
        tag.to_bytes(2, "little") + rights.to_bytes(2, "little") + who.to_bytes(4, "little")
        for tag, rights, who in entries
    )
    try:
        os.setxattr(path, "system.posix_acl_access", (2).to_bytes(4, "little") + words)
    except OSError as error:
        pytest.skip(f"no access control lists here: {error}")
    exposure = who_can_change(str(path))
    assert exposure is not None and exposure.path == str(path)


@pytest.mark.root
def test_a_tree_is_looked_through(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    make(tmp_path / "pkg/deep/own.py")
    assert exposed_below(str(tmp_path)) is None
    make(tmp_path / "pkg/deep/other.py", uid=OTHER)
    found = exposed_below(str(tmp_path))
    assert found is not None and (found.path, found.uid, found.foreign) == (
        f"{tmp_path}/pkg/deep/other.py",
        OTHER,
        True,
    )
    assert exposed_below(str(tmp_path), ("deep",)) is None


def test_one_s_own_files_are_trusted_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text("x")
    path.chmod(0o664)  # the caller's own decision
    user = os.geteuid()
    if user != 0:
        assert who_can_change(str(path)) is None
    assert who_can_change(str(path), 54321) is None if user == 0 else who_can_change(str(path), 54321)
    path.chmod(0o666)
    exposure = who_can_change(str(path))
    assert exposure is not None and (exposure.path, exposure.foreign) == (str(path), False)


def test_what_cannot_be_followed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        who_can_change(str(tmp_path / "a"))
    with pytest.raises(FileNotFoundError):
        who_can_change(str(tmp_path / "none"))
    with pytest.raises(ValueError, match="not an absolute path"):
        who_can_change("none")


@pytest.mark.root
def test_in_a_namespace_of_one_user_the_system_is_usable() -> None:
    code = "from envtune.trust.programs import resolve_program; print(resolve_program('ls'))"
    import sys

    done = subprocess.run(
        ["unshare", "-r", sys.executable, "-c", code], capture_output=True, text=True, preexec_fn=lambda: os.setuid(0)
    )
    if "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout.endswith("/ls\n"), done.stderr
