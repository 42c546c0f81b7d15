"""What a mistyped word or path gets: one form for one mistake, and each error after the name of the program."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.command_line import run

GONE = "No such file or directory"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("check", "--snapshot", "nope"), f"nope: {GONE}"),
        (("check", "--snapshot", "nope", "nor"), f"nope: {GONE}"),
        (("check", "--script", "nope"), f"--script {{here}}/nope: {GONE}"),
        (("check", "--hostfile", "nope"), f"--hostfile nope: {GONE}"),
        (("check", "--catalog", "nope"), f"--catalog nope: {GONE}"),
        (("check", "--catalog", "file"), "--catalog file: Not a directory"),
        (("check", "--policy", "nope"), f"--policy nope: {GONE}"),
        (("fix", "--wheels", "nope"), f"--wheels nope: {GONE}"),
        (("fix", "--plan", "nope"), f"--plan nope: {GONE}"),
        (("diff", "nope", "nor"), f"nope: {GONE}"),
        (("diagnose", "nope"), f"nope: {GONE}"),
        (("profile", "nope"), f"nope: {GONE}"),
        (("check", "-f", "json=none/x"), "--format json=none/x: the directory {here}/none does not exist"),
        (("snapshot", "-o", "none/x"), "-o none/x: the directory {here}/none does not exist"),
        (("check", "--severity", "zz"), "--severity must be info, low, medium, high or critical, not 'zz'"),
        (("check", "--fail-on", "zz"), "--fail-on must be info, low, medium, high, critical or none, not 'zz'"),
    ],
)
def test_the_option_and_the_reason(
    words: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    done = run(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"envtune: {told.format(here=tmp_path)}\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("check", "-f", "md"), "prometheus or nagios, not 'md'; did you mean markdown?"),
        (("check", "-f", "prom"), "; did you mean prometheus?"),
        (("check", "--severity", "hihg"), "; did you mean high?"),
        (("list", "chekcs"), "; did you mean checks?"),
        (("undo", "2020"), "2020 is not the name of a run (to list them: envtune history)"),
        (("undo", "NOPE"), "NOPE is not the name of a run (to list them: envtune history)"),
        (("undo", "20250102-030405"), "no run 20250102-030405 (to list them: envtune history)"),
        (("resume", "20250102-030405"), "no run 20250102-030405 (to list them: envtune history)"),
        (
            ("fix", "set-bios-power-polcy"),
            "; did you mean set-bios-power-policy? (to list them: envtune list ",
        ),
        (("fix", "--faq", "F999"), "--faq F999: unknown id or name 'F999'; did you mean F"),
        (("explain", "CPU999"), "unknown id or name 'CPU999'; did you mean CPU1"),
        (
            ("explain", "zzzz"),
            " 'zzzz' (to list them: envtune list checks, also faq, playbooks, codes, probes, steps, facts)",
        ),
        (("explain", "sysctl.vale"), "did you mean sysctl.value, "),
        (("check", "--select", "CPU00X"), "(to list them: envtune list checks)"),
    ],
)
def test_the_nearest_words_and_where_all_of_them_are_listed(
    words: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVTUNE_STATE", str(tmp_path))
    done = run(*words)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1) and told in done.stderr


def test_every_error_is_after_the_name_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "SITE1.yaml").write_text("id: SITE1\ntitle: t\nseverity: hihg\nprobe: {sysctl.vale: {}}\nexpect: 1\n")
    lines = run("check", "--catalog", str(tmp_path)).stderr.splitlines()
    assert len(lines) > 2 and all(line.startswith("envtune: ") for line in lines)


def test_a_word_that_is_like_none_gets_the_list_as_such(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text("schema: envtune.policy/1\nprofiles: {night: {select: [CPU]}}\nqqqq: 1\n")
    (tmp_path / "policy.yaml").chmod(0o644)
    policy = ("--policy", str(tmp_path / "policy.yaml"))
    assert "; known: " in run("check", *policy).stderr and "did you mean" not in run("check", *policy).stderr
    (tmp_path / "policy.yaml").write_text("schema: envtune.policy/1\nprofiles: {night: {select: [CPU]}}\n")
    assert run("check", *policy, "--profile", "zzzz").stderr.endswith("has no such profile; known: night\n")
