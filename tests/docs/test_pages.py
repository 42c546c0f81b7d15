"""The pages that people read: output and pictures are real, links and commands exist, both languages are there."""

from __future__ import annotations

import importlib.util
import re
import shlex
import xml.etree.ElementTree as ElementTree
from functools import cache
from pathlib import Path
from typing import Any, Iterator
from urllib.parse import unquote

import pytest
import typer
from helpers.examples import ROOT

from envtune.cli.app import app

DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
TOLD = [page for page in PAGES if page.parent in (ROOT, DOCS)]
ENGLISH_ONLY = {"api.md", "architecture.md", "benchmarks.md", "catalog.md", "snapshot.md"}  # for developers
FENCE = re.compile(r"^(`{3,})(\w*)\n(.*?)^\1$", re.DOTALL | re.MULTILINE)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


# ---------------------------------------------------------------------- output and pictures


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_readme_shows_a_real_report_of_at_most_15_lines(page: str) -> None:
    path = ROOT / page
    assert module("readme_output").updated(path) == path.read_text("utf-8"), "make docs"
    report = next(text for _, kind, text in FENCE.findall(path.read_text("utf-8")) if kind == "text")
    assert report.startswith("$ envtune check\n")
    assert len(report.splitlines()) <= 16  # with the command
    begin = path.read_text("utf-8").index(report)
    assert path.read_text("utf-8")[:begin].count("\n") < 25  # on the first screen


@pytest.mark.slow
def test_every_page_shows_real_output() -> None:
    readme_output = module("readme_output")
    pages = readme_output.with_output()
    assert len(pages) > 12
    assert [name(page) for page in pages if readme_output.updated(page) != page.read_text("utf-8")] == [], "make docs"


def test_pictures_are_real_and_load_nothing() -> None:
    made = module("pictures").pictures()
    there = {path.name: path.read_text("utf-8") for path in (DOCS / "images").glob("*.svg")}
    assert there == made, "make docs"
    for text in made.values():
        root = ElementTree.fromstring(text)
        width, height = (float(root.attrib[side]) for side in ("width", "height"))
        for element in root.iter("{http://www.w3.org/2000/svg}text"):
            x, y, length = (float(element.attrib[key]) for key in ("x", "y", "textLength"))
            assert 0 < x < x + length < width and 0 < y < height
        assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]


# ---------------------------------------------------------------------- links


def slug(heading: str) -> str:
    """The anchor that GitHub and the site give a heading."""
    plain = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")).strip()
    return plain.lower().replace(" ", "-")


@cache
def anchors(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text("utf-8"))
    return {slug(one) for one in re.findall(r"^#+ (.*)$", text, re.MULTILINE)} | set(
        re.findall('<a id="([^"]+)"', text)
    )


def links(page: Path) -> Iterator[str]:
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text("utf-8")))
    yield from re.findall(r"\]\(([^)\s]+)\)", text)
    yield from re.findall(r'(?:src|srcset)="([^"]+)"', text)


def test_every_link_leads_somewhere() -> None:
    assert [f"{name(page)}: {link}" for page in PAGES for link in links(page) if not leads_somewhere(page, link)] == []


def leads_somewhere(page: Path, link: str) -> bool:
    if re.match("https?:|mailto:", link):
        return True
    target, _, anchor = unquote(link).partition("#")
    path = (page.parent / target).resolve() if target else page
    return path.exists() and (not anchor or path.suffix != ".md" or anchor in anchors(path))


@pytest.mark.parametrize("page", [DOCS / "README.md", DOCS / "README.zh.md"], ids=name)
def test_the_index_names_every_page(page: Path) -> None:
    named = {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
    chinese = page.name.endswith(".zh.md")
    wanted = {one for one in DOCS.glob("*.md") if one.name.endswith(".zh.md") is chinese}
    if chinese:
        wanted |= {DOCS / one for one in ENGLISH_ONLY}
    assert sorted(name(one) for one in wanted - named - {page}) == []


# ---------------------------------------------------------------------- both languages


@pytest.mark.parametrize("page", [one for one in TOLD if one.parent == DOCS or one.name == "README.md"], ids=name)
def test_a_page_is_there_in_both_languages(page: Path) -> None:
    if page.name in ENGLISH_ONLY or page.name.endswith(".zh.md"):
        return
    other = page.with_name(page.name.replace(".md", ".zh.md"))
    shapes = []
    for one in (page, other):
        text = one.read_text("utf-8")
        outside = FENCE.sub("", text)
        commands = [
            line.partition("#")[0].strip()
            for _, kind, code in FENCE.findall(text)
            if kind == "sh"
            for line in code.splitlines()
        ]
        shapes.append((len(re.findall("^#+ ", outside, re.MULTILINE)), outside.count("\n|"), commands))
        assert f"]({(other if one is page else page).name})" in text
    assert shapes[0] == shapes[1]


# ---------------------------------------------------------------------- commands


def shown() -> Iterator[tuple[str, str]]:
    """Every line of `envtune` in a block of shell, with its page."""
    for page in PAGES:
        for _, kind, code in FENCE.findall(page.read_text("utf-8")):
            if kind in ("sh", "console"):
                for line in code.replace("\\\n", " ").splitlines():
                    found = re.search(r"(?:^|[\s;|($])(?:\./)?envtune(?:\.pyz)?((?: .*)?)$", line.partition(" #")[0])
                    if found and not re.search("cp |ln |pip |man |mkdir", line):
                        yield name(page), re.split(r"[|>&)]", found[1])[0].rstrip('"')


def test_commands_that_are_shown_exist() -> None:
    group: Any = typer.main.get_command(app)
    seen = set()
    for page, words in shown():
        verb, *rest = shlex.split(words) or ["check"]
        seen.add(verb)
        if verb.startswith("-"):
            continue
        context = group.make_context("envtune", [], resilient_parsing=True)
        command = group.get_command(context, verb)
        if rest and not rest[0].startswith("-") and hasattr(command, "list_commands"):
            command = command.get_command(context, rest.pop(0))
        assert command is not None, f"{page}: envtune{words}"
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        given = rest[: rest.index("--")] if "--" in rest else rest
        options = [word.partition("=")[0] for word in given if re.match("--?[a-z]", word)]
        assert [option for option in options if option not in known and option not in ("-h", "--help")] == [], (
            f"{page}: envtune{words}"
        )
    assert {"check", "fix", "undo", "diagnose", "run", "env", "snapshot", "collector", "diff"} <= seen


# ---------------------------------------------------------------------- the site


@pytest.mark.slow
def test_pages_are_ready_for_the_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """mkdocs.yml names pages that there are, and no link of a page leaves the site."""
    site = module("site")
    monkeypatch.setattr(site, "PAGES", tmp_path / "pages")
    site.prepare()
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    nav = re.findall(r"^ {6}- (\S+\.md)$", settings[settings.index("\nnav:") :], re.MULTILINE)
    assert len(nav) > 25 and [one for one in nav if not (tmp_path / "pages" / one).is_file()] == []
    for page in sorted((tmp_path / "pages").rglob("*.md")):
        for link in links(page):
            if not re.match("https?:|#|(../)?images/", link):  # pictures of Chinese pages lie a folder higher there
                target = (page.parent / unquote(link).partition("#")[0]).resolve()
                assert target.is_file() and target.is_relative_to(tmp_path / "pages"), f"{page.name}: {link}"


# ---------------------------------------------------------------------- the first screen


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (
            "README.md",
            ("Checks whether", "For people", "pip install", "dist/envtune.pyz", "air-gap", "NOT READY"),
        ),
        ("README.zh.md", ("检查", "面向", "pip install", "dist/envtune.pyz", "离线主机", "未就绪")),
    ],
)
def test_the_first_screen_says_what_for_whom_how_and_shows_a_report(page: str, words: tuple[str, ...]) -> None:
    first = "\n".join((ROOT / page).read_text("utf-8").splitlines()[:40])
    assert [word for word in words if word not in first] == []
    report = first.partition("<!-- output: check ")[2].partition("<!-- /output -->")
    assert report[1] and 12 <= len(report[0].splitlines()) <= 20
