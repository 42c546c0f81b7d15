"""Collect the messages of the code, bring the Chinese catalog up to date, and compile it.

    python scripts/messages.py            update envtune.po and write envtune.mo
    python scripts/messages.py --check    exit with 1 if either of them is out of date

A new message gets an empty translation, which `--check` and the tests refuse: write it into envtune.po and run again.
"""

from __future__ import annotations

import io
import sys
from datetime import datetime, timezone
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parents[1]
CATALOGUE = ROOT / "envtune" / "locale" / "zh" / "LC_MESSAGES" / "envtune.po"
# How the code marks a message: the position of the template, or of context and template, or of both plural forms.
KEYWORDS = {"Message": None, "N_": None, "in_context": ((1, "c"), 2), "plural": (1, 2)}


def extracted() -> set[tuple[str, str]]:
    """Return (context, message) of every message in the code; both plural forms are separate messages.

    What a probe or a fact reads is the first paragraph of its docstring."""
    found: set[tuple[str, str]] = set()
    rows = extract_from_dir(ROOT / "envtune", keywords=KEYWORDS, strip_comment_tags=True)
    for _, _, message, _, context in rows:
        found.update((context or "", one) for one in (message if isinstance(message, tuple) else (message,)))
    sys.path.insert(0, str(ROOT))
    from envtune.catalog.reference import summaries

    return found | {("", summary) for summary in summaries()}


def updated() -> Catalog:
    """Return the catalog with exactly the messages of the code, each with its existing translation."""
    with CATALOGUE.open("rb") as file:
        old = read_po(file, locale="zh")
    new = Catalog(locale="zh", project="envtune", charset="utf-8", fuzzy=False)
    new.mime_headers = old.mime_headers
    for context, message in sorted(extracted()):
        had = old.get(message, context or None)
        new.add(message, had.string if had is not None else "", context=context or None)
    return new


def po_bytes(catalogue: Catalog) -> bytes:
    """Return the catalog as a .po file: no locations or dates, so that only messages make a difference."""
    out = io.BytesIO()
    write_po(out, catalogue, width=0, omit_header=True)
    return HEADER + out.getvalue()


HEADER = b'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n"Language: zh\\n"\n\n'


def mo_bytes(content: bytes) -> bytes:
    """Return the compiled form of a .po file; reproducible byte by byte."""
    catalogue = read_po(io.BytesIO(content), locale="zh")
    catalogue.creation_date = catalogue.revision_date = datetime(1980, 1, 1, tzinfo=timezone.utc)
    out = io.BytesIO()
    write_mo(out, catalogue)
    return out.getvalue()


def main() -> None:
    catalogue = updated()
    content = po_bytes(catalogue)
    made = {CATALOGUE: content, CATALOGUE.with_suffix(".mo"): mo_bytes(content)}
    untranslated = [message.id for message in catalogue if message.id and not message.string]
    for text in untranslated:
        sys.stderr.write(f"no translation: {text!r}\n")
    if "--check" in sys.argv:
        stale = [path.name for path, content in made.items() if not path.exists() or path.read_bytes() != content]
        for name in stale:
            sys.stderr.write(f"{name} is not up to date: make messages\n")
        sys.exit(1 if stale or untranslated else 0)
    for path, content in made.items():
        path.write_bytes(content)
    sys.exit(1 if untranslated else 0)


if __name__ == "__main__":
    main()
