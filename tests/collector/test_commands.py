"""Why a command has no output is recorded as what it is."""

from __future__ import annotations

import errno
import os
import subprocess
from typing import Any

import pytest

from envtune.collector.commands import run_command
from envtune.errors import Missing, Unreadable
from envtune.host import command_result
from envtune.snapshot.host import SnapshotHost


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE])
def test_no_process_to_be_had_is_not_a_missing_program(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(subprocess, "Popen", refused)
    row = run_command(("cat", "/none"))
    assert row["error"] == errno.errorcode[number]
    with pytest.raises(Unreadable, match=errno.errorcode[number]):
        command_result(row)
    with pytest.raises(Unreadable):
        SnapshotHost({"commands": [row]}).run(("cat", "/none"))


def test_a_missing_program_is_missing() -> None:
    with pytest.raises(Missing):
        command_result(run_command(("no-such-program-here",)))
