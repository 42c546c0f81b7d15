"""A plan of ten changes of every kind, and runs of it that are killed: at a failpoint, or at a moment."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import time
import warnings
from pathlib import Path
from typing import Any, Callable, Mapping, Optional

from envtune.executor.common import failpoint_hooks
from envtune.executor.files import digest

SCRIPT = """#!/bin/sh
# mark add|del|has WORD: one line in the file `marks` beside this script; never twice
marks="$(dirname "$0")/marks"
case "$1" in
  has) grep -qx "$2" "$marks" 2>/dev/null ;;
  add) grep -qx "$2" "$marks" 2>/dev/null || echo "$2" >>"$marks" ;;
  del) grep -vx "$2" "$marks" >"$marks.new"; mv "$marks.new" "$marks"; [ -s "$marks" ] || rm "$marks" ;;
esac
"""
SWAP = """#!/bin/sh
set -e
rm -r "$1/pkg"
mkdir -p "$1/pkg/sub" "$1/pkg2"
for name in pkg/a pkg/sub/c pkg2/d; do echo two >"$1/$name"; done
"""
BIG = 100_000
OLD = {
    "etc/replaced": b"old\n",
    "etc/removed": b"was here\n",
    "etc/first": b"old first\n",
    "etc/big": b"o" * BIG,
    "etc/last": b"old last\n",
    "site/pkg/a": b"one\n",
    "site/pkg/b": b"one\n",
}
NEW = {
    "etc/replaced": b"new\n",
    "etc/first": b"new first\n",
    "etc/big": b"n" * BIG,
    "etc/created": b"new\n",
    "etc/second": b"new second\n",
    "deep/er/est/created": b"new\n",
    "deep/er/beside": b"new\n",
    "site/pkg/a": b"two\n",
    "site/pkg/sub/c": b"two\n",
    "site/pkg2/d": b"two\n",
    "marks": b"six\neight\n",
}


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def write(path: Path, expect: Optional[bytes], content: Optional[bytes], **more: Any) -> dict[str, Any]:
    """A file operation."""
    text = None if content is None else encoded(content)
    return {"op": "file", "path": str(path), "expect": digest(expect), "content": text, **more}


def change(id_: str, *operations: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": id_, "target": id_, "operations": list(operations)}


def mark(root: Path, word: str) -> dict[str, Any]:
    """A run operation that appends a line to the file `marks`."""
    argv = ["/bin/sh", str(root / "mark")]
    check = {"argv": [*argv, "has", word]}
    return {"op": "run", "argv": [*argv, "add", word], "check": check, "undo": {"argv": [*argv, "del", word]}}


def build(root: Path) -> dict[str, Any]:
    """The old tree below `root`, and the plan that makes the new one of it."""
    for name, data in OLD.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (root / "etc/replaced").chmod(0o640)
    os.utime(root / "etc/replaced", ns=(10**18, 10**18))
    (root / "mark").write_text(SCRIPT)
    (root / "swap").write_text(SWAP)
    etc, steps = root / "etc", [["/bin/sh", str(root / "swap"), str(root / "site")]]
    swap = {"op": "swap", "root": str(root / "site"), "touches": ["pkg", "pkg2"], "steps": steps}
    verify = [["/bin/sh", "-c", f"test -e {root}/site/pkg2/d"]]
    return {
        "changes": [
            change("C01", write(etc / "created", None, b"new\n")),
            change("C02", write(etc / "replaced", b"old\n", b"new\n")),
            change("C03", write(etc / "removed", b"was here\n", None)),
            change("C04", write(root / "deep/er/est/created", None, b"new\n")),
            change(
                "C05",
                write(etc / "first", b"old first\n", b"new first\n"),
                write(etc / "second", None, b"new second\n"),
            ),
            change("C06", mark(root, "six")),
            change("C07", write(etc / "big", b"o" * BIG, b"n" * BIG)),
            change("C08", write(etc / "last", b"old last\n", None), mark(root, "eight")),
            change("C09", write(root / "deep/er/beside", None, b"new\n")),
            change("C10", {**swap, "verify": verify}),
        ]
    }


def tree(root: Path) -> dict[str, bytes]:
    """Every file below the root but the state and the scripts."""
    files = (path for path in root.rglob("*") if path.is_file() and "state" not in path.relative_to(root).parts)
    return {str(p.relative_to(root)): p.read_bytes() for p in files if p.name not in ("mark", "swap")}


def directories(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir() and path.name != "state"} - {""}


def forked(work: Callable[[], Any]) -> int:
    """Run `work` in a child without fsync (nobody cuts the power here): the child's pid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if pid == 0:
        os.fsync = lambda descriptor: None  # type: ignore[assignment]
        try:
            work()
        except BaseException:
            os._exit(3)
        os._exit(0)
    return pid


def killed_at(place: int, work: Callable[[], Any], only: str = "") -> bool:
    """Run `work` in a child that kills itself at that failpoint (of that name); whether it got to the end before."""

    def counted() -> None:
        left = iter(range(place))

        def die(name: str) -> None:
            if only in ("", name) and next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

        failpoint_hooks.append(die)
        work()

    _, status = os.waitpid(forked(counted), 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return not os.WIFSIGNALED(status)


def killed_after(seconds: float, work: Callable[[], Any]) -> bool:
    """Run `work` in a child and kill it after a while; whether it got to the end before."""
    pid = forked(work)
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return not os.WIFSIGNALED(status)
