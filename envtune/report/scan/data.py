"""Render what was found in launch files as data, `envtune.scan/1`; docs/schema/scan.json publishes its form."""

from __future__ import annotations

from typing import Any, Optional

from envtune.model import Outcome
from envtune.report.check_json import finding_data_2
from envtune.report.redaction import redacted
from envtune.report.schema import FINDING_2
from envtune.scan.kinds import KINDS
from envtune.scan.model import FileResult, Found, Problem, ScanReport, Suppression
from envtune.schema.types import AnyOf, Const, Field, ListOf, Null, Number, Record, Str, Type, optional
from envtune.trust.characters import json_text
from envtune.version import __version__

SCHEMA = "envtune.scan/1"
_TEXT, _COUNT = Str(), Number(0, whole=True)


def _field(name: str, type_: Type, doc: str = "") -> Field:
    return Field(name, type_, doc, required=True)


_PROBLEM = Record(
    _field("path", _TEXT),
    _field("line", optional(Number(1, whole=True)), "null: the file as a whole."),
    _field("reason", _TEXT, "Why it could not be checked."),
)
_IGNORED = Record(
    _field("line", Number(1, whole=True), "Where the comment stands."),
    _field("reason", _TEXT),
)
_UNUSED = Record(
    _field("path", _TEXT),
    _field("line", Number(1, whole=True)),
    _field("ids", ListOf(_TEXT)),
    _field("reason", _TEXT),
)
_FOUND = Record(
    _field("path", _TEXT, "The file that sets the variable; a script that was sourced, say."),
    _field("line", optional(Number(1, whole=True)), "null: the file as a whole."),
    _field("job", optional(_TEXT), "What is started, where a file starts several: the container of a pod."),
    _field("same_as", optional(_TEXT), "The check whose finding on this line has the same cause."),
    _field("ignored", AnyOf(_IGNORED, Null()), "The comment in the file that accepts it, where there is one."),
    _field("finding", FINDING_2),
)
_FILE = Record(
    _field("path", _TEXT),
    _field("kind", Str(choices=KINDS)),
    _field("jobs", _COUNT, "Lines that start a job, and containers."),
    _field("findings", ListOf(_FOUND)),
    _field("problems", ListOf(_PROBLEM), "What could not be checked in it."),
    _field("unused", ListOf(_UNUSED), "Comments that ignore what is not found."),
    _field("passed", ListOf(_TEXT), "Checks that found nothing wrong with what the file sets."),
    _field("needs_host", ListOf(_TEXT), "Checks that also ask about the job's host, which was not read."),
)
SCAN = Record(
    _field("schema", Const(SCHEMA)),
    _field("envtune", _TEXT, "Version of envtune."),
    _field("checks", ListOf(_TEXT), "The checks that were run."),
    _field("files", ListOf(_FILE)),
    _field("problems", ListOf(_PROBLEM), "Files and directories that could not be read."),
    _field(
        "summary",
        Record(
            *(_field(name, _COUNT) for name in ("files", "failed", "unknown", "ignored", "waived", "problems")),
        ),
        "A finding that has the same cause as another is not counted.",
    ),
    _field("diff", optional(_TEXT), "With --fix: the changes, as a unified diff. null without it."),
    Field("policy", Record(_field("file", _TEXT), _field("profile", _TEXT)), "The site's policy in use."),
)


def scan_data(report: ScanReport, lang: str, changes: Optional[str] = None) -> dict[str, Any]:
    """Return the report as plain data, its sentences in `lang`; `changes` is the diff, where one was asked for."""
    return {
        "schema": SCHEMA,
        "envtune": __version__,
        "checks": [check.id for check in report.checks],
        "files": [_file(one, lang) for one in report.files],
        "problems": [_problem(one, lang) for one in report.problems],
        "summary": _summary(report),
        "diff": None if changes is None else redacted(changes),
        **({"policy": dict(report.policy)} if report.policy else {}),
    }


def _summary(report: ScanReport) -> dict[str, int]:
    rows = [one for one in report.found if not one.covered_by]
    counting = [one.finding.outcome for one in rows if one.counts]
    return {
        "files": len(report.files),
        "failed": counting.count(Outcome.FAIL),
        "unknown": len(counting) - counting.count(Outcome.FAIL),
        "ignored": sum(one.suppression is not None for one in rows),
        "waived": sum(one.suppression is None and one.finding.outcome is Outcome.WAIVED for one in rows),
        "problems": len(report.all_problems),
    }


def _file(file: FileResult, lang: str) -> dict[str, Any]:
    return {
        "path": redacted(file.path),
        "kind": file.kind,
        "jobs": file.jobs,
        "findings": [_found(one, lang) for one in file.found],
        "problems": [_problem(one, lang) for one in file.problems],
        "unused": [_unused(one) for one in file.unused],
        "passed": list(file.passed),
        "needs_host": list(file.need_host),
    }


def _found(found: Found, lang: str) -> dict[str, Any]:
    comment = found.suppression
    return {
        "path": redacted(found.path),
        "line": found.line or None,
        "job": redacted(found.job) or None,
        "same_as": found.covered_by or None,
        "ignored": None if comment is None else {"line": comment.line, "reason": redacted(comment.reason)},
        "finding": finding_data_2(found.finding, lang),
    }


def _problem(problem: Problem, lang: str) -> dict[str, Any]:
    return {
        "path": redacted(problem.path),
        "line": problem.line or None,
        "reason": redacted(problem.reason.to(lang)),
    }


def _unused(one: Suppression) -> dict[str, Any]:
    return {"path": redacted(one.path), "line": one.line, "ids": list(one.ids), "reason": redacted(one.reason)}


def render_json(report: ScanReport, lang: str, changes: Optional[str] = None) -> str:
    """Return the report as one JSON document."""
    return json_text(scan_data(report, lang, changes), 1)
