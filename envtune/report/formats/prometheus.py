"""Render a report for the textfile collector of Prometheus' node_exporter.

Every metric is a gauge with the label `host`, so that the files of several recorded hosts can lie in one directory.
Names and units follow https://prometheus.io/docs/practices/naming/; the syntax is the text exposition format 0.0.4.
There are no time stamps: node_exporter refuses a file that has them.
"""

from __future__ import annotations

import calendar
import time
from typing import Iterable, Iterator, Mapping

from envtune.audit.verdict import Verdict
from envtune.report.formats.view import CheckView, ReportView

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_FAILED, _PASSED = ("fail", "error"), ("pass", "fixed")

Sample = tuple[Mapping[str, str], float]


def render(report: ReportView) -> str:
    """Return the report as metrics; the texts of them are English in every language."""
    return "".join(line + "\n" for line in _lines(report))


def _lines(report: ReportView) -> Iterator[str]:
    for name, text, samples in _metrics(report):
        rows = [_sample(name, {"host": report.host, **labels}, value) for labels, value in samples]
        if rows:
            yield from (f"# HELP envtune_{name} {text}", f"# TYPE envtune_{name} gauge", *rows)


def _metrics(report: ReportView) -> Iterator[tuple[str, str, Iterable[Sample]]]:
    counts = report.counts
    yield "info", "Version of envtune that wrote this file.", [({"version": report.version}, 1)]
    yield "last_run_timestamp_seconds", "When the host was checked.", [({}, _seconds(report.started))]
    yield "run_duration_seconds", "How long the checks took.", [({}, report.seconds)]
    yield "exit_status", "Exit status of envtune check.", [({}, report.exit_status)]
    verdicts = [({"verdict": one.value}, float(one.value == report.verdict)) for one in Verdict]
    yield "verdict", "1 for the verdict on the host, 0 for the others.", verdicts
    outcomes = [({"outcome": outcome.value}, float(count)) for outcome, count in counts.outcomes.items()]
    yield "checks", "Number of checks by outcome.", outcomes
    severities = [({"severity": one.value}, float(count)) for one, count in counts.severities.items()]
    yield "problems", "Number of checks that found a problem, by severity.", severities
    yield "unknown_need_root", "Number of unknown checks that only need root.", [({}, counts.need_root)]
    yield "waived", "Number of checks of which the site waives something.", [({}, counts.waived)]
    known = report.by_outcome(*_FAILED, *_PASSED)
    yield "check_failed", "1 where the check found a problem, 0 where it passed.", _checks(known, _FAILED)
    asked = report.by_outcome("unknown", *_FAILED, *_PASSED)
    yield "check_unknown", "1 where the check is unknown.", _checks(asked, ("unknown",))


def _checks(checks: Iterable[CheckView], wanted: Iterable[str]) -> list[Sample]:
    rows = sorted(checks, key=lambda check: check.id)
    return [({"check": row.id, "severity": row.severity}, float(row.outcome in wanted)) for row in rows]


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(f'{key}="{text.translate(_ESCAPES)}"' for key, text in labels.items())
    return f"envtune_{name}{{{shown}}} {value:.15g}"


def _seconds(started: str) -> int:
    """Return a UTC time of the report in seconds since the epoch."""
    return calendar.timegm(time.strptime(started, "%Y-%m-%dT%H:%M:%SZ"))
