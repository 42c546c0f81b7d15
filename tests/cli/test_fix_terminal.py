"""`envtune fix --apply` on a real terminal: one question, and what becomes of every answer."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest
from helpers.examples import ROOT

SCRIPT = "#!/bin/bash\nexport DUMP_GE_GRAPH=2\npython3 train.py\n"
ASKED = re.compile(rb"\[y/N\]: (\x1b\[\?2004h|\^C)*$")  # and nothing was heard yet
WORDS = ("-m", "envtune", "fix", "ENV004", "--script", "train.sh", "--apply", "--catalog", "own")


class Session(NamedTuple):
    """What a terminal showed, and how the program on it ended."""

    text: str
    status: int


def on_a_terminal(folder: Path, keys: bytes, *more: str, **environ: str) -> Session:
    """Run `envtune fix` in a terminal of its own, and press `keys` when it asks."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TERM": "xterm", "LC_ALL": "C.UTF-8", "COLUMNS": "72"}
    env["PYTHONPATH"] = str(ROOT)
    env.update(ENVTUNE_STATE=str(folder / "state"), ENVTUNE_HOST_LOCK=str(folder / "lock"), **environ)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a test run in the background ignores it
        os.chdir(folder)
        os.execve(sys.executable, [sys.executable, *WORDS, *more], env)
    shown, pressed = b"", False
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.5)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # the last one closed its end
                break
        else:
            pressed = False  # a key that comes while the terminal is set up for the question is lost: press it again
        if not pressed and ASKED.search(shown):
            pressed = True
            os.write(terminal, keys)
    else:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return Session(shown.decode("utf-8").replace("\r\n", "\n"), os.waitstatus_to_exitcode(status))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A launch script to mend, and ENV004 for hosts without an NPU, too."""
    (tmp_path / "train.sh").write_text(SCRIPT)
    (shipped,) = (ROOT / "checks" / "environment").glob("ENV004-*.yaml")
    own = tmp_path / "own" / "checks" / "environment" / shipped.name
    own.parent.mkdir(parents=True)
    own.write_text(shipped.read_text("utf-8").replace("applies: {ascend: true}", "applies: {system: Linux}"), "utf-8")
    return tmp_path


def test_yes(folder: Path) -> None:
    done = on_a_terminal(folder, b"y\n")
    assert done.status == 0 and "Make this change? [y/N]: y" in done.text
    before, _, after = done.text.partition("[y/N]")
    assert "C01" in before and "train.sh" in before and "+unset DUMP_GE_GRAPH" in before
    assert "fixed" in after and "envtune undo " in after and "\033[32mfixed" in after
    assert "unset DUMP_GE_GRAPH" in (folder / "train.sh").read_text()
    assert max(map(len, after.replace("\033", "").splitlines())) < 120


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "status"),
    [(b"n\n", 1), (b"\n", 1), (b"\x04", 1), (b"\x03", 130)],
    ids=["n", "return", "ctrl-d", "ctrl-c"],
)
def test_everything_else_is_no(folder: Path, keys: bytes, status: int) -> None:
    done = on_a_terminal(folder, keys)
    assert done.status == status, done.text
    assert done.text.rstrip().endswith("\nenvtune: nothing was changed") and "Traceback" not in done.text
    assert (folder / "train.sh").read_text() == SCRIPT and not (folder / "state").exists()


@pytest.mark.slow
def test_in_chinese_without_colour(folder: Path) -> None:
    done = on_a_terminal(folder, b"n\n", "--lang", "zh", NO_COLOR="1")
    assert done.status == 1 and "执行以上 1 项改动？" in done.text and "未做任何改动" in done.text
    assert "\033[" not in done.text


@pytest.mark.slow
def test_yes_said_before_asks_nothing(folder: Path) -> None:
    done = on_a_terminal(folder, b"", "--yes")
    assert done.status == 0 and "[y/N]" not in done.text
