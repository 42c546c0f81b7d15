"""Take secrets out of a diagnosis before anybody sees it: Markdown is made to be pasted into an issue."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Mapping, Optional

from envtune.collector.redact import REDACTED, redact_argv, redact_text
from envtune.diagnose.diagnosis import Diagnosis, DiagnosisReport
from envtune.diagnose.scan import Hit

_KINDS = ("diagnoses", "hints", "harmless", "consequences")


def redacted_report(report: DiagnosisReport) -> DiagnosisReport:
    """Return the report with every line and value of a log, and the command it is about, without secrets."""
    once = lru_cache(maxsize=4096)(redact_text)  # the lines around a hit are often those of the next one

    def redacted_hit(hit: Hit) -> Hit:
        text = once(hit.line.text)
        line = hit.line if text == hit.line.text else replace(hit.line, text=text)
        return replace(hit, line=line, groups=_groups(hit, text), context=tuple(map(once, hit.context)))

    def redacted_diagnosis(diagnosis: Diagnosis) -> Diagnosis:
        candidate = diagnosis.candidate
        return replace(diagnosis, candidate=replace(candidate, hits=tuple(map(redacted_hit, candidate.hits))))

    first: Optional[tuple[object, ...]] = report.first_error
    if report.first_error is not None:
        file, line = report.first_error
        first = (file, replace(line, text=once(line.text)))
    return replace(
        report,
        inputs=tuple(redact_argv(report.inputs)),
        first_error=first,  # type: ignore[arg-type]
        before=tuple(map(once, report.before)),
        after=tuple(map(once, report.after)),
        **{kind: tuple(map(redacted_diagnosis, getattr(report, kind))) for kind in _KINDS},
    )


def _groups(hit: Hit, text: str) -> Mapping[str, str]:
    """Return what the named groups captured; what stood in the line and does not any more was a secret, or part of it."""
    return {
        name: REDACTED if value in hit.line.text and value not in text else redact_text(value)
        for name, value in hit.groups.items()
    }
