"""`envtune history`: who changed what and when, and which records may go."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import Any, Callable

import pytest
from helpers.fix_world import World
from helpers.rows import sampled

from envtune.executor.history import recorded_runs


def named(world: World) -> list[str]:
    return [run.name for run in recorded_runs(str(world.state))]


def test_who_when_and_what(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "alice\x1b[31m\nroot")
    world.run("fix", "SYS901", "--apply", "--yes")
    monkeypatch.setenv("SUDO_USER", "bob")
    world.run("undo")
    (run,) = json.loads(world.run("history", "--format", "json").stdout)["runs"]
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert run["by"]["uid"] == os.geteuid() and run["by"]["user"] == user
    assert run["by"]["sudo_user"] == "alice?[31m?root" and run["undone_by"]["sudo_user"] == "bob"
    told = world.run("history").stdout
    assert run["begun"] in told and f"{user} (sudo: alice?[31m?root" in told and "\x1b" not in told
    assert run["undone"] in told and f"{user} (sudo: bob" in told


def runs_of_each_kind(world: World) -> dict[str, str]:
    """One that was undone, one of which nothing was written, and one that can be undone."""
    world.run("fix", "SYS901", "--apply", "--yes")
    world.run("undo")
    world.operations["SYS901"] = lambda path: [_refused(path)]
    world.run("fix", "SYS901", "--apply", "--yes")
    del world.operations["SYS901"]
    world.run("fix", "SYS901", "--apply", "--yes")
    return dict(zip(("undone", "failed", "applied"), named(world)))


def _refused(path: Any) -> dict[str, Any]:
    from helpers.killed_runs import write

    return write(path, b"something else", b"good\n")


@pytest.mark.parametrize(
    ("words", "stay"),
    [
        ([], {"applied"}),
        (["--keep", "2"], {"applied", "failed"}),
        (["--older-than", "1"], {"applied", "failed", "undone"}),
        (["--lose-undo"], set()),
        (["--lose-undo", "--keep", "1"], {"applied"}),
    ],
)
def test_only_what_cannot_be_undone_is_pruned(world: World, words: list[str], stay: set[str]) -> None:
    kinds = runs_of_each_kind(world)
    done = world.run("history", "--prune", *words)
    assert done.exit_code == 0 and named(world) == [name for kind, name in kinds.items() if kind in stay]
    assert world.contents()[0] == "good" and set(os.listdir(world.state / "runs")) == {kinds[kind] for kind in stay}
    assert (kinds["applied"] + ": kept" in done.stdout) == (words == [])
    if "applied" in stay:
        assert world.run("undo", kinds["applied"]).exit_code == 0 and world.contents()[0] == "bad"


@pytest.mark.parametrize("words", [[], ["--prune"], ["--prune", "--lose-undo"]])
def test_where_nothing_was_changed_nothing_is_created(world: World, words: list[str]) -> None:
    assert world.run("history", *words).exit_code == 0
    assert not world.state.exists()


def test_options_of_prune_alone_are_refused(world: World) -> None:
    assert world.run("history", "--keep", "3").exit_code == 2
    assert world.run("history", "--prune", "--older-than", "nan").exit_code == 2


JOURNALS: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "directory": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("kind", sampled(JOURNALS, 2))
def test_what_is_no_journal_is_not_waited_for(world: World, kind: str) -> None:
    world.run("fix", "SYS901", "--apply", "--yes")
    folder = world.state / "runs" / "20990101-000000"
    folder.mkdir()
    JOURNALS[kind](folder / "journal.jsonl")
    assert world.run("history").exit_code == 0 and world.run("undo", folder.name).exit_code == 2
    assert world.run("undo").exit_code == 0 and world.contents()[0] == "bad"


def test_nothing_is_said_of_a_run_whose_journal_is_not_readable(world: World) -> None:
    """What it kept may be all that is left of somebody's file: prune leaves it alone."""
    world.run("fix", "SYS901", "--apply", "--yes")
    (name,) = named(world)
    (world.state / "runs" / name / "journal.jsonl").write_bytes(b"\xff\n" * 3)
    told = world.run("history").stdout
    assert f"{name}  not readable" in told and "nothing was" not in told
    undone = world.run("undo")
    assert undone.exit_code == 2 and "is not readable" in undone.stderr
    pruned = world.run("history", "--prune")
    assert f"{name}: kept, because its journal is not readable" in pruned.stdout and named(world) == [name]
    world.run("history", "--prune", "--lose-undo")
    assert named(world) == []


def test_changes_of_one_kind_are_one_line() -> None:
    from envtune.cli.history import _alike

    def change(number: int, **more: str) -> dict[str, str]:
        kind = {"finding": "CPU001", "action": "cpu.set_governor", "view": "live", "state": "done", "error": ""}
        return {"id": f"C{number:02}", **kind, **more}

    many = [change(number) for number in range(1, 9)]
    assert [[row["id"] for row in group] for group in _alike(many)] == [[f"C{number:02}" for number in range(1, 9)]]
    mixed = [*many[:5], change(6, state="failed", error="EIO"), change(7, state="failed", error="EIO"), change(8)]
    assert [len(group) for group in _alike(mixed)] == [5, 1, 1, 1]
    assert [len(group) for group in _alike(many[:3])] == [1, 1, 1], "a few are shown one by one"
