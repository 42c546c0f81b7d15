"""Secrets of a log, and of an error of ours, are in nothing that envtune prints or keeps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command_line import run
from helpers.secret_values import rows

ERRORS = ("EI0006: Getting socket times out.", "RuntimeError: nobody knows this")  # an entry's, and nobody's


@pytest.mark.parametrize("language", ["text", "json", "markdown"])
def test_no_secret_of_a_log_is_in_a_diagnosis(language: str, tmp_path: Path) -> None:
    """On the line that is shown, and on those around it."""
    log = tmp_path / "train.log"
    for number, row in enumerate(list(rows("secrets", "texts"))[::6]):
        log.write_text(f"{row.text}\n{ERRORS[number % 2]} {row.text}\n{row.text}\n")
        done = run("diagnose", str(log), "--no-check", "--format", language, "--lang", "en")
        assert done.exit_code == (1, 4)[number % 2] and "redacted" in done.output, done.output
        assert not [secret for secret in row.secrets if secret in done.output], (row.text, done.output)


def test_no_secret_is_in_a_crash_report(tmp_path: Path) -> None:
    row = next(iter(rows("secrets", "texts")))
    code = (
        "import sys; sys.argv = ['envtune', 'list', 'faq']\n"
        "from envtune.cli import list_, main\n"
        f"def broken(*_):\n    raise ValueError({row.text!r})\n"
        "list_.table = broken\nmain()"
    )
    env = {"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    (path,) = tmp_path.glob("envtune-crash-*/*")
    told = path.read_text() + done.stderr
    assert done.returncode == 70 and "redacted" in told
    assert not [secret for secret in row.secrets if secret in told], told
