"""At a terminal: the command is a job of it as without us. Real shells, real job control, on pseudo terminals."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from typing import Sequence

import pytest
from helpers.rows import sampled
from helpers.terminals import BESIDE, Terminal, alive, ended_afterwards, shell_word, state_of, wait_until

WAYS = pytest.mark.parametrize("way", sampled([BESIDE, []], 2), ids=["beside", "alone"])
SH, BASH = "/bin/sh", "/bin/bash"


def on(way: Sequence[str], script: str) -> Terminal:
    return Terminal([*way, SH, "-c", script])


def under(way: Sequence[str], script: str) -> Terminal:
    """The same below a shell: the command does not lead the session."""
    return Terminal([SH, "-c", f"{shell_word([*way, SH, '-c', script])}; exit $?"])


def shell(way: Sequence[str], script: str, end: bytes = b"") -> Terminal:
    """The command as the foreground job of an interactive bash."""
    env = {**os.environ, "PS1": "prompt> ", "HISTFILE": "", "TERM": "dumb"}
    terminal = Terminal([BASH, "--norc", "--noprofile", "-i"], env=env)
    terminal.until(b"prompt> ")
    terminal.type(shell_word([*way, SH, "-c", script]).encode() + end + b"\r")
    return terminal


def both(script: str, typed: bytes = b"", argv: Sequence[str] = ()) -> None:
    """What is seen on the terminal and the end are the same alone and beside us."""
    seen = []
    for way in ([], BESIDE):
        terminal = Terminal([*way, *argv]) if argv else on(way, script)
        if typed:
            before = terminal.until(b"ready")
            terminal.type(typed)
        else:
            before = b""
        status = terminal.end()
        seen.append((before + terminal.seen, status))
    assert seen[1] == seen[0]


# ------------------------------------------------------------------ what the command finds


@pytest.mark.parametrize(
    "script",
    sampled(
        [
            "stty -a; stty size; tput cols; test -t 0 && test -t 1 && test -t 2 && exit 4",
            "printf 'a\\nb\\r\\n\\tc\\033[1mbold\\033[0m'; printf 'no end'",
            "test -t 0 || echo no stdin; echo err >&2; echo out; exit 3",
            "kill -SEGV $$",
        ],
        2,
    ),
)
def test_what_is_seen(script: str) -> None:
    both(script)


def test_the_output_is_a_terminal_of_the_same_size_and_modes() -> None:
    code = "import os, termios as t; print(os.get_terminal_size(), os.get_terminal_size(2), t.tcgetattr(1)[2:6])"
    both("", argv=[sys.executable, "-c", code])


def test_typing() -> None:
    both("printf 'ready\\n'; read line; echo got:$line; read line; echo got:$line", b"one\rtwo\r")
    both("printf 'ready\\n'; cat; echo end", b"text\r\x04")
    both("stty -echo </dev/tty; printf 'ready\\n'; read x </dev/tty; stty echo; echo $x", b"secret\r")


@pytest.mark.parametrize(("key", "number"), [(b"\x03", signal.SIGINT), (b"\x1c", signal.SIGQUIT)])
def test_keys_that_end(key: bytes, number: int) -> None:
    for way in ([], BESIDE):
        terminal = on(way, "ulimit -c 0; echo ready; exec sleep 60")
        terminal.until(b"ready\r\n")
        terminal.type(key)
        status = terminal.end()
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == number


@WAYS
def test_control_c_ends_the_script_around_it_too(way: list[str]) -> None:
    terminal = Terminal([BASH, "-c", f"{shell_word([*way, SH, '-c', 'echo ready; exec sleep 60'])}; echo after"])
    terminal.until(b"ready\r\n")
    terminal.type(b"\x03")
    assert os.WTERMSIG(terminal.end()) == signal.SIGINT
    assert b"after" not in terminal.seen


@pytest.mark.slow
def test_a_command_that_answers_control_c_hears_it_once() -> None:
    both("trap 'echo int' INT; echo ready; sleep 0.3; sleep 0.3; echo end; exit 5", b"\x03")


@WAYS
def test_resizing(way: list[str]) -> None:
    code = (  # os.write: a handler that prints while its program prints is a re-entrant call
        "import os, signal\n"
        "def say(word): os.write(1, ('%s %d %d\\n' % (word, *os.get_terminal_size(1))).encode())\n"
        "signal.signal(signal.SIGWINCH, lambda *_: say('now'))\nsay('ready')\nwhile True: signal.pause()"
    )
    terminal = Terminal([*way, sys.executable, "-c", code])
    terminal.until(b"ready 80 24\r\n")
    terminal.resize(50, 132)
    terminal.until(b"now 132 50\r\n")
    terminal.type(b"\x03")
    terminal.end()


@pytest.mark.slow
@WAYS
def test_standard_error_elsewhere_stays_there(way: list[str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    inner = shell_word([*way, SH, "-c", "test -t 1 && echo screen; test -t 2 || echo file >&2"])
    terminal = Terminal([SH, "-c", f"{inner} 2>{log}"])
    assert terminal.end() == 0
    assert (terminal.seen, log.read_text()) == (b"screen\r\n", "file\n")


@pytest.mark.slow
@WAYS
def test_output_through_a_pager(way: list[str]) -> None:
    """`envtune run -- cmd | less`: the reader at the end of the pipe has the keyboard."""
    pager = "read answer </dev/tty; echo answer $answer; cat"
    terminal = Terminal(
        [BASH, "-ic", f"{shell_word([*way, SH, '-c', 'echo text; echo progress >&2'])} | {{ {pager}; }}"]
    )
    terminal.until(b"progress\r\n")
    terminal.type(b"yes\r")
    terminal.until(b"answer yes\r\ntext\r\n")
    assert terminal.end() == 0


def test_a_program_that_sets_modes_on_its_output() -> None:
    """curses does; without a key being a line the answer would never come."""
    code = (
        "import sys, termios, tty\nold = termios.tcgetattr(1)\ntty.setcbreak(1)\nprint('ready', flush=True)\n"
        "print('key', sys.stdin.read(1))\ntermios.tcsetattr(1, termios.TCSADRAIN, old)"
    )
    terminal = Terminal([*BESIDE, sys.executable, "-c", code])
    terminal.until(b"ready\r\n")
    wait_until(lambda: not _canonical(terminal), "the modes are carried over")
    terminal.type(b"k")
    terminal.until(b"key k\r\n")
    assert terminal.end() == 0


def _canonical(terminal: Terminal) -> bool:
    import termios

    return bool(termios.tcgetattr(terminal.master)[3] & termios.ICANON)


# ------------------------------------------------------------------ job control


@WAYS
def test_control_z_and_fg(way: list[str]) -> None:
    terminal = shell(way, "echo ready; read line; echo awake; exit 7")
    terminal.until(b"ready\r\n")
    terminal.type(b"\x1a")
    terminal.until(b"Stopped")
    terminal.until(b"prompt> ")
    terminal.type(b"fg\r")
    terminal.given_to_the_job()
    terminal.type(b"go\r")
    terminal.until(b"awake\r\n")
    terminal.until(b"prompt> ")
    terminal.type(b"echo status $?; exit 0\r")
    terminal.until(b"\nstatus 7\r\n")
    assert terminal.end() == 0


@pytest.mark.slow
@WAYS
def test_control_z_twice_then_control_c(way: list[str]) -> None:
    terminal = shell(way, "echo ready; exec sleep 60")
    terminal.until(b"ready\r\n")
    for _ in range(2):
        terminal.type(b"\x1a")
        terminal.until(b"Stopped")
        terminal.until(b"prompt> ")
        terminal.type(b"fg\r")
        terminal.given_to_the_job()
    terminal.type(b"\x03")
    terminal.until(b"prompt> ")
    terminal.type(b"echo status $?; exit 0\r")
    terminal.until(b"\nstatus 130\r\n")
    assert terminal.end() == 0


@WAYS
def test_in_the_background_it_stops_when_it_wants_to_read(way: list[str]) -> None:
    terminal = shell(way, "echo begun; read line; echo got:$line", b" &")
    terminal.until(b"begun\r\n")
    terminal.type(b"wait\r")
    terminal.until(b"Stopped")
    terminal.type(b"fg\r")
    terminal.given_to_the_job()
    terminal.type(b"text\r")
    terminal.until(b"\ngot:text\r\n")
    terminal.type(b"exit 0\r")
    terminal.until(b"exit\r\n")
    assert terminal.end() == 0


@WAYS
def test_a_terminal_that_goes_away(way: list[str], tmp_path: Path) -> None:
    note = tmp_path / "note"
    script = f"trap 'echo hup >>{note}; exit 0' HUP; echo ready $$; while :; do sleep 0.02; done"
    terminal = on(way, script)
    job = int(re.findall(rb"ready (\d+)", terminal.until(b"\r\n"))[0])
    with ended_afterwards(job):
        terminal.hang_up()
        terminal.end()
        wait_until(lambda: not alive(job), "the command goes on")
        assert note.read_text() == "hup\n"


@pytest.mark.slow
@WAYS
def test_a_terminal_that_goes_away_from_a_command_that_does_not_mind(way: list[str], tmp_path: Path) -> None:
    note = tmp_path / "note"
    script = (
        f"trap '' HUP PIPE; echo ready $$; while echo out; do sleep 0.02; done 2>/dev/null; echo told >{note}; exit 3"
    )
    terminal = on(way, script)
    job = int(re.findall(rb"ready (\d+)", terminal.until(b"\r\n"))[0])
    with ended_afterwards(job):
        terminal.hang_up()
        assert os.WEXITSTATUS(terminal.end()) == 3
        assert note.read_text() == "told\n"


# ------------------------------------------------------------------ ends of streams


@WAYS
def test_a_command_that_closes_its_terminal_and_goes_on(way: list[str], tmp_path: Path) -> None:
    terminal = under(way, f"echo ready; exec <&- >&- 2>&-; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exit 6")
    terminal.until(b"ready\r\n")
    (tmp_path / "go").touch()
    assert os.WEXITSTATUS(terminal.end()) == 6


@pytest.mark.slow
@WAYS
def test_one_that_closes_it_and_opens_it_again(way: list[str]) -> None:
    terminal = under(way, "exec 3>&1 >&- 2>&-; sleep 0.1; exec >/dev/tty; echo again; echo old >&3; exit 2")
    assert os.WEXITSTATUS(terminal.end()) == 2
    assert sorted(terminal.seen.split()) == [b"again", b"old"]


@WAYS
def test_what_it_leaves_running_keeps_the_terminal(way: list[str], tmp_path: Path) -> None:
    script = f"(while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo late; touch {tmp_path}/said) & echo first"
    terminal = shell(way, script)
    terminal.until(b"first\r\n")
    terminal.until(b"prompt> ")
    (tmp_path / "go").touch()
    terminal.until(b"late\r\n")
    wait_until((tmp_path / "said").exists, "it was told an error")
    terminal.type(b"exit 0\r")
    assert terminal.end() == 0


def test_much_output() -> None:
    both("seq 60000")


def test_nothing_is_left_raw_when_we_are_killed() -> None:
    terminal = on(BESIDE, "echo $PPID $$; exec sleep 60")
    ours, job = (int(word) for word in terminal.until(b"\r\n").split())
    with ended_afterwards(job):
        os.kill(ours, signal.SIGKILL)
        wait_until(lambda: state_of(job) in ("", "Z"), "the command goes on")
        assert _canonical(terminal)
    terminal.end()
