"""The executor's problems: every code has its fields where it is raised, and a translation in envtune."""

from __future__ import annotations

import ast
import errno
import os
import re
from pathlib import Path
from string import Formatter
from typing import Iterator

import pytest

import envtune.executor
from envtune.executor.files import digest
from envtune.executor.problems import TEMPLATES, FailedError, LockedError, Problem, RefusedError, failure
from envtune.fix.executor_messages import error_message, problem_message, result_message

CHINESE = re.compile("[\u4e00-\u9fff]")
MAKERS = {"Problem", "RefusedError", "FailedError", "LockedError", "JournalError"}
OF_EXCEPTIONS = {"errno", "exception", "stopped", "stopped-by-signal"}  # made by problem_of
NOT_TRANSLATED = {"errno", "exception"}  # what the system and Python say
WITHOUT_WORDS = {"os-error", "at-member", "lock-holder-without-run"}  # values, and punctuation or one word


def placeholders(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def made() -> Iterator[tuple[str, set[str], str]]:
    """(code, fields, place) of every problem that the executor's source makes."""
    for path in sorted(Path(envtune.executor.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in MAKERS and path.name != "problems.py":
                (code,) = node.args
                assert isinstance(code, ast.Constant), f"{path.name}:{node.lineno}: name the code"
                yield code.value, {str(keyword.arg) for keyword in node.keywords}, f"{path.name}:{node.lineno}"


def test_every_code_is_made_somewhere_with_the_fields_of_its_template() -> None:
    rows = list(made())
    assert {code for code, _, _ in rows} | OF_EXCEPTIONS == set(TEMPLATES)
    for code, fields, place in rows:
        assert fields == placeholders(TEMPLATES[code]), f"{place}: {code}"


def test_every_code_has_a_translation_with_its_fields() -> None:
    for code in sorted(set(TEMPLATES) - NOT_TRANSLATED):
        fields = {name: f"<{name}>" for name in placeholders(TEMPLATES[code])}
        message = problem_message({"code": code, "fields": fields})
        assert message.en == str(Problem(code, **fields)), code
        assert message.zh != message.en and all(value in message.zh for value in fields.values()), code
        assert code in WITHOUT_WORDS or CHINESE.search(message.zh), code


@pytest.mark.parametrize(
    "number", [errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EBUSY, errno.EINVAL, errno.EIO, errno.ENOENT]
)
def test_what_the_system_says_is_translated(number: int) -> None:
    message = error_message(OSError(number, os.strerror(number), "/etc/x"))
    assert message.en == f"/etc/x: {os.strerror(number)}"
    assert re.fullmatch("/etc/x：[\u4e00-\u9fff]+", message.zh)
    assert error_message(OSError(errno.EXDEV, "cross-device", "/x")).zh == "/x：cross-device"


def test_digests_are_short_and_problems_inside_of_problems_are_translated() -> None:
    found = digest(b"x")
    message = error_message(RefusedError("not-as-planned", subject="/etc/x", found=found, planned="absent"))
    assert message.en == f"/etc/x is not what the plan expected (found {found[:19]}…, planned for absent)"
    assert message.zh == f"/etc/x 与计划时不同（现为 {found[:19]}…，计划时为 不存在）"
    holder = Problem("lock-holder", pid="7", since="2025", run="20250101-000000")
    assert error_message(LockedError("locked", holder=holder)).zh == (
        "另一个 envtune 正在写入：pid 7，始于 2025，运行 20250101-000000"
    )


def test_results_say_every_problem_and_those_of_old_journals_the_english_sentence() -> None:
    read_only = FailedError("os-error", path="/a", reason=Problem("errno", name="EROFS", text="Read-only file system"))
    running = Problem("process-still-running", pid=7)
    result = {**failure(read_only.problem), "error": "/a: Read-only file system; process 7 is still running"}
    result["problems"] += failure(running)["problems"]
    assert result_message(result).en == result["error"]
    assert result_message(result).zh == "/a：文件系统只读；进程 7 仍未结束"
    old = {"error": "process 7 is still running"}
    assert result_message(old).en == result_message(old).zh == "process 7 is still running"
    newer = {"error": "said by a newer version", "problems": [{"code": "new-code", "fields": {}}]}
    assert result_message(newer).zh == "said by a newer version"
