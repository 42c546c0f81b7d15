"""SIGINT, SIGTERM and SIGHUP while `envtune fix` writes: the step is taken back, no child is left, status 128 + n."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from helpers.fix_world import World
from helpers.killed_runs import forked, write

from envtune.cli import main
from envtune.executor.history import recorded_runs
from envtune.executor.processes import running_commands


def started(world: World, out: Path, *words: str) -> int:
    """Start the program itself in a child, with what this test has put in place; its pid."""

    def program() -> None:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number in (1, 2):
            os.dup2(descriptor, number)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests under nohup ignore it
        sys.argv = ["envtune", *words]
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        sys.stdout.flush()
        os._exit(code)

    return forked(program)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_while_a_command_runs(world: World, tmp_path: Path, number: signal.Signals) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    run = {"op": "run", "argv": ["cat", str(fifo)], "check": {"argv": ["test", "-e", str(tmp_path / "never")]}}
    world.operations["SYS902"] = lambda path: [write(path, b"bad\n", b"good\n"), run]
    pid = started(world, tmp_path / "out", "fix", "--apply", "--yes")
    for _ in range(3_000):
        runs = recorded_runs(str(world.state)) if world.state.exists() else []
        if runs and running_commands(runs[0].directory):
            break
        time.sleep(0.02)
    else:
        pytest.fail((tmp_path / "out").read_text())
    os.kill(pid, number)
    _, status = os.waitpid(pid, 0)
    told = (tmp_path / "out").read_text()
    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 128 + number, told
    (run_,) = recorded_runs(str(world.state))
    assert running_commands(run_.directory) == [] and not run_.in_progress
    assert world.contents() == ("good", "bad")
    assert [run_.end_state(change) for change in ("C01", "C02")] == ["fixed", "failed-restored"]
    assert f"{number.name} interrupted the run" in told and "1 fixed; 1 still wrong" in told
