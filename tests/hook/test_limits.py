"""A process that raises, is killed or does not end takes nothing along, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from helpers.examples import ROOT

from envtune.hook.limits import run_limited
from envtune.hook.records import HookError


def test_what_is_said() -> None:
    def work(say: Any) -> None:
        say(a=1)
        say(b="\n\x1b", a=2)

    ended = run_limited(work, 30)
    assert ended.said == ({"a": 1}, {"b": "\n\x1b", "a": 2}) and ended.fault is None
    assert (ended.last("a"), ended.last("c", 5)) == (2, 5)


def test_an_exception_is_a_fault() -> None:
    def work(say: Any) -> None:
        say(step="reading")
        raise RuntimeError("no")

    ended = run_limited(work, 30)
    assert (ended.fault, ended.timed_out) == ("RuntimeError: no", False)

    def known(say: Any) -> None:
        raise HookError("the disk is full")

    assert run_limited(known, 30).fault == "the disk is full"


def test_more_than_a_pipe_holds() -> None:
    def work(say: Any) -> None:
        for _ in range(1000):
            say(text="x" * 1000)

    ended = run_limited(work, 30)
    assert len(ended.said) == 1000 and ended.fault is None


def test_a_process_that_is_killed() -> None:
    def work(say: Any) -> None:
        say(step="checking")
        os.kill(os.getpid(), signal.SIGKILL)

    assert run_limited(work, 30).fault == "killed by signal 9 during: checking"


def test_an_early_end_is_a_fault() -> None:
    assert run_limited(lambda say: os._exit(3), 30).fault == "ended with 3"


def test_time_is_up_for_all_below(tmp_path: Path) -> None:
    """Also for what has a session of its own, does not read signals, and was started by a process that has ended."""

    def work(say: Any) -> None:
        script = f"trap '' TERM HUP; sh -c 'echo $$ >{tmp_path}/inner; sleep 1000' & echo $$ >{tmp_path}/outer; wait"
        subprocess.Popen(["sh", "-c", script], start_new_session=True)
        while not all((tmp_path / name).exists() for name in ("inner", "outer")):
            time.sleep(0.01)
        say(step="waiting")
        time.sleep(1000)

    for seconds in (0.5, 5, 60):  # the last ones are for a busy machine
        ended = run_limited(work, seconds)
        assert ended.timed_out
        if ended.said:
            break
    assert ended.fault == f"no answer within {seconds:.3g} s during: waiting"
    for name in ("inner", "outer"):
        assert not is_running(int((tmp_path / name).read_text()))


def test_a_signal_ends_all_and_says_nothing_about_the_node(tmp_path: Path) -> None:
    program = f"""
import os, pathlib, time
from envtune.hook.limits import run_limited
def work(say):
    pathlib.Path("{tmp_path}/child").write_text(str(os.getpid()))
    time.sleep(1000)
run_limited(work, 1000)
"""
    hook = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT)})
    child = tmp_path / "child"
    while not (child.exists() and child.read_text()):
        time.sleep(0.01)
    hook.terminate()
    assert hook.wait(30) == 0
    assert not is_running(int(child.read_text()))


def is_running(pid: int) -> bool:
    """Whether a killed process is still there after a while; a zombie is not."""
    for _ in range(300):
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        if text.rpartition(")")[2].split()[0] in "ZX":
            return False
        time.sleep(0.1)
    return True
