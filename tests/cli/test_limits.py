"""A recorded host is read within limits by the verbs that are not `check`, too."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Sequence

import pytest
from helpers.recorded import host_data
from helpers.rows import sampled

from envtune.audit import limited

HARMFUL = """
import sys
from envtune.audit import limited
from envtune.context import open as opening
limited.CPU = 1

def read(path):
    {act}

opening.open_host = read
from envtune.cli import main
main()
"""


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    path = tmp_path / "host.json"
    path.write_text(json.dumps(host_data("plain-debian12")))
    return path


def ended(words: Sequence[str], act: str) -> subprocess.CompletedProcess[str]:
    """Run a verb whose reading of a snapshot does `act`."""
    argv = [sys.executable, "-c", HARMFUL.format(act=act), *words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, env={**os.environ, "LC_ALL": "C.UTF-8"})


VERBS = (["fix"], ["env"], ["diagnose", "/dev/null"])


@pytest.mark.parametrize("verb", sampled(VERBS, 3), ids=" ".join)
def test_what_takes_too_much_memory_is_not_read(verb: list[str], snapshot: Path) -> None:
    result = ended([*verb, "--snapshot", str(snapshot)], "bytearray(1 << 34)")
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr == "envtune: not enough memory\n"


@pytest.mark.slow
def test_what_takes_too_long_is_not_read(snapshot: Path) -> None:
    result = ended(["fix", "--snapshot", str(snapshot)], "while True: pass")
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr == f"envtune: {snapshot}: it takes more than 1 s of CPU\n"


def test_a_signal_ends_both(snapshot: Path) -> None:
    act = "print(__import__('os').getpid(), flush=True); __import__('time').sleep(600)"
    argv = [sys.executable, "-c", HARMFUL.format(act=act), "fix", "--snapshot", str(snapshot)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.terminate()
        assert process.wait(timeout=120) == -signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS[:2], ids=" ".join)
def test_within_the_limits_nothing_is_different(verb: list[str], snapshot: Path) -> None:
    def answer(*before: str) -> tuple[int, str]:
        argv = [sys.executable, "-c", f"{';'.join(before)}\nfrom envtune.cli import main\nmain()", *verb]
        result = subprocess.run([*argv, "--snapshot", str(snapshot)], capture_output=True, text=True, timeout=120)
        return result.returncode, result.stdout

    assert answer() == answer("import envtune.cli.options as o", "o.limit_reading = lambda *_, **__: None")


def test_the_limits_are_those_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "setrlimit", lambda which, values: wanted.update({which: values}))
    monkeypatch.setattr(resource, "getrlimit", lambda which: (10, 10))
    limited.limit_process(60)
    assert all(soft <= hard <= 10 for soft, hard in wanted.values())
