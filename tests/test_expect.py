"""The matchers of an expectation, also those that no shipped check uses: what holds, what does not, and the words."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

import pytest

from envtune import expect
from envtune.messages import Literal, Message
from envtune.model import Evidence, Reading


def readings(*values: Any) -> tuple[Reading, ...]:
    return tuple(Reading(f"s{number}", value, Evidence("")) for number, value in enumerate(values))


@pytest.mark.parametrize(
    ("expectation", "good", "bad", "en", "zh"),
    [
        ({"eq": "a"}, ["a"], ["b", 1], "a", "a"),
        ({"eq": True}, [True], [False], "true", "true"),
        ({"ne": "a"}, ["b", 1, None], ["a"], "anything except a", "不是 a"),
        ({"in": ["a", 2]}, ["a", 2], ["b", "2"], "a or 2", "a 或 2"),
        ({"in": ["a"]}, ["a"], ["b"], "a", "a"),
        ({"not_in": ["a", "b"]}, ["c", 1], ["a", "b"], "none of a, b", "不是 a, b 中的任何一个"),
        ({"lt": 2}, [1, 1.9, "-3"], [2, 3], "less than 2", "小于 2"),
        ({"le": 2}, [1, 2, "2"], [2.1], "at most 2", "不大于 2"),
        ({"gt": 2}, [2.1, "3"], [2, 1], "more than 2", "大于 2"),
        ({"ge": 2}, [2, 3, "2"], [1.9], "at least 2", "不小于 2"),
        ({"gt": 1, "lt": 4}, [2, 3], [1, 4], "more than 1; less than 4", "大于 1；小于 4"),
        ({"contains": "b"}, [["a", "b"], "abc"], [["a"], "ac"], "b among them", "包含 b"),
        ({"matches": "[13]"}, ["1", 3], ["2", "13"], "a value like [13]", "形如 [13] 的值"),
        ({"matches": r"3\.4\.10(\..*)?"}, ["3.4.10", "3.4.10.37"], ["3.4.100"], "3.4.10", "3.4.10"),
        ({"empty": True}, ["", (), 0], ["a"], "none", "无"),
        ({"empty": False}, ["a", ["b"]], ["", ()], "at least one", "至少一个"),
    ],
)
def test_a_matcher(expectation: Mapping[str, Any], good: Sequence[Any], bad: Sequence[Any], en: str, zh: str) -> None:
    assert expect.misses({"all": expectation}, readings(*good)) == ()
    assert expect.misses(expectation, readings(*good)) == ()
    assert [r.value for r in expect.misses(expectation, readings(*good, *bad))] == list(bad)
    assert expect.describe(expectation).en == expect.describe({"all": expectation}).en == en
    assert expect.describe(expectation).zh == zh


def test_any_wants_one() -> None:
    assert expect.misses({"any": {"gt": 2}}, readings(1, 3)) == ()
    assert len(expect.misses({"any": {"gt": 2}}, readings(1, 2))) == 2
    assert expect.describe({"any": {"gt": 2}}).en == "at least one: more than 2"


def test_same_wants_no_difference() -> None:
    assert expect.misses({"same": True}, readings("a", "a")) == ()
    assert expect.misses({"same": True}, readings()) == ()
    assert len(expect.misses({"same": True}, readings("a", "a", "b"))) == 3
    assert expect.describe({"same": True}).en == "the same everywhere"


@pytest.mark.parametrize("value", [True, None, "many", [1]])
@pytest.mark.parametrize("matcher", ["lt", "le", "gt", "ge"])
def test_what_is_no_number_cannot_be_compared(matcher: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        expect.matches({matcher: 1}, value)


def test_the_only_matcher() -> None:
    assert expect.only({"all": {"ge": 1}}, "ge") == expect.only({"any": {"ge": 1}}, "ge") == 1
    assert (
        expect.only({"ge": 1}, "le")
        is expect.only({"ge": 1, "le": 2}, "ge")
        is expect.only({"same": True}, "ge")
        is None
    )


def test_a_reading_words_the_expectation_it_is_given() -> None:
    (plain,) = readings(3)
    in_gigabytes = plain._replace(
        expected=lambda e: Message("{amount} GB or more", amount=e["ge"]) if "ge" in e else None
    )
    compared = plain._replace(expected=Literal("the version of the driver"))
    assert expect.expected_value(plain, {"ge": 10}).en == "at least 10"
    assert expect.expected_value(in_gigabytes, {"ge": 10}).en == "10 GB or more"
    assert expect.expected_value(in_gigabytes, {"lt": 10}).en == "less than 10"
    assert expect.expected_value(compared, {"eq": True}).en == "the version of the driver"
    assert expect.describe({"lt": 10}, lambda value: f"{value} GB").zh == "小于 10 GB"
