"""From what a log and the host say to the answer: verdicts, our own journal as a host, and the wording."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence

import pytest
from helpers.faq import entries, examples, found_in
from helpers.json_schema import DIAGNOSIS as SCHEMA
from helpers.json_schema import conforms
from helpers.killed_runs import change, write

from envtune.catalog import load
from envtune.diagnose.diagnosis import DiagnosisReport, report_diagnoses
from envtune.diagnose.past_fixes import PastFix, fixed_checks, mark_fixed
from envtune.diagnose.rank import resolve
from envtune.executor.recover import undo_run
from envtune.executor.run import apply_plan
from envtune.messages import Bilingual, Literal
from envtune.model import Evidence, Fact, Finding, Outcome, Severity
from envtune.report.diagnosis.content import ranges
from envtune.report.diagnosis.json import diagnosis_data
from envtune.report.diagnosis.markdown import render_markdown
from envtune.report.diagnosis.placeholders import fill
from envtune.report.diagnosis.text import clipped, render_text
from envtune.report.layout import display_width

FAIL, PASS, UNKNOWN, NA = Outcome.FAIL, Outcome.PASS, Outcome.UNKNOWN, Outcome.NOTAPPLICABLE
FIXED = Outcome.FIXED


def finding(outcome: Outcome, id_: str = "CANN003") -> Finding:
    check = next(check for check in load().checks if check.id == id_)
    return Finding(check, outcome, Severity.HIGH, "te", Literal("0.4.0"), None, None, Evidence("", ""))


class StatedHost:
    """A host whose findings and journal the test states."""

    name = "node1"

    def __init__(self, *told: Finding, known: Optional[Mapping[str, PastFix]] = None) -> None:
        self._told, self._known = told, known or {}

    def findings(self, ids: Sequence[str]) -> Sequence[Finding]:
        return mark_fixed([f for f in self._told if f.id in ids], self._known)

    numbers_devices = True

    def holds(self, when: Mapping[str, Any]) -> Optional[tuple[Fact, ...]]:
        return None if when else ()

    def fixable(self, findings: Sequence[Finding]) -> Optional[bool]:
        return None

    def past_fixes(self) -> Mapping[str, PastFix]:
        return self._known

    def concerns(self, host: str) -> bool:
        return True

    def environment(self) -> str:
        return ""


def asked(
    text: str, host: Optional[StatedHost] = None, path: str = "train.log", modified: float = 0.0
) -> DiagnosisReport:
    """The answer about a file with this text."""
    found = found_in(text)
    for number, hit in enumerate(found.hits):
        file = hit.file.__class__(path, modified=modified)
        found.hits[number] = hit.__class__(hit.pattern, file, hit.line, hit.groups, hit.context)
    return report_diagnoses([path], found, resolve(found, entries()), host)


# ---------------------------------------------------------------------- what our journal says


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A journal with one run, which wrote a file and so cured CANN003 and CANN004."""
    target = tmp_path / "knob"
    target.write_text("bad\n")
    made = change("C01", write(target, b"bad\n", b"good\n"))
    made.update(finding="CANN003", cures=["CANN004"], view="job")
    plan = {"host": "node1", "target": {"python": "/opt/job/bin/python"}, "changes": [made]}
    apply_plan(plan, str(tmp_path / "state"))
    return tmp_path / "state"


def test_the_journal_knows_what_was_cured_for_whom_and_whether_that_still_stands(state: Path) -> None:
    known = fixed_checks(str(state), "node1", "/opt/job/bin/python")
    (run,) = os.listdir(state / "runs")
    assert {check: (fix.run, fix.undone) for check, fix in known.items()} == {
        "CANN003": (run, False),
        "CANN004": (run, False),
    }
    assert abs(known["CANN003"].seconds - time.time()) < 60
    assert set(fixed_checks(str(state), "node1", None)) == {"CANN003", "CANN004"}
    assert fixed_checks(str(state), "node2", "/opt/job/bin/python") == {}  # a home that several hosts share
    assert fixed_checks(str(state), "node1", "/usr/bin/python3") == {}  # another job's Python
    assert fixed_checks(str(state / "nowhere"), "node1", None) == {}
    undo_run(str(state), run)
    assert {fix.undone for fix in fixed_checks(str(state), "node1", None).values()} == {True}


def test_a_change_that_was_refused_cured_nothing(tmp_path: Path) -> None:
    target = tmp_path / "knob"
    target.write_text("somebody was here\n")
    made = change("C01", write(target, b"bad\n", b"good\n"))
    made.update(finding="CANN003")
    apply_plan({"host": "node1", "target": {}, "changes": [made]}, str(tmp_path / "state"))
    assert fixed_checks(str(tmp_path / "state"), "node1", None) == {}


FIX = PastFix("20250102-030405", "2025-01-02T03:04:05Z", False)
TVM = "2025-01-01 10:00:00 epoch 1\nRuntimeError: TVM/te/cce error.\n"


def test_what_was_so_and_was_cured_is_said_to_be_fixed() -> None:
    told = [finding(PASS), finding(PASS, "CANN004"), finding(NA, "CANN012")]
    (row,) = asked(TVM, StatedHost(*told, known={"CANN003": FIX})).diagnoses
    assert (row.verdict, row.history, row.past_fix) == ("ruled_out", "fixed", FIX)
    assert [f.outcome for f in row.findings] == [FIXED, PASS, NA]
    # one of several checks is still open: not ruled out, and still said to be fixed
    told[1] = finding(UNKNOWN, "CANN004")
    (row,) = asked(TVM, StatedHost(*told, known={"CANN003": FIX})).diagnoses
    assert (row.verdict, row.history) == ("could_not_check", "fixed")


def test_what_was_cured_and_is_so_again_is_confirmed_again() -> None:
    for undone, words in ((True, "was undone"), (False, "the problem has returned")):
        known = {"CANN003": FIX._replace(undone=undone)}
        found = asked(TVM, StatedHost(finding(FAIL), known=known))
        assert (found.diagnoses[0].verdict, found.diagnoses[0].history) == ("proved", "again")
        text = " ".join(render_text(found, "en").split())
        assert "confirmed again" in text and words in text and "$ envtune fix --faq F08" in text
    # the check of the cure passes, another one fails: proved by that one, and nothing is called fixed
    found = asked(TVM, StatedHost(finding(PASS), finding(FAIL, "CANN004"), known={"CANN003": FIX}))
    assert (found.diagnoses[0].verdict, found.diagnoses[0].history) == ("proved", "")
    assert "fixed now" not in render_text(found, "en")


def test_a_log_that_is_younger_than_the_cure_has_another_cause() -> None:
    text = TVM.replace("RuntimeError", "2025-01-09 10:00:00 RuntimeError")
    late = FIX.seconds + 9 * 86400
    (row,) = asked(text, StatedHost(finding(PASS), known={"CANN003": FIX}), modified=late).diagnoses
    assert row.history == "before"
    found = asked(text, StatedHost(finding(PASS), known={"CANN003": FIX}), modified=late)
    assert "there must be another cause" in " ".join(render_text(found, "en").split())
    assert "原因应在别处" in render_text(found, "zh")
    # a copy is younger than its lines, and a line's clock may be of another zone: both must say so
    (row,) = asked(TVM, StatedHost(finding(PASS), known={"CANN003": FIX}), modified=late).diagnoses
    assert row.history == "fixed"
    (row,) = asked(text, StatedHost(finding(PASS), known={"CANN003": FIX}), modified=FIX.seconds - 60).diagnoses
    assert row.history == "fixed"


# ---------------------------------------------------------------------- wording


@pytest.mark.parametrize(
    ("text", "groups", "filled"),
    [
        ("Kernel {kernel} failed.", {"kernel": "te_add"}, "Kernel te_add failed."),
        ("Kernel {kernel} failed.", {}, "Kernel <kernel> failed."),
        ("More than was free ({wanted}). Look.", {}, "More than was free. Look."),
        ("More than was free ({wanted}).", {"wanted_bytes": "274880004096"}, "More than was free (256 GiB)."),
        ("More than was free ({wanted}).", {"wanted_bytes": "1572864"}, "More than was free (1.5 MiB)."),
        ("More than was free ({wanted}).", {"wanted_bytes": "9"}, "More than was free (9 B)."),
        ("never came (missing: {missing}; connected: {connected}).", {"missing": "3"}, "never came (missing: 3)."),
        ("sees only [{first}, {end}) of", {"first": "0", "end": "8"}, "sees only [0, 8) of"),
        ("Kernel {kernel}.", {"kernel": "a\nb\x1b[31m"}, "Kernel a b\\x1b[31m."),
    ],
)
def test_an_entrys_sentence_says_what_the_log_says(text: str, groups: dict[str, str], filled: str) -> None:
    assert fill(Literal(text), groups).en == filled


def test_a_chinese_remark_is_left_out_as_well() -> None:
    assert fill(Bilingual("", "超过可用量（{wanted}）：要么"), {}).zh == "超过可用量：要么"
    assert fill(Bilingual("", "算子 {op} 失败"), {}).zh == "算子 <算子> 失败"


def test_ranks_are_told_as_ranges_and_rows_cut_by_columns() -> None:
    assert ranges([5, 0, 1, 2, 9, 2]).en == "0-2, 5, 9"
    assert clipped("日志日志日志", 7) == "日志 …" and clipped("日志", 4) == "日志"
    assert display_width(clipped("界" * 80, 41)) <= 41


@pytest.mark.parametrize("stride", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_every_entrys_own_examples_give_an_answer_that_keeps_the_schema_in_every_form(stride: int) -> None:
    schema = json.loads(SCHEMA.read_text("utf-8"))
    for parameter in [*examples("match")][::stride]:
        entry, text = parameter.values
        made = asked(text)
        for lang in ("en", "zh"):
            rows: Any = diagnosis_data(made, lang)
            assert conforms(rows, schema) == [], entry
            page = render_text(made, lang, width=72)
            assert "{" not in page.replace(text, "") or "{" in text, entry
            assert render_markdown(made, lang)


def test_a_page_in_chinese_speaks_chinese() -> None:
    """Every label and sentence of ours; names, values and commands stay."""
    found = asked(TVM, StatedHost(finding(FAIL)))
    page = render_text(found, "zh")
    for word in ("日志", "原因", "主机", "处理", "已在所检查的主机上确认", "未通过"):
        assert word in page
    for word in ("cause", "proved", "failed", "Shows"):
        assert word not in page
