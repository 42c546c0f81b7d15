"""What signatures require is part of the compiled catalog, and the same as what parsing them finds."""

from __future__ import annotations

import json

import pytest

from envtune.catalog import load
from envtune.catalog.signatures import literals
from envtune.catalog.store import open_catalogue


def test_what_is_compiled_is_what_parsing_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = open_catalogue().literals
    monkeypatch.setattr(literals, "_known", {})
    literals.required_literals.cache_clear()
    parsed = literals.as_rows((regex, multiline) for regex, multiline, _ in rows)
    literals.remember(rows)
    literals.required_literals.cache_clear()
    assert json.loads(json.dumps(parsed)) == rows
    assert literals.as_rows((regex, multiline) for regex, multiline, _ in rows) == parsed


def test_every_expression_of_the_faq_is_there() -> None:
    known = {(regex, multiline) for regex, multiline, _ in open_catalogue().literals}
    for signature in (signature for entry in load(()).faq for signature in entry.signatures):
        wanted = {
            (signature.regex, signature.multiline),
            *((one, False) for one in (*signature.requires, *signature.unless)),
        }
        assert wanted <= known
