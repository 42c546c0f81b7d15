"""What a person is told to do about a recorded host is what can be done about one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.command_line import run
from helpers.recorded import host_data

from envtune.report.check_short import SCREEN


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    data = {**host_data("910b-openeuler2203-troubled"), "schema": "envtune.snapshot/1"}
    Path("node 18.json").write_text(json.dumps(data), "utf-8")
    return "node 18.json"


def test_check_names_the_recording_and_the_host(host: str) -> None:
    done = run("check", "--snapshot", host, "--select", "CPU001")
    ending = " ".join(done.stdout.split("\n\n")[-1].split())
    assert ending.startswith("* 1 of 1 can be fixed on that host: envtune fix --select CPU001 --apply")


def test_a_recorded_host_fits_the_screen_as_the_host_itself_does(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for lang in ("en", "zh"):
        assert len(run("check", "--snapshot", host, "--lang", lang).stdout.splitlines()) <= SCREEN


def test_fix_does_not_tell_to_apply_what_it_refuses_to_apply(host: str) -> None:
    done = run("fix", "--snapshot", host, "CPU001")
    assert done.stdout.endswith("Nothing was changed. To apply it, run fix --apply on that host, without --snapshot\n")
    refused = run("fix", "--snapshot", host, "CPU001", "--apply")
    assert refused.exit_code == 2 and "cannot change a recorded one" in refused.stderr


@pytest.mark.parametrize(
    "words", [("--select", "ENV103"), ("--ignore", "CPU"), ("--select", "ENV", "--policy", "none")]
)
def test_the_next_command_is_about_the_same_checks(host: str, words: tuple[str, ...]) -> None:
    """`envtune fix --apply` alone would change what nobody asked about."""
    ending = " ".join(run("check", "--snapshot", host, *words).stdout.split("\n\n")[-1].split())
    assert f"envtune fix {' '.join(words)} --apply" in ending and f"check -v {' '.join(words)}" in ending


def test_a_star_promises_what_fix_with_the_same_options_does(host: str) -> None:
    """A block of envtune's cannot override a variable that the job's own file sets."""
    Path("job.env").write_text("HCCL_RDMA_TC=133\n", "utf-8")
    checked = run("check", "--snapshot", host, "--env-file", "job.env", "--select", "ENV103").stdout
    fixed = run("fix", "--snapshot", host, "--env-file", "job.env", "ENV103").stdout
    assert "ENV103" in checked and ("ENV103 *" in checked) is ("What would be changed" in fixed)


def test_the_command_that_shows_the_changes_of_a_scan_names_its_files(host: str) -> None:
    Path("my job.sh").write_text("export HCCL_RDMA_TC=133\npython train.py\n", "utf-8")
    page = run("scan", "my job.sh", "--select", "ENV103").stdout
    assert "envtune scan --fix --select ENV103 'my job.sh'" in page
    assert "-export HCCL_RDMA_TC=133" in run("scan", "--fix", "--select", "ENV103", "my job.sh").stdout


def test_a_check_of_the_policy_is_explained_with_the_policy(tmp_path: Path, host: str) -> None:
    (tmp_path / "site.yaml").write_text("schema: envtune.policy/1\nfacts: {cann: 9.9.9}\n", "utf-8")
    page = " ".join(run("check", "--snapshot", host, "--policy", "site.yaml", "--select", "POL001").stdout.split())
    words = ["explain", "POL001", "--policy", str(tmp_path / "site.yaml")]
    assert f"explain ID {' '.join(words[2:])}" in page
    assert run(*words).stdout.startswith("POL001 ") and run("explain", "POL001").exit_code == 2


@pytest.mark.parametrize(("line", "fixes"), [("EI0014: rank table", False), ("EJ0003: bind port failed", True)])
def test_a_diagnosis_names_fix_only_where_a_playbook_fixes_something(host: str, line: str, fixes: bool) -> None:
    """NET101, which EI0014 points to, has none."""
    Path("train.log").write_text(f"[ERROR] 2025-03-01 10:00:00 {line}\n", "utf-8")
    page = run("diagnose", "--no-check", "train.log").stdout
    assert ("envtune fix --faq" in page) is fixes, page


def test_the_line_of_a_finding_names_the_policy(tmp_path: Path, host: str) -> None:
    (tmp_path / "site.yaml").write_text("schema: envtune.policy/1\nexpect: {ENV003: {eq: '0'}}\n", "utf-8")
    words = ("--snapshot", host, "--select", "NET005")
    assert "sudo envtune fix NET005 --apply\n" in run("check", "-v", *words).stdout
    page = run("check", "-v", *words, "--policy", "site.yaml").stdout
    assert f"sudo envtune fix NET005 --apply --policy {tmp_path / 'site.yaml'}" in " ".join(page.split())
