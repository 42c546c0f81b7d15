"""Render a diagnosis report as data, `envtune.diagnosis/1`. The schema is published in docs/schema/diagnosis.json."""

from __future__ import annotations

import json
from typing import Any, Mapping

from envtune.diagnose.diagnosis import Diagnosis, DiagnosisReport
from envtune.diagnose.rank import Candidate
from envtune.report.check_json import finding_data
from envtune.report.diagnosis.placeholders import fill

SCHEMA = "envtune.diagnosis/1"
VERDICTS = ("confirmed", "refuted", "unknown", "not_checked")
SIDES = ("host", "code", "escalate", "ignore")


def diagnosis_data(report: DiagnosisReport, lang: str) -> dict[str, Any]:
    """Return the report as plain data, its sentences in `lang`."""
    first = report.first_error
    lists = ("diagnoses", "hints", "harmless", "consequences")
    rows = {name: [_row(d, n, lang) for n, d in enumerate(getattr(report, name), 1)] for name in lists}
    error = None if first is None else {"file": first[0].path, "line": first[1].number, "text": first[1].text}
    return {"schema": SCHEMA, "inputs": list(report.inputs), **rows, "first_error": error}


def render_json(report: DiagnosisReport, lang: str) -> str:
    """Return the report as one JSON document."""
    return json.dumps(diagnosis_data(report, lang), ensure_ascii=False, indent=1)


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


def diagnosis_schema(finding: Mapping[str, Any]) -> dict[str, Any]:
    """`envtune.diagnosis/1` as JSON Schema; `finding` is that of one finding of envtune.report/1."""
    text: dict[str, Any] = {"type": "string"}
    line = _closed({"file": text, "line": {"type": "integer", "minimum": 1}, "text": text})
    row = {
        "id": {"type": "string", "pattern": "^[A-Z][0-9]{2,3}$", "description": "Id of the FAQ entry."},
        "name": text,
        "rank": {"type": "integer", "minimum": 1, "description": "Place in this list; 1 is the most likely."},
        "strength": {"enum": ["strong", "weak"]},
        "count": {"type": "integer", "minimum": 1, "description": "Lines of the inputs that say so."},
        "lines": {"type": "array", "items": line, "minItems": 1, "description": "The first of them."},
        "groups": {"type": "object", "additionalProperties": text, "description": "What the signatures' groups say."},
        "where": {
            **_closed({"rank": {"type": ["integer", "null"]}, "host": {"type": ["string", "null"]}}),
            "description": "The rank of the job and the host at fault; null where the inputs do not say.",
        },
        "verdict": {"enum": list(VERDICTS), "description": "What the confirming checks say now."},
        "confirm": {
            "type": "array",
            "items": dict(finding),
            "description": "Their findings; `fixed`: it was so and a run of envtune fix cured it (see `reason`).",
        },
        "side": {"enum": list(SIDES), "description": "Who has to act."},
        "remedy": {"type": "string", "description": "What to do, in the language of the answer."},
    }
    rows = {"type": "array", "items": _closed(row)}
    told = {
        "diagnoses": "What we would act on, the most likely first.",
        "hints": "Weak signs only.",
        "harmless": "Known lines that mean nothing.",
        "consequences": "What followed from it, and ranks that only waited.",
    }
    answer = {
        "schema": {"const": SCHEMA},
        "inputs": {"type": "array", "items": text},
        **{name: {**rows, "description": words} for name, words in told.items()},
        "first_error": {
            "anyOf": [line, {"type": "null"}],
            "description": "The first line that looks like an error, known or not.",
        },
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": SCHEMA, **_closed(answer)}


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
        "required": list(properties),
    }
