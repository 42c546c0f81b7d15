"""The command line in the process of the tests, where a process of its own would prove nothing more."""

from __future__ import annotations

import inspect
import os
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from envtune.cli.app import app

# click below 8.2, the last for Python 3.9, mixes the two streams unless told otherwise; later ones have no such switch
SEPARATE = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner.__init__).parameters else {}
RUNNER = CliRunner(**SEPARATE)
EXIT = os._exit


def run(*arguments: str) -> Any:
    """What `envtune` with these arguments prints, and its exit code."""
    ours = os.getpid()

    def end(code: int) -> None:
        """`check` does not wait for its threads; a process that it has forked must not come back into the tests."""
        if os.getpid() != ours:
            EXIT(code)
        sys.exit(code)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "_exit", end)
        return RUNNER.invoke(app, list(arguments))
