"""Weak signs that add up answer with low confidence; a strong rival, an unknown error or a run that goes on do not let
them."""

from __future__ import annotations

import pytest

from envtune.catalog.entries import faq_from
from envtune.diagnose.diagnosis import DiagnosisReport
from envtune.diagnose.logs.files import LogFile
from envtune.diagnose.pipeline import diagnose_files
from envtune.model import FaqEntry
from envtune.report.diagnosis.json import diagnosis_data
from envtune.report.diagnosis.markdown import render_markdown
from envtune.report.diagnosis.text import render_text


def entry(id_: str, *signatures: tuple[str, str], frame: str = "") -> FaqEntry:
    words = {"en": "Something.", "zh": "\u67d0\u4e8b\u3002"}
    row = {"strength": "", "origin": "outside", **({"frame": frame} if frame else {})}
    rows = [{**row, "regex": regex, "strength": strength} for strength, regex in signatures]
    data = {"id": id_, "name": id_.lower(), "title": words, "cause": words, "remedy": words, "side": "code"}
    return faq_from({**data, "signatures": rows})


ODD = entry("F90", ("weak", "odd allocation"), ("weak", "odd release"))
OTHER = entry("F91", ("strong", "very odd"))


def report(text: str, *entries: FaqEntry) -> DiagnosisReport:
    return diagnose_files(["job.log"], [LogFile("job.log", content=text.encode())], entries)


def answers(text: str, *entries: FaqEntry) -> list[str]:
    return [diagnosis.candidate.entry.id for diagnosis in report(text, *entries).diagnoses]


def test_two_different_weak_signs_of_one_entry_are_an_answer() -> None:
    assert answers("odd allocation\nstep 3\nodd release\n", ODD, OTHER) == ["F90"]


@pytest.mark.parametrize("text", ["odd allocation\nodd allocation\n", "odd allocation, odd release\n"])
def test_the_same_sign_twice_and_one_line_are_not(text: str) -> None:
    assert answers(text, ODD) == []


def test_a_strong_rival_wins() -> None:
    assert answers("odd allocation\nodd release\nvery odd\n", ODD, OTHER) == ["F91"]


def test_a_lone_sign_answers_as_the_last_error_of_a_log_that_ends_with_it() -> None:
    assert answers("loading\nERROR: odd allocation\n", ODD) == ["F90"]


@pytest.mark.parametrize(
    "text",
    [
        "ERROR: odd allocation\nKeyError: 'weight'\n",  # another error came later
        "odd allocation\n",  # no error
        "ERROR: odd allocation\n" + "loading\n" * 20,  # the log goes on
    ],
)
def test_elsewhere_it_stays_a_hint(text: str) -> None:
    found = report(text, ODD)
    assert (found.diagnoses, [hint.candidate.entry.id for hint in found.hints]) == ((), ["F90"])


def test_the_answer_says_how_sure_it_is() -> None:
    weak, strong = report("odd allocation\nodd release\n", ODD), report("very odd\n", OTHER)
    assert "low confidence" in render_text(weak, "en") and "low confidence" in render_markdown(weak, "en")
    assert "low confidence" not in render_text(strong, "en")
    assert [diagnosis_data(one, "en")["diagnoses"][0]["confidence"] for one in (weak, strong)] == ["low", "high"]


COMPILER = entry("F92", ("strong", "No module named 'decorator'"), frame=r"/(?:te|tbe)/")


@pytest.mark.parametrize(
    ("path", "expected"), [("/usr/local/Ascend/latest/python/site-packages/tbe/a.py", ["F92"]), ("/home/u/a.py", [])]
)
def test_whose_code_was_importing_decides(path: str, expected: list[str]) -> None:
    text = f"""\
Traceback (most recent call last):
  File "{path}", line 3, in <module>
    import decorator
ModuleNotFoundError: No module named 'decorator'
"""
    assert answers(text, COMPILER) == expected
    assert answers(f'  File "/x/tbe/y.py", line 3\n{text}', COMPILER) == expected  # another traceback before
