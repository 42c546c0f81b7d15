"""The executor speaks English only; what it can say has Chinese words in envtune."""

from __future__ import annotations

import ast
import errno
import os
import re
from pathlib import Path
from typing import Iterator

import pytest

from envtune import executor
from envtune.fix.executor_messages import told

SOURCE = ast.parse(Path(executor.__file__).read_text("utf-8"))
RAISED = {"Refused", "Failed", "Locked"}
SAMPLE = {"s": "thing", "d": "7", "o": "700", "g": "600"}


def forms() -> Iterator[str]:
    """The text of every message that the executor raises or notes, before its values are filled in."""
    for node in ast.walk(SOURCE):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and ast.unparse(node.exc.func) in RAISED:
            yield from texts(node.exc.args[0])
        elif isinstance(node, ast.FunctionDef) and node.name in ("unmet", "_unexpected", "_copy_foreign"):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and inner.value is not None:
                    yield from texts(inner.value)


def texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        node = node.left
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in ("", "%s: %s"):
        yield node.value


FORMS = sorted(set(forms()))


def test_the_messages_were_found() -> None:
    assert len(FORMS) > 30 and "process %d is still there" in FORMS


@pytest.mark.parametrize("form", FORMS)
def test_every_message_has_chinese_words(form: str) -> None:
    message = re.sub("%([sdog])", lambda found: SAMPLE[found[1]], form)
    assert re.search("[\u4e00-\u9fff]", told(message).zh), message
    for value in re.findall("%([sdog])", form):
        assert SAMPLE[value] in told(message).zh


@pytest.mark.parametrize(
    "number", [errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EBUSY, errno.EINVAL, errno.EIO, errno.ENOENT]
)
def test_what_the_system_says_too(number: int) -> None:
    message = executor.describe_error(OSError(number, os.strerror(number), "/etc/x"))
    assert re.fullmatch("/etc/x：[\u4e00-\u9fff]+", told(message).zh)


def test_digests_are_short_enough_to_read_and_values_are_told_too() -> None:
    digest = executor.digest(b"x")
    words = told(f"/etc/x is not what the plan expected (found {digest}, planned for absent)")
    assert words.en == f"/etc/x is not what the plan expected (found {digest[:19]}…, planned for absent)"
    assert words.zh == f"/etc/x 与计划时不同（现为 {digest[:19]}…，计划时为 不存在）"
    assert told("what nobody knows").zh == "what nobody knows"
    assert told("/a: Read-only file system; process 7 is still there").zh == "/a：文件系统只读；进程 7 仍未结束"
