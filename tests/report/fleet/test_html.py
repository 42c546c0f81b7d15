"""The page about many hosts in a browser: the matrix, the filter, both languages, and hosts that mean harm."""

from __future__ import annotations

import random
import shutil
from functools import cache
from pathlib import Path
from typing import Any, Iterator

import pytest

from envtune.catalog import load
from envtune.fleet.collected import Collection
from envtune.fleet.questions import Overview, overview
from envtune.fleet.record import CheckRecord, FactRecord, HostRecord
from envtune.fleet.store.read import Store
from envtune.fleet.store.write import Writer
from envtune.report.fleet.entries import Entries
from envtune.report.fleet.html import render_fleet
from tests.helpers.stores import open_store

HOSTS = 2000
EVIL = "</div></script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
ENDLESS = "evil[0-99999999999999]"  # a snapshot may say that this is its host
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def found(folder: Path, evil: str = "", hosts: int = HOSTS) -> Overview:
    """That many hosts, of which some fail, differ or are not collected."""
    chosen = random.Random(7)
    names = [check.id for check in load().checks]
    store = open_store(folder / "fleet.db")
    writer = Writer(store, "ssh", started=1_790_000_000.0)
    for number in range(hosts):
        name = f"atlas{number:04d}" if number != 40 or not evil else ENDLESS
        if number % 100 == 99:
            writer.add(HostRecord(name, Collection.TIMEOUT, evil or "connect timed out"))
            continue
        checks = {check: CheckRecord("pass", "medium") for check in names}
        if number % 20 == 0:
            checks[chosen.choice(names)] = CheckRecord("fail", "high", (evil or "powersave", evil or "省电"))
        facts = {
            "npu": FactRecord("910b", "910b"),
            "driver": FactRecord(*[evil or "24.1" if number == 77 else "25.0"] * 2),
        }
        writer.add(HostRecord(name, Collection.OK, verdict="ready", facts=facts, checks=checks))
    writer.finish()
    return overview(Store(store), with_matrix=True)


@cache
def page(folder: Path, lang: str = "en", evil: str = "", hosts: int = HOSTS) -> str:
    return render_fleet(found(folder, evil, hosts), Entries(load()), lang)


@pytest.mark.parametrize("hosts", [200, pytest.param(HOSTS, marks=pytest.mark.slow)])
def test_it_is_small_and_loads_nothing(hosts: int, tmp_path: Path) -> None:
    text = page(tmp_path, hosts=hosts)
    assert len(text) < 200_000 + 400 * hosts
    assert "http:" not in text and "https:" not in text and " src=" not in text and "@import" not in text
    assert "atlas0077" in text and "connect timed out" in text


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium here")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Any]:
    complaints: list[str] = []

    def open_page(text: str) -> Any:
        path = tmp_path / "fleet.html"
        path.write_text(text, "utf-8")
        opened = browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
        opened.on("request", lambda request: None if request.url == path.as_uri() else complaints.append(request.url))
        opened.on("console", lambda message: complaints.append(message.text))
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.goto(path.as_uri())
        opened.wait_for_selector("#matrix[data-ready]")
        return opened

    yield open_page
    assert complaints == []


@pytest.mark.browser
def test_the_matrix_the_filter_and_the_languages(visit: Any, tmp_path: Path) -> None:
    opened = visit(page(tmp_path))
    assert opened.inner_text("h1").startswith("1980 of 2000 hosts collected")
    everything = opened.inner_text("#shown")
    opened.fill("[name=words]", "atlas0077")
    assert opened.locator("details:visible").count() == 1
    assert "driver: 1979 of 1980 have 25.0" in opened.inner_text("details:visible summary")
    opened.fill("[name=words]", "")
    assert opened.inner_text("#shown") == everything
    opened.locator("#matrix canvas").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        opened.keyboard.press(key)
    assert "atlas" in opened.inner_text("#cell") and ":" in opened.inner_text("#cell")
    opened.click("#language")
    assert opened.inner_text("h1").startswith("2000 台主机中采集到 1980 台")


@pytest.mark.browser
def test_what_hosts_say_is_text(visit: Any, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    opened = visit(page(tmp_path, "en", EVIL))
    assert opened.title().startswith("envtune: 1980 of 2000")
    assert opened.locator("img").count() == 0 and opened.locator("script").count() == 1
    missing = opened.locator("section").last  # what is not on the screen is not laid out, and has no inner text
    missing.scroll_into_view_if_needed()
    missing.get_by_text("Not collected").wait_for()
    expect(missing).to_contain_text("<img src=x", use_inner_text=True)
    opened.fill("[name=words]", "evil[0")
    assert opened.locator("details:visible", has_text=ENDLESS).count() > 0
