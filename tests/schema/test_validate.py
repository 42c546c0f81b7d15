"""Plain data is judged by the types of a schema; the first thing that is wrong is named with its path."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import pytest

from envtune.messages import Message, Text
from envtune.schema.types import (
    AnyOf,
    Anything,
    Bool,
    Bytes,
    Const,
    Field,
    ListOf,
    MapOf,
    Null,
    Number,
    Record,
    Scalar,
    Special,
    Str,
    Type,
    optional,
    record_of,
)
from envtune.schema.validate import Validator, is_normal_path, regular_expression
from envtune.schema.values import Data

WHOLE, REGEX = Number(whole=True), Str(name=Message("a regular expression"), check=regular_expression)
PATH = Str(name=Message("a normal path"), check=is_normal_path)
ROW = Record(Field("pid", WHOLE, "Its number.", True), Field("user", Str()), closed=False)


def judged(type_: Type, data: Any) -> Any:
    def refuse(value: Data, message: Text) -> NoReturn:
        assert message.zh
        raise LookupError(f"{value.path}: {message.en}" if value.path else message.en)

    return Validator(refuse).judge(Data(data), type_)


ACCEPTED: list[tuple[Type, Any]] = [
    (Str(), ""),
    (Str("[a-z]+"), "abc"),
    (Str(choices=("a", "b")), "b"),
    (REGEX, "a(b|c)"),
    (PATH, "/a/b"),
    (PATH, "/"),
    (Bool(), False),
    (Null(), None),
    (Number(), 1.5),
    (Number(0, 10), 10),
    (WHOLE, -(1 << 63) + 1),
    (Scalar(), "7.10"),
    (Scalar(), 7),
    (Scalar(), True),
    (Const("x"), "x"),
    (Const(True), True),
    (Bytes(), b"\xff"),
    (Anything(), {"a": [1, None]}),
    (ListOf(Str()), []),
    (MapOf(WHOLE), {"a": 1, "b c": 2}),
    (AnyOf(Str(), ListOf(Str()), Null()), ["a"]),
    (AnyOf(Str(), ListOf(Str()), Null()), None),
    (optional(ROW), {"pid": 1, "user": "li"}),
    (Special(lambda validator, value: value.plain(), Null), "judged elsewhere"),
]


@pytest.mark.parametrize(("type_", "data"), ACCEPTED)
def test_what_is_of_the_type_comes_back_as_it_is(type_: Type, data: Any) -> None:
    result = judged(type_, data)
    assert result == data
    assert type(result) is type(data)


REFUSED: list[tuple[Type, Any, str]] = [
    (Str(), 5, "expected text, not 5"),
    (Str(), None, "expected text, not null"),
    (Str(), ["a"], "expected text, not a list"),
    (Str(), "\ud800", "half a surrogate pair is not text"),
    (Str(least=1), " ", "empty; add a value, or remove the key"),
    (Str(least=1), "", "empty; write text, or remove the key"),
    (Str("[a-z]+", "lower-case"), "A", "A: must look like lower-case"),
    (Str(choices=("safe", "manual")), "save", "save is not one of safe, manual; did you mean safe?"),
    (REGEX, "(", "not a regular expression: missing ), unterminated subpattern at position 0"),
    (PATH, "/a/../b", "expected a normal path, not '/a/../b'"),
    (PATH, "//a", "expected a normal path, not '//a'"),
    (PATH, "/a\0", "expected a normal path, not '/a\\x00'"),
    (Bool(), 1, "expected true or false, not 1"),
    (Bool(), "true", "expected true or false, not 'true'"),
    (WHOLE, True, "expected a whole number, not true"),
    (WHOLE, 1.0, "expected a whole number, not 1.0"),
    (WHOLE, 1 << 63, "expected a whole number, not 9223372036854775808"),
    (WHOLE, 1 << 99_999, "expected a whole number, not ..."),
    (Number(), math.nan, "expected a number, not nan"),
    (Number(), "1", "expected a number, not '1'"),
    (Number(0, 10), 11, "11: must be in 0 .. 10"),
    (Number(0), -1, "-1: must be in 0 .. inf"),
    (Scalar(), None, "expected text, a whole number, true or false, not null"),
    (Scalar(), 7.1, '7.1 can be a number or a version; write "7.1" with quotes'),
    (Const("plan/1"), "plan/2", 'must be "plan/1"'),
    (Const(True), 1, "must be true"),
    (ListOf(Str()), "a", "expected a list, not 'a'"),
    (ListOf(Str(), least=1), [], "empty; write a list, or remove the key"),
    (ListOf(Str()), ["a", 5], "[1]: expected text, not 5"),
    (MapOf(WHOLE), {"a": {}}, "a: expected a whole number, not a mapping"),
    (MapOf(Null(), key=PATH), {"a": None}, "a: expected a normal path, not 'a'"),
    (AnyOf(Str(), ListOf(Str()), Null()), 5, "expected text or a list, not 5"),
    (AnyOf(Str(), Null(), name=Message("a name")), 5, "expected a name, not 5"),
    (ROW, {"user": "li"}, "pid: the key pid is missing: Its number."),
    (record_of({"pid": WHOLE}), {}, "pid: the key pid is missing"),
    (record_of({"pid": WHOLE}), {"pid": 1, "pit": 2}, "pit: pit is not a known key; did you mean pid?"),
    (MapOf(ListOf(ROW)), {"rows": [{"pid": 1}, {"pid": "x"}]}, "rows[1].pid: expected a whole number, not 'x'"),
    (MapOf(MapOf(WHOLE)), {"/etc/x": {"mode": "a"}}, "/etc/x: mode: expected a whole number, not 'a'"),
    (Str(), "x" * 100 + "\ud800", "half a surrogate pair is not text"),
    (Bool(), "x" * 100, "expected true or false, not '" + "x" * 56 + "..."),
]


@pytest.mark.parametrize(("type_", "data", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_what_is_not_is_named_with_its_path(type_: Type, data: Any, message: str) -> None:
    with pytest.raises(LookupError) as caught:
        judged(type_, data)
    assert caught.value.args[0] == message


def test_an_open_record_gives_back_the_keys_it_knows() -> None:
    assert judged(ROW, {"pid": 1, "later": "ignored"}) == {"pid": 1}


def test_a_number_may_be_meant_as_text() -> None:
    assert [judged(Str(numbers=True), data) for data in ("07", 7, 7.5)] == ["07", "7", "7.5"]


def test_everything_wrong_is_reported_where_reporting_goes_on() -> None:
    paths: list[str] = []
    validator = Validator(lambda value, message: paths.append(value.path))
    validator.judge(Data({"a": [1, "b", 2], "c": 3}), MapOf(ListOf(Str())))
    assert paths == ["a[0]", "a[2]", "c"]
