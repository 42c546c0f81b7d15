"""The HTML file: nothing in it but ours can run, nothing is loaded, and in a browser the filter works."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Iterator, Optional

import pytest
from helpers.documents import CASES, TROUBLED, made, seen_case
from helpers.rows import sampled

from envtune.audit.verdict import count_checks
from envtune.report.formats.documents import _languages
from envtune.report.formats.html import render_check

CHECKED = count_checks(made(TROUBLED).findings).checks

# No service of Chromium may ask the network for anything.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
LOADS = {"img", "iframe", "link", "object", "embed", "audio", "video", "source", "base", "svg", "a"}


@cache
def page(name: str, lang: str = "en") -> str:
    return render_check([seen_case(name, one) for one in _languages(lang)])


class Tags(HTMLParser):
    """The elements of a page, and what stands in its style and script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.policy = ""
        self.inline: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Optional[str]]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        values = dict(attrs)
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"] or ""

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] in ("style", "script") and data.strip():
            self.inline.setdefault(self.tags[-1], data)


@pytest.mark.parametrize("name", [*CASES[:2], *sampled(CASES[2:], 5)])
def test_nothing_of_a_host_becomes_markup(name: str) -> None:
    tags = Tags(page(name))
    assert not LOADS.intersection(tags.tags) and tags.tags.count("script") == tags.tags.count("style") == 1
    assert not [name for name in tags.attributes if name.startswith("on") or name in ("src", "href", "style", "action")]
    assert set(tags.tags) <= set(Tags(page(TROUBLED)).tags)


def test_the_policy_allows_what_is_in_the_page_and_nothing_else() -> None:
    tags = Tags(page(TROUBLED))
    for name in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(tags.inline[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in tags.policy
    assert tags.policy.startswith("default-src 'none';") and "unsafe" not in tags.policy


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_both_languages_are_in_the_file(lang: str) -> None:
    text = page(TROUBLED, lang)
    assert f'<html lang="{lang}" data-lang="{lang}">' in text
    assert "NOT READY  node18" in text and "未就绪  node18" in text
    assert len(re.findall(r"<details ", text)) == count_checks(made(TROUBLED).findings).checks


# ---------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs Chromium")
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with api.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Any:
    """Opens a page from disk; what it asks for and complains about is kept."""
    seen_: dict[str, list[str]] = {"requests": [], "errors": []}

    def open_page(text: str, **options: Any) -> Any:
        path = tmp_path / "report.html"
        path.write_text(text, "utf-8")
        opened = browser.new_context(**options).new_page()
        opened.on("request", lambda request: seen_["requests"].append(request.url))
        opened.on("console", lambda message: seen_["errors"].append(message.text))
        opened.on("pageerror", lambda error: seen_["errors"].append(str(error)))
        opened.goto(path.as_uri())
        return opened

    yield open_page
    assert seen_["errors"] == [] and all(url == (tmp_path / "report.html").as_uri() for url in seen_["requests"])


def shown(opened: Any) -> list[str]:
    ids: list[str] = opened.eval_on_selector_all("details", "all => all.filter(e => !e.hidden).map(e => e.id)")
    return ids


@pytest.mark.browser
def test_the_filter_in_a_browser(visit: Any, tmp_path: Path) -> None:
    opened = visit(page(TROUBLED), viewport={"width": 400, "height": 800})
    first = shown(opened)
    assert first[0] == "CANN007" and len(first) == 14 and opened.inner_text("#shown") == f"14 / {CHECKED}"
    opened.fill("[name=words]", "master_port")
    assert shown(opened) == ["NET003"]
    opened.fill("[name=words]", "")
    for name in ("high", "medium", "low", "info"):
        opened.uncheck(f"[name=severity][value={name}]")
    assert shown(opened) == ["CANN007"]
    opened.check("[name=outcome][value=pass]")
    assert "CANN001" in shown(opened)
    opened.locator("details").first.locator("summary").click()
    assert opened.evaluate("document.documentElement.scrollWidth") == 400
    opened.screenshot(path=tmp_path / "narrow.png", full_page=True)


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_languages_and_colours_in_a_browser(visit: Any, scheme: str, tmp_path: Path) -> None:
    opened = visit(page(TROUBLED, "zh"), color_scheme=scheme)
    assert opened.inner_text("h1:visible").startswith("未就绪")
    opened.click("#language")
    assert opened.inner_text("h1:visible").startswith("NOT READY")
    opened.fill("[name=words]", "致命")  # both languages are searched
    assert shown(opened)[0] == "CANN007"
    red, green, blue = map(int, re.findall(r"\d+", opened.evaluate("getComputedStyle(document.body).backgroundColor")))
    assert (red + green + blue > 382) == (scheme == "light")
    opened.screenshot(path=tmp_path / f"{scheme}.png")


@pytest.mark.browser
def test_hostile_texts_are_inert_in_a_browser(visit: Any) -> None:
    opened = visit(page("hostile"))
    assert "owned" not in opened.title().replace('document.title="owned"', "")
    assert opened.locator("script").count() == 1 and opened.locator("img").count() == 0


@pytest.mark.browser
def test_it_can_be_read_without_scripts(visit: Any) -> None:
    opened = visit(page(TROUBLED), java_script_enabled=False)
    assert opened.locator("details:visible").count() == CHECKED and not opened.locator("form").is_visible()
