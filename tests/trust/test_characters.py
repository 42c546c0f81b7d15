"""What a reader would not see is made visible, and nothing else is changed."""

from __future__ import annotations

import json

import pytest

from envtune.model import Severity
from envtune.trust.characters import is_visible, json_text, replace_unseen, visible, visible_lines

UNSEEN = [
    ("\x00", r"\x00"),
    ("\n", r"\x0a"),
    ("\r", r"\x0d"),
    ("\x1b", r"\x1b"),
    ("\x7f", r"\x7f"),
    ("\x85", r"\x85"),
    ("\x9b", r"\x9b"),
    ("\xad", r"\xad"),
    ("\u034f", r"\u034f"),
    ("\u061c", r"\u061c"),
    ("\u115f", r"\u115f"),
    ("\u180e", r"\u180e"),
    ("\u200b", r"\u200b"),
    ("\u200f", r"\u200f"),
    ("\u2028", r"\u2028"),
    ("\u2029", r"\u2029"),
    ("\u202a", r"\u202a"),
    ("\u202e", r"\u202e"),
    ("\u2060", r"\u2060"),
    ("\u2066", r"\u2066"),
    ("\u2069", r"\u2069"),
    ("\u206f", r"\u206f"),
    ("\u3164", r"\u3164"),
    ("\ufe0f", r"\ufe0f"),
    ("\ufeff", r"\ufeff"),
    ("\ufff9", r"\ufff9"),
    ("\U000e0001", r"\U000e0001"),
    ("\U000e007f", r"\U000e007f"),
    ("\udc9b", r"\x9b"),  # a byte that is not UTF-8
    ("\ud800", r"\ud800"),
]
SEEN = [
    "",
    "plain text",
    "\\x1b",
    "错误：没有",
    "\u3000",
    "ﬁ é ü ñ",
    "한국어",
    "العربية",
    "\U0001f600",
    "\u00a0",
    "→ … “”",
]


@pytest.mark.parametrize(("character", "shown"), UNSEEN, ids=[shown for _, shown in UNSEEN])
def test_what_is_not_seen_is_escaped(character: str, shown: str) -> None:
    text = f"a{character}b"
    assert visible(text) == f"a{shown}b" and not is_visible(text)
    assert visible_lines(text) == (text if character == "\n" else f"a{shown}b")
    page = json_text({text: [text]})
    assert is_visible(page) and json.loads(page) == {text: [text]}


@pytest.mark.parametrize("text", SEEN)
def test_what_is_seen_stays(text: str) -> None:
    assert (visible(text), visible_lines(text), is_visible(text)) == (text, text, True)
    assert json_text(text) == json.dumps(text, ensure_ascii=False)


def test_lines_and_tabs_stay_where_text_has_lines() -> None:
    assert visible_lines("a\n\tb\r\n") == "a\n\tb\\x0d\n"
    assert json_text({"a": 1}, 1) == '{\n "a": 1\n}'


NESTED = {
    "hosts": ["node1", "节点", "\x7f"],
    "flat": {"a": None, "b": 1.5, "c": True},
    "none": [[], {}, (), ""],
    "rows": [{"a": ["x"], 1: 2}, ({"b": {}},), Severity.HIGH, -1],
    3: {None: [{"deep": [["a", "b"], [1]]}]},
    "long": [f"node{number}\n" for number in range(20)],
    "flat rows": [{"a": None, "b%s": "50 %", 3: number} for number in range(20)],
    "rows of other keys": [{"a": number, "b" * (number % 3): True} for number in range(20)],
    "rows with lists": [{"a": number, "b": [number] * number} for number in range(20)],
    "rows of few forms": [
        {"a%": {"x": number}, "b": [[], {"c": "%s", "d": None}][: number % 3]} for number in range(20)
    ],
    "rows with tuples": [{"a": {"x": (number, {})}, "b": ()} for number in range(20)],
    "lists of lists": [[number, [], ["a", {"b": "%d"}]] for number in range(20)],
    "no rows": [{} for number in range(20)],
    "true and 1": [{1: "a"} if number % 2 else {True: "a"} for number in range(20)],
}


@pytest.mark.parametrize("data", [NESTED, *NESTED.values(), [], {}, "a", None], ids=repr)
@pytest.mark.parametrize("indent", [1, 2])
def test_it_is_indented_as_json_does(data: object, indent: int) -> None:
    assert json_text(data, indent) == json.dumps(data, ensure_ascii=False, indent=indent).replace("\x7f", "\\u007f")


def test_a_run_is_replaced_as_one() -> None:
    assert replace_unseen("a\x1b\u202eb\nc\x07", lambda run: f"<{len(run)}>") == "a<2>b\nc<1>"
