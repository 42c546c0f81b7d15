"""Chinese texts have the punctuation of Chinese: between Chinese words, and where envtune joins names and clauses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from helpers.examples import ROOT

from envtune.expect import describe, in_unit

GOLDENS = sorted(path for path in (ROOT / "tests").rglob("golden/*zh*.txt") if "help" not in path.name)
_CHINESE = "[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"
_SOURCE = re.compile(r"^ *(?:\$ |查看：|修复：)|^ +查看 +\$")  # a line to paste
# Names of checks, files and variables, one behind the other, in a sentence of Chinese.
_NAMES = re.compile(r"(?:[A-Z]{2,5}\d{3}|/[\w./-]+|[A-Z]+_[A-Z_]+|[a-z]+\d+(?:-\d+)?)[,;] ")
_MARKS = re.compile(rf"{_CHINESE}[,;:](?:\s|$)|[,;:] ?{_CHINESE}")


def faults(text: str) -> list[str]:
    """The lines in which Chinese words are joined by half-width punctuation, and values stand apart from `%`."""
    lines = [line for line in text.splitlines() if not _SOURCE.search(line)]
    chinese = [line for line in lines if re.search(_CHINESE, line)]
    return [line for line in chinese if _MARKS.search(line) or _NAMES.search(line) or re.search(r"\d %", line)]


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.name)
def test_a_report_has_no_half_width_punctuation_between_chinese_words(path: Path) -> None:
    assert faults(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "line",
    [
        "一般 CPU002 各 CPU 使用的调速器不一致：performance: cpu0-3, cpu6-191; powersave: cpu4-5",
        "（另见 ENV003, ENV004）",
        "当前 shell 的环境变量, /etc/ld.so.conf",
        "使用率不超过 10 %",
        "node7: 驱动",
    ],
)
def test_the_faults_are_found(line: str) -> None:
    assert faults(line) == [line]


def test_a_line_to_paste_is_left_alone() -> None:
    assert faults("   查看：python3 -c 'import a; print(a)'") == []


def test_translations_join_by_the_marks_of_chinese() -> None:
    with (ROOT / "envtune" / "locale" / "zh" / "LC_MESSAGES" / "envtune.po").open("rb") as file:
        rows = [str(row.string) for row in read_po(file) if row.id]
    between_fields = [row for row in rows if re.search(r"\}[,;:] \{", row) and re.search(_CHINESE, row)]
    assert between_fields == []
    assert [row for row in rows if "\\b" in row] == []  # the mark of a paragraph of help, written out


def test_a_percentage_has_no_blank() -> None:
    assert describe({"le": 10}, in_unit("%")).zh == "不大于 10%"
    assert describe({"ge": 10}, in_unit("GB")).en == "at least 10 GB"
