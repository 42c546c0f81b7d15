"""One signature for the spellings of several releases: words in any order, with any signs between them."""

from __future__ import annotations

import re

import pytest

from envtune.catalog import load
from envtune.catalog.signatures.literals import required_literals
from envtune.catalog.signatures.tokens import expression_of, is_conjunction, is_token
from envtune.diagnose.prefilter.relax import relax_regex

NOTIFY = ["notify", "wait", "timeout"]


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (NOTIFY, "[Task][NotifyWait] TimedOut after 1836 s"),
        (NOTIFY, "The wait execution of the Notify register times out."),
        (NOTIFY, "notify_wait time-out, remote rank[3]"),
        (NOTIFY, "TIMEOUT: [notify][wait] of stream 4"),
        (["hccl timeout"], "HCCLTimeout"),
        (["hccl", "fail"], "HcclAllReduce failed"),
        (["507015"], "error code is 507015."),
        (["cqe|sdma", "error"], "SDMA copy error"),
        (["\u5fc3\u8df3", "\u8d85\u65f6"], "\u5fc3\u8df3\u68c0\u6d4b\u8d85\u65f6"),
    ],
)
def test_one_spelling_stands_for_others(tokens: list[str], text: str) -> None:
    assert re.search(expression_of(tokens), text)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (NOTIFY, "notify record done, wait for step 3"),
        (NOTIFY, "notify wait\ntimeout"),
        (["port"], "report of transport 4"),
        (["507015"], "took 5070153 us"),
        (["hccl timeout"], "hccl link 4 timeout"),
        (["core", "timeout"], "rtDeviceSynchronizeWithTimeout: vector core exception"),
    ],
)
def test_other_words_and_other_messages_are_no_match(tokens: list[str], text: str) -> None:
    assert not re.search(expression_of(tokens), text)


def test_a_message_goes_on_over_indented_lines() -> None:
    expression = expression_of(["notify wait", "remote rank"], multiline=True)
    assert re.search(expression, "EI0002: Notify wait\n\tSolution: 1. see the\n\tremote rank")
    assert not re.search(expression, "EI0002: Notify wait\nstep 4\n\tremote rank")


def test_lines_are_found_by_the_first_token() -> None:
    assert {literal.text for literal in required_literals(expression_of(NOTIFY))[0][0]} == {"notify"}
    (needs,) = required_literals(expression_of(["notify", "remote rank"], multiline=True), multiline=True)
    assert [literal.text for option in needs for literal in option] == ["notify"]
    assert relax_regex(expression_of(["notify", "wait"])) == b"(?:notify)"


@pytest.mark.parametrize("text", ["", " ", "|a", "a||b", "--", "a\nb"])
def test_a_token_has_words(text: str) -> None:
    assert not is_token(text)


def test_only_an_expression_of_tokens_is_one() -> None:
    for entry in load().faq:
        for signature in entry.signatures:
            assert is_conjunction(signature.regex) == bool(signature.tokens), signature.regex
