"""Remove secrets from a diagnosis before it is shown: Markdown output is meant to be pasted into issues."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Mapping

from envtune.collector.redact import redact_argv, redact_text
from envtune.collector.redact.values import REDACTED
from envtune.diagnose.diagnosis import Diagnosis, DiagnosisReport
from envtune.diagnose.scan import Hit


def redacted_report(report: DiagnosisReport) -> DiagnosisReport:
    """Return the report with every line and value of a log, and the command it is about, without secrets."""
    once = lru_cache(maxsize=4096)(redact_text)  # the lines around a hit are often shared with the next one

    def redacted_hit(hit: Hit) -> Hit:
        text = once(hit.line.text)
        line = hit.line if text == hit.line.text else replace(hit.line, text=text)
        return replace(hit, line=line, groups=_groups(hit, text), context=tuple(map(once, hit.context)))

    def redacted_diagnosis(diagnosis: Diagnosis) -> Diagnosis:
        candidate = diagnosis.candidate
        return replace(diagnosis, candidate=replace(candidate, hits=tuple(map(redacted_hit, candidate.hits))))

    def redacted_all(diagnoses: tuple[Diagnosis, ...]) -> tuple[Diagnosis, ...]:
        return tuple(map(redacted_diagnosis, diagnoses))

    first = report.first_error
    if first is not None:
        first = (first[0], replace(first[1], text=once(first[1].text)))
    return replace(
        report,
        inputs=tuple(redact_argv(report.inputs)),
        first_error=first,
        before=tuple(map(once, report.before)),
        after=tuple(map(once, report.after)),
        diagnoses=redacted_all(report.diagnoses),
        hints=redacted_all(report.hints),
        harmless=redacted_all(report.harmless),
        consequences=redacted_all(report.consequences),
        mentions=tuple(mention._replace(hit=redacted_hit(mention.hit)) for mention in report.mentions),
    )


def _groups(hit: Hit, text: str) -> Mapping[str, str]:
    """Return what the named groups captured; what is no longer in the line was a secret, or part of one."""
    return {
        name: REDACTED if value in hit.line.text and value not in text else redact_text(value)
        for name, value in hit.groups.items()
    }
