"""What a run died of, or that it lives, decides over words of an error that only warn or set. Cases in tests/cases."""

from __future__ import annotations

from typing import Any, Iterator

import pytest
from helpers.examples import ROOT
from helpers.rows import sampled
from helpers.yaml_text import load_yaml

from envtune.catalog import load
from envtune.diagnose.events.ending import other_death
from envtune.diagnose.events.severity import message_of, severity_of, states_failure, supposes
from envtune.diagnose.logs.files import LogFile
from envtune.diagnose.pipeline import diagnose_files

CASES = load_yaml((ROOT / "tests" / "cases" / "events" / "endings.yaml").read_text("utf-8"))


def answers(text: str) -> list[str]:
    catalogue = load(())
    files = [LogFile("log", content=(text + "\n").encode("utf-8"))]
    found = diagnose_files(["log"], files, catalogue.faq, dictionary=catalogue)
    return [diagnosis.candidate.entry.id for diagnosis in found.diagnoses]


def cases(*kinds: str) -> Iterator[Any]:
    for kind in kinds:
        for name, text in CASES[kind].items():
            yield pytest.param(name.partition(" ")[0], text, id=name)


@pytest.mark.parametrize(("name", "text"), sampled(cases("quiet", "written"), 3))
def test_words_of_an_error_alone_are_no_answer(name: str, text: str) -> None:
    assert answers(text) == [], name


@pytest.mark.parametrize(("entry", "text"), sampled(cases("answers"), 2))
def test_a_stated_failure_is_the_answer(entry: str, text: str) -> None:
    assert answers(text)[:1] == [entry]


@pytest.mark.parametrize(
    ("line", "message", "severity"),
    [
        ("[INFO] HCCL(7,python):2024-06-01-10:00:00.000.100 [a.cc:1][7]text", "text", "informs"),
        ("(EngineCore_DP0 pid=415) ERROR 11-17 11:40:12 [core.py:700] KeyError: 'a'", "KeyError: 'a'", "fails"),
        ("[W1111 10:00:00.402 socket.cpp:426] [c10d] text", "text", "warns"),
        ("E0612 10:12:09.551000 281473 api.py:869] failed", "failed", "fails"),
        ("2025-08-11 03:12:45.102 | ERROR    | app.worker:run:33 - text", "text", "fails"),
        ('time="2025-03-03T10:00:00Z" level=info msg="text', "text", "informs"),
        ("/a/b.py:164: ImportWarning: text", "ImportWarning: text", "warns"),
        ("Jun 01 10:00:05 npu7 train.sh[4711]: text", "text", ""),
        ("\u63d0\u793a\uff1a\u8bf7\u68c0\u67e5", "\u63d0\u793a\uff1a\u8bf7\u68c0\u67e5", "warns"),
        ("text", "text", ""),
    ],
)
def test_a_line_is_a_message_at_a_level(line: str, message: str, severity: str) -> None:
    assert (message_of(line), severity_of(line)) == (message, severity)


@pytest.mark.parametrize(
    ("line", "stated"),
    [
        ("EI0006: [PID: 1] Getting socket times out.", True),
        ("INFO [job-0] EI0015: [PID: 93] topo exchange failed", True),
        ("[ERROR] NPU out of memory", True),
        ("device 3 lost heartbeat", True),
        ("WARNING: EI0006: is retried", False),
        ("EI0006 is raised when a peer is late", False),
        ("hccl timeout: 7200 s", False),
        ("stops on 'heartbeat lost'", False),
    ],
)
def test_a_line_states_a_failure_or_only_names_it(line: str, stated: bool) -> None:
    assert states_failure(line) is stated


@pytest.mark.parametrize(
    ("line", "word", "supposed"),
    [
        ("[WARN] NPU out of memory may be reported", "NPU", True),
        ("[WARN] NPU is registered but not available. This may be due to Ray", "NPU", False),
        ("[WARN] Waits longer. EI0002 follows", "EI0002", True),
        ("[WARN] RuntimeError: raised if NPU out of memory", "NPU", False),
        ("[WARN] NPU out of memory", "NPU", False),
    ],
)
def test_what_the_sentence_around_an_error_supposes(line: str, word: str, supposed: bool) -> None:
    assert supposes(line, line.index(word)) is supposed


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\nTraceback (most recent call last):\n  File\nKeyError: 'a'\n", range(2, 4)),
        ("KeyError: 'a'\nRuntimeError: NPU out of memory", range(0)),
        ("KeyError: 'a'\nBrokenPipeError: [Errno 32] Broken pipe", range(1)),
        ("KeyError: 'a'\nChildFailedError:\n[INFO] done", range(1)),
        ("RuntimeError: unknown to all", range(0)),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x2 and 3x4)", range(1)),
        ("AttributeError: module 'torch' has no attribute 'npu'", range(0)),
        ("FileNotFoundError: [Errno 2] No such file: '/ascend/a'", range(1)),
        ("FileNotFoundError: '/dev/davinci0'", range(0)),
        ("ERROR: No matching distribution found for torch-npu", range(0)),
        ("slurmstepd: error: *** JOB 1 ON npu1 CANCELLED AT 10:00 DUE TO TIME LIMIT ***", range(1)),
        ("KeyError: 'a'\n" + 40 * "line\n", range(0)),
    ],
)
def test_the_lines_that_tell_what_else_a_run_died_of(text: str, lines: range) -> None:
    assert other_death(text.encode("utf-8"), 0) == lines
