"""Markdown of a diagnosis: what a log says is shown as it says it, and becomes nothing else."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Iterator

import pytest
from helpers.faq import entries, found_in
from helpers.rows import sampled
from markdown_it import MarkdownIt
from markdown_it.token import Token

from envtune.diagnose.diagnosis import report_diagnoses
from envtune.diagnose.rank import resolve
from envtune.report.diagnosis.commonmark import code, fenced, prose
from envtune.report.diagnosis.markdown import render_markdown
from envtune.report.layout import printable

CORPUS = (Path(__file__).parents[1] / "cases" / "output" / "markdown.txt").read_text("utf-8").splitlines()
HOSTILE = [*CORPUS, "a\x1b]8;;https://evil.example\x07b", "a\u2028# b", "a\u202eb\u200b", "a\nb\n\n# c", "`\n```\n<b>"]
RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
# What GitHub makes of text outside of code: links, mentions, references, formulas, emoji.
MADE_LATER = re.compile(r"(?i)://|www\.|@\w|\w@|#\d|\bGH-\d|!\d|\$|:[a-z+][\w+-]*:|\b[0-9a-f]{40}\b")
ELEMENTS = {"h3", "p", "ul", "li", "strong", "code", "html_inline", "softbreak"}
MUTATIONS = 500


def tokens(markdown: str) -> Iterator[Token]:
    for token in RENDERER.parse(markdown):
        yield from token.children if token.children else (token,)


def tags(markdown: str) -> list[str]:
    return sorted(token.tag or token.type for token in tokens(markdown) if token.nesting >= 0 and token.type != "text")


def texts(markdown: str) -> list[str]:
    """What is neither markup nor code."""
    return [token.content for token in tokens(markdown) if token.type == "text"]


def seen(markdown: str) -> str:
    """What a reader sees, without blanks and backquotes."""
    return re.sub(r"[\s`]+", "", "".join(token.content for token in tokens(markdown)))


def meant(text: str) -> str:
    return re.sub(r"[\s`]+", "", printable(text))


@pytest.mark.parametrize("text", sampled(HOSTILE, 2))
def test_prose_is_a_line_of_text_and_code(text: str) -> None:
    page = prose(text)
    assert set(tags(page)) <= {"p", "code"} and "\n" not in page
    assert seen(page) == meant(" ".join(text.split()))
    assert not [piece for piece in texts(page) if MADE_LATER.search(piece)]
    assert tags(f"- **label** {page}") == sorted(["ul", "li", "p", "strong", *tags(page)[:-1]]) or not page


@pytest.mark.parametrize("text", sampled([text for text in HOSTILE if text.strip()], 2))
def test_a_code_span_is_one(text: str) -> None:
    page = f"a {code(text)} b"
    assert tags(page) == ["code", "p"] and texts(page) == ["a ", " b"]


def test_a_block_of_code_holds_any_line() -> None:
    page = "\n".join(fenced(HOSTILE))
    (block,) = tokens(page)
    assert block.type == "fence" and len(block.content.splitlines()) == len(HOSTILE)


def report(line: str) -> str:
    """The page about a log with an error, `line` around it and in it, and as the name of the file."""
    path = f"/logs/{line}"
    said = f"EI0001: HCCL_IF_IP[{line.replace(']', ')')}] is invalid"
    error = f"[ERROR] HCCL(1,python):2026-01-01-10:00:00.000.000 [env.cc:1]1 {said}"
    found = found_in(f"{line}\n{error}\n{line}\n")
    for number, hit in enumerate(found.hits):
        found.hits[number] = hit.__class__(hit.pattern, hit.file.__class__(path), hit.line, hit.groups, hit.context)
    return render_markdown(report_diagnoses([path], found, resolve(found, entries()), None), "en")


@pytest.mark.parametrize("text", sampled(HOSTILE, 5))
def test_nothing_of_a_hostile_log_becomes_markup(text: str) -> None:
    page = report(" ".join(text.split()))
    assert page.startswith("### H") and set(tags(page)) <= ELEMENTS
    html = [token.content for token in tokens(page) if token.type in ("html_inline", "html_block")]
    assert html == ["<sub>", "</sub>"]
    assert (tags(page).count("li"), tags(page).count("h3")) == (tags(report("x")).count("li"), 1)
    assert not [piece for piece in texts(page) if MADE_LATER.search(piece)]


def test_nothing_of_mixed_lines_becomes_markup() -> None:
    rng = random.Random(8)
    pieces = [piece for line in HOSTILE for piece in re.findall(r"\w+|\s+|[^\w\s]+", line)]
    for _ in range(MUTATIONS):
        text = "".join(rng.choices(pieces, k=rng.randrange(1, 12)))
        page = prose(text)
        assert set(tags(page)) <= {"p", "code"}, text
        assert seen(page) == meant(" ".join(text.split())), text
        assert not [piece for piece in texts(page) if MADE_LATER.search(piece)], text
        assert not text.strip() or tags(f"a {code(text)}") == ["code", "p"], text
