"""Results for people and for programs: reports, plans, fixes and diagnoses as text, JSON and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from envtune.diagnose.diagnosis import DiagnosisReport
    from envtune.fix.plan import Plan
    from envtune.model import Report


def to_json(result: Union[Report, Plan, DiagnosisReport], lang: str = "en") -> str:
    """Return a result as the JSON document that the command of the same name prints with `--format json`.

    Args:
        result: What `envtune.check`, `envtune.plan` or `envtune.diagnose` returned.
        lang: The language of the sentences in it, `en` or `zh`.

    Example:
        >>> import envtune, json
        >>> json.loads(envtune.to_json(envtune.plan(select=["SYS001"])))["schema"]
        'envtune.plan/1'
    """
    from envtune.model import Report

    if isinstance(result, Report):
        from envtune.report.check_json import render as render_report

        return render_report(result, lang)
    from envtune.fix.plan import Plan

    if isinstance(result, Plan):
        from envtune.fix.document import render as render_plan

        return render_plan(result, lang)
    from envtune.report.diagnosis.json import render_json

    return render_json(result, lang)
