"""Commands: their check, what they depend on, their output, and the command that undoes them."""

from __future__ import annotations

import os
import signal
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.executor_runs import apply
from helpers.killed_runs import (
    build,
    encoded,
    mark,
)

from envtune.executor.common import failpoint_hooks
from envtune.executor.files import digest
from envtune.executor.operations.command import matching
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


def test_what_was_added_is_not_undone_once_somebody_changed_it(tmp_path: Path, state: str) -> None:
    """The id of a rule is its own; its text may be another by now. A number alone is no change: it was loaded again."""
    table = tmp_path / "table"
    find = {"argv": ["cat", str(table)], "pattern": r"(?m)^.* ours # handle (?P<handle>\d+)$"}
    undo = {"argv": ["/bin/sh", "-c", f"sed -i '/handle {{handle}}$/d' {table}"], "find": find}
    add = ["/bin/sh", "-c", f"echo 'tcp dport 29688 ours # handle 8' >>{table}"]
    operation = {"op": "run", "argv": add, "check": {"argv": ["grep", "-q", "ours", str(table)]}, "undo": undo}
    for later, status in (("29689 ours # handle 8", "conflict"), ("29688 ours # handle 12", "undone")):
        table.write_text("")
        run = apply(state, operation)["run"]
        table.write_text(f"tcp dport {later}\n")
        result = undo_run(state, run)[0]
        assert (result["status"] == "undone") == (status == "undone"), result
        assert (table.read_text() == "") == (status == "undone")
        assert status == "undone" or "29688" in result["error"]


def test_a_command_waits_for_its_precondition(tmp_path: Path, state: str) -> None:
    """A rule is placed by its number: among other rules than planned the number means another place."""
    rules = tmp_path / "rules"
    rules.write_text("-A one packets 7\n-A drop packets 9\n# comment\n")
    planned = digest(matching("-A one \n-A drop ", "(?m)^-A .*$"))
    given = {"argv": ["cat", str(rules)], "pattern": "(?m)^-A .*$", "ignore": "packets [0-9]+", "digest": planned}
    check = {"argv": ["test", "-e", str(tmp_path / "done")]}
    operation = {"op": "run", "argv": ["touch", str(tmp_path / "done")], "check": check, "given": given}
    rules.write_text("-A drop packets 9\n-A one packets 7\n")
    result = apply(state, operation)
    assert result["status"] == "refused" and "has changed since the plan was made" in result["error"]
    assert not (tmp_path / "done").exists()
    rules.write_text("-A one packets 8\n-A drop packets 10\n")
    assert apply(state, operation)["status"] == "done"
    rules.write_text("-A one\n-A ours\n")  # what is done already rests on nothing
    assert apply(state, operation)["status"] == "done"


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


def zone_tool(folder: Path) -> tuple[Path, Any]:
    """A stand-in for firewall-cmd: it copies the vendor's zone, keeps an `.old`, and writes the text its own way."""
    zone = folder / "etc" / "zones" / "public.xml"
    (folder / "vendor.xml").write_text("<zone/>\n")
    keep = f"mkdir -p {zone.parent}; test ! -e {zone} || cp {zone} {zone}.old"
    write = f"{keep}; (cat {zone} 2>/dev/null || cat {folder}/vendor.xml)"
    add = ["/bin/sh", "-c", f"{write} >{folder}/t; echo 'rule' >>{folder}/t; cat {folder}/t >{zone}"]
    remove = ["/bin/sh", "-c", f"{write} | grep -v rule >{folder}/t; cat {folder}/t >{zone}"]
    operation = {
        "op": "run",
        "argv": add,
        "check": {"argv": ["grep", "-q", "rule", str(zone)]},
        "undo": {"argv": remove},
        "files": [str(zone), f"{zone}.old"],
    }
    return zone, operation


def test_the_files_a_command_writes_are_put_back_byte_by_byte(tmp_path: Path, state: str) -> None:
    zone, operation = zone_tool(tmp_path)
    run = apply(state, operation)["run"]
    assert zone.read_text() == "<zone/>\nrule\n"
    assert undo_run(state, run)[0]["status"] == "undone"
    assert not (tmp_path / "etc").exists(), "neither the copy of the vendor's zone nor the directory that was made"
    zone.parent.mkdir(parents=True)
    zone.write_text("<zone><!-- mine --></zone>\n")
    os.utime(zone, (1, 1))
    run = apply(state, operation)["run"]
    assert Path(f"{zone}.old").exists()
    assert undo_run(state, run)[0]["status"] == "undone"
    assert os.listdir(zone.parent) == ["public.xml"]
    assert zone.read_text() == "<zone><!-- mine --></zone>\n" and zone.stat().st_mtime == 1


def test_files_that_others_wrote_since_keep_what_they_wrote(tmp_path: Path, state: str) -> None:
    zone, operation = zone_tool(tmp_path)
    run = apply(state, operation)["run"]
    zone.write_text(zone.read_text() + "<port 22/>\n")
    assert undo_run(state, run)[0]["status"] == "undone"
    assert zone.read_text() == "<zone/>\n<port 22/>\n"


@pytest.mark.parametrize("point", ["command-started", "command-ended", "undo-command-ended"])
def test_files_are_put_back_after_a_kill_too(tmp_path: Path, state: str, point: str) -> None:
    """Killed where the command has written and nothing is noted yet, and where it is undone and not put back."""
    operation = zone_tool(tmp_path)[1]

    def stop(name: str) -> None:
        if name == point:
            raise SystemExit

    failpoint_hooks.append(stop)
    run = ""
    try:
        run = apply(state, operation)["run"]
        undo_run(state, run)
    except SystemExit:
        pass
    finally:
        failpoint_hooks.remove(stop)
    (name,) = os.listdir(Path(state) / "runs")
    assert undo_run(state, name)[0]["status"] == "undone"
    assert not (tmp_path / "etc").exists()


def test_what_another_did_meanwhile_is_neither_done_nor_undone(tmp_path: Path, state: str) -> None:
    """`already` finds somebody else's rule; `unchanged` is what the tool says when it came a moment earlier."""
    rules = tmp_path / "rules"
    rules.write_text("allow 29688\n")
    operation = {
        "op": "run",
        "argv": ["/bin/sh", "-c", f"echo 'allow 29688 # ours' >{rules}; echo ALREADY_ENABLED"],
        "check": {"argv": ["cat", str(rules)], "contains": "# ours"},
        "undo": {"argv": ["sed", "-i", "/allow/d", str(rules)]},
    }
    already = {"argv": ["cat", str(rules)], "pattern": "(?m)^allow 29688( #.*)?$"}
    run = apply(state, {**operation, "already": already})["run"]
    assert rules.read_text() == "allow 29688\n" and undo_run(state, run) == []
    rules.write_text("")
    run = apply(state, {**operation, "already": already})["run"]
    rules.write_text("allow 29688\n")  # the administrator has made it his own: ours is gone
    assert undo_run(state, run)[0]["status"] == "undone" and rules.read_text() == "allow 29688\n"
    run = apply(state, {**operation, "unchanged": "ALREADY_ENABLED"})["run"]
    assert undo_run(state, run)[0]["status"] == "undone" and rules.read_text() == "allow 29688 # ours\n"


def test_whether_a_stopped_service_holds_it_is_not_guessed(tmp_path: Path, state: str) -> None:
    zone, operation = zone_tool(tmp_path)
    stopped = tmp_path / "stopped"
    query = ["/bin/sh", "-c", f"test ! -e {stopped} || exit 252; grep -q rule {zone}"]
    run = apply(state, {**operation, "check": {"argv": query}})["run"]
    stopped.touch()
    written = zone.read_text()
    zone.write_text(written + "more\n")
    (result,) = undo_run(state, run)
    assert result["status"] == "failed" and "252" in result["error"] and zone.read_text() == written + "more\n"
    zone.write_text(written)
    assert undo_run(state, run)[0]["status"] == "undone" and not zone.exists()
