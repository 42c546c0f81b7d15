"""Builds the documentation as a site: `make site`, then open build/site/index.html.

The pages are copied to build/pages with those of the top folder. Links to the code lead nowhere on a site: their text
stays alone. mkdocs ends with an error where any other link is dead (mkdocs.yml: strict).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "pages"
TOP = ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")  # the first page is README.md of docs/
_OTHER = re.compile(r"^\[(?:中文|English)\]\([^)]*\)\n\n", re.MULTILINE)  # the site has a switch of its own
_LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)*)([^):#]+)(#[^)]*)?\)")


def prepare() -> None:
    """Write build/pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES, ignore=shutil.ignore_patterns("*.py", "man", "examples", "__pycache__"))
    for name in TOP:
        text = (ROOT / name).read_text("utf-8")
        (PAGES / name).write_text(re.sub(r"\]\((?:\./)?docs/", "](", text), "utf-8")
    for page in sorted(PAGES.rglob("*.md")):
        page.write_text(rewritten(page.read_text("utf-8"), page), "utf-8")


def rewritten(text: str, page: Path) -> str:
    """The page with the links that lead somewhere on the site."""

    def link(found: re.Match[str]) -> str:
        words, up, target, anchor = found.groups()
        path = (page.parent / up / target).resolve()
        if path.is_relative_to(ROOT) and not path.is_relative_to(PAGES) and path.name in (*TOP, "README.md"):
            path = PAGES / path.name  # from a page below docs/ to one of the top folder
        if not path.is_relative_to(PAGES) or not path.is_file():
            return str(words)
        steps = len(page.parent.relative_to(PAGES).parts)
        return f"[{words}]({'../' * steps}{path.relative_to(PAGES)}{anchor or ''})"

    if page.name.endswith(".zh.md"):  # which the site has a folder lower; pictures are not moved there
        text = re.sub(r'(src|srcset)="images/', r'\1="../images/', text)
    return _LINK.sub(link, _OTHER.sub("", text))


def main() -> int:
    prepare()
    mkdocs = Path(sys.executable).with_name("mkdocs")
    argv = [str(mkdocs), "build", "--quiet", "--config-file", str(ROOT / "mkdocs.yml")]
    return subprocess.run(argv, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
