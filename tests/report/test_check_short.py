"""The report that fits a screen: the verdict first, one problem for each cause, nothing left out without a word."""

from __future__ import annotations

import re
from functools import cache
from typing import Iterable, Optional

import pytest
from helpers.recorded import host_names, kept_names, kept_report
from helpers.recorded import recorded_report as made
from helpers.rows import sampled

from envtune.audit.remedies import REFUSED
from envtune.audit.subjects import subject_text
from envtune.audit.verdict import count_checks
from envtune.catalog import load
from envtune.diagnose.events.forms import _OWN_REPORT
from envtune.messages import Literal, Message
from envtune.model import Command, Evidence, Finding, Outcome, Report, Severity
from envtune.report.check_short import render
from envtune.report.check_text import render as render_long
from envtune.report.layout import display_width
from envtune.report.problems import adds_nothing, fixable, planned, problems, statements

# What several tests look at is the same in each of them, so that its pages are made once.
NAMES = sampled(host_names(), 3)
ALL_NAMES = sampled([*host_names(), *kept_names()], 3)
TROUBLED = "910b-openeuler2203-troubled"
HEAD = {
    "en": "NOT READY  node18: 13 checks failed (1 critical, 1 high, 9 medium, 2 low)",
    "zh": "未就绪  node18：13 项检查未通过（致命 1、严重 1、一般 9、轻微 2）",
}


def report_of(name: str) -> Report:
    return kept_report(name) if name in kept_names() else made(name)


@cache
def page_of(name: str, lang: str, width: int) -> str:
    """The page of a recorded host, which several tests look at."""
    return render(report_of(name), lang, width=width)


def screen_lines(page: str, width: int) -> int:
    """How many lines a terminal of this width needs."""
    return sum(max(1, -(-display_width(line) // width)) for line in page.splitlines())


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ALL_NAMES)
def test_a_report_fits_a_screen(name: str, lang: str) -> None:
    for width, lines in ((60, 33), (80, 25), (120, 25)):
        assert screen_lines(page_of(name, lang, width), width) <= lines


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", sampled([80, 60, 120], 3))
@pytest.mark.parametrize("name", ALL_NAMES)
def test_colours_change_no_character(name: str, width: int, lang: str) -> None:
    coloured = render(report_of(name), lang, width=width, colour=True)
    assert re.sub("\033\\[[0-9;]*m", "", coloured) == page_of(name, lang, width) != coloured


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_verdict_comes_first(lang: str) -> None:
    assert render(made(TROUBLED), lang, width=80).startswith(HEAD[lang])
    assert render_long(made(TROUBLED), lang, width=80).startswith(HEAD[lang])


@pytest.mark.parametrize("lang", sampled(["en", "zh"], 2))
def test_any_number_of_problems_fits(lang: str) -> None:
    found = [finding(check.id, "x", "bad") for check in load().checks if check.status == "stable" and not check.note]
    severities = (Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM, Severity.LOW)
    for count in (30, 60, 120):
        some = tuple(one._replace(severity=severities[n % 4]) for n, one in enumerate(found[:count]))
        page = render(Report("node1", "2026-01-01T00:00:00Z", 0.0, {}, (), some, ()), lang, width=80)
        assert screen_lines(page, 80) <= 25
        assert all(one.id in page for one in some)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", NAMES)
def test_titles_are_whole(name: str, width: int, lang: str) -> None:
    """What has a line of its own begins with the title of its check, or says what was found and of what."""
    rows = rows_of(page_of(name, lang, width))
    for problem in problems(made(name).findings):
        row = rows[problem.check.id]
        if not SHARED.match(row):
            found = [part for part in statements(problem.findings, lang) if squeezed(part.actual[:12]) in squeezed(row)]
            is_shared = "(details: " in row or "（详情：" in row
            named = [one for one in subjects(problem.findings, lang) if one in squeezed(row)]
            assert squeezed(problem.check.title.to(lang)) in squeezed(row) or found or named or is_shared


ID = r"[A-Z]{2,4}\d{3}"
SHARED = re.compile(rf"\S+ +{ID}(?: \*)?[,、]")  # a row that names several checks


def rows_of(page: str) -> dict[str, str]:
    """The rows of a report by the checks that have one, alone or with others."""
    found: dict[str, str] = {}
    for row in re.split(r"(?m)^(?=\S)", page.split("\n\n")[1]):
        first = re.match(rf"\S+ +({ID})", row)
        names = re.findall(ID, row) if SHARED.match(row) else [first[1]] if first else []
        found.update(dict.fromkeys(names, row))
    return found


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", NAMES)
def test_every_problem_is_named_once(name: str, width: int, lang: str) -> None:
    page = page_of(name, lang, width)
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
@pytest.mark.parametrize("name", NAMES)
def test_what_follows_fix_is_a_command_and_prose_is_whole(name: str, width: int, lang: str) -> None:
    page = re.sub(r" \\\n +", " ", page_of(name, lang, width))  # a shell reads them as one line
    commands = {line for problem in problems(made(name).findings) for line in problem.fixes}
    assert set(re.findall(r"(?m)^ +(?:fix: |修复：)(.*)$", page)) <= commands
    instructions = re.findall(r"(?ms)^ +(?:do: |处理：)(.*?)(?=^\S|^ +(?:fix: |look: |修复：|查看：)|\Z|\n\n)", page)
    assert not [text for text in instructions if "..." in text.replace("/.../", "")]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_wrong_is_not_cut(name: str, width: int, lang: str) -> None:
    rows = re.split(r"(?m)^(?=\S)", page_of(name, lang, width))
    wrong = [
        row for row in rows if re.match(r"\S+ +[A-Z]{2,4}\d{3} ", row) and not row.startswith(("unknown", "无法判断"))
    ]
    assert not [row for row in wrong if "..." in row.replace("/.../", "/")]


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", NAMES)
def test_the_first_line_and_the_footer_count_checks(name: str, width: int) -> None:
    report = made(name)
    page = " ".join(page_of(name, "en", width).split())
    counted = re.search(r"(\d+) checks? failed \(", page)
    assert (int(counted[1]) if counted else 0) == count_checks(report.findings).problems
    failed = {f.id for f in report.findings if f.outcome is Outcome.FAIL and not f.check.note}
    marked = re.search(r"\* (\d+) of (\d+) can be fixed: ", page)
    fixed = failed & {*(report.fixable or ()), *report.elsewhere}
    assert (len(fixed), len(failed) if fixed else 0) == ((int(marked[1]), int(marked[2])) if marked else (0, 0))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ALL_NAMES)
def test_what_envtune_fix_does_is_marked(name: str, lang: str) -> None:
    """Where a line says to run `envtune fix` and nothing else, the row has the mark, as where no line is needed."""
    report = report_of(name)
    rows = rows_of(page_of(name, lang, 120))
    for problem in problems(report.findings):
        id_ = problem.check.id
        marked = re.search(rf"{id_} +\*", rows[id_]) is not None
        assert marked == fixable(problem, report)
        assert marked or not re.search(r"(?:fix: |修复：)(?:sudo )?envtune fix ", rows[id_])


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
    assert marked[-2] == "* 1 of 1 can be fixed: envtune fix shows how, envtune fix --apply does it"


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
    assert "port 60003: in use: 0.0.0.0 node_exporter" in page


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
    rows = [line for line in page.splitlines() if re.match(r"\S+ +[A-Z]{2,4}\d{3}", line)]
    assert len(rows) == 10 and all(_OWN_REPORT.match(row) for row in rows)


def test_commands_have_the_catalogue_of_the_check() -> None:
    plain = render(made(TROUBLED), "en", width=120).splitlines()
    assert plain[-1].endswith("details: check -v, explain ID") and "envtune fix shows how" in plain[-2]
    words = ("--catalog", "site", "--catalog", "/opt/my checks")
    named = made(TROUBLED)._replace(catalogs=words[1::2], settings=words)
    end = " ".join(render(named, "en", width=120).split("\n\n")[-1].split())
    more = "--catalog site --catalog '/opt/my checks'"
    assert f"envtune fix {more} shows" in end and f"details: check -v {more}, explain ID {more}" in end


TOLD = re.compile(r"(?m)^ +(?:(fix|do|look|details)(?=: )|(修复|处理|查看|详情)(?=：))")
IN_ENGLISH = {"修复": "fix", "处理": "do", "查看": "look", "详情": "details"}


def told(page: str) -> dict[str, list[str]]:
    """By check the kinds of the lines below what is wrong, in the order of the page."""
    return {
        id_: [found[0] or IN_ENGLISH[found[1]] for found in TOLD.findall(row)] for id_, row in rows_of(page).items()
    }


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", ALL_NAMES)
def test_each_language_tells_the_same(name: str, width: int) -> None:
    """The same checks in the same order, the same kinds of remedies, and the same subjects."""
    report = report_of(name)
    english, chinese = (page_of(name, lang, width) for lang in ("en", "zh"))
    assert [*told(english).items()] == [*told(chinese).items()]
    for problem in problems(report.findings):
        rows = [squeezed(rows_of(page)[problem.check.id]) for page in (english, chinese)]
        for one, other in zip(subjects(problem.findings, "en"), subjects(problem.findings, "zh")):
            if one.isascii() and other.isascii():  # a name: a word of ours may be in a title of one language only
                assert (one in rows[0]) == (other in rows[1]), (problem.check.id, one)


def subjects(found: Iterable[Finding], lang: str) -> list[str]:
    """The subjects as a row may name them, of a path the last part."""
    names = dict.fromkeys(part for finding in found for part in finding.subject.split(", "))
    return [squeezed(subject_text(name).to(lang).rpartition("/")[2]) for name in names if name]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", ALL_NAMES)
def test_the_worst_findings_are_told_first(name: str, width: int, lang: str) -> None:
    """What is critical is more than its title, and has a remedy."""
    report = report_of(name)
    page = page_of(name, lang, width)
    kinds, rows = told(page), rows_of(page)
    for problem in problems(report.findings):
        id_, title = problem.check.id, problem.check.title
        if problem.severity is not Severity.CRITICAL:
            continue
        assert kinds[id_] or planned(problem, report)
        if not all(adds_nothing(title, finding) for finding in problem.findings):
            said = squeezed(rows[id_][: TOLD.search(rows[id_]).start() if kinds[id_] else None]).replace("*", "")
            assert not said.endswith(squeezed(f"{id_}{title.to(lang)}")), said
