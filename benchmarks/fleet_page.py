"""How a page about many hosts behaves in Chromium: opening, scrolling, filtering, the other language.

    .venv/bin/python benchmarks/fleet_scale.py --keep DIR
    .venv/bin/python benchmarks/fleet_page.py DIR/fleet.html

Needs playwright and the Chromium of the system. Each figure is the longest of several rounds, in milliseconds of wall
time, from the event to the end of the second frame after it: the delay a person sees. The budget is 200 ms for what
follows a key or a click, and 3 s to open the page.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from fleet_scale import Row, table

ROUNDS = 5
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
# Runs an action and resolves with the milliseconds until the second frame after it.
WAIT = """
async (name) => {
  const area = document.querySelector("#matrix");
  const words = document.querySelector("[name=words]");
  const type = (text) => { words.value = text; words.dispatchEvent(new Event("input", { bubbles: true })); };
  const actions = {
    scroll: () => { area.scrollTop = area.scrollTop > 0 ? 0 : area.scrollHeight / 2; },
    host: () => type(words.value === "node00007" ? "node00008" : "node00007"),
    word: () => type(words.value === "driver" ? "cann" : "driver"),
    none: () => type(""),
    language: () => document.querySelector("#language").click(),
    key: () => area.querySelector("canvas").dispatchEvent(
      new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true, cancelable: true })),
  };
  const began = performance.now();
  actions[name]();
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - began;
}
"""
ACTIONS = {
    "scroll": "scroll the matrix by half its height",
    "key": "an arrow key in the matrix",
    "host": "filter by the name of a host",
    "word": "filter by a word",
    "none": "empty the filter",
    "language": "the other language",
}


def run(path: Path, chromium: str) -> list[Row]:
    from playwright.sync_api import sync_playwright

    rows, complaints = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page: Any = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.on("request", lambda request: None if request.url == path.as_uri() else complaints.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("#matrix[data-ready]")
        opened = page.evaluate("performance.now()")
        rows.append(Row("open the page", "3000 ms", f"{opened:.0f} ms", opened < 3000))
        for name, what in ACTIONS.items():
            longest = max(page.evaluate(WAIT, name) for _ in range(ROUNDS))
            rows.append(Row(what, "200 ms", f"{longest:.0f} ms", longest < 200))
        browser.close()
    rows.append(Row("errors, and requests for anything else", "0", str(len(complaints)), not complaints))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    path = parser.parse_args().page.resolve()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("no Chromium here")
    rows = run(path, chromium)
    sys.stdout.write(f"{path.stat().st_size / 1e6:.2f} MB\n\n{table(rows)}\n")
    sys.exit(not all(row.holds for row in rows))


if __name__ == "__main__":
    main()
