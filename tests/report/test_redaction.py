"""The look whether a text may hold a secret misses none that the redactor finds."""

from __future__ import annotations

from typing import Callable

import pytest
from helpers.rows import sampled
from helpers.secret_values import cases, rows

from envtune.collector.redact import redact_text
from envtune.report.redaction import redacted

KINDS = sorted(cases("secrets"))


@pytest.mark.parametrize("spelled", [str, str.upper, str.lower, "\u65e5\u5fd7 {}".format, "\u0130\u0131 {}".format])
@pytest.mark.parametrize("kind", sampled(KINDS, 2))
def test_what_the_redactor_changes_is_shown_to_it(kind: str, spelled: Callable[[str], str]) -> None:
    texts = [spelled(row.text) for row in rows("secrets", kind)]
    assert [text for text in texts if redacted(text) != redact_text(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "pa\u017fsword=hunter2hunter2",
        "\u5bc6\u7801\uff1ahunter2hunter2",
        "l\u0131cense_key=abc",
        "to\u212aen=abcdefgh1234",
        "the hook is Ab3xY9kQ2mZ7",
        "a hook Ab3xY9kQ2mZ7 of the site",
        "hook: Ab3xY9kQ2mZ7",
        "a hook that does not raise StopIteration",
    ],
)
def test_texts_that_only_look_alike(text: str) -> None:
    assert redacted(text) == redact_text(text)
