"""The examples of docs/formats.md: three checks of a recorded host in every format, written between their markers.

python docs/formats_output.py            write them
python docs/formats_output.py --check    end with 1 when the pages show something else
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOST = "910b-openeuler2203-troubled"
SELECTED = ("NET003", "CPU002", "PROC001")
FORMATS = ("text", "json", "markdown", "junit", "sarif", "prometheus", "nagios")
PAGES = {"en": "formats.md", "zh": "formats.zh.md"}
MOST_LINES = 40  # of an example; what is cut is marked
MARKED = re.compile(r"(<!-- example ([a-z]+) -->\n)(.*?)(<!-- /example -->)", re.DOTALL)
BLOCKS = {"json": "json", "sarif": "json", "junit": "xml", "markdown": "markdown"}


def examples(lang: str) -> dict[str, str]:
    """What `envtune check --select ...` writes on the recorded host, by format."""
    sys.path.insert(0, str(ROOT / "tests"))
    from helpers.recorded import host_data, report

    from envtune.report import check_json, check_short
    from envtune.report.formats.documents import check_document
    from envtune.report.formats.view import Settings

    made = report(host_data(HOST), SELECTED)
    shown = {"text": check_short.render(made, lang, width=80), "json": check_json.render(made, lang)}
    for name in FORMATS[2:]:
        shown[name] = check_document(made, name, lang, Settings())
    return shown


def updated(page: str, lang: str) -> str:
    """The page with the examples between their markers."""
    shown = examples(lang)
    assert sorted(name for _, name, _, _ in MARKED.findall(page)) == sorted(FORMATS)

    def block(found: re.Match[str]) -> str:
        lines = shown[found[2]].rstrip("\n").splitlines()
        if len(lines) > MOST_LINES:
            lines = [*lines[:MOST_LINES], "..."]
        return f"{found[1]}````{BLOCKS.get(found[2], 'text')}\n" + "\n".join(lines) + f"\n````\n{found[4]}"

    return MARKED.sub(block, page)


def main() -> int:
    stale = 0
    for lang, name in PAGES.items():
        path = ROOT / "docs" / name
        page = path.read_text("utf-8")
        new = updated(page, lang)
        if "--check" not in sys.argv:
            path.write_text(new, "utf-8")
        elif new != page:
            sys.stderr.write(f"docs/{name} is out of date: make docs\n")
            stale = 1
    return stale


if __name__ == "__main__":
    raise SystemExit(main())
