"""Every sentence in both languages: the code's messages against the Chinese catalog."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from string import Formatter
from typing import Iterator

import pytest
from babel.messages.pofile import read_po
from helpers.examples import ROOT

from envtune.messages import Bilingual, Joined, Literal, Message, clauses, enumerated, in_context, plural

KEYWORDS = ("Message", "N_", "in_context", "plural")
CATALOGUE = ROOT / "envtune" / "locale" / "zh" / "LC_MESSAGES" / "envtune.po"


def fields(template: str) -> set[str]:
    """The fields of a template; none where its braces are text."""
    try:
        return {name for _, name, _, _ in Formatter().parse(template) if name is not None}
    except ValueError:
        return set()


@pytest.mark.slow
def test_the_catalogue_is_complete_and_compiled() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "messages.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def messages_in(path: Path) -> Iterator[tuple[str, str]]:
    """Context and template of each message that a module writes out."""
    text = path.read_text("utf-8")
    if not any(f"{word}(" in text for word in KEYWORDS):  # to parse it takes much longer
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KEYWORDS:
            words = [arg.value if isinstance(arg, ast.Constant) else None for arg in node.args]
            context = words.pop(0) if node.func.id == "in_context" and words else ""
            for word in words[: 2 if node.func.id == "plural" else 1]:
                if isinstance(word, str):
                    yield str(context), word


def test_every_message_of_the_code_is_in_the_catalogue() -> None:
    """What collects them does not look into f-strings."""
    with CATALOGUE.open("rb") as file:
        known = {(row.context or "", row.id) for row in read_po(file) if row.string}
    written = {row for path in (ROOT / "envtune").rglob("*.py") for row in messages_in(path)}
    assert len(written) > 2000 and written <= known, written - known


def test_a_translation_uses_no_field_that_the_message_lacks() -> None:
    with CATALOGUE.open("rb") as file:
        rows = [(str(row.id), str(row.string)) for row in read_po(file) if row.id]
    assert len(rows) > 500
    assert {row for row in rows if not fields(row[1]) <= fields(row[0])} == set()


@pytest.mark.parametrize(
    ("text", "en", "zh"),
    [
        (Message("true or false"), "true or false", "true 或 false"),
        (Message("a sentence of no catalog: {path}", path="/x"), *["a sentence of no catalog: /x"] * 2),
        (Message("without fields {a brace} is a brace"), *["without fields {a brace} is a brace"] * 2),
        (Literal("a{b}"), "a{b}", "a{b}"),
        (Bilingual("one", "一"), "one", "一"),
        (enumerated(["a", "b"]), "a, b", "a、b"),
        (clauses([Literal("a"), Bilingual("one", "一")]), "a; one", "a；一"),
        (Joined(["a", "b"], "/"), "a/b", "a/b"),
        (in_context("outcome", "unknown"), "unknown", "无法判断"),
        (in_context("value", "unknown"), "unknown", "未知"),
        (Message("[{inner}]", inner=Bilingual("one", "一")), "[one]", "[一]"),
        (plural("{count} X", "{count} Xs", 1), "1 X", "1 X"),
        (plural("{count} X", "{count} Xs", 2), "2 Xs", "2 Xs"),
    ],
)  # fmt: skip
def test_rendered(text: Message, en: str, zh: str) -> None:
    assert (text.to("en"), text.to("zh"), str(text)) == (en, zh, en)


def test_texts_are_equal_when_they_read_the_same() -> None:
    assert Message("{x}", x=1) == Literal("1") != Bilingual("1", "一")
    assert len({Message("{x}", x=1), Literal("1")}) == 1


def test_a_field_that_looks_like_a_template_is_not_filled_in() -> None:
    assert Message("found {value}", value="{0} {x} %s").to("zh").endswith("{0} {x} %s")
