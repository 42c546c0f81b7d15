"""`envtune bench` and `fix --bench` as their user meets them: what helps is kept, everything else is undone."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.fix_world import World
from helpers.json_schema import conforms
from helpers.killed_runs import write
from helpers.rows import sampled

from envtune.bench import measure as measuring
from envtune.bench.compare import Measurement
from envtune.errors import UsageError
from envtune.executor.history import recorded_runs
from envtune.messages import Message
from envtune.report.profile.measured import BENCH, seconds_text
from envtune.schema import json_schema


class Work:
    """A built-in measurement of the two files' world: how long it takes while SYS901 is fixed and while it is not."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world, self.bad, self.good, self.number, self.fails_at = world, 1.0, 1.0, 0, 0
        monkeypatch.setitem(measuring.BY_FAMILY, "SYS", "launch")  # type: ignore[attr-defined, unused-ignore]
        monkeypatch.setattr(measuring, "measure", self.measure)

    def measure(self, probe: measuring.Probe) -> Measurement:
        self.number += 1
        if self.number == self.fails_at:
            raise UsageError(Message("it broke"))
        return Measurement(self.good if self.world.contents()[0] == "good" else self.bad)


@pytest.fixture
def work(world: World, monkeypatch: pytest.MonkeyPatch) -> Work:
    return Work(world, monkeypatch)


def statuses(world: World) -> list[str]:
    return [run.status for run in recorded_runs(str(world.state))]


def test_what_helps_is_kept_by_fix_and_can_be_undone(world: World, work: Work) -> None:
    work.good = 0.5
    done = world.run("fix", "SYS901", "--apply", "--bench", "--yes")
    assert done.exit_code == 0, done.output
    assert world.contents() == ("good", "bad") and "SYS901: it helps" in done.stdout and "1 fixed" in done.stdout
    assert statuses(world)[-1] == "applied" and set(statuses(world)[:-1]) == {"undone"}
    assert world.run("undo", "--yes").exit_code == 0 and world.contents() == ("bad", "bad")


@pytest.mark.parametrize(("good", "words"), [(1.0, "no difference"), (1.5, "slower")])
def test_what_does_not_help_is_undone_by_fix(world: World, work: Work, good: float, words: str) -> None:
    work.good = good
    done = world.run("fix", "SYS901", "--apply", "--bench", "--yes")
    assert done.exit_code == 1 and world.contents() == ("bad", "bad") and words in done.stdout
    assert set(statuses(world)) == {"undone"} and "undone: everything is as before" in done.stderr


def test_bench_leaves_everything_as_it_was_unless_it_is_to_keep_it(world: World, work: Work) -> None:
    work.good = 0.5
    done = world.run("bench", "SYS901", "--yes")
    assert done.exit_code == 0 and world.contents() == ("bad", "bad") and "0.50 of the time" in done.stdout
    assert world.run("bench", "SYS901", "--yes", "--keep").exit_code == 0 and world.contents() == ("good", "bad")


def test_the_answer_as_data(world: World, work: Work) -> None:
    work.good = 0.25
    done = world.run("bench", "SYS901", "--yes", "--format", "json")
    data = json.loads(done.stdout)
    assert conforms(data, json_schema.document("envtune.bench/1", BENCH)) == []
    assert (data["verdict"], data["kept"], data["checks"], len(data["pairs"])) == ("faster", False, ["SYS901"], 8)
    assert data["total"] == {"before": 1.0, "after": 0.25, "ratio": 0.25, "low": 0.25, "high": 0.25}


@pytest.mark.parametrize("at", sampled([1, 2, 3, 4, 5, 10], 3))
def test_a_measurement_that_fails_undoes_the_changes(world: World, work: Work, at: int) -> None:
    work.fails_at = at
    done = world.run("bench", "SYS901", "--yes", "--keep")
    assert done.exit_code == 2 and "it broke" in done.stderr and world.contents() == ("bad", "bad")
    assert "applied" not in statuses(world)


def test_nothing_is_changed_without_consent(world: World, work: Work) -> None:
    assert world.run("bench", "SYS901").exit_code == 2  # no terminal and no --yes
    assert work.number == 1 and world.contents() == ("bad", "bad") and not world.state.exists()


@pytest.mark.parametrize(
    ("words", "status", "told"),
    sampled(
        [
            ("fix SYS901 --bench", 2, "--bench requires --apply"),
            ("fix SYS901 --apply --bench --format json", 2, "--bench requires --apply"),
            ("bench SYS901 --yes", 2, "envtune bench SYS901 -- CMD"),
            ("fix SYS901 --apply --bench --yes", 2, "envtune bench SYS901 -- CMD"),
            ("bench SYS901 --yes --probe nonsense", 2, "--probe must be images"),
            ("bench SYS901 --yes --probe storage", 2, "requires --data"),
            ("bench SYS901 --yes --probe images --data /nowhere", 2, "not a directory"),
            ("bench SYS999 --yes", 2, "unknown id or name"),
            ("bench SYS901 --yes -- /nowhere/at-all", 2, "No such file"),
            ("bench SYS901 --yes -- false", 2, "false failed"),
        ],
        3,
    ),
)
def test_nonsense_changes_nothing(world: World, words: str, status: int, told: str) -> None:
    done = world.run(*words.split())
    assert done.exit_code == status and told in done.stderr, done.output
    assert world.contents() == ("bad", "bad")


def test_nothing_to_measure(world: World) -> None:
    world.one.write_text("good\n")
    done = world.run("bench", "SYS901", "--yes")
    assert done.exit_code == 3 and "nothing to measure" in done.stderr


def test_what_cannot_be_undone_is_not_begun(world: World, work: Work) -> None:
    world.own["SYS901"] = {"undoable": False}
    done = world.run("bench", "SYS901", "--yes")
    assert done.exit_code == 2 and "cannot be undone" in done.stderr and not world.state.exists()
    world.own["SYS901"] = {"disruption": "reboot"}
    assert world.run("bench", "SYS901", "--yes", "--yes-confirm").exit_code == 2 and not world.state.exists()


def test_changed_by_others_meanwhile_is_said_and_left(
    world: World, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(probe: measuring.Probe) -> Measurement:
        if world.contents()[0] == "good":
            world.one.write_text("theirs\n")
        return Measurement(1.0)

    monkeypatch.setattr(measuring, "measure", measure)
    done = world.run("bench", "SYS901", "--yes")
    assert done.exit_code == 2 and "could not be undone completely: envtune undo" in done.stderr
    assert world.contents()[0] == "theirs"


def timed(path: Path, bad: float) -> list[str]:
    code = f"import time; time.sleep({bad} if 'bad' in open({str(path)!r}).read() else 0.001); print('output')"
    return [sys.executable, "-S", "-c", code]


@pytest.mark.slow
def test_a_command_of_the_user_is_measured_and_its_output_kept_away(world: World) -> None:
    done = world.run("bench", "SYS901", "--yes", "--keep", "--", *timed(world.one, 0.3))
    assert done.exit_code == 0 and world.contents() == ("good", "bad") and "output\n" not in done.stdout


@pytest.mark.slow
def test_a_change_that_does_nothing_for_the_command_is_undone(world: World) -> None:
    outcomes: list[Any] = [world.run("bench", "SYS901", "--yes", "--keep", "--", "sleep", "0.05") for _ in range(2)]
    assert [done.exit_code for done in outcomes] == [1, 1] and world.contents() == ("bad", "bad")


@pytest.mark.slow
def test_a_command_gets_the_variables_of_the_file_that_is_changed(world: World, tmp_path: Path) -> None:
    file, log = tmp_path / "job.env", tmp_path / "log"
    world.operations["SYS901"] = lambda path: [write(path, b"bad\n", b"good\n"), write(file, b"MODE=0\n", b"MODE=1\n")]
    world.own["SYS901"] = {"verify": {"env_file": str(file)}}
    file.write_text("MODE=0\n")
    world.run("bench", "SYS901", "--yes", "--", "/bin/sh", "-c", f"echo $MODE >> {log}; sleep 0.0$((1 + MODE))")
    assert log.read_text().split()[:5] == ["1", "1", "0", "0", "1"] and file.read_text() == "MODE=0\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(12.34, "12.3 s"), (1.0, "1.00 s"), (0.0173, "17.3 ms"), (0.0000021, "2.10 \u00b5s")]
)
def test_times_have_three_digits(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
