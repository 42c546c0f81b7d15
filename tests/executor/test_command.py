"""Commands: their check, what they depend on, their output, and the command that undoes them."""

from __future__ import annotations

import os
import signal
import stat
import time
from pathlib import Path
from typing import Any

from helpers.executor_runs import apply
from helpers.killed_runs import (
    build,
    change,
    encoded,
    mark,
)

from envtune.executor.files import digest
from envtune.executor.operations.command import matching
from envtune.executor.plan import stale_changes
from envtune.executor.recover import undo_run


def test_the_undo_command_names_what_it_found(tmp_path: Path, state: str) -> None:
    table = tmp_path / "table"
    table.write_text("{ tcp dport 22 } # handle 3\n")
    add = ["/bin/sh", "-c", f"echo '{{ tcp dport 29688 }} # handle 7' >>{table}"]
    find = {"argv": ["cat", str(table)], "pattern": r"29688 } # handle (?P<handle>\d+)"}
    undo = {"argv": ["/bin/sh", "-c", f"sed -i '/{{handle}}$/d; s/{{ tcp/{{ tcp/' {table}"], "find": find}
    run = apply(state, {"op": "run", "argv": add, "check": {"argv": ["grep", "29688", str(table)]}, "undo": undo})[
        "run"
    ]
    assert "29688" in table.read_text()
    assert undo_run(state, run)[0]["status"] == "undone"
    assert table.read_text() == "{ tcp dport 22 } # handle 3\n"


def test_a_command_waits_for_its_precondition(tmp_path: Path, state: str) -> None:
    """A rule is placed by its number: among other rules than planned the number means another place."""
    rules = tmp_path / "rules"
    rules.write_text("-A one packets 7\n-A drop packets 9\n# comment\n")
    planned = digest(matching("-A one \n-A drop ", "(?m)^-A .*$"))
    given = {"argv": ["cat", str(rules)], "pattern": "(?m)^-A .*$", "ignore": "packets [0-9]+", "digest": planned}
    check = {"argv": ["test", "-e", str(tmp_path / "done")]}
    operation = {"op": "run", "argv": ["touch", str(tmp_path / "done")], "check": check, "given": given}
    plan = {"changes": [change("C01", operation)]}
    assert stale_changes(plan) == {}
    rules.write_text("-A drop packets 9\n-A one packets 7\n")
    assert "tells something else than when the plan was made" in str(stale_changes(plan)["C01"])
    assert apply(state, operation)["status"] == "refused" and not (tmp_path / "done").exists()
    rules.write_text("-A one packets 8\n-A drop packets 10\n")
    assert apply(state, operation)["status"] == "done"
    rules.write_text("-A one\n-A ours\n")  # what is done already rests on nothing
    assert stale_changes(plan) == {} and apply(state, operation)["status"] == "done"


def test_a_command_that_fails_or_hangs_is_reported_with_its_last_lines(tmp_path: Path, state: str) -> None:
    check = {"argv": ["false"]}
    failing = {"op": "run", "argv": ["/bin/sh", "-c", "echo reading lists; echo no space; exit 100"], "check": check}
    result = apply(state, failing)
    assert result["status"] == "failed" and "100" in result["error"] and "no space" in result["error"]
    log = Path(state) / "runs" / result["run"] / "output.log"
    assert "reading lists\nno space\n" in log.read_text() and stat.S_IMODE(log.stat().st_mode) == 0o600
    began = time.monotonic()
    hanging = apply(state, {"op": "run", "argv": ["sleep", "60"], "check": check, "timeout": 0.3})
    assert "did not end" in hanging["error"] and time.monotonic() - began < 50


def test_output_comes_while_the_command_runs_and_a_daemon_is_not_waited_for(tmp_path: Path, state: str) -> None:
    lines: list[str] = []

    def note(kind: str, record: Any) -> None:
        if kind == "output":
            lines.append(record["line"])
            (tmp_path / "seen").touch()

    script = (
        f"cd {tmp_path}; echo one; until test -e seen; do sleep 0.02; done; echo two; touch done; "
        "sleep 600 & echo $! > daemon"
    )
    operation = {
        "op": "run",
        "argv": ["/bin/sh", "-c", script],
        "check": {"argv": ["test", "-e", str(tmp_path / "done")]},
    }
    assert apply(state, operation, on_event=note)["status"] == "done"
    assert lines == ["one", "two"]
    os.kill(int((tmp_path / "daemon").read_text()), signal.SIGKILL)  # raises where it has ended


def test_a_marked_command_is_not_run_twice(tmp_path: Path, state: str) -> None:
    build(tmp_path)
    apply(state, mark(tmp_path, "six"))
    apply(state, mark(tmp_path, "six"))
    assert (tmp_path / "marks").read_text() == "six\n"
    assert encoded(b"x") == "eA=="
