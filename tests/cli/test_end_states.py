"""How changes end: the same word in the text, in JSON, in `history` and after `undo`, and each reached by a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Iterator, Sequence

import pytest
from helpers import fix_world
from helpers.fix_world import World
from helpers.killed_runs import change, killed_at, write

from envtune.context import Context
from envtune.context import registry as resources
from envtune.errors import NotApplicable, UsageError
from envtune.executor.history import interrupted_runs, recorded_runs
from envtune.executor.run import apply_plan
from envtune.fix import apply as fix_apply
from envtune.fix import prepare
from envtune.fix.outcome import END_STATES
from envtune.messages import Literal
from envtune.model import Change, Finding

pytestmark = pytest.mark.usefixtures("any_program")
FALSE = {"op": "run", "argv": ["false"], "check": {"argv": ["false"]}}


@pytest.fixture
def any_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which programs a plan may name is another matter: here they only fail, or leave something."""
    monkeypatch.setattr("envtune.fix.plan.refusal", lambda operation: None)


def touch(path: Path) -> dict[str, Any]:
    """A command without a way back."""
    return {"op": "run", "argv": ["touch", str(path)], "check": {"argv": ["test", "-e", str(path)]}}


def applied(world: World, *words: str) -> tuple[int, dict[str, Any]]:
    done = world.run("fix", "--apply", "--yes", "--format", "json", *words)
    return done.exit_code, json.loads(done.stdout)


def in_history(world: World) -> dict[str, str]:
    (run,) = json.loads(world.run("history", "--format", "json").stdout)["runs"]
    shown = world.run("history").stdout
    for row in run["changes"]:
        assert END_STATES[row["state"]].text.en in shown
    return {row["id"]: row["state"] for row in run["changes"]}


def live_and_boot(world: World, monkeypatch: pytest.MonkeyPatch, **boot: Any) -> None:
    """Let the fix of SYS901 be two changes: what runs now, and a file for the next boot."""
    act = world.propose

    def both(context: Context, findings: Sequence[Finding], *, which: str) -> Iterator[Change]:
        for live in act(context, findings, which=which):
            yield live
            if which == "SYS901":
                yield live._replace(scope="boot", target="boot", **boot)

    monkeypatch.setitem(resources._functions["actions"], "file.dropin", both)


def test_fixed(world: World) -> None:
    code, data = applied(world, "SYS901")
    assert code == 0 and data["states"] == {"C01": "fixed"} and data["findings"][0]["state"] == "fixed"
    assert in_history(world) == {"C01": "fixed"}


@pytest.mark.parametrize("how", ["refused", "root", "consent"])
def test_fixed_until_the_next_boot(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str) -> None:
    """What runs now is right; the file that keeps it so was not written, for whatever reason."""
    expected = b"something else" if how == "refused" else None
    boot = {"operations": (write(tmp_path / "boot", expected, b"good\n"),), "root": how == "root"}
    monkeypatch.setattr("envtune.fix.apply.is_root", lambda: False)
    live_and_boot(world, monkeypatch, **boot, safety="confirm" if how == "consent" else "safe")
    code, data = applied(world, "SYS90") if how == "consent" else applied(world, "SYS901")
    finding = next(row for row in data["findings"] if row["id"] == "SYS901")
    assert code == 1 and data["states"]["C01"] == finding["state"] == "fixed-until-reboot"
    assert data["states"]["C02"] == "not-begun" and finding["outcome"] == "fail"
    assert finding["reason"].startswith("fixed until the next boot; the file was not written: ")
    assert in_history(world)["C01"] == "fixed-until-reboot"
    world.run("undo")
    told = world.run("fix", "--apply", "--yes", *(["SYS90"] if how == "consent" else ["SYS901"]))
    assert "fixed until the next boot; the file was not written" in " ".join(told.stdout.split())
    assert "1 fixed until the next boot" in told.stdout and told.exit_code == 1


def test_fixed_until_the_next_boot_by_the_action_s_own_word(world: World) -> None:
    world.own["SYS901"] = {"until_reboot": Literal("/etc/sysctl.d/zz.conf has precedence")}
    code, data = applied(world, "SYS901")
    assert code == 1 and "zz.conf has precedence" in data["findings"][0]["reason"]


def test_written_but_still_failing(world: World) -> None:
    world.operations["SYS901"] = lambda path: [write(path, b"bad\n", b"better\n")]
    code, data = applied(world, "SYS901")
    assert code == 1 and data["states"] == {"C01": "still-failing"} == in_history(world)


def test_failed_and_put_back(world: World) -> None:
    world.operations["SYS901"] = lambda path: [write(path, b"bad\n", b"good\n"), FALSE]
    code, data = applied(world, "SYS901")
    assert code == 1 and data["states"] == {"C01": "failed-restored"} == in_history(world)
    assert world.contents()[0] == "bad" and "nothing was changed" in world.run("history").stdout
    told = world.run("fix", "SYS901", "--apply", "--yes").stdout
    assert "There is nothing to undo." in told and "envtune undo" not in told  # that would end with 2


def test_failed_and_left_is_never_fixed_and_history_does_not_say_that_nothing_was_changed(
    world: World, tmp_path: Path
) -> None:
    """The check passes, because a step that cannot be taken back made it so; the change failed all the same."""
    script = f"echo good >{world.one}"
    run = {"op": "run", "argv": ["/bin/sh", "-c", script], "check": {"argv": ["grep", "-q", "good", str(world.one)]}}
    world.operations["SYS901"] = lambda path: [run, FALSE]
    code, data = applied(world, "SYS901")
    assert code == 1 and data["states"] == {"C01": "failed-left"} == in_history(world)
    assert [(row["outcome"], row["state"]) for row in data["findings"]] == [("error", "failed-left")]
    told = world.run("history").stdout
    assert "nothing was changed" not in told and "failed, not restored" in told


def test_not_begun(world: World) -> None:
    world.operations["SYS901"] = lambda path: [write(path, b"something else", b"good\n")]
    code, data = applied(world, "SYS901")
    assert code == 1 and data["states"] == {"C01": "not-begun"} == in_history(world)


def test_what_the_fix_itself_makes_wrong_is_named(world: World) -> None:
    world.two.write_text("good\n")
    world.operations["SYS901"] = lambda path: [write(path, b"bad\n", b"good\n"), write(world.two, b"good\n", b"bad\n")]
    code, data = applied(world)
    assert code == 1 and [(row["outcome"], row["state"]) for row in data["findings"]] == [
        ("fixed", "fixed"),
        ("fail", "created"),
    ]
    assert world.run("undo").exit_code == 0
    assert "new since this run" in world.run("fix", "--apply", "--yes").stdout


def test_a_check_that_does_not_apply_any_more_is_not_fixed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(context: Context, *, path: str) -> Any:
        if "good" in context.host.read(path):
            raise NotApplicable(Literal("nothing is there to judge"), path)
        return fix_world.content(context, path=path)

    monkeypatch.setitem(resources._functions["probes"], "fixture.content", gone)
    code, data = applied(world, "SYS901")
    assert code == 3 and data["findings"][0]["outcome"] == "unknown"
    assert "does not apply any more: nothing is there to judge" in data["findings"][0]["reason"]


def test_undone_in_part_and_cannot_be_undone(world: World, tmp_path: Path) -> None:
    world.operations["SYS901"] = lambda path: [write(path, b"bad\n", b"good\n"), write(tmp_path / "x", None, b"x")]
    world.operations["SYS902"] = lambda path: [write(path, b"bad\n", b"good\n"), touch(tmp_path / "left")]
    applied(world)
    (tmp_path / "x").write_text("theirs")
    done = world.run("undo", "C01")
    assert done.exit_code == 1 and "C01 undone in part" in done.stdout
    assert in_history(world) == {"C01": "partly-undone", "C02": "fixed"}
    world.two.write_text("theirs")
    done = world.run("undo", "C02", "--format", "json")
    assert json.loads(done.stdout)["states"]["C02"] == "cannot-be-undone" == in_history(world)["C02"]
    assert "cannot be undone" in world.run("undo", "C02").stdout
    world.run("undo", "--force", "C01")
    assert in_history(world)["C01"] == "undone"


def test_begun_and_written(world: World) -> None:
    """A run that was killed, and the same run finished: its checks have not run again."""
    rows = [change("C01", write(world.one, b"bad\n", b"good\n")), change("C02", write(world.two, b"bad\n", b"good\n"))]
    killed_at(1, lambda: apply_plan({"changes": rows}, str(world.state)), "renamed")
    assert in_history(world) == {"C01": "written", "C02": "begun"}
    (past,) = interrupted_runs(str(world.state))
    done = world.run("fix", "--finish", past.name)
    assert done.exit_code == 0 and "written" in done.stdout
    assert in_history(world) == {"C01": "written", "C02": "written"}


def test_every_end_state_is_reached_here() -> None:
    text = Path(__file__).read_text("utf-8")
    assert [state for state in END_STATES if f'"{state}"' not in text] == []


def test_each_change_has_its_own_reason(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """189 of 192 policies are set: that is said, and the three others have each its own reason."""
    act, count = world.propose, 12
    files = [tmp_path / f"policy{number}" for number in range(count)]
    for path in files:
        path.write_text("bad\n")

    def many(context: Context, findings: Sequence[Finding], *, which: str) -> Iterator[Change]:
        for one in act(context, findings, which=which):
            for number, path in enumerate(files):
                expected = b"bad\n" if number % 5 else b"other %d\n" % number
                operations = (write(path, expected, b"good\n"),)
                yield one._replace(target=str(path), subject=path.name, operations=operations)

    monkeypatch.setitem(resources._functions["actions"], "file.dropin", many)
    told = " ".join(world.run("fix", "SYS901", "--apply", "--yes").stdout.split())
    assert f"SYS901: {count - 3} of {count} changes made; not made:" in told
    for number in (0, 5, 10):
        assert f"C{number + 1:02d} {files[number]}: not started: {files[number]} is not what the plan expected" in told
    assert recorded_runs(str(world.state))[0].status == "partly"


def test_the_checks_run_again_for_the_same_job(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that the fix writes to shows its effect; the Python stays the one that was named."""
    seen: list[Any] = []
    real = prepare.examine

    def examine(host: Any, target: Any, *more: Any) -> Any:
        seen.append((target.python, target.script, target.env_file))
        return real(host, target, *more)

    monkeypatch.setattr(fix_apply, "examine", examine)
    world.more["verify"] = {"script": str(world.one)}
    assert applied(world, "--python", sys.executable)[0] == 0
    world.run("undo")
    world.more["verify"] = {}
    env_file = world.one.with_name("env")
    env_file.write_text("A=1\n")
    assert applied(world, "--python", sys.executable, "--env-file", str(env_file))[0] == 0
    assert seen == [(sys.executable, str(world.one), None), (sys.executable, None, str(env_file))]


def test_a_job_that_is_gone_afterwards_is_no_reason_to_say_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that was named has ended meanwhile: what was written is reported all the same."""

    def gone(*arguments: Any) -> Any:
        raise UsageError(Literal("--pid 4711: no such process"))

    monkeypatch.setattr(fix_apply, "examine", gone)
    code, data = applied(world, "SYS901")
    assert code == 3 and data["run"] and world.contents()[0] == "good"
    reason = data["findings"][0]["reason"]
    assert data["states"] == {"C01": "written"} and reason == "unknown after the change: --pid 4711: no such process"
