"""Render a report as the one line of a Nagios plugin, with its own exit status.

The rules are those of the Monitoring Plugins Development Guidelines: `SERVICE STATUS - text|performance data`, and the
exit status 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. Where `check` ends with 0 or 3, so does this; its 1 is CRITICAL
where a problem at or above --fail-on is critical or high, else WARNING.
"""

from __future__ import annotations

from envtune.model import Outcome
from envtune.report.formats.view import CheckView, ReportView

STATES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
OK, WARNING, CRITICAL, UNKNOWN = range(4)
MAX_BYTES = 900  # an NRPE packet of version 2 takes 1024 with its performance data and a final zero
_URGENT = ("critical", "high")


def status(report: ReportView) -> int:
    """Return the exit status of the plugin."""
    if report.exit_status != 1:
        return UNKNOWN if report.exit_status else OK
    urgent = any(check.status == 1 and check.severity in _URGENT for check in report.checks)
    return CRITICAL if urgent else WARNING


def render(report: ReportView) -> str:
    """Return the line, with its end."""
    text = "; ".join([report.headline, *_reasons(report)])
    return line(status(report), text, _performance(report))


def line(state: int, text: str, performance: str = "") -> str:
    """Return a line of that state; the text is cut where a packet would be too short for it."""
    head = f"ENVTUNE {STATES[state]} - "
    tail = f"|{performance}" if performance else ""
    room = MAX_BYTES - len((head + tail).encode())
    data = " ".join(text.split()).replace("|", "/").encode()  # | begins the performance data
    shown = data if len(data) <= room else data[: room - 4].rstrip() + b" ..."
    return head + shown.decode("utf-8", "ignore") + tail + "\n"


def _reasons(report: ReportView) -> list[str]:
    """Return what decides the state, the worst first."""
    deciding = [check for check in report.checks if check.status and check.status == report.exit_status]
    return [f"{check.id} {_said(check)}" for check in deciding if not check.covered_by]


def _said(check: CheckView) -> str:
    return check.rows[0].found if check.outcome == "unknown" and check.rows else check.title


def _performance(report: ReportView) -> str:
    """Return label=value;warning;critical;minimum;maximum; there are no thresholds on the numbers."""
    counts = report.counts
    values = {"problems": counts.problems}
    values.update({severity.value: count for severity, count in counts.severities.items()})
    values["unknown"] = counts.outcomes[Outcome.UNKNOWN]
    shown = [f"{name}={value};;;0;{counts.checks}" for name, value in values.items()]
    return " ".join([*shown, f"time={report.seconds:.3f}s;;;0"])
