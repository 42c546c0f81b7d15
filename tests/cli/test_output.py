"""What is printed, whatever is printed: it rules no terminal, and whoever asks for the status gets the truth."""

from __future__ import annotations

import errno
import importlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Iterator, Sequence

import pytest
from helpers.command_line import run
from helpers.program import CALLS, CLOSED, FULL, KEPT, LEFT, deny_processes, program
from helpers.rows import sampled

from envtune.assemble import shipped
from envtune.catalog import load
from envtune.cli.app import VERBS
from envtune.trust.characters import visible_lines

HOSTILE = "\x1b]0;owned\x07\x9b2J\n$ sudo evil\n\u202e\u200b\u2028"
LOG = "ImportError: libhccl.so: cannot open shared object file: No such file or directory\n"
CHEAP = ["list faq -f json", "--help"]
OTHERS = [
    "check -s SYS001",
    "check -s SYS001 -f json",
    "fix SYS001",
    "env",
    "diagnose {log} --no-check",
    "diagnose {log} --no-check -f markdown",
    "history",
    "collector",
    "snapshot",
]
NUMBERS = re.compile(rb"\d[\d.]*")  # times, and what else may differ between two runs
GOOD = -1  # the status of the same with streams that take everything
ENDS = [  # stdout, stderr, stdin, status
    (FULL, KEPT, KEPT, 2),
    (LEFT, KEPT, KEPT, 141),
    (CLOSED, CLOSED, CLOSED, 2),
    (KEPT, CLOSED, KEPT, GOOD),
    (CLOSED, KEPT, KEPT, 2),
    (FULL, FULL, KEPT, 2),
    (LEFT, LEFT, KEPT, 141),
    (KEPT, FULL, KEPT, GOOD),
    (KEPT, LEFT, CLOSED, GOOD),
]


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENVTUNE_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("PATH", os.environ["PATH"] + ":/usr/bin:/usr/bin")  # `env` has something to say on any host
    (tmp_path / "log").write_text(LOG)
    load()  # once, not in every fork
    for module in VERBS.values():
        importlib.import_module(f"envtune.cli.{module}")
    return tmp_path


# ---------------------------------------------------------------------- status


@pytest.mark.parametrize(
    ("verb", "ends"),
    [*((verb, ENDS) for verb in CHEAP), *(pytest.param(verb, ENDS[:4], marks=pytest.mark.slow) for verb in OTHERS)],
    ids=lambda value: value if isinstance(value, str) else "ends",
)
def test_a_report_that_nobody_got_is_no_verdict(
    verb: str, ends: Sequence[tuple[str, str, str, int]], places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = verb.format(log=places / "log").split()
    monkeypatch.setattr("envtune.assemble.shipped", cache(shipped))
    run(*words)  # what is made once need not be made in every fork
    good = program(*words)
    assert good.status in (0, 1) and good.out
    for stdout, stderr, stdin, status in ends:
        ended = program(*words, stdout=stdout, stderr=stderr, stdin=stdin)
        assert ended.status == (good.status if status == GOOD else status), (stdout, stderr, ended.err)
        assert b"Traceback" not in ended.err
        assert (b"standard output: not written" in ended.err) == (status == 2 and stderr == KEPT)
        if stdout == KEPT and verb != "snapshot":
            assert NUMBERS.sub(b"0", ended.out) == NUMBERS.sub(b"0", good.out)


def test_without_a_terminal_and_without_stdin_nobody_is_asked(places: Path) -> None:
    assert program("undo", stdin=CLOSED).status == 2
    assert program("diagnose", "-", "--no-check", stdin=CLOSED).status == 3


@pytest.mark.parametrize(("redirection", "status"), sampled([(">/dev/full", 2), (">&-", 2), (">&{writer}", 141)], 3))
def test_the_interpreter_has_nothing_to_add(redirection: str, status: int) -> None:
    """At its end it flushes once more, and would say so with a status of its own."""
    reader, writer = os.pipe()
    os.close(reader)  # `| head` would leave at some time, maybe after all was written
    line = f"{sys.executable} -m envtune list checks {redirection.format(writer=writer)}; exit $?"
    argv = ["bash", "-c", line]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, pass_fds=(writer,))
    os.close(writer)
    assert done.returncode == status and "Exception" not in done.stderr


@pytest.mark.skipif(platform.machine() not in CALLS, reason="the numbers of the calls are not known")
@pytest.mark.parametrize("error", [errno.EAGAIN, pytest.param(errno.EPERM, marks=pytest.mark.slow)])
def test_where_no_process_can_be_started(error: int, places: Path) -> None:
    def ended(*words: str) -> tuple[int, bytes, bytes]:
        return program(*words, before=lambda: deny_processes(error))

    assert ended("list", "checks")[0] == 0
    status, out, err = ended("check", "-s", "SYS001", "-f", "json")
    assert status in (0, 1, 3) and err == b"" and json.loads(out)["findings"]
    started = shutil.which("echo") or ""
    for words in (("--no-preflight", "-p", "none"), ("-s", "SYS001")):
        assert ended("run", *words, "--", started, "started")[:2] == (0, b"started\n")
    assert ended("run", "--no-preflight", "--", "false")[0] == 1
    assert ended("run", "--no-preflight", "--", "no-such-command")[0] == 127


def test_run_starts_the_command_with_the_streams_it_would_have() -> None:
    script = "readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2 >&9 || true"
    line = f"exec 9>&1; {sys.executable} -m envtune run --no-preflight -p none -- bash -c '{script}' <&- >&- 2>&-"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")


# ---------------------------------------------------------------------- encoding


@pytest.mark.parametrize(
    ("encoding", "form"),
    sampled(
        [
            ("gbk", "text"),
            ("gbk", "json"),
            ("latin-1", "markdown"),
            ("ascii", "text"),
            ("ascii", "json"),
            ("utf-8", "text"),
        ],
        4,
    ),
)
def test_any_log_in_any_locale(encoding: str, form: str, places: Path) -> None:
    (places / "log").write_text(f"\U0001f600 {LOG}")
    words = ("diagnose", str(places / "log"), "--no-check", "--lang", "zh", "-f", form)
    ended = program(*words, encoding=encoding)
    assert ended.status == 1 and ended.err == b""
    text = ended.out.decode("utf-8" if form == "json" or encoding == "ascii" else encoding)
    assert ("\U0001f600" if form == "json" or encoding in ("ascii", "utf-8") else "\\U0001f600") in text
    assert form != "json" or json.loads(text)["schema"] == "envtune.diagnosis/2"


@pytest.mark.parametrize("words", ["list checks", "history"])
def test_json_is_utf_8_in_every_locale(words: str) -> None:
    pages = {
        program(*words.split(), "-f", "json", "--lang", "zh", encoding=name).out for name in ("gbk", "ascii", "utf-8")
    }
    assert len(pages) == 1
    json.loads(pages.pop().decode("utf-8"))


# ---------------------------------------------------------------------- terminals


def hostile_words(place: Path) -> Iterator[tuple[str, ...]]:
    """Command lines that name what is not there, or should not be, in every place that is quoted back."""
    name = HOSTILE.replace("/", "")
    folder = place / name
    folder.mkdir()
    (folder / "log").write_text(f"{HOSTILE}\n{LOG}{HOSTILE}\n")
    (folder / "job.sh").write_text(f"#!/bin/sh\nexport A='{HOSTILE}'\nexec '{HOSTILE}'\n")
    (folder / "host.json").write_text(json.dumps({"schema": "envtune.snapshot/1", "host": HOSTILE, name: 1}))
    (folder / "bad.json").write_text(json.dumps({"schema": HOSTILE}))
    (folder / "x.yaml").write_text(f'id: "{json.dumps(name)[1:-1]}"\n')
    yield (name,)
    yield (f"--{name}",)
    yield ("--lang", name, "check")
    for verb in VERBS:
        yield (verb, f"--{name}")
        yield (verb, "--lang", name, "x")
    for verb in ("check", "fix", "env", "snapshot"):
        for option in ("--python", "--script", "--env-file", "--pid"):
            yield (verb, option, name)
        yield (verb, "--script", str(folder / "job.sh"), *(["-o", str(folder / "o")] if verb == "snapshot" else []))
    for option in ("--select", "--ignore", "--tag", "--severity", "--format", "--snapshot", "--peer", "--catalog"):
        yield ("check", option, name)
    yield ("check", "-s", "SYS001", "--snapshot", str(folder / "host.json"))
    yield ("check", "-s", "SYS001", "--snapshot", str(folder / "bad.json"))
    yield ("check", "-s", "SYS001", "--snapshot", str(folder))
    yield ("diff", str(folder / "host.json"), str(folder / "bad.json"))
    yield ("diff", "-s", "SYS001", str(folder / "host.json"))
    yield ("check", "--catalog", str(folder))
    yield ("fix", "SYS001", "--snapshot", str(folder / "host.json"), "--plan", str(folder / "bad.json"))
    yield ("fix", name)
    yield ("fix", "--faq", name)
    yield ("fix", "--plan", str(folder / "bad.json"))
    yield ("fix", "--finish", name)
    yield ("undo", name)
    yield ("undo", "20250102-030405", "C01", name)
    yield ("explain", name)
    yield ("list", name)
    yield ("list", "checks", "--format", name)
    yield ("snapshot", "-o", str(folder))
    yield ("snapshot", "-o", f"/proc/{name}/x")
    yield ("diagnose", name)
    for form in ("text", "json", "markdown"):
        yield ("diagnose", str(folder / "log"), "--no-check", "-f", form)
    yield ("diagnose", str(folder / "log"), "--no-check", "--since", name)
    yield ("run", "--no-preflight", "--", name)
    yield ("run", "--profile", name, "--", "true")
    yield ("run", "--no-preflight", "-p", "none", "--", "sh", "-c", "exit 3", name)


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_no_word_of_a_command_line_reaches_a_terminal_as_it_is(part: int, places: Path) -> None:
    for number, words in enumerate(hostile_words(places)):
        if (number % 20 > 0) != part:
            continue
        ended = program(*words)
        assert ended.status != 70, (words, ended.err)
        for page in (ended.out.decode("utf-8"), ended.err.decode("utf-8")):
            assert visible_lines(page) == page, words
            page = re.sub(r"(?ms)^```text$.*?^```$", "", page)  # there every line is the log's
            page = re.sub(r"(?m)^ {8}[ +-].*\n", "", page) if words[0] == "fix" else page  # the script's own, in a diff
            assert not re.search(r"(?m)^\s*\$ sudo evil", page), (words, page)


def test_a_defect_quotes_nothing_either(places: Path) -> None:
    def broken() -> None:
        from envtune.cli import list_

        def table(*_: object) -> list[str]:
            raise ValueError(HOSTILE)

        list_.table = table  # type: ignore[assignment]

    ended = program("list", "checks", before=broken, variables={"TMPDIR": str(places)})
    page = ended.err.decode("utf-8")
    assert ended.status == 70 and visible_lines(page) == page and page.count("\n") == 1


@pytest.mark.slow
def test_the_recorder_quotes_nothing_either(places: Path) -> None:
    (places / "collector.py").write_text(shipped("collector"))
    for words in (["--" + HOSTILE], ["--pid", HOSTILE], ["--lang", HOSTILE], ["-o", f"/proc/{HOSTILE}"]):
        argv = [sys.executable, "-I", str(places / "collector.py"), *words]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and visible_lines(done.stderr) == done.stderr
        assert not re.search(r"(?m)^\$ sudo evil", done.stderr), done.stderr


@pytest.mark.parametrize(
    ("redirection", "status"), [(">/dev/full", 2), (">&-", 2), (">/dev/full 2>&-", 2), ("| true", 141)]
)
@pytest.mark.slow
def test_the_recorder_says_how_it_ended(redirection: str, status: int, places: Path) -> None:
    (places / "collector.py").write_text(shipped("collector"))
    line = f"set -o pipefail; {sys.executable} -I {places}/collector.py --root {places} {redirection}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status and "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_only_one_place_writes_json_for_people() -> None:
    root = Path(os.path.dirname(os.path.abspath(sys.modules["envtune"].__file__ or "")))
    printing = [path for name in ("cli", "report") for path in (root / name).rglob("*.py")]
    assert not [path for path in printing if "json.dumps" in path.read_text("utf-8")]
