"""`envtune undo`: which run, what it would do, the question before, and what it leaves."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from helpers.fix_world import World

from envtune.executor.history import RecordedRun, recorded_runs
from envtune.executor.journal import encode_record


def runs(world: World) -> list[RecordedRun]:
    return recorded_runs(str(world.state))


def rewrite_first_record(world: World, name: str, **fields: Any) -> None:
    path = world.state / "runs" / name / "journal.jsonl"
    first, *rest = path.read_bytes().splitlines(keepends=True)
    record = {**json.loads(first)["record"], **fields}
    path.write_bytes(encode_record({key: value for key, value in record.items() if value is not None}) + b"".join(rest))


def two_runs(world: World) -> tuple[str, str]:
    world.run("fix", "SYS901", "--apply", "--yes")
    world.run("fix", "SYS902", "--apply", "--yes")
    first, second = runs(world)
    return first.name, second.name


def test_dry_run_says_what_would_be_taken_back_and_changes_nothing(world: World) -> None:
    world.run("fix", "--apply", "--yes")
    world.one.write_text("theirs\n")
    journal = Path(runs(world)[0].path).read_bytes()
    done = world.run("undo", "--dry-run")
    assert done.exit_code == 1 and world.contents() == ("theirs", "good")
    assert f"C02  would be undone  {world.two}" in done.stdout and "+theirs" in done.stdout
    assert "C01  cannot be undone" in done.stdout and "was changed since" in done.stdout
    data = json.loads(world.run("undo", "--dry-run", "--format", "json").stdout)
    assert [row["status"] for row in data["results"]] == ["ready", "refused"]
    assert Path(runs(world)[0].path).read_bytes() == journal
    world.one.write_text("good\n")
    assert world.run("undo", "--dry-run").exit_code == 0


def test_a_run_that_was_killed_before_its_first_change_is_closed(world: World) -> None:
    """It keeps the next run from beginning, which names `envtune undo`."""
    world.run("fix", "--apply", "--yes")
    (run,) = runs(world)
    path = Path(run.path)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    for file in (world.one, world.two):
        file.write_text("bad\n")
    assert world.run("fix", "--apply", "--yes").exit_code == 2 and runs(world)[0].status == "interrupted"
    assert world.run("undo").exit_code == 0
    assert world.run("fix", "--apply", "--yes").exit_code == 0 and world.contents() == ("good", "good")


@pytest.mark.parametrize(("words", "answer", "undone"), [((), "y\n", True), ((), "n\n", False), (("--yes",), "", True)])
def test_on_a_terminal_it_shows_and_asks(
    world: World, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], answer: str, undone: bool
) -> None:
    world.run("fix", "--apply", "--yes")
    monkeypatch.setattr("envtune.cli.undo.is_interactive", lambda: True)
    done = world.run("undo", *words, input=answer)
    assert world.contents() == (("bad", "bad") if undone else ("good", "good"))
    assert done.exit_code == (0 if undone else 1)
    assert ("Undo this?" in done.stderr) == (not words)
    assert words or f"C01  would be undone  {world.one}" in done.stderr


@pytest.mark.parametrize(("end", "status"), [(KeyboardInterrupt, 130), (EOFError, 1)])
def test_ctrl_c_and_ctrl_d_at_the_question_change_nothing(
    end: type[BaseException], status: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def left(*words: object, **options: object) -> bool:
        try:
            raise end
        except end:
            raise typer.Abort from None  # as click says it

    world.run("fix", "--apply", "--yes")
    monkeypatch.setattr("envtune.cli.undo.is_interactive", lambda: True)
    monkeypatch.setattr("typer.confirm", left)
    done = world.run("undo")
    assert done.exit_code == status and done.stderr.endswith("envtune: nothing was changed\n")
    assert world.contents() == ("good", "good")


def test_the_latest_run_is_the_one_that_was_begun_last_whatever_the_clock_says(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock was set back by a year between the two runs."""
    world.run("fix", "SYS901", "--apply", "--yes")
    real = time.gmtime
    monkeypatch.setattr(time, "gmtime", lambda *at: real(*at) if at else real(time.time() - 366 * 86400))
    world.run("fix", "SYS902", "--apply", "--yes")
    monkeypatch.undo()
    monkeypatch.setenv("ENVTUNE_STATE", str(world.state))
    first, second = runs(world)
    assert second.name < first.name and second.plan["changes"][0]["finding"] == "SYS902"
    world.run("undo")
    assert world.contents() == ("good", "bad")


def test_runs_without_a_number_come_first_in_the_order_of_their_names(world: World) -> None:
    first, second = two_runs(world)
    rewrite_first_record(world, first, sequence=None)
    rewrite_first_record(world, second, sequence=None)
    assert [run.name for run in runs(world)] == [first, second]
    world.two.write_text("bad\n")
    world.run("fix", "SYS902", "--apply", "--yes")
    assert [run.name for run in runs(world)][:2] == [first, second]


def test_an_older_run_is_undone_only_when_it_is_named(world: World) -> None:
    first, second = two_runs(world)
    assert world.run("undo").exit_code == 0 and world.contents() == ("good", "bad")
    again = world.run("undo")
    assert again.exit_code == 2 and world.contents() == ("good", "bad")
    assert (
        f"the latest run, {second}, has nothing to undo; an older run can be undone: envtune undo {first}"
        in again.stderr
    )
    assert world.run("undo", first).exit_code == 0 and world.contents() == ("bad", "bad")


def test_a_run_of_another_version_is_listed_and_left_alone(world: World) -> None:
    first, second = two_runs(world)
    rewrite_first_record(world, second, schema="envtune.journal/7")
    assert f"{second}  from another version of envtune (envtune.journal/7)" in world.run("history").stdout
    data = json.loads(world.run("history", "--format", "json").stdout)["runs"][1]
    assert (data["status"], data["version"]) == ("other-version", "envtune.journal/7")
    for words in ((), (second,), (second, "--dry-run")):
        done = world.run("undo", *words)
        assert done.exit_code == 2 and "another version" in done.stderr and world.contents() == ("good", "good")
    assert f"envtune undo {first}" in world.run("undo").stderr
    world.run("history", "--prune", "--lose-undo")
    assert os.path.exists(world.state / "runs" / second)


def test_what_is_said_of_an_old_run_names_no_other_state_directory(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its journal is where it is; another directory knows nothing of it."""
    world.run("fix", "--apply", "--yes")

    def broken(*arguments: Any) -> Any:
        raise OSError(5, "Input/output error", "/somewhere")

    monkeypatch.setattr("os.posix_fallocate", broken)
    done = world.run("undo")
    assert done.exit_code == 2 and "Input/output error" in done.stderr and "ENVTUNE_STATE" not in done.stderr


def test_an_empty_name_is_not_the_latest_run(world: World) -> None:
    """`envtune undo "$RUN"` in a script whose variable is empty."""
    world.run("fix", "SYS901", "--apply", "--yes")
    done = world.run("undo", "", "--yes")
    assert done.exit_code == 2 and world.contents()[0] == "good"
