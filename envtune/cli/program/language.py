"""The language of what is said where no verb runs: it needs no typer, which may be what is missing."""

from __future__ import annotations

import os
from typing import Sequence


def language_of(args: Sequence[str]) -> str:
    """Return the language of help and usage errors: `--lang` wherever it stands before `--`, else the locale's."""
    own = [*args[: args.index("--")]] if "--" in args else [*args]
    for word, following in zip(own, [*own[1:], ""]):
        named = following if word == "--lang" else word[len("--lang=") :] if word.startswith("--lang=") else ""
        if named in ("en", "zh"):
            return named
    return language_of_locale()


def language_of_locale() -> str:
    """Return the language of the locale where there are texts in it, else English."""
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    return "zh" if locale.lower().startswith("zh") else "en"
