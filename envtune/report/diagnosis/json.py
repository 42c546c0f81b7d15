"""Render a diagnosis report as data, `envtune.diagnosis/2` or, for one more release, /1.

The schemas are published in docs/schema/diagnosis-2.json and diagnosis.json.
"""

from __future__ import annotations

from typing import Any

from envtune.diagnose.codes import FoundCode
from envtune.diagnose.diagnosis import Diagnosis, DiagnosisReport
from envtune.diagnose.events.mentions import Mentioned
from envtune.diagnose.proof import LIKELY, NOT_HERE, PROVED, RULED_OUT, UNCHECKED, Ground
from envtune.diagnose.rank import Candidate
from envtune.ranks.records import Process, Root, Verdict
from envtune.report.check_json import finding_data
from envtune.report.diagnosis.content import MENTIONS, ground_text, here, why_not_checked
from envtune.report.diagnosis.placeholders import fill, readable
from envtune.trust.characters import json_text

SCHEMAS = {1: "envtune.diagnosis/1", 2: "envtune.diagnosis/2"}
# verdict -> that of /1; `confirmed` was said of any failing check there, and is said of a proof now
FORMER_VERDICTS = {
    PROVED: "confirmed",
    RULED_OUT: "refuted",
    LIKELY: "unknown",
    NOT_HERE: "unknown",
    UNCHECKED: "unknown",
}
MAX_LINKS = 1000
SIDES = ("host", "code", "escalate", "ignore")


def diagnosis_data(report: DiagnosisReport, lang: str, schema: int = 2) -> dict[str, Any]:
    """Return the report as plain data, its sentences in `lang`, in the form of version `schema` (1 or 2)."""
    first = report.first_error
    lists = ("diagnoses", "hints", "harmless", "consequences")
    rows = {name: [_row(d, n, lang, schema) for n, d in enumerate(getattr(report, name), 1)] for name in lists}
    error = None if first is None else {"file": first[0].path, "line": first[1].number, "text": first[1].text}
    codes = [_code(found, lang) for found in report.codes]
    document = {"schema": SCHEMAS[schema], "inputs": list(report.inputs), **rows, "codes": codes, "first_error": error}
    states = [
        {"file": state.table.file.path, "line": state.table.line, "finding": finding_data(state.finding, lang)}
        for state in report.states
    ]
    return {
        **document,
        "states": states,
        "mentions": [_mention(one, lang) for one in report.mentions],
        **_job(report.job),
    }


def _mention(mention: Mentioned, lang: str) -> dict[str, Any]:
    line = mention.hit.line
    place = {"file": mention.hit.file.path, "line": line.number, "text": line.text}
    reason = {"why": mention.why, "reason": MENTIONS[mention.why].to(lang), "count": mention.lines}
    return {"id": mention.entry.id, "name": mention.entry.name, **place, **reason}


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


def render_json(report: DiagnosisReport, lang: str, schema: int = 2) -> str:
    """Return the report as one JSON document of version `schema`."""
    return json_text(diagnosis_data(report, lang, schema), 1)


def _row(diagnosis: Diagnosis, number: int, lang: str, schema: int) -> dict[str, Any]:
    candidate = diagnosis.candidate
    entry = candidate.entry
    return {
        "id": entry.id,
        "name": entry.name,
        "rank": number,
        "strength": "strong" if candidate.strong else "weak",
        "confidence": "high" if candidate.confident else "low",
        "count": candidate.count,
        "lines": _lines(candidate),
        "groups": readable(candidate.groups),
        "where": {"rank": candidate.rank, "host": candidate.host or None},
        **(_judged(diagnosis, lang) if schema > 1 else _formerly_judged(diagnosis, lang)),
        "side": entry.side,
        "remedy": fill(entry.remedy, candidate.groups).to(lang),
    }


def _code(found: FoundCode, lang: str) -> dict[str, Any]:
    code, first = found.code, found.hits[0]
    return {
        "code": code.code,
        "meaning": code.meaning.to(lang),
        "action": code.action.to(lang),
        "faq": code.faq or None,
        "source": code.source,
        "count": found.count,
        "file": first.file.path,
        "line": first.line.number,
    }


def _judged(diagnosis: Diagnosis, lang: str) -> dict[str, Any]:
    """Return the verdict, what decides it, and everything that was looked at."""
    reason = why_not_checked(diagnosis) or here(diagnosis)
    return {
        "verdict": diagnosis.verdict,
        "reason": reason.to(lang),
        "grounds": [_ground(ground, lang) for ground in diagnosis.grounds],
        "findings": [finding_data(finding, lang) for finding in diagnosis.findings],
    }


def _ground(ground: Ground, lang: str) -> dict[str, Any]:
    return {
        "effect": ground.effect,
        "says": ground_text(ground).to(lang),
        "finding": None if ground.finding is None else finding_data(ground.finding, lang),
        "facts": {fact.name: fact.value or "unknown" for fact in ground.facts},
    }


def _formerly_judged(diagnosis: Diagnosis, lang: str) -> dict[str, Any]:
    asked = bool(diagnosis.findings or diagnosis.grounds)
    return {
        "verdict": FORMER_VERDICTS[diagnosis.verdict] if asked else "not_checked",
        "confirm": [finding_data(finding, lang) for finding in diagnosis.findings],
    }


def _lines(candidate: Candidate) -> list[dict[str, Any]]:
    """Return the lines that prove it, each once."""
    texts = {(h.file.path, h.line.number): h.line.text for h in candidate.hits}
    return [{"file": path, "line": number, "text": text} for (path, number), text in texts.items()]
