"""One report or diagnosis in one format: what `--format` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envtune.messages import LANGUAGES, Text

if TYPE_CHECKING:
    from envtune.diagnose.diagnosis import DiagnosisReport
    from envtune.model import Report
    from envtune.report.formats.view import Settings

PLUGIN_FAILED = 3  # UNKNOWN of a Nagios plugin


def check_document(report: Report, name: str, lang: str, settings: Settings) -> str:
    """Return a report as Markdown, HTML, JUnit, SARIF, metrics for Prometheus, or the line of a Nagios plugin."""
    from envtune.report.formats.view import view

    if name == "html":
        from envtune.report.formats.html import render_check

        return render_check([view(report, one, settings) for one in _languages(lang)])
    made = view(report, lang, settings)
    if name == "junit":
        from envtune.report.formats.junit import render
    elif name == "sarif":
        from envtune.report.formats.sarif import render
    elif name == "prometheus":
        from envtune.report.formats.prometheus import render
    elif name == "nagios":
        from envtune.report.formats.nagios import render
    else:
        from envtune.report.formats.markdown import render
    return render(made)


def plugin_status(report: Report, settings: Settings) -> int:
    """Return the exit status of a Nagios plugin that reports this."""
    from envtune.report.formats.nagios import status
    from envtune.report.formats.view import view

    return status(view(report, "en", settings))


def plugin_error(message: Text, lang: str) -> str:
    """Return the line of a Nagios plugin that was asked wrongly."""
    from envtune.report.formats.nagios import UNKNOWN, line
    from envtune.report.layout import shown

    return line(UNKNOWN, shown(message, lang))


def diagnosis_page(report: DiagnosisReport, lang: str) -> str:
    """Return a diagnosis as HTML."""
    from envtune.report.formats.diagnosis_view import diagnosis_view
    from envtune.report.formats.html import render_diagnosis

    return render_diagnosis([diagnosis_view(report, one) for one in _languages(lang)])


def _languages(first: str) -> tuple[str, ...]:
    return (first, *(one for one in LANGUAGES if one != first))
