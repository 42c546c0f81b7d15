"""Render a diagnosis report as data, `envtune.diagnosis/1`. The schema is published in docs/schema/diagnosis.json."""

from __future__ import annotations

from typing import Any

from envtune.diagnose.diagnosis import Diagnosis, DiagnosisReport
from envtune.diagnose.rank import Candidate
from envtune.ranks.records import Process, Root, Verdict
from envtune.report.check_json import finding_data
from envtune.report.diagnosis.placeholders import fill
from envtune.trust.characters import json_text

SCHEMA = "envtune.diagnosis/1"
VERDICTS = ("confirmed", "refuted", "unknown", "not_checked")
MAX_LINKS = 1000
SIDES = ("host", "code", "escalate", "ignore")


def diagnosis_data(report: DiagnosisReport, lang: str) -> dict[str, Any]:
    """Return the report as plain data, its sentences in `lang`."""
    first = report.first_error
    lists = ("diagnoses", "hints", "harmless", "consequences")
    rows = {name: [_row(d, n, lang) for n, d in enumerate(getattr(report, name), 1)] for name in lists}
    error = None if first is None else {"file": first[0].path, "line": first[1].number, "text": first[1].text}
    document = {"schema": SCHEMA, "inputs": list(report.inputs), **rows, "first_error": error}
    return {**document, **_job(report.job)}


def _job(job: Verdict) -> dict[str, Any]:
    """Return which process failed first, who waited, and who is missing."""
    return {
        "root": None if job.root is None else _root(job.root),
        "candidates": [_root(root) for root in job.candidates],
        "waiters": [_process(process) for process in job.waiters],
        "missing": list(job.missing),
        "links": [{"from": _process(k.waiter), "to": _process(k.peer), "why": k.why} for k in job.links[:MAX_LINKS]],
    }


def _process(process: Process) -> dict[str, Any]:
    file = next(iter(process.files), None)
    return {"rank": process.rank, "host": process.host or None, "device": process.device, "file": file}


def _root(root: Root) -> dict[str, Any]:
    return {**_process(root.process), "file": root.file, "why": root.why}


def render_json(report: DiagnosisReport, lang: str) -> str:
    """Return the report as one JSON document."""
    return json_text(diagnosis_data(report, lang), 1)


def _row(diagnosis: Diagnosis, number: int, lang: str) -> dict[str, Any]:
    candidate = diagnosis.candidate
    entry = candidate.entry
    return {
        "id": entry.id,
        "name": entry.name,
        "rank": number,
        "strength": "strong" if candidate.strong else "weak",
        "count": candidate.count,
        "lines": _lines(candidate),
        "groups": dict(candidate.groups),
        "where": {"rank": candidate.rank, "host": candidate.host or None},
        "verdict": diagnosis.verdict,
        "confirm": [finding_data(finding, lang) for finding in diagnosis.confirm],
        "side": entry.side,
        "remedy": fill(entry.remedy, candidate.groups).to(lang),
    }


def _lines(candidate: Candidate) -> list[dict[str, Any]]:
    """Return the lines that prove it, each once."""
    texts = {(h.file.path, h.line.number): h.line.text for h in candidate.hits}
    return [{"file": path, "line": number, "text": text} for (path, number), text in texts.items()]
