"""Where a job's variables come from, in both languages and as data."""

from __future__ import annotations

import pytest

from envtune.context.open import describe_target
from envtune.job.target import (
    THIS_SHELL,
    JobEnvironment,
    Target,
    TargetOptions,
    alone,
    layered,
    process_source,
)
from envtune.messages import Message
from envtune.model import Report, Source
from envtune.report.check_json import report_data


@pytest.mark.parametrize(
    ("source", "en", "zh"),
    [
        (THIS_SHELL, "environment of this shell", "当前 shell 的环境变量"),
        (process_source(12), "environment of process 12", "进程 12 的环境变量"),
        (
            layered("/a.sh", THIS_SHELL),
            "environment of /a.sh over this shell",
            "/a.sh（其余取自当前 shell 的环境变量）",
        ),
        (alone("/a.sh"), "environment of /a.sh alone", "仅 /a.sh 的环境变量"),
    ],
)
def test_the_source_of_a_variable_that_no_line_sets(source: Source, en: str, zh: str) -> None:
    place = JobEnvironment({"A": "1"}, source, places={"B": "/a.sh:3"}).place("A")
    assert not isinstance(place, str)
    assert (place.en, place.zh) == (en, zh)
    assert JobEnvironment({"A": "1"}, source, places={"B": "/a.sh:3"}).place("B") == "/a.sh:3"


def test_a_report_as_data_translates_sentences_and_no_sources() -> None:
    reason = Message("no Python was found")
    target = Target(TargetOptions(), None, reason, JobEnvironment({}, THIS_SHELL))
    report = Report("host", "2026-01-31T08:00:00Z", 0.0, describe_target(target), (), ())
    assert report_data(report, "zh")["target"] == {"environment": "this shell", "python_reason": reason.zh}
    assert reason.zh != reason.en
