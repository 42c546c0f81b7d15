"""--color, NO_COLOR and FORCE_COLOR: who wins, in a pipe and on a terminal."""

from __future__ import annotations

import pytest
from helpers.program import program
from helpers.rows import sampled

PLAIN = {"NO_COLOR": "", "FORCE_COLOR": "", "TERM": "xterm"}


@pytest.mark.parametrize(
    ("words", "environ", "colours"),
    sampled(
        [
            ([], {}, False),  # a pipe
            (["--color", "always"], {}, True),
            (["--color", "always"], {"NO_COLOR": "1"}, True),
            ([], {"FORCE_COLOR": "1"}, True),
            ([], {"FORCE_COLOR": "0"}, False),
            ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
            (["--color", "never"], {"FORCE_COLOR": "1"}, False),
            (["--color", "auto"], {"FORCE_COLOR": "1"}, True),
        ],
        2,
    ),
)
@pytest.mark.parametrize("place", sampled(["before", "after"], 2))
def test_who_wins(words: list[str], environ: dict[str, str], colours: bool, place: str) -> None:
    verb = ["explain", "CPU001"]
    line = [*words, *verb] if place == "before" else [*verb, *words]
    ended = program(*line, variables={**PLAIN, **environ})
    assert ended.status == 0, ended.err
    assert (b"\x1b[1m" in ended.out) == colours


def test_another_word_is_refused() -> None:
    for line in (["--color", "yes", "list", "faq"], ["list", "faq", "--color", "yes"]):
        ended = program(*line)
        assert ended.status == 2 and b"--color must be auto, always or never, not 'yes'" in ended.err


def test_what_is_quoted_keeps_no_other_sequence() -> None:
    """Colors are let through, where they are wanted; nothing else that rules a terminal."""
    ended = program("--color", "always", "explain", "X\x1b]0;title\x07Y")
    assert ended.status == 2 and b"\x1b" not in ended.err and b"\x07" not in ended.err
