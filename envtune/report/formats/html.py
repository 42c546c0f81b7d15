"""Render a report as one HTML file that loads nothing: both languages in it, light and dark, with a filter.

Jinja2 escapes whatever it is given; the Content-Security-Policy in the page allows the one style and the one script
that are in it, by their hashes, and no other source of anything. Without scripts everything can be read all the same.
"""

from __future__ import annotations

import base64
import hashlib
import pkgutil
from typing import TYPE_CHECKING, Any, Optional, Sequence

from envtune.report.formats.labels import colon, pair, remark

if TYPE_CHECKING:
    from envtune.report.formats.diagnosis_view import DiagnosisView
    from envtune.report.formats.view import ReportView

# outcome -> whether it is shown at first
OUTCOMES = (
    ("problem", True),
    ("note", True),
    ("unknown", True),
    ("waived", True),
    ("fixed", True),
    ("pass", False),
    ("notapplicable", False),
)


def render_check(reports: Sequence[ReportView]) -> str:
    """Return a report as a page; `reports` is the same one in each language, the language of the reader first."""
    first = reports[0]
    groups: dict[str, list[int]] = {}
    for number, check in enumerate(first.checks):
        groups.setdefault(_heading(check.outcome), []).append(number)
    shown = {"problem" if check.is_problem else check.outcome for check in first.checks}
    return render_page(
        "check.html",
        reports,
        f"envtune: {first.headline}",
        groups=groups.items(),
        outcomes=[(name, ticked) for name, ticked in OUTCOMES if name in shown],
        severities=[severity.value for severity in first.counts.severities],
    )


def render_diagnosis(reports: Sequence[DiagnosisView]) -> str:
    """Return a diagnosis as a page, from the same one in each language."""
    return render_page("diagnosis.html", reports, f"envtune: {reports[0].headline}")


def _heading(outcome: str) -> str:
    return {"fail": "problems", "error": "problems", "note": "notes", "unknown": "unknown"}.get(outcome, "others")


def render_page(template: str, pages: Sequence[Any], title: str, further: str = "", **more: Any) -> str:
    """Return a page; `further` names a style and a script that are added to those of every page."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.globals.update(pair=pair, colon=colon, remark=remark)
    style, script = (
        "".join(_source(f"{name}.{kind}") for name in ("report", further) if name) for kind in ("css", "js")
    )
    page: str = environment.get_template(template).render(
        lang=pages[0].lang,
        pages=pages,
        title=title,
        style=Markup(style),  # ours, with nothing in it that was read on a host
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        **more,
    )
    return page


def _source(name: str) -> str:
    data: Optional[bytes] = pkgutil.get_data("envtune.report.formats", f"templates/{name}")  # also from a zip file
    if data is None:
        raise FileNotFoundError(name)
    return data.decode("utf-8")


def _hash(text: str) -> str:
    """Return how Content-Security-Policy names an inline style or script (CSP Level 3, 2.3.1)."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
