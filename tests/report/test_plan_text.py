"""What `envtune fix` shows: the diff of each change, and in a line or two why the rest is left; `-v` has every step."""

from __future__ import annotations

from functools import cache

import pytest
from helpers.recorded import host_data

from envtune.fix.plan import Plan
from envtune.fix.prepare import plan
from envtune.report.layout import display_width
from envtune.report.plan_text import render
from envtune.snapshot.host import SnapshotHost

TROUBLED = "910b-openeuler2203-troubled"


@cache
def made() -> Plan:
    return plan(SnapshotHost(host_data(TROUBLED)))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_short_form_names_everything_in_half_the_lines(lang: str, width: int) -> None:
    short, long = (render(made(), lang, width=width, verbose=verbose).splitlines() for verbose in (False, True))
    assert len(short) * 3 < len(long) * 2
    page = "\n".join(short)
    for change in made().changes:
        assert change.id in page and change.finding in page and change.target in page
    for skipped in made().skipped:
        assert skipped.finding in page
    after = page[page.index("Not fixed" if lang == "en" else "未自动修复") :].splitlines()
    assert all(display_width(line) <= width for line in after)


def test_every_line_of_a_diff_is_shown_in_both() -> None:
    for verbose in (False, True):
        page = render(made(), "en", width=80, verbose=verbose)
        assert "+net.ipv4.ip_local_reserved_ports = 60000-60015" in page and "+unset HCCL_RDMA_TC" in page


def test_the_line_that_fixes_it_is_shown_where_no_playbook_does() -> None:
    page = render(made(), "en", width=100)
    assert "NET003   no automatic fix; by hand: export MASTER_PORT=29500" in page
    assert "1. " not in page and "1. " in render(made(), "en", width=100, verbose=True)
