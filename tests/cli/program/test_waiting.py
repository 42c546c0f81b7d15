"""Progress on a terminal: what is waited for, from one second on, and gone when the report comes."""

from __future__ import annotations

import os
import pty
import signal
import sys
import warnings
from pathlib import Path

import pytest
from helpers.examples import ROOT

SLOW = """\
import sys, time; sys.argv = ["envtune", *sys.argv[1:]]
from envtune.cli import main
from envtune.catalog import Catalogue
from envtune.model import *
from envtune.messages import Literal
from envtune.context.registry import probe
@probe('test.slow')
def slow(context):
    context.host.run(['/bin/sh', '-c', 'sleep 2; true'], timeout=20)
    yield Reading('', 1, Evidence('x', 'y'))
word = Literal('slow')
check = Check('TST001', 'slow-one', word, 'stable', Severity.LOW, word, 'guide', 'test.slow', {}, {'eq': 1})
Catalogue.checks = property(lambda self: (check,))
main()
"""


def on_a_terminal(code: str, *words: str, keys: bytes = b"", folder: Path) -> tuple[str, int]:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TERM": "xterm", "LC_ALL": "C.UTF-8", "PYTHONPATH": str(ROOT)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execve(sys.executable, [sys.executable, "-c", code, *words], env)
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 65536)
        except OSError:
            break
        if keys and b"Ctrl-D" in shown:
            os.write(terminal, keys)
            keys = b""
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return shown.decode("utf-8"), os.waitstatus_to_exitcode(status)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lang", "expected"),
    [
        ("en", "checking TST001 slow-one (/bin/sh -c sleep 2; true, up to 20 s) ..."),
        ("zh", "正在检查 TST001 slow-one（/bin/sh -c sleep 2; true，最长 20 秒）"),
    ],
)
def test_a_check_that_waits_for_a_command(lang: str, expected: str, tmp_path: Path) -> None:
    shown, status = on_a_terminal(SLOW, "--lang", lang, "check", "--select", "TST001", folder=tmp_path)
    assert status == 0, shown
    drawn, _, report = shown.rpartition("\r\033[K\r")
    assert expected in drawn and "TST001 slow-one" not in report and "\033[K" not in report


@pytest.mark.slow
def test_standard_input_on_a_terminal(tmp_path: Path) -> None:
    code = "import sys; sys.argv = ['envtune', *sys.argv[1:]]\nfrom envtune.cli import main\nmain()"
    shown, status = on_a_terminal(code, "diagnose", "-", "--no-check", keys=b"step 1 ok\n\x04", folder=tmp_path)
    assert status == 0 and "reading standard input; end with Ctrl-D" in shown


def test_an_interrupted_program_leaves_the_cursor_in_a_line_of_its_own(tmp_path: Path) -> None:
    """A shell goes to a new line only where a program died of the signal; the terminal has shown `^C`."""
    code = "import sys; sys.argv = ['envtune', *sys.argv[1:]]\nfrom envtune.cli import main\nmain()"
    shown, status = on_a_terminal(code, "diagnose", "-", "--no-check", keys=b"step 1\x03", folder=tmp_path)
    assert status == 130 and shown.endswith("\n") and "Traceback" not in shown


@pytest.mark.slow
def test_a_large_log_by_percent(tmp_path: Path) -> None:
    """What is shown grows, and the file's name stands before it."""
    log = tmp_path / "train.log"
    log.write_bytes(
        b"2026-01-01 12:00:00 step 17 of 1000, loss 0.25, grad norm 1.5, nothing of note here\n" * 3_000_000
    )
    code = (
        "import sys; sys.argv = ['envtune', *sys.argv[1:]]\nimport envtune.cli.program.waiting as waiting\n"
        "waiting.AFTER = waiting.EVERY = 0.02\nfrom envtune.cli import main\nmain()"
    )
    shown, status = on_a_terminal(code, "diagnose", str(log), "--no-check", folder=tmp_path)
    assert status == 0, shown
    import re

    percents = [int(number) for number in re.findall(r"reading train\.log (\d+)% \.\.\.", shown)]
    assert percents and max(percents) > min(percents) and max(percents) <= 100


@pytest.mark.slow
def test_the_line_is_taken_away_where_all_goes_to_files(tmp_path: Path) -> None:
    shown, status = on_a_terminal(SLOW, "check", "-f", f"json={tmp_path / 'report.json'}", folder=tmp_path)
    assert "checking TST001" in shown and shown.endswith("\r\033[K\r") and status == 0


def test_the_end_of_the_program_stops_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its timer would end the interpreter, which has dropped the handler by then."""
    from envtune import cli
    from envtune.report.output import StandardStream

    stopped: list[bool] = []
    monkeypatch.setattr(StandardStream, "before_output", lambda: stopped.append(True))
    cli._stop_waiting()
    monkeypatch.setattr(StandardStream, "before_output", None)
    cli._stop_waiting()
    assert stopped == [True]
