"""`--format`: several documents of one run, to standard output and to files."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.command_line import run
from helpers.recorded import host_data
from helpers.rows import sampled

NAMES = ("text", "json", "markdown", "html", "junit", "sarif", "prometheus", "nagios")
BEGINNINGS = {
    "text": "NOT READY",
    "json": "{",
    "markdown": "### NOT READY",
    "html": "<!doctype html>",
    "junit": "<?xml ",
    "sarif": "{",
    "prometheus": "# HELP ",
    "nagios": "ENVTUNE CRITICAL - ",
}
LOG = "ImportError: libhccl.so: cannot open shared object file: No such file or directory\n"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.chdir(tmp_path)
    data = {**host_data("910b-openeuler2203-troubled"), "schema": "envtune.snapshot/1"}
    (tmp_path / "host.json").write_text(json.dumps(data), "utf-8")
    return "host.json"


def test_all_formats_of_one_run(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Any] = []
    monkeypatch.setattr("envtune.cli.check.find_fixes", lambda catalogue, all_: runs.append(catalogue))
    files = [word for name in NAMES[1:] for word in ("--format", f"{name}={name}.out")]
    done = run("check", "--snapshot", host, "-f", "text", *files)
    assert (done.exit_code, len(runs), done.stderr) == (1, 1, "")
    assert done.stdout.startswith(BEGINNINGS["text"])
    for name in NAMES[1:]:
        assert (tmp_path / f"{name}.out").read_text("utf-8").startswith(BEGINNINGS[name]), name


@pytest.mark.parametrize("name", sampled(NAMES, 3))
def test_each_alone_on_standard_output(host: str, name: str) -> None:
    done = run("check", "--snapshot", host, "-f", name)
    assert done.exit_code == (2 if name == "nagios" else 1)  # CRITICAL
    assert done.stdout.startswith(BEGINNINGS[name]) and done.stdout.endswith("\n") and done.stderr == ""


def test_files_only_print_nothing(host: str) -> None:
    done = run("check", "--snapshot", host, "-f", "json=r.json", "-f", "nagios=n.txt")
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", "")


WRONG = [
    (["-f", "xml"], "--format must be text, json, markdown, html, junit, sarif, prometheus or nagios, not 'xml'"),
    (["-f", "junit", "-f", "json"], "only one of junit, json can go to standard output"),
    (["-f", "json="], "--format json=: name a file after the equals sign"),
    (["-f", "json=a", "-f", "junit=./a"], "/a is named more than once"),
    (["-f", "html=none/r.html"], "--format html=none/r.html: the directory "),
    (["-f", "html=host.json/r.html"], "/host.json is not a directory"),
    (["-f", "html=/dev/null"], "--format html=/dev/null: it exists and is not a regular file"),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_usage_errors(host: str, words: list[str], message: str, tmp_path: Path) -> None:
    done = run("check", "--snapshot", host, *words)
    assert (done.exit_code, done.stdout) == (2, "") and message in done.stderr
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["host.json"]


def test_html_without_its_library(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    done = run("check", "--snapshot", host, "-f", "html")
    assert (done.exit_code, done.stderr) == (
        2,
        f"envtune: the Python package Jinja2 is missing; install it: {sys.executable} -m pip install 'envtune[html]'\n",
    )


def test_a_monitoring_system_is_told_unknown(host: str) -> None:
    """Our status 2, for what was asked wrongly, is CRITICAL for Nagios."""
    done = run("check", "--snapshot", "none.json", "-f", "nagios")
    assert (done.exit_code, done.stdout) == (3, "ENVTUNE UNKNOWN - none.json: No such file or directory\n")


def test_what_cannot_be_written_is_no_clean_end(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    done = run("check", "--snapshot", host, "-f", "text", "-f", "json=r.json")
    assert done.exit_code == 2 and done.stdout.startswith("NOT READY")
    assert done.stderr == "envtune: r.json: not written: No space left on device\n"


def test_diagnose_in_several_formats(host: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(LOG, "utf-8")
    files = [word for name in ("json", "markdown", "html") for word in ("-f", f"{name}={name}.out")]
    done = run("diagnose", "train.log", "--no-check", "-f", "text", *files)
    assert done.exit_code == 1 and "F06" in done.stdout
    assert json.loads((tmp_path / "json.out").read_text("utf-8"))["diagnoses"][0]["id"] == "F06"
    assert (tmp_path / "markdown.out").read_text("utf-8").startswith("### F06")
    page = (tmp_path / "html.out").read_text("utf-8")
    assert "F06" in page and "libhccl.so" in page and stat.S_ISREG((tmp_path / "html.out").stat().st_mode)


def test_diagnose_has_no_formats_of_monitoring(host: str) -> None:
    done = run("diagnose", "host.json", "-f", "junit")
    assert (done.exit_code, done.stderr) == (2, "envtune: --format must be text, json, markdown or html, not 'junit'\n")
