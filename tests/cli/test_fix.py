"""`envtune fix`, `undo` and `history` as their user meets them, on a small catalog of two defects in files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Iterator, Sequence

import pytest
from helpers.fix_world import World
from helpers.killed_runs import change, encoded, forked, killed_at, write

from envtune.context import Context
from envtune.context import registry as resources
from envtune.errors import Skipped, UsageError
from envtune.executor.history import interrupted_runs, recorded_runs
from envtune.executor.run import apply_plan
from envtune.executor.state import Lock, lock_holder
from envtune.fix import apply as fix_apply
from envtune.fix import document as plan_file
from envtune.fix import prepare
from envtune.job.peers import addresses, expand_nodelist, parse_hostfile, read_peers
from envtune.messages import Bilingual
from envtune.model import Change, Finding

# ---------------------------------------------------------------------- looking


@pytest.mark.parametrize(("lang", "heading"), [("en", "What would be changed"), ("zh", "将要进行的改动")])
def test_fix_alone_shows_and_changes_nothing(world: World, lang: str, heading: str) -> None:
    words = [heading, "--apply", "SYS901", "SYS902", str(world.one)]
    shown, with_diffs = (world.run("fix", "--lang", lang, *more) for more in ((), ("-v",)))
    assert shown.exit_code == 1  # there is something to do
    assert [word for word in [*words, "bad -> good"] if word not in shown.output] == [], shown.output
    assert all(word in with_diffs.output for word in [*words, "-bad", "+good"])
    assert world.contents() == ("bad", "bad") and not world.state.exists()


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["SYS901"], {"SYS901"}),
        (["sys90"], {"SYS901", "SYS902"}),
        (["two", "--ignore", "SYS901"], {"SYS902"}),
        (["write-two"], {"SYS902"}),
        (["--faq", "X90"], {"SYS901"}),
        (["--severity", "high"], {"SYS901"}),
    ],
)
def test_what_is_wanted_is_named_like_for_check(world: World, words: list[str], ids: set[str]) -> None:
    plan = json.loads(world.run("fix", *words, "--format", "json").stdout)
    assert {row["finding"] for row in plan["changes"]} == ids


@pytest.mark.parametrize(
    "words",
    [
        "SYS999",
        "--faq X99",
        "--format xml",
        "--plan /nowhere",
        "--wheels /nowhere",
        "--fail-on bad",
        "--peer ::/0",
    ],
)
def test_what_does_not_exist_ends_with_2(world: World, words: str) -> None:
    done = world.run("fix", *words.split())
    assert done.exit_code == 2 and done.stderr.startswith("envtune: ") and done.stdout == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fix", ""], "matches no check"),
        (["fix", "--faq", ","], "no check refers to it"),
        (["fix", "--faq", "S01"], "unknown id or name 'S01'"),
        (["fix", "--owner", "root"], "--pid"),
        (["fix", "--plan", "/dev/zero"], "/dev/zero: not a regular file"),
        (["fix", "--plan", "large"], "larger than 1 MiB"),
        (["fix", "--plan", "/"], "/: Is a directory"),
        (["fix", "--plan", "latin"], "not UTF-8"),
        (["fix", "--hostfile", "nowhere"], "nowhere: No such file"),
    ],
)
def test_nonsense_is_told_in_both_languages(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    monkeypatch.setattr(plan_file, "LIMIT", 1 << 20)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin").write_bytes(b"{\xe9}")
    (tmp_path / "large").write_bytes(b"x" * (1 << 20 | 1))
    en, zh = world.run(*words), world.run(*words, "--lang", "zh")
    assert (en.exit_code, zh.exit_code) == (2, 2) and told in en.stderr and "Errno" not in en.stderr + zh.stderr
    assert any("\u4e00" <= letter <= "\u9fff" for letter in zh.stderr)


def test_a_snapshot_is_planned_for_and_never_applied_to(world: World, tmp_path: Path) -> None:
    (tmp_path / "host.json").write_text("{}")
    done = world.run("fix", "--apply", "--snapshot", str(tmp_path / "host.json"))
    assert done.exit_code == 2 and "recorded" in done.stderr


# ---------------------------------------------------------------------- applying


def test_apply_repairs_checks_again_and_says_fixed(world: World) -> None:
    done = world.run("fix", "--apply", "--yes")
    assert done.exit_code == 0 and world.contents() == ("good", "good")
    assert done.stdout.count("fixed ") >= 2 and "2 fixed" in done.stdout
    assert "[1/2] C01" in done.stderr and "written" in done.stderr
    (past,) = recorded_runs(str(world.state))
    assert past.name in done.stdout and past.plan["changes"][0]["finding"] == "SYS901"
    again = world.run("fix", "--apply", "--yes")
    assert again.exit_code == 0 and "Nothing to change" in again.stdout and len(recorded_runs(str(world.state))) == 1


def test_nobody_to_ask_and_no_yes_changes_nothing(world: World) -> None:
    done = world.run("fix", "--apply")
    assert done.exit_code == 2 and "--yes" in done.stderr and world.contents() == ("bad", "bad")


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("", 1)])
def test_on_a_terminal_it_asks_once(world: World, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    monkeypatch.setattr("envtune.cli.fix.is_interactive", lambda: True)
    done = world.run("fix", "--apply", input=answer)
    assert done.exit_code == code and world.contents() == (("bad", "bad") if code else ("good", "good"))
    assert done.stderr.count("Make these 2 changes?") == 1


def test_what_asks_for_consent_of_its_own_is_left_until_it_is_named(world: World) -> None:
    world.ask("confirm")
    done = world.run("fix", "--apply", "--yes")
    assert done.exit_code == 1 and world.contents() == ("good", "bad")
    assert "name SYS902 (the same command with SYS902)" in " ".join(done.stdout.split()) and "1 fixed" in done.stdout
    assert world.run("fix", "SYS902", "--apply", "--yes").exit_code == 0 and world.contents() == ("good", "good")


@pytest.mark.parametrize("words", [["--yes-confirm"], ["--change", "C02"]])
def test_other_ways_to_consent(world: World, words: list[str]) -> None:
    world.ask("confirm")
    assert world.run("fix", "--apply", "--yes", *words).exit_code == 0
    assert world.contents()[1] == "good"
    assert world.contents()[0] == ("bad" if "--change" in words else "good")


@pytest.mark.parametrize(
    ("answer", "contents"),
    [
        ("y\n", ("good", "good")),
        ("\n", ("bad", "bad")),
        ("c02\n", ("bad", "good")),
        ("C01\n", ("good", "bad")),
        ("C09\nC02, C01\n", ("good", "good")),
    ],
)
def test_on_a_terminal_one_question_is_about_all(
    world: World, monkeypatch: pytest.MonkeyPatch, answer: str, contents: tuple[str, str]
) -> None:
    world.ask("confirm")
    monkeypatch.setattr("envtune.cli.fix.is_interactive", lambda: True)
    done = world.run("fix", "--apply", input=answer)
    assert done.exit_code == (contents != ("good", "good")) and world.contents() == contents, done.stderr
    assert done.stderr.count("Make these 2 changes? [y/N, or ids such as C01,C02]") == (2 if "C09" in answer else 1)
    assert "needs confirmation" in done.stderr and ("answer y, n, or ids: C01, C02" in done.stderr) == ("C09" in answer)


@pytest.mark.parametrize(("answer", "two"), [("y\n", "good"), ("n\n", "bad")])
def test_yes_leaves_the_question_about_what_needs_confirmation(
    world: World, monkeypatch: pytest.MonkeyPatch, answer: str, two: str
) -> None:
    world.ask("confirm")
    monkeypatch.setattr("envtune.cli.fix.is_interactive", lambda: True)
    done = world.run("fix", "--apply", "--yes", input=answer)
    assert world.contents() == ("good", two) and done.stderr.count("Make this change?") == 1


def test_like_changes_are_one_question(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """192 policies are not 192 questions."""
    world.ask("confirm")
    monkeypatch.setattr("envtune.cli.fix.is_interactive", lambda: True)
    shutil.copy(world.two, tmp_path / "three")
    act = world.propose

    def twice(context: Context, findings: Sequence[Finding], *, which: str) -> Iterator[Change]:
        for change_ in act(context, findings, which=which):
            yield change_
            if which == "SYS902":
                third = write(tmp_path / "three", b"bad\n", b"good\n")
                yield change_._replace(target=str(tmp_path / "three"), operations=(third,))

    monkeypatch.setitem(resources._functions["actions"], "file.dropin", twice)
    done = world.run("fix", "--apply", input="y\n")
    assert done.exit_code == 0 and (tmp_path / "three").read_text() == "good\n", done.stderr
    assert done.stderr.count("Make these 3 changes?") == 1


def test_a_change_that_does_not_exist_is_not_named(world: World) -> None:
    assert world.run("fix", "--apply", "--yes", "--change", "C77").exit_code == 2


def test_partial_success_is_reported_as_such(world: World) -> None:
    world.operations["SYS902"] = lambda path: [write(path, b"something else", b"good\n")]
    done = world.run("fix", "--apply", "--yes")
    assert done.exit_code == 1 and world.contents() == ("good", "bad")
    assert "1 fixed; 1 still wrong" in done.stdout and "not what the plan expected" in " ".join(done.stdout.split())


def test_a_change_that_does_not_cure_is_an_error_with_the_way_back(world: World) -> None:
    world.operations["SYS902"] = lambda path: [write(path, b"bad\n", b"better\n")]
    done = world.run("fix", "--apply", "--yes", "--format", "json")
    data = json.loads(done.stdout)
    assert done.exit_code == 1 and data["schema"] == "envtune.fix/1"
    assert {row["id"]: row["outcome"] for row in data["findings"]} == {"SYS901": "fixed", "SYS902": "error"}
    assert f"envtune undo {data['run']}" in data["findings"][1]["reason"]


def test_the_checks_run_again_on_the_job_that_shows_the_effect(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    real = prepare.examine

    def examine(host: Any, target: Any, checks: Any, expectations: Any = None, progress: Any = None) -> Any:
        seen.append((target.script, sorted(check.id for check in checks)))
        return real(host, target, checks, expectations, progress)

    monkeypatch.setattr(prepare, "examine", examine)
    monkeypatch.setattr(fix_apply, "examine", examine)
    world.more["verify"] = {"script": str(world.one)}
    assert world.run("fix", "--apply", "--yes").exit_code == 0
    assert seen == [(None, ["SYS901", "SYS902"]), (str(world.one), ["SYS901", "SYS902"])]


def test_long_commands_are_shown_while_they_run_and_kept(world: World, tmp_path: Path) -> None:
    note = tmp_path / "note"
    note.write_text("collecting wheels\n\x1b[31mbuilding\n")
    run = {"op": "run", "argv": ["cat", str(note)], "check": {"argv": ["test", "-e", str(tmp_path / "never")]}}
    world.operations["SYS901"] = lambda path: [run]
    done = world.run("fix", "SYS901", "--apply", "--yes")
    assert "| collecting wheels\n" in done.stderr and "\x1b" not in done.output  # a host's output rules no terminal
    assert "collecting wheels" in (next(world.state.rglob("output.log"))).read_text()


def test_without_root_the_rest_is_printed_as_commands(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fix_apply, "is_root", lambda: False)
    knob = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    needs = [{"op": "file", "path": knob, "content": encoded(b"performance\n"), "expect": "absent"}]
    world.operations["SYS902"] = lambda path: [*needs, write(path, b"bad\n", b"good\n")]
    world.own["SYS902"] = {"root": True}
    done = world.run("fix", "--apply", "--yes")
    assert done.exit_code == 1 and world.contents() == ("good", "bad")
    assert "1 change needs root" in done.stdout and f"echo performance > {knob}" in done.stderr
    line = next(line for line in done.stderr.splitlines() if "sudo " in line)
    assert line.endswith(" fix SYS902 --apply") and not list(world.state.rglob("*.json"))


def test_root_is_given_every_option_and_no_file_of_the_user(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fix_apply, "is_root", lambda: False)
    world.more, folder = {"root": True, "scope": "job"}, str(world.catalogue)
    words = ["--peer", "10.0.0.2", "--wheels", folder, "--python", sys.executable, "--fail-on", "low", "--wait", "2"]
    done = world.run("fix", "sys90", "--apply", "--yes-confirm", "--yes", "--catalog", folder, "--lang", "en", *words)
    line = next(line for line in done.stderr.splitlines() if "sudo " in line)
    given = line.partition(" fix SYS901 SYS902 ")[2].split()
    words[words.index("2")] = "2.0"
    assert given.pop() == "--apply" and {*zip(given[::2], given[1::2])} == {
        *zip(words[::2], words[1::2]),
        ("--catalog", folder),
        ("--lang", "en"),
    }
    unnamed = world.run("fix", "SYS901", "--apply", "--yes").stderr
    assert re.search(" fix SYS901 --python /[^ ]+ --apply\n", unnamed)  # root's PATH leads elsewhere


@pytest.mark.root
def test_a_plain_user_gets_what_needs_no_root(world: World, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As another user in truth: one file is that user's own, the other one root's."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    world.own["SYS902"] = {"root": True}
    world.run("fix", "--apply", "--yes")  # whatever is imported on the way lies where this user may not look
    world.run("undo")
    shutil.rmtree(world.state)
    for folder in (tmp_path, *(p for p in tmp_path.parents if p.name.startswith(("pytest-", "popen-")))):
        folder.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    for path in (home, world.one):
        os.chown(path, 65534, 65534)
    folder = home / "work"

    def as_nobody() -> None:
        os.setgid(65534)
        os.setuid(65534)
        os.environ["ENVTUNE_STATE"] = str(home / "state")
        os.makedirs(folder)
        done = world.run("fix", "--apply", "--yes")
        (folder / "told").write_text(f"{done.exit_code}\n{done.stdout}\n{done.stderr}")

    shutil.chown(tmp_path, 65534, 65534)  # an atomic replacement needs the directory
    _, status = os.waitpid(forked(as_nobody), 0)
    assert status == 0, capfd.readouterr()
    told = (folder / "told").read_text()
    assert told.startswith("1\n") and world.contents() == ("good", "bad")
    assert "1 fixed; 1 still wrong; 1 change needs root" in told and f"cat > {world.two} <<'EOF'" in told
    assert (home / "state").stat().st_uid == 65534


def test_without_root_and_without_a_state_directory_the_commands_are_printed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fix_apply, "is_root", lambda: False)
    monkeypatch.setenv("ENVTUNE_STATE", str(world.one / "state"))  # below a file
    world.more = {"root": True}
    done = world.run("fix", "--apply", "--yes")
    assert done.exit_code == 1 and world.contents() == ("bad", "bad")
    line = next(line for line in done.stderr.splitlines() if "sudo " in line)
    assert line.endswith("envtune fix SYS901 SYS902 --apply") and f"cat > {world.two} <<'EOF'" in done.stderr


def test_root_goes_on_with_the_options_of_this_run_and_never_from_this_directory(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(fix_apply, "is_root", lambda: False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.env").write_text("A=1\n")
    world.more = {"root": True}
    done = world.run(
        "fix", "--env-file", "job.env", "--peer", "10.0.0.1", "--apply", "--yes", "-s", "SYS901", "--lang", "en"
    )
    line = next(line for line in done.stderr.splitlines() if "sudo " in line).split()
    assert line[line.index("fix") + 2 :] == [
        "--peer", "10.0.0.1", "--lang", "en", "--env-file", f"{tmp_path}/job.env", "--apply"
    ]  # fmt: skip
    assert line[1].startswith("/") and (line[2:5] == ["-I", "-m", "envtune"] or line[2] == "fix")


def test_a_program_for_root_that_others_can_change_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(fix_apply, "is_root", lambda: False)
    script = tmp_path / "bin/envtune"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    script.parent.chmod(0o777)
    monkeypatch.setattr(sys, "argv", [str(script), "fix"])
    world.more = {"root": True}
    done = world.run("fix", "--apply", "--yes")
    assert f"sudo {script} fix SYS901 SYS902 --apply" in done.stderr
    assert f"{script} cannot be run as root: others can change {script.parent} (owner 0, mode 0777)" in done.stderr


# ---------------------------------------------------------------------- a saved plan


def saved(world: World, tmp_path: Path, *words: str) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(world.run("fix", "--format", "json", *words).stdout)
    return path


def test_a_saved_plan_is_applied_later(world: World, tmp_path: Path) -> None:
    path = saved(world, tmp_path)
    done = world.run("fix", "--plan", str(path), "--apply", "--yes")
    assert done.exit_code == 0 and world.contents() == ("good", "good") and "2 fixed" in done.stdout
    assert world.run("fix", "--plan", str(path), "--apply", "--yes").exit_code == 0  # it is so already


def test_a_saved_plan_is_refused_as_a_whole_when_the_host_has_changed(world: World, tmp_path: Path) -> None:
    path = saved(world, tmp_path)
    world.two.write_text("theirs\n")
    done = world.run("fix", "--plan", str(path), "--apply", "--yes")
    assert done.exit_code == 2 and "C02" in done.stderr and "C01" not in done.stderr
    assert world.contents() == ("bad", "theirs") and not world.state.exists()


def test_a_saved_plan_is_refused_where_it_says_something_else(world: World, tmp_path: Path) -> None:
    """A file may say that it does something harmless, or do something else than it says."""
    path = saved(world, tmp_path, "SYS901")
    data = json.loads(path.read_text())
    data["changes"][0].update(target="/harmless", before="a", after="b")
    data["changes"][0]["operations"][0]["content"] = encoded(b"evil\n")
    path.write_text(json.dumps(data))
    refused = world.run("fix", "--plan", str(path))
    assert refused.exit_code == 2 and refused.stdout == "" and f"--plan {path}" in refused.stderr
    for member, words in (("target", "/harmless"), ("after", '"b"'), ("operations[0].content", '"evil\\n"')):
        assert f"changes[0].{member} (C01): {words}" in refused.stderr.replace('"/', "/")


def test_a_hostile_plan_is_refused_with_its_member(world: World, tmp_path: Path) -> None:
    path = saved(world, tmp_path)
    data = json.loads(path.read_text())
    data["changes"][1]["operations"][0]["op"] = "shell"
    path.write_text(json.dumps(data))
    done = world.run("fix", "--plan", str(path), "--apply", "--yes")
    assert done.exit_code == 2 and "changes[1].operations[0].op" in done.stderr and world.contents() == ("bad", "bad")


def test_a_plan_for_checks_that_are_not_known_here_is_refused(world: World, tmp_path: Path) -> None:
    path = saved(world, tmp_path)
    path.write_text(path.read_text().replace("SYS901", "SYS977"))
    done = world.run("fix", "--plan", str(path))
    assert done.exit_code == 2 and "SYS977" in done.stderr


@pytest.mark.parametrize(
    "words",
    ["SYS901", "--select SYS901", "--ignore SYS901", "--faq F01", "--tag x", "--severity high", "--finish 2025"],
)
def test_what_a_saved_plan_does_not_listen_to_is_refused(world: World, tmp_path: Path, words: str) -> None:
    """Somebody who names one check means that one, and not all that is in the file."""
    path = saved(world, tmp_path)
    done = world.run("fix", "--plan", str(path), *words.split(), "--apply", "--yes")
    given = words.split()[0] if words.startswith("-") else "WORDS"
    assert done.exit_code == 2 and f"{given} cannot be used with --plan" in done.stderr and "--change" in done.stderr
    assert world.contents() == ("bad", "bad")


def test_changes_are_picked_for_showing_as_for_writing(world: World, tmp_path: Path) -> None:
    path = saved(world, tmp_path)
    shown = world.run("fix", "--plan", str(path), "--change", "c02")
    assert "C02" in shown.stdout and "C01" not in shown.stdout
    assert world.run("fix", "--plan", str(path), "--change", "C99").exit_code == 2
    part = json.loads(world.run("fix", "--change", "C02", "--format", "json").stdout)
    assert [change["id"] for change in part["changes"]] == ["C02"]


# ---------------------------------------------------------------------- the way back


def test_no_undo_is_offered_where_there_is_none(world: World) -> None:
    world.own["SYS901"] = {"undoable": False}
    done = world.run("fix", "--change", "C01", "--apply", "--yes", "--yes-confirm")
    assert "It cannot be undone." in done.stdout and "envtune undo" not in done.stdout
    world.one.write_text("bad\n")
    assert "envtune undo" in world.run("fix", "--apply", "--yes", "--yes-confirm").stdout  # the other change can


def test_undo_takes_the_latest_run_back(world: World) -> None:
    world.run("fix", "--apply", "--yes")
    done = world.run("undo")
    assert done.exit_code == 0 and world.contents() == ("bad", "bad")
    told = [line.split() for line in done.stdout.splitlines()[1:]]
    assert told == [["undone", "C02", str(world.two)], ["undone", "C01", str(world.one)]]
    assert world.run("undo").exit_code == 2  # nothing is left to take back


def test_undo_of_one_change(world: World) -> None:
    world.run("fix", "--apply", "--yes")
    assert world.run("undo", "c02").exit_code == 0 and world.contents() == ("good", "bad")
    history = json.loads(world.run("history", "--format", "json").stdout)
    assert [row["status"] for row in history["runs"][0]["changes"]] == ["done", "undone"]
    assert history["runs"][0]["status"] == "partly-undone"
    assert world.run("undo", history["runs"][0]["run"]).exit_code == 0 and world.contents() == ("bad", "bad")


def test_undo_shows_both_where_somebody_changed_the_thing_since(world: World) -> None:
    world.run("fix", "--apply", "--yes")
    world.one.write_text("theirs\n")
    done = world.run("undo")
    assert done.exit_code == 1 and "-good" in done.stdout and "+theirs" in done.stdout and "--force" in done.stdout
    assert world.contents() == ("theirs", "bad")
    forced = world.run("undo", "--force", "--lang", "zh")
    assert forced.exit_code == 0 and world.contents() == ("bad", "bad")
    copy = next(word.rpartition("：")[2] for word in forced.stdout.split() if word.endswith(".orig"))
    assert Path(copy).read_text() == "theirs\n"


@pytest.mark.parametrize("words", [["20250101-000000"], ["../../etc"], ["C77"], ["20250101-000000", "20250101-000001"]])
def test_undo_of_what_does_not_exist(world: World, words: list[str]) -> None:
    world.run("fix", "--apply", "--yes")
    assert world.run("undo", *words).exit_code == 2 and world.contents() == ("good", "good")


@pytest.mark.parametrize(("lang", "words"), [("en", ["applied", "fixed"]), ("zh", ["已完成", "已修复"])])
def test_history_tells_runs_and_changes(world: World, lang: str, words: list[str]) -> None:
    assert world.run("history", "--lang", lang).exit_code == 0
    world.run("fix", "--apply", "--yes")
    told = world.run("history", "--lang", lang).stdout
    assert all(word in told for word in [*words, "C01", "SYS901", str(world.one)])


# ---------------------------------------------------------------------- interrupted


@pytest.fixture
def interrupted(world: World) -> str:
    """A run of two changes that was killed after the first."""
    rows = [change("C01", write(world.one, b"bad\n", b"good\n")), change("C02", write(world.two, b"bad\n", b"good\n"))]
    rows = [{**row, "finding": check} for row, check in zip(rows, ("SYS901", "SYS902"))]
    killed_at(1, lambda: apply_plan({"changes": rows}, str(world.state)), "renamed")
    (past,) = interrupted_runs(str(world.state))
    assert world.contents() == ("good", "good") and len(past.results()) == 1
    return past.name


def test_an_interrupted_run_is_told_and_both_ways_out(world: World, interrupted: str) -> None:
    for verb in ("fix", "history", "undo"):
        words = [verb, "C77"] if verb == "undo" else [verb]
        told = world.run(*words)
        assert f"envtune resume {interrupted}" in told.stderr and f"envtune undo {interrupted}" in told.stderr
    zh = world.run("history", "--lang", "zh")
    assert "被中断" in zh.stderr and "已中断" in zh.stdout
    world.one.write_text("bad\n")
    done = world.run("fix", "--apply", "--yes")
    assert done.exit_code == 2 and world.contents() == ("bad", "good")  # nothing on top of half a run


def test_an_interrupted_run_is_finished(world: World, interrupted: str) -> None:
    done = world.run("fix", "--finish", interrupted)
    assert done.exit_code == 0 and world.contents() == ("good", "good")
    assert "[1/1] C02" in done.stderr and "envtune check --select SYS901,SYS902" in done.stdout
    assert world.run("fix", "--finish", interrupted).exit_code == 2  # it is not interrupted any more
    assert world.run("undo").exit_code == 0 and world.contents() == ("bad", "bad")


def test_an_interrupted_run_is_taken_back(world: World, interrupted: str) -> None:
    assert world.run("undo", interrupted).exit_code == 0 and world.contents() == ("bad", "bad")
    assert world.run("fix", "--apply", "--yes").exit_code == 0


# ---------------------------------------------------------------------- two at once, no room


def test_the_second_apply_hears_who_is_writing(world: World) -> None:
    lock = Lock(str(world.state))
    done = world.run("fix", "--apply", "--yes")
    assert done.exit_code == 2 and f"pid {os.getpid()}" in done.stderr and world.contents() == ("bad", "bad")
    began = time.monotonic()
    threading.Timer(0.4, lock.release).start()
    assert world.run("fix", "--apply", "--yes", "--wait", "120").exit_code == 0
    assert time.monotonic() - began > 0.3 and world.contents() == ("good", "good")


def test_two_real_processes_at_once(world: World, tmp_path: Path) -> None:
    """The first waits for somebody to write into a pipe; meanwhile the second one must not touch anything."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    run = {"op": "run", "argv": ["cat", str(fifo)], "check": {"argv": ["test", "-s", str(world.one) + ".done"]}}
    world.operations["SYS901"] = lambda path: [write(path, b"bad\n", b"good\n"), run]
    pid = forked(lambda: world.run("fix", "SYS901", "--apply", "--yes"))
    try:
        for _ in range(6_000):
            if lock_holder(str(world.state)) and world.contents()[0] == "good":
                break
            time.sleep(0.02)
        second = world.run("fix", "SYS902", "--apply", "--yes")
    finally:
        (tmp_path / "one.done").write_text("x")
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            with contextlib.suppress(OSError):  # nobody reads yet
                os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))  # whoever reads it reaches its end
            time.sleep(0.02)
    assert second.exit_code == 2 and f"pid {pid}" in second.stderr and world.contents()[1] == "bad"
    assert world.run("fix", "SYS902", "--apply", "--yes").exit_code == 0


def test_a_state_that_cannot_be_made_is_said_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVTUNE_STATE", str(world.one / "state"))
    done = world.run("fix", "--apply", "--yes")
    assert done.exit_code == 2 and "ENVTUNE_STATE" in done.stderr and world.contents() == ("bad", "bad")


def test_an_action_that_has_nothing_to_propose_is_told(world: World) -> None:
    def nothing(path: Path) -> Sequence[dict[str, Any]]:
        raise Skipped(Bilingual("name the peers with --peer", "请用 --peer 指定对端"))

    world.operations["SYS902"] = nothing
    assert "请用 --peer 指定对端" in world.run("fix", "--lang", "zh").stdout


# ---------------------------------------------------------------------- peers


def test_peers_are_addresses_networks_and_names(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# job\n10.0.0.2 slots=8\n10.0.0.3:8\n\nlocalhost\n")
    assert parse_hostfile(file.read_text()) == ["10.0.0.2", "10.0.0.3", "localhost"]
    found = read_peers(["10.0.0.9,10.1.0.0/16"], file, "ignored[1-2]")
    assert found[:4] == ("10.0.0.9", "10.1.0.0/16", "10.0.0.2", "10.0.0.3")
    assert set(found[4:]) <= {"127.0.0.1", "::1"} and found[4:]
    assert read_peers([], None, "") == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node7", "node7"),
        ("node[01-03,7],login", "node01 node02 node03 node7 login"),
        ("r[1-2]n[8-9]-ib", "r1n8-ib r1n9-ib r2n8-ib r2n9-ib"),
    ],
)
def test_slurms_list_of_nodes(text: str, names: str) -> None:
    assert " ".join(expand_nodelist(text)) == names


@pytest.mark.parametrize("word", ["0.0.0.0/0", "::/0", "no-such-host.invalid", "bad host", "n[x-y]", "n[1-999999]"])
def test_a_peer_that_is_everybody_or_nobody_is_refused(word: str) -> None:
    with pytest.raises(UsageError):
        list(addresses(word) if "[" not in word else expand_nodelist(word))


# ---------------------------------------------------------------------- as a program


@pytest.mark.slow
def test_the_program_itself(world: World, tmp_path: Path) -> None:
    """Without any of this module's own actions: the verbs start, and end with the status they promise."""
    places = {"ENVTUNE_STATE": str(tmp_path / "s"), "XDG_CACHE_HOME": str(tmp_path / "c")}
    env = {**os.environ, **places, "LC_ALL": "C.UTF-8"}

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "envtune", *words]
        return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    assert call("history").returncode == 0
    assert call("undo").returncode == 2
    plan = call("fix", "CPU", "--format", "json")
    assert plan.returncode in (0, 1, 3) and json.loads(plan.stdout)["schema"] == "envtune.plan/1" and plan.stderr == ""
    assert not (tmp_path / "s").exists()
