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
    assert ending.startswith("* 1 of 1 can be fixed on that host: envtune fix --apply")


def test_a_recorded_host_fits_the_screen_as_the_host_itself_does(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for lang in ("en", "zh"):
        assert len(run("check", "--snapshot", host, "--lang", lang).stdout.splitlines()) <= SCREEN


def test_fix_does_not_tell_to_apply_what_it_refuses_to_apply(host: str) -> None:
    done = run("fix", "--snapshot", host, "CPU001")
    assert done.stdout.endswith("Nothing was changed. To apply it, run fix --apply on that host, without --snapshot\n")
    refused = run("fix", "--snapshot", host, "CPU001", "--apply")
    assert refused.exit_code == 2 and "cannot change a recorded one" in refused.stderr
