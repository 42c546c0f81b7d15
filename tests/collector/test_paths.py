"""Symbolic links on any host: one walk for the live machine, recordings, the recorder and mounts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Optional

import pytest

from envtune.collector.files import Stat
from envtune.collector.machine import Machine
from envtune.collector.paths import LINK_LIMIT, LinkLoop, real_path, resolve
from envtune.collector.recorder import Recorder
from envtune.errors import Missing, Unreadable
from envtune.host import LocalHost, realpath
from envtune.snapshot.host import SnapshotHost

LINKS = {"/a": "b", "/b": "/c/d", "/c/d": "../e", "/up": "..", "/loop": "loop", "/empty": ""}


def link_at(step: str, _last: bool) -> Optional[str]:
    return LINKS.get(step)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "/"),
        ("/x//./y/", "/x/y"),
        ("/a/f", "/e/f"),
        ("/c/../a", "/e"),
        ("/../..", "/"),
        ("/c/up", "/c/up"),
        ("/up/c", "/c"),
        ("/empty/c", "/c"),
    ],
)
def test_links_are_followed(path: str, expected: str) -> None:
    assert resolve(path, link_at) == expected


def test_the_last_link_is_followed_only_where_that_is_asked_for() -> None:
    asked: list[tuple[str, bool]] = []

    def noted(step: str, last: bool) -> Optional[str]:
        asked.append((step, last))
        return LINKS.get(step)

    assert resolve("/a/b", noted, follow=False) == "/e/b"
    assert asked == [("/a", False), ("/b", False), ("/c", False), ("/c/d", False), ("/e", False)]
    assert resolve("/a", noted, follow=False) == "/a"
    assert asked[5:] == []
    assert resolve("/x", noted) == "/x"
    assert asked[5:] == [("/x", True)]


def test_a_circle_ends() -> None:
    with pytest.raises(LinkLoop):
        resolve("/loop", link_at)
    chain = {f"/{n}": str(n + 1) for n in range(LINK_LIMIT)}
    assert resolve("/0", lambda step, _last: chain.get(step)) == f"/{LINK_LIMIT}"
    chain[f"/{LINK_LIMIT}"] = "end"
    with pytest.raises(LinkLoop):
        resolve("/0", lambda step, _last: chain.get(step))


def test_every_reader_resolves_a_path_as_the_kernel_does(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    (folder / "real").mkdir()
    (folder / "real/file").write_text("text\n")
    (folder / "link").symlink_to("real/../real")
    (folder / "link2").symlink_to(folder / "link")
    (folder / "dangling").symlink_to("nothing")
    (folder / "loop").symlink_to("loop")
    path = f"{folder}/link2/file"
    recorder = Recorder(Machine(), {})
    assert isinstance(recorder.stat(path), Stat)
    recorder.read_bytes(path)
    with pytest.raises(FileNotFoundError):
        recorder.stat(f"{folder}/dangling")
    recorder.stat(f"{folder}/loop", follow=False)
    recorded = SnapshotHost({"files": recorder.files})
    for host in (LocalHost(), recorded):
        assert realpath(host, path) == real_path(host, path) == os.path.realpath(path)
        assert host.read(path) == "text\n"
        with pytest.raises(Missing):
            realpath(host, f"{folder}/dangling")
        with pytest.raises(Unreadable):
            realpath(host, f"{folder}/loop")
    with pytest.raises(OSError, match="symbolic links"):
        recorder.read_bytes(f"{folder}/loop")


def test_a_path_with_a_nul_in_it_is_not_there() -> None:
    """As from a file of /proc that a launch script sources."""
    with pytest.raises(FileNotFoundError):
        resolve("/etc/a\0b", lambda step, last: pytest.fail(step))
