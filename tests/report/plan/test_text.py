"""What `envtune fix` shows: the diff of each change, and in a line or two why the rest is left; `-v` has every step."""

from __future__ import annotations

import re
from functools import cache

import pytest
from helpers.recorded import host_data, host_names
from helpers.rows import sampled

from envtune.fix.plan import Plan
from envtune.fix.prepare import plan
from envtune.report.layout import display_width
from envtune.report.plan import short
from envtune.report.plan.text import render
from envtune.snapshot.host import SnapshotHost

TROUBLED = "910b-openeuler2203-troubled"


@cache
def plan_of(name: str, *checks: str) -> Plan:
    return plan(SnapshotHost(host_data(name)), select=checks)


def made() -> Plan:
    return plan_of(TROUBLED)


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
    assert "NET003   by hand: export MASTER_PORT=29500" in page
    assert "1. " not in page and "1. " in render(made(), "en", width=100, verbose=True)


# ---------------------------------------------------------------------- a line for each change


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", sampled(host_names(), 4))
def test_a_plan_without_v_has_a_line_for_each_change_and_each_reason(name: str, width: int, lang: str) -> None:
    whole = plan_of(name)
    lines = short.render(whole, lang, width=width).splitlines()
    wide = [line for line in lines if display_width(line) > width]
    assert all(re.search(r"/\S{30,}", line) for line in wide), "a path is not cut"
    assert width < 80 or len(lines) <= 30
    page = "\n".join(lines)
    assert all(change.finding in page for change in whole.changes)
    assert "/.../" not in "".join(re.findall(r"by hand: (?:source|export) .*", page)), "a line to paste is never cut"


def test_what_a_change_does_is_said_without_v() -> None:
    page = " ".join(short.render(made(), "en", width=80).split())
    assert "C03-C04 CPU001 scaling_governor of cpu4-5: powersave -> performance (also CPU002)" in page
    assert "export ASCEND_GLOBAL_LOG_LEVEL=3; unset DUMP_GE_GRAPH" in page
    assert "C01, C02, C03-C04: each needs root, needs confirmation" in page


def test_several_unknown_checks_are_one_reason() -> None:
    page = short.render(plan_of("910b-ubuntu2004-residual"), "en", width=80)
    assert page.count("unknown; why") == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_example_names_the_npu_that_is_bad(lang: str) -> None:
    page = render(made(), lang, width=200, verbose=True)
    assert "npu-smi info -t health -i 2" in page and "-i 0" not in page and "{device}" not in page


def test_a_file_gets_only_what_fixes_something() -> None:
    """Without the paths of the other install, which this shell has, the variable that names it is no use."""
    (written,) = (change for change in plan_of("910b-ubuntu2004-residual").changes if change.target.endswith("env.sh"))
    assert "HCCL_RDMA_TC" in written.after and "ASCEND_OPP_PATH" not in written.after


@pytest.mark.parametrize(
    ("name", "check", "line"),
    [
        ("910b-openeuler2203-troubled", "NET003", "export MASTER_PORT=29500"),
        ("910b-ubuntu2004-residual", "CANN002", "source /usr/local/Ascend/ascend-toolkit/set_env.sh"),
    ],
)
def test_a_check_alone_gets_the_line_that_it_gets_with_the_others(name: str, check: str, line: str) -> None:
    for chosen in ((), (check,)):
        page = " ".join(short.render(plan_of(name, *chosen), "en", width=120).split())
        assert f"{check} by hand: {line}" in page
