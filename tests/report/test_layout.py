"""Text on a terminal: a Chinese reader and an English reader both get whole lines."""

from __future__ import annotations

from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envtune.messages import Joined, Literal, Message, Text
from envtune.report.layout import (
    NEVER_FIRST,
    NEVER_LAST,
    Paint,
    _words,
    display_width,
    indent,
    pad,
    printable,
    shown,
    spelled,
    wrap,
)


@pytest.mark.parametrize(
    ("text", "columns"),
    [("governor", 8), ("调速器", 6), ("CPU 调速器", 10), ("e\u0301", 1), ("Ａ", 2), ("", 0), ("\u200b", 0)],
)
def test_width_counts_terminal_columns(text: str, columns: int) -> None:
    assert display_width(text) == columns


def test_chinese_wraps_inside_a_sentence_and_never_before_punctuation() -> None:
    lines = wrap("主机线程负责向 NPU 下发任务；核心若需先升频，每次算子下发都会被拖慢。", 16)
    assert "".join(lines).replace(" ", "") == "主机线程负责向NPU下发任务；核心若需先升频，每次算子下发都会被拖慢。"
    assert all(display_width(line) <= 17 and line[0] not in NEVER_FIRST for line in lines)
    assert wrap("驱动abc", 5) == ["驱动", "abc"]


def test_a_path_is_never_broken() -> None:
    path = "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"
    assert path in wrap(f"read {path} and compare", 20)


def test_escape_sequences_of_a_host_are_shown_not_obeyed() -> None:
    assert printable("a\033[31mb\u202ec") == "a\\x1b[31mb\\u202ec"


@pytest.mark.parametrize(
    ("text", "page"),
    [
        (Message("{path} is gone:\n{ways}", path="a\nREADY", ways=Joined(["one", "t\x1bwo"], "\n")), "one\nt\\x1bwo"),
        (Message("{path} is gone:\n{ways}", path=Literal("a\nREADY"), ways=Message("{x}", x="\r")), "\\x0d"),
        (Message("{path} is gone:\n{ways}", path=ValueError("a\nREADY"), ways=7), "7"),
    ],
)
def test_a_text_keeps_its_own_line_ends_and_none_of_what_it_quotes(text: Text, page: str) -> None:
    assert shown(text, "en") == f"a\\x0aREADY is gone:\n{page}"


def test_no_row_begins_like_a_command_of_ours() -> None:
    assert not [row for n in range(5, 60) for row in wrap(f"{'x ' * n}$ sudo\tevil", 40) if row.startswith("$ ")]
    assert wrap("one two ${A}", 8) == ["one two", "${A}"]


def test_indent_keeps_the_hanging_column() -> None:
    assert indent("one two three", 9, "> ", "  ") == ["> one two", "  three"]


def test_pad_counts_columns_not_characters() -> None:
    assert pad("网络", 6) == "网络  "


def test_no_colour_means_no_escape() -> None:
    assert Paint(False)("x", "red") == "x"
    assert Paint(True)("x", "red") == "\033[31mx\033[0m"


@given(st.text(max_size=60), st.integers(1, 80))
def test_wrapping_loses_nothing(text: str, width: int) -> None:
    assert "".join("".join(wrap(text, width)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "en", "zh"),
    [
        ("1 | 2", "1 or 2", "1 或 2"),
        ("dnf | yum, not apt", "dnf or yum, not apt", "dnf 或 yum, not apt"),
        ("torch_npu 2.6.0 | 2.5.1 | 2.1.0 (CANN 8)", "torch_npu 2.6.0, 2.5.1 or 2.1.0 (CANN 8)", None),
        ("a|b", "a|b", "a|b"),
    ],
)
def test_one_of_several_is_spelled_for_people(text: str, en: str, zh: Optional[str]) -> None:
    assert spelled(text, "en") == en
    assert zh is None or spelled(text, "zh") == zh


@pytest.mark.parametrize("width", range(4, 24))
def test_no_line_begins_with_closing_punctuation_or_ends_with_an_opening_one(width: int) -> None:
    text = "驱动（25.0）与固件，均正常。“端口”已占用：请更换（见文档）！a word, and (another) one."
    rows = wrap(text, width)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "") and len(rows) > 1
    assert [row for row in rows if row[0] in NEVER_FIRST or row[-1] in NEVER_LAST] == []


@given(st.text("ab  ,.;:?!)]}%$(/", max_size=20))
def test_text_of_ascii_breaks_where_it_does_before_chinese(text: str) -> None:
    """Plain text is split by an expression of its own."""
    assert "".join(_words(text)) == text
    if text and text[-1] != "(":
        assert [*_words(text), "中"] == [*_words(text + "中")]
