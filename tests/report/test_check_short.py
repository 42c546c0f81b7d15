"""The report that fits a screen: the verdict first, one problem for each cause, nothing left out without a word."""

from __future__ import annotations

import re
from typing import Optional

import pytest
from helpers.recorded import host_names
from helpers.recorded import recorded_report as made

from envtune.audit.remedies import REFUSED
from envtune.audit.verdict import count_checks
from envtune.catalog import load
from envtune.diagnose.events.forms import _OWN_REPORT
from envtune.messages import Literal, Message
from envtune.model import Command, Evidence, Finding, Outcome, Report, Severity
from envtune.report.check_short import render
from envtune.report.layout import display_width
from envtune.report.problems import problems, statements

TROUBLED = "910b-openeuler2203-troubled"
HEAD = {"en": "NOT READY  node18: 9 problems (1 critical, 1 high, 6 medium, 1 low)", "zh": "未就绪  node18：9 个问题"}


def screen_lines(page: str, width: int) -> int:
    """How many lines a terminal of this width needs."""
    return sum(max(1, -(-display_width(line) // width)) for line in page.splitlines())


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_troubled_host_fits_a_screen(lang: str) -> None:
    page = render(made(TROUBLED), lang, width=80)
    assert screen_lines(page, 80) <= 25
    assert page.startswith(HEAD[lang])


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", host_names())
def test_every_problem_is_named_once(name: str, width: int, lang: str) -> None:
    page = render(made(name), lang, width=width)
    failed = {f.id for f in made(name).findings if f.outcome is Outcome.FAIL}
    named = re.findall(r"[A-Z]{2,4}[0-9]{3}", re.sub(r"(?m)^ +\S+ .*$", "", page))
    for id_ in failed:
        assert id_ in page, id_
    assert not [id_ for id_ in failed if named.count(id_) > 1]
    for line in page.splitlines():
        is_command = re.match(r" +(?:fix: |look: |修复：|查看：)\S", line)
        assert display_width(line) <= width or is_command, line


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", host_names())
def test_what_follows_fix_is_a_command_and_prose_is_whole(name: str, width: int, lang: str) -> None:
    page = re.sub(r" \\\n +", " ", render(made(name), lang, width=width))  # a shell reads them as one line
    commands = {line for problem in problems(made(name).findings) for line in problem.fixes}
    assert set(re.findall(r"(?m)^ +(?:fix: |修复：)(.*)$", page)) <= commands
    instructions = re.findall(r"(?ms)^ +(?:do: |处理：)(.*?)(?=^\S|^ +(?:fix: |look: |修复：|查看：)|\Z|\n\n)", page)
    assert not [text for text in instructions if "..." in text.replace("/.../", "")]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", host_names())
def test_what_is_wrong_is_not_cut(name: str, width: int, lang: str) -> None:
    rows = re.split(r"(?m)^(?=\S)", render(made(name), lang, width=width))
    wrong = [
        row for row in rows if re.match(r"\S+ +[A-Z]{2,4}\d{3} ", row) and not row.startswith(("unknown", "无法判断"))
    ]
    assert not [row for row in wrong if "..." in row.replace("/.../", "/")]


def test_the_counts_are_those_of_what_is_shown() -> None:
    for name in host_names():
        found = problems(made(name).findings)
        assert sum(len(problem.ids) for problem in found) == count_checks(made(name).findings).problems


@pytest.mark.parametrize("name", host_names())
def test_the_first_line_and_the_footer_count_the_rows(name: str) -> None:
    page = render(made(name), "en", width=120)
    rows = re.findall(r"^(?:critical|high|medium|low|info) +[A-Z]+\d+ +\*?", page, re.MULTILINE)
    counted = re.search(r"(\d+) problems? \(", page)
    assert len(rows) == (int(counted[1]) if counted else 0)
    marked = re.search(r"^\* (\d+) of (\d+): ", page, re.MULTILINE)
    stars = sum("*" in row for row in rows)
    assert (stars, len(rows) if stars else 0) == ((int(marked[1]), int(marked[2])) if marked else (0, 0))


def test_what_matters_most_is_first() -> None:
    ranks = [problem.severity.rank for problem in problems(made(TROUBLED).findings)]
    assert ranks == sorted(ranks, reverse=True)
    ids = [problem.check.id for problem in problems(made(TROUBLED).findings)]
    assert ids.index("PROC002") < ids.index("ENV015"), "what stops a job comes before what slows it"


def test_one_cause_is_one_problem() -> None:
    ids = {problem.check.id: problem.ids[1:] for problem in problems(made(TROUBLED).findings)}
    assert (ids["ENV015"], ids["CPU002"]) == (("ENV003", "ENV004", "ENV101"), ("CPU001",))
    alone = [f for f in made(TROUBLED).findings if f.id != "ENV015"]
    assert {"ENV003", "ENV004", "ENV101"} <= {problem.check.id for problem in problems(alone)}


def finding(id_: str, subject: str, actual: str, *commands: Command) -> Finding:
    check = next(check for check in load().checks if check.id == id_)
    return Finding(
        check,
        Outcome.FAIL,
        Severity.MEDIUM,
        subject,
        Literal(actual),
        Literal("good"),
        None,
        Evidence("/x"),
        commands=commands,
    )


def test_a_preloaded_library_that_is_missing_is_one_problem() -> None:
    name = "LD_PRELOAD /opt/libjemalloc.so.2"
    rows = (finding("PY111", name, "missing"), finding("ENV111", name, "/opt/libjemalloc.so.2 does not exist"))
    assert [problem.ids for problem in problems(rows)] == [("ENV111", "PY111")]


def test_another_subject_is_another_cause() -> None:
    rows = (finding("ENV015", "DUMP_GE_GRAPH", "2"), finding("ENV003", "ASCEND_GLOBAL_LOG_LEVEL", "4"))
    assert [problem.ids for problem in problems(rows)] == [("ENV003",), ("ENV015",)]


@pytest.mark.parametrize(
    ("rows", "merged"),
    [
        (
            [
                ("npu2", "/dev/davinci2 exists"),
                ("npu3", "/dev/davinci3 exists"),
                ("npu5", "/dev/davinci5 exists"),
            ],
            [("npu2-3, npu5", "/dev/davinci2-3,5 exists")],
        ),
        ([("npu2", "Health 2.1 Alarm"), ("npu3", "Health 3.1 Alarm")], None),  # a part of a number is none
        ([("npu1", "41 of 65536 MB"), ("npu2", "42 of 65536 MB")], None),
        ([("te", "0.4.0"), ("topi", "0.4.0")], None),
        ([("cpu4-5", "powersave")], None),
    ],
)
def test_subjects_that_differ_in_a_number_are_merged(
    rows: list[tuple[str, str]], merged: Optional[list[tuple[str, str]]]
) -> None:
    said = statements([finding("CANN007", *row) for row in rows], "en")
    assert [(row.subject, row.actual) for row in said] == (merged or rows)


def one(*found: Finding, fixable: tuple[str, ...] = ()) -> list[str]:
    page = render(Report("node1", "2026-01-01T00:00:00Z", 0.0, {}, (), found, fixable), "en", width=80)
    return page.splitlines()


def test_the_remedy_is_what_fixes_else_what_shows_more() -> None:
    look, fix = Command("look", "cat /x"), Command("fix", "rm /x")
    assert "fix: rm /x" in " ".join(one(finding("SYS009", "", "bad", look, fix)))
    assert "look: cat /x" in " ".join(one(finding("SYS009", "", "bad", look)))
    words = " ".join(one(finding("SYS009", "", "bad")))
    assert "do: Set TMPDIR " in words and "fix:" not in words, "the remedy in words"
    marked = one(finding("SYS009", "", "bad", look, fix), fixable=("SYS009",))
    assert "SYS009 * " in " ".join(marked) and "rm /x" not in " ".join(marked)
    assert marked[-2] == "* 1 of 1: envtune fix shows the changes, envtune fix --apply makes them"


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", host_names())
def test_each_problem_says_what_to_type_or_to_do(name: str, width: int, lang: str) -> None:
    page = render(made(name), lang, width=width)
    rows = re.split(r"(?m)^(?=\S)", page.split("\n\n")[1])
    wrong = [row for row in rows if re.match(r"\S+ +[A-Z]{2,4}\d{3} ", row)]
    offered = re.compile(r"(?m)^\S+ +[A-Z]{2,4}\d{3} +\* |^ +(?:fix: |look: |do: |修复：|查看：|处理：)")
    ids = {problem.check.id for problem in problems(made(name).findings)}
    assert [row for row in wrong if row.split()[1] in ids and not offered.search(row)] == []


def test_a_line_to_paste_is_broken_where_a_shell_reads_on() -> None:
    line = "sudo envtune fix CANN003 --python '/opt/a b/bin/python3' --log /var/tmp/some/where/else --apply"
    page = one(finding("SYS009", "", "bad", Command("fix", line)))
    (start, *rest) = [row.strip() for row in page if "fix: " in row or "--" in row]
    assert start.endswith(" \\") and all(display_width(row) <= 80 for row in page)
    assert " ".join([start, *rest]).replace(" \\ ", " ").replace("fix: ", "") == line


def test_a_refusal_is_no_instruction() -> None:
    refusal = Command("fix", Message(REFUSED, reason="/x does not exist"))
    assert "do: Set TMPDIR " in " ".join(one(finding("SYS009", "", "bad", refusal)))
    assert "look: cat /x" in " ".join(one(finding("SYS009", "", "bad", refusal, Command("look", "cat /x"))))


def test_a_recorded_host_is_named_by_the_command_that_shows_more() -> None:
    line = "export LD_LIBRARY_PATH=" + ":".join(f"/usr/local/{n}" for n in range(40))
    found = (finding("ENV014", "LD_LIBRARY_PATH", "bad", Command("fix", line)),)
    page = render(Report("node1", "2026-01-01T00:00:00Z", 0.0, {}, (), found, (), snapshot="a b.json"), "en")
    assert "look: envtune check -v --select ENV014 --snapshot 'a b.json'" in page


@pytest.mark.parametrize("width", [80, 120])
def test_what_is_expected_of_a_variable_and_what_is_taken_are_shown(width: int) -> None:
    page = " ".join(render(made(TROUBLED), "en", width=width).split())
    assert "HCCL_RDMA_TC: 133 (expected a multiple of 4 from 0 to 255)" in page
    assert "NET005 * port 60003: in use: 0.0.0.0 node_exporter" in page


def test_a_line_to_paste_is_never_cut() -> None:
    line = "export LD_LIBRARY_PATH=" + ":".join(f"/usr/local/{n}" for n in range(40))
    page = one(finding("ENV014", "LD_LIBRARY_PATH", "bad", Command("fix", line)))
    assert "look: envtune check -v --select ENV014" in " ".join(page)


def test_what_is_marked_is_what_a_plan_would_change() -> None:
    fixable = made(TROUBLED).fixable
    assert fixable is not None and set(fixable) >= {"CPU001", "CPU002", "ENV003", "ENV015", "ENV103", "NET005"}
    assert "NET003" not in fixable and "CANN003" not in fixable


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_report_in_a_log_is_no_event(lang: str) -> None:
    page = render(made(TROUBLED), lang, width=80)
    rows = [line for line in page.splitlines() if re.match(r"\S+ +[A-Z]{2,4}\d{3} ", line)]
    assert len(rows) == 10 and all(_OWN_REPORT.match(row) for row in rows)


def test_commands_have_the_catalogue_of_the_check() -> None:
    plain = render(made(TROUBLED), "en", width=120).splitlines()
    assert plain[-1].endswith("details: check -v, explain ID") and "envtune fix shows" in plain[-2]
    named = made(TROUBLED)._replace(catalogs=("site", "/opt/my checks"))
    end = " ".join(render(named, "en", width=120).split("\n\n")[-1].split())
    more = "--catalog site --catalog '/opt/my checks'"
    assert f"envtune fix {more} shows" in end and f"details: check -v {more}, explain ID {more}" in end
