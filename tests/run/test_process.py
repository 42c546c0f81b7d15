"""A command beside which envtune stands ends, is heard and hears as without it: pipes, files, signals.

Wherever it can be, the same command is run with and without us, and the two are compared.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, Callable, Sequence

import pytest
from helpers.rows import sampled
from helpers.terminals import BESIDE, ended_afterwards, shell_word, state_of, wait_until

WAYS = pytest.mark.parametrize("way", sampled([BESIDE, []], 2), ids=["beside", "alone"])


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


def run(argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(argv, timeout=120, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options})


def both(argv: Sequence[str], **options: Any) -> tuple[Any, Any]:
    """(status, stdout, stderr) alone and beside us."""
    done = [run([*way, *argv], **options) for way in ([], BESIDE)]
    alone, beside = ((d.returncode, d.stdout, d.stderr) for d in done)
    return alone, beside


# ------------------------------------------------------------------ how it ends


@pytest.mark.parametrize(
    "command", sampled(["echo out; echo err >&2; exit 3", "true", "false", "exit 7", "kill -SEGV $$"], 5)
)
def test_status_and_both_streams(command: str) -> None:
    alone, beside = both(sh(command))
    assert beside == alone


@pytest.mark.parametrize("name", sampled(["KILL", "TERM", "ABRT", "INT", "PIPE", "RTMIN"], 3))
def test_ends_by_the_same_signal(name: str) -> None:
    alone, beside = both(["bash", "-c", f"kill -{name} $$"])
    assert alone[0] < 0
    assert beside == alone


def test_a_crash_leaves_one_core_file_at_most(tmp_path: Path) -> None:
    import resource

    def cores() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)

    alone = run(sh("kill -SEGV $$"), cwd=tmp_path, preexec_fn=cores)
    left = len(list(tmp_path.iterdir()))
    beside = run([*BESIDE, *sh("kill -SEGV $$")], cwd=tmp_path, preexec_fn=cores)
    assert beside.returncode == alone.returncode == -signal.SIGSEGV
    assert len(list(tmp_path.iterdir())) <= 2 * left


def test_a_script_without_a_first_line_is_one_for_sh(tmp_path: Path) -> None:
    script = tmp_path / "job"
    script.write_text("echo $0 $1; exit 4\n")
    script.chmod(0o755)
    done = run([*BESIDE, str(script), "x"])
    assert (done.returncode, done.stdout) == (4, f"{script} x\n".encode())


# ------------------------------------------------------------------ where its output goes


def test_standard_input_is_the_commands() -> None:
    alone, beside = both(["wc", "-c"], input=b"x" * 300_000)
    assert beside == alone


def test_a_reader_that_leaves() -> None:
    for command in ("yes", "while echo y; do sleep 0.02; done"):
        script = f"{shell_word([*BESIDE, *sh(command)])} | head -1; echo ${{PIPESTATUS[0]}}"
        assert run(["bash", "-c", script]).stdout == b"y\n141\n"


def test_a_silent_reader_that_leaves_is_noticed_at_once(tmp_path: Path) -> None:
    """The second line is the one that finds nobody there, as without us; not one later."""
    log = tmp_path / "log"
    script = f"echo 1; while [ ! -e {tmp_path}/left ]; do sleep 0.01; done; sleep 0.1; echo 2; echo on > {log}; echo 3"
    shell = f"{shell_word([*BESIDE, *sh(script)])} | (head -1; touch {tmp_path}/left)"
    assert run(["bash", "-c", shell]).stdout == b"1\n"
    assert not log.exists()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_full_disk(stream: str) -> None:
    with open("/dev/full", "wb") as full:
        alone, beside = both(
            [sys.executable, "-c", f"import sys; print('x' * 9999, file=sys.{stream})"], **{stream: full}
        )
    assert beside == alone
    assert alone[0] != 0


def test_one_file_for_both_streams_keeps_their_order(tmp_path: Path) -> None:
    script = "for i in $(seq 200); do echo out $i; echo err $i >&2; done"
    found = []
    for way in ([], BESIDE):
        log = tmp_path / "log"
        log.write_text("before\n")
        with log.open("ab") as file:
            subprocess.run([*way, *sh(script)], stdout=file, stderr=subprocess.STDOUT, check=True, timeout=120)
        found.append(log.read_bytes())
    assert found[1] == found[0]
    assert found[0].startswith(b"before\nout 1\nerr 1\nout 2\n")


def test_one_pipe_for_both_streams_keeps_their_order() -> None:
    script = "for i in $(seq 200); do echo out $i; echo err $i >&2; done"
    alone, beside = both(sh(script), stderr=subprocess.STDOUT)
    assert beside == alone


def test_two_files_and_what_kind_they_are(tmp_path: Path) -> None:
    script = "test -f /dev/stdout && echo file; test -p /dev/stderr && echo pipe >&2; test -t 1 || echo no terminal"
    found = []
    for way in ([], BESIDE):
        with (tmp_path / "out").open("wb") as out:
            done = run([*way, *sh(script)], stdout=out)
        found.append(((tmp_path / "out").read_bytes(), done.stderr))
    assert found == [(b"file\nno terminal\n", b"pipe\n")] * 2


@WAYS
def test_closed_streams_stay_closed(way: list[str]) -> None:
    script = f"{shell_word([*way, *sh('ls /proc/self/fd/0 /proc/self/fd/1 2>/dev/null; exit 6')])} <&- >&-"
    assert run(["bash", "-c", script]).returncode == 6


def test_output_nobody_reads_for_a_while_arrives_whole() -> None:
    size = 64 << 20
    with subprocess.Popen([*BESIDE, "head", "-c", str(size), "/dev/zero"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        total = 0
        while piece := child.stdout.read(1 << 20):
            total += len(piece)
        assert (total, child.wait(60)) == (size, 0)


def test_a_socket_as_stdout() -> None:
    import socket

    ours, its = socket.socketpair()
    with ours, its:
        done = subprocess.run([*BESIDE, *sh("echo out; exit 2")], stdout=its, timeout=120)
        assert (done.returncode, ours.recv(100)) == (2, b"out\n")


def test_a_command_that_closes_its_streams_and_goes_on(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*BESIDE, *sh(f"exec >&- 2>&-; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exit 6")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        (tmp_path / "go").touch()
        assert child.wait(60) == 6


# ------------------------------------------------------------------ what it leaves running


def test_what_it_leaves_running_does_not_hold_us_and_keeps_its_output(tmp_path: Path) -> None:
    """`python train.py &` at the end of a launch script, stdout a pipe: it must not die of SIGPIPE."""
    script = f"(while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; seq 200000; echo last) & echo first; exit 3"
    with subprocess.Popen([*BESIDE, *sh(script)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"first\n"
        assert child.wait(60) == 3
        (tmp_path / "go").touch()
        rest = child.stdout.read().splitlines()
        assert (rest[0], rest[-1], len(rest)) == (b"1", b"last", 200001)


@pytest.mark.slow
def test_what_it_leaves_running_may_write_for_ever() -> None:
    with subprocess.Popen(
        [*BESIDE, *sh("yes & echo $! >&2; exit 3")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        yes = int(child.stderr.readline())
        with ended_afterwards(yes):
            while child.poll() is None:
                child.stdout.read(1 << 20)
            assert child.returncode == 3
            child.stdout.read(1 << 20)
            child.stdout.close()  # nobody reads it any more: it learns that, as without us
            wait_until(lambda: state_of(yes) in ("", "Z"), "yes goes on")


def test_what_is_written_through_another_process_arrives(tmp_path: Path) -> None:
    script = "exec > >(sleep 0.1; cat) 2>&1; echo said; exit 3"
    done = run([*BESIDE, "bash", "-c", script])
    assert (done.returncode, done.stdout) == (3, b"said\n")


# ------------------------------------------------------------------ signals

TELLS = """
import os, signal, sys, time
heard = []
for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT, signal.SIGRTMIN + 3):
    signal.signal(n, lambda n, _: heard.append(n))
child = os.fork()  # a data loader
print(os.getpid(), child, flush=True)
while not heard: time.sleep(0.01)
time.sleep(0.15)
if child == 0:
    os._exit(len(heard))
if sys.argv[1] == "alone":
    os.kill(child, signal.SIGKILL)
print(heard, os.waitpid(child, 0)[1], flush=True)
sys.exit(len(heard))
"""


def tell(way: Sequence[str], whom: str, send: Callable[[int], None]) -> tuple[Any, ...]:
    """What a command and its child hear when the launched process, or its group, is sent something."""
    with subprocess.Popen(
        [*way, sys.executable, "-c", TELLS, whom], stdout=subprocess.PIPE, start_new_session=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline(), child.stdout.readline()
        send(child.pid)
        return child.stdout.read(), child.wait(60)


@pytest.mark.parametrize("number", sampled([signal.SIGUSR1, signal.SIGTERM, signal.SIGRTMIN + 3], 3))
def test_a_signal_to_us_alone_reaches_the_command_alone(number: int) -> None:
    """A launcher's SIGUSR1 before the time limit: the command's data loaders must not get it."""
    alone, beside = (tell(way, "alone", lambda pid: os.kill(pid, number)) for way in ([], BESIDE))
    assert beside == alone
    assert alone == (f"[{int(number)}] 9\n".encode(), 1)


@pytest.mark.parametrize("number", sampled([signal.SIGINT, signal.SIGTERM], 2))
def test_a_signal_to_the_process_group_is_heard_once_by_each(number: int) -> None:
    alone, beside = (tell(way, "group", lambda pid: os.killpg(pid, number)) for way in ([], BESIDE))
    assert beside == alone
    assert alone == (f"[{int(number)}] {1 << 8}\n".encode(), 1)


def test_the_same_signal_twice() -> None:
    script = "n=0; trap 'n=$((n+1)); echo $n' TERM; echo ready; while [ $n -lt 2 ]; do sleep 0.02; done; exit 9"
    with subprocess.Popen([*BESIDE, *sh(script)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.terminate()
        assert child.stdout.readline() == b"1\n"
        child.terminate()
        assert child.stdout.readline() == b"2\n"
        assert child.wait(60) == 9


def test_ignored_signals_stay_ignored() -> None:
    """nohup, and `cmd &` of a script."""
    shown = "grep SigIgn /proc/self/status"
    script = f"trap '' HUP INT; {shown}; {shell_word([*BESIDE, *sh(shown)])}"
    first, second = run(["bash", "-c", script]).stdout.splitlines()
    assert first == second


def test_the_mask_and_the_defaults_are_those_of_our_parent() -> None:
    # By its path: where subprocess has one it uses posix_spawn, which has signals 32 and 33 ignored.
    shown = [shutil.which("grep") or "grep", "-E", "Sig(Blk|Ign|Cgt)", "/proc/self/status"]
    alone, beside = both(shown)
    assert beside == alone


def test_a_signal_while_the_reader_of_our_output_sleeps() -> None:
    with subprocess.Popen([*BESIDE, "yes"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        wait_until(lambda: state_of(child.pid) == "S", "it waits for its reader")
        child.terminate()
        child.stdout.read()
        assert child.wait(60) == -signal.SIGTERM


def test_whoever_kills_us_kills_the_command() -> None:
    with subprocess.Popen([*BESIDE, *sh("echo $$; exec sleep 60")], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        job = int(child.stdout.readline())
        with ended_afterwards(job):
            child.kill()
            wait_until(lambda: state_of(job) in ("", "Z"), "the command goes on")


@WAYS
def test_stopped_and_continued_from_outside(way: list[str]) -> None:
    argv = [*way, *sh("echo $$; read line; echo $line; exit 2")]
    pipes: dict[str, IO[bytes] | int] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    # A group of its own, as a shell's job has: the kernel drops SIGTSTP for a group that is orphaned, as ours may be.
    with subprocess.Popen(argv, **pipes, preexec_fn=os.setpgrp) as child:  # type: ignore[call-overload]
        job = int(child.stdout.readline())
        child.send_signal(signal.SIGTSTP)
        wait_until(lambda: state_of(job) == "T" and state_of(child.pid) == "T", "both are stopped")
        child.stdin.write(b"on\n")
        child.stdin.close()
        child.send_signal(signal.SIGCONT)
        assert child.stdout.read() == b"on\n"
        assert child.wait(60) == 2


# ------------------------------------------------------------------ what is kept


def test_the_ring_keeps_the_start_the_end_and_whole_lines() -> None:
    from envtune.run.result import Ring

    ring = Ring(limit=100, head=50)
    for number in range(100_000):
        ring.add(b"line %d\n" % number)
    head, tail = ring.parts()
    assert head == b"".join(b"line %d\n" % n for n in range(7))
    assert len(tail) <= 100
    assert tail.endswith(b"line 99999\n") and tail.startswith(b"line ")


def test_the_ring_of_a_short_output_is_the_output() -> None:
    from envtune.run.result import Ring

    ring = Ring(limit=100, head=50)
    for letter in b"one\ntwo\nthree":
        ring.add(bytes([letter]))
    assert ring.parts() == (b"one\ntwo\nthree", b"")


MEASURES = r"""
import os, sys
from envtune.run.process import run_command
script = "echo first; head -c 60000000 /dev/zero | tr '\\0' '\\n'; echo last"
kept = [k for k in run_command(["sh", "-c", script], os.environ).output if k.name != "stderr"][0]
status = open("/proc/self/status").read()  # getrusage counts the tests' own memory, too: we are their child
peak = int(status.partition("VmHWM:")[2].split()[0]) // 1024
print(kept.head[:6], kept.tail[-5:], len(kept.head), len(kept.tail), peak, file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["file", "pipe", "null"])
def test_memory_is_bounded_and_the_end_is_kept(place: str, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") if place == "file" else open(os.devnull, "wb") as out:
        script = f"{shell_word([sys.executable, '-c', MEASURES])}" + (" | cat > /dev/null" if place == "pipe" else "")
        done = subprocess.run(["bash", "-c", script], stdout=out, stderr=subprocess.PIPE, timeout=120)
    words = done.stderr.split()
    assert words[:3] == [b"b'first\\n'", b"b'last\\n'", b"262144"]
    assert 4_194_000 < int(words[3]) <= 4_194_304
    assert int(words[4]) < 60  # MiB
