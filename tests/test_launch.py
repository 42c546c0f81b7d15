"""`envtune run`: exit status, signals and output are those of the command, with and without a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Sequence

import pytest

RUN = [sys.executable, "-m", "envtune", "run", "--no-preflight", "--"]
BARE = [
    sys.executable,
    "-c",
    "import sys\nfrom envtune.launch import run_command\nfrom envtune.launch_end import end_as\n"
    "import os\nend_as(run_command(sys.argv[1:], os.environ).status)",
]


def run(argv: Sequence[str], **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*BARE, *argv], capture_output=True, timeout=60, **options)  # type: ignore[call-overload]


@pytest.mark.parametrize("command", ["true", "false", "exit 7", "echo out; echo err >&2; exit 3"])
def test_status_and_both_streams(command: str) -> None:
    alone = subprocess.run(["sh", "-c", command], capture_output=True)
    beside = run(["sh", "-c", command])
    assert (beside.returncode, beside.stdout, beside.stderr) == (alone.returncode, alone.stdout, alone.stderr)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_ends_by_the_same_signal(number: signal.Signals) -> None:
    assert run(["sh", "-c", f"kill -{int(number)} $$"]).returncode == -number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_to_us_reaches_the_command(number: signal.Signals) -> None:
    with subprocess.Popen([*BARE, "sh", "-c", "echo ready; exec sleep 60"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(number)
        assert child.wait(20) == -number


def test_the_command_may_answer_a_signal_itself() -> None:
    script = "trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen([*BARE, "sh", "-c", script], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.terminate()
        assert child.stdout.read() == b"bye\n"
        assert child.wait(20) == 9


def test_standard_input_is_the_commands() -> None:
    assert run(["cat"], input=b"1\n2\n").stdout == b"1\n2\n"


def test_a_reader_that_leaves() -> None:
    words = " ".join(f"'{word}'" for word in [*BARE, "yes"])
    done = subprocess.run(
        ["bash", "-c", f"{words} | head -2; echo ${{PIPESTATUS[0]}}"], capture_output=True, timeout=60
    )
    assert done.stdout == b"y\ny\n141\n"


def test_a_daemon_it_leaves_behind_does_not_hold_us() -> None:
    began = time.monotonic()
    done = run(["sh", "-c", "sleep 30 & echo done"])
    assert done.stdout == b"done\n"
    assert time.monotonic() - began < 20


def test_much_output_arrives_whole() -> None:
    size = 64 << 20
    with subprocess.Popen([*BARE, "head", "-c", str(size), "/dev/zero"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        total = 0
        while piece := child.stdout.read(1 << 20):
            total += len(piece)
        assert (total, child.wait(30)) == (size, 0)


def test_a_command_that_is_not_there() -> None:
    done = subprocess.run([*RUN, "no-such-command"], capture_output=True, timeout=60)
    assert done.returncode == 127
    assert b"no-such-command" in done.stderr


def test_a_failed_command_is_diagnosed_and_its_status_kept() -> None:
    script = "echo 'ImportError: libhccl.so: cannot open shared object file' >&2; exit 5"
    done = subprocess.run([*RUN, "sh", "-c", script], capture_output=True, timeout=60)
    assert done.returncode == 5
    assert b"F06" in done.stderr
    assert done.stdout == b""


class Terminal:
    """A command on a pseudo terminal, as a person at a shell would have it."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execv(argv[0], list(argv))
        self.seen = b""

    def until(self, text: bytes, seconds: float = 20.0) -> None:
        end = time.monotonic() + seconds
        while text not in self.seen:
            left = end - time.monotonic()
            assert left > 0, self.seen
            ready, _, _ = select.select([self.master], [], [], left)
            if ready:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:
                    assert text in self.seen, self.seen
                    return

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def status(self) -> int:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.master)
                return status
            ready, _, _ = select.select([self.master], [], [], 0.05)
            if ready:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:
                    time.sleep(0.02)
        raise AssertionError("it did not end")


def test_on_a_terminal_the_command_sees_one() -> None:
    on = Terminal([*BARE, "sh", "-c", "test -t 0 && test -t 1 && stty size && exit 4"])
    assert os.WEXITSTATUS(on.status()) == 4


def test_control_c_on_a_terminal() -> None:
    on = Terminal([*BARE, "sh", "-c", "echo ready; exec sleep 60"])
    on.until(b"ready")
    on.type(b"\x03")
    status = on.status()
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT


def test_what_is_typed_reaches_the_command() -> None:
    on = Terminal([*BARE, "sh", "-c", "echo ready; read line; echo got:$line"])
    on.until(b"ready")
    on.type(b"hello\r")
    on.until(b"got:hello")
    assert on.status() == 0


def test_control_z_stops_both_and_continuing_goes_on() -> None:
    on = Terminal(["/bin/bash", "--norc", "-i"])
    words = " ".join(f"'{word}'" for word in BARE)
    on.type(f"PS1='prompt> '; {words} sh -c 'echo ready; sleep 1; echo awake'\r".encode())
    on.until(b"ready\r\n")
    on.type(b"\x1a")
    on.until(b"Stopped")
    on.type(b"fg\r")
    on.until(b"awake\r\n")
    on.seen = on.seen.partition(b"awake\r\n")[2]
    on.until(b"prompt> ")
    on.type(b"exit 0\r")
    assert on.status() == 0


def test_a_child_that_closes_its_terminal() -> None:
    on = Terminal([*BARE, "sh", "-c", "echo ready; exec <&- >&- 2>&-; sleep 0.3; exit 6"])
    assert os.WEXITSTATUS(on.status()) == 6


def test_the_ring_keeps_the_end_and_whole_lines() -> None:
    from envtune.launch_end import Ring

    ring = Ring(limit=100)
    for number in range(1000):
        ring.add(b"line %d\n" % number)
    kept = ring.text()
    assert len(kept) <= 100
    assert kept.endswith(b"line 999\n")
    assert kept.startswith(b"line ")


def test_the_jobs_plog_is_read_too(tmp_path: Path) -> None:
    folder = tmp_path / "ascend" / "log" / "debug" / "plog"
    line = "[ERROR] HCCL(7,python):2024-06-01-10:00:00.000.000 [x.cc:1]7 HCCL_RDMA_SL[1000] is invalid. except: [0, 7]"
    script = f"mkdir -p {folder}; echo '{line}' > {folder}/plog-7_20240601100000000.log; exit 1"
    env = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run([*RUN, "sh", "-c", script], capture_output=True, timeout=60, env=env)
    assert b"H101" in done.stderr
