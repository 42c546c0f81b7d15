"""Render what profiles say as data, `envtune.profile/1`; docs/schema/profile.json publishes its form."""

from __future__ import annotations

from typing import Any, Optional

from envtune.profile.analyze import KindReport, ProfileReport
from envtune.profile.evidence import Evidence
from envtune.profile.explain import Explanation
from envtune.profile.verdict import RankVerdict
from envtune.report.profile.host import host_data
from envtune.report.redaction import redacted
from envtune.trust.characters import json_text
from envtune.version import __version__

SCHEMA = "envtune.profile/1"
SHARES = ("computing", "communication", "bubble", "free", "tail")


def profile_data(report: ProfileReport, explanation: Optional[Explanation], lang: str) -> dict[str, Any]:
    """Return the report as plain data, its sentences in `lang`."""
    slow = report.slow
    return {
        "schema": SCHEMA,
        "envtune": __version__,
        "verdict": report.bound.value,
        "likely": report.likely,
        "slow_rank": None
        if slow is None
        else {
            "rank": redacted(slow.rank),
            "verdict": slow.bound.value,
            "excess": round(slow.excess, 4),
            "waiting": [redacted(rank) for rank in slow.waiting],
            "certain": slow.certain,
        },
        "kinds": [_kind(one) for one in report.kinds],
        "ranks": [_rank(one) for one in report.ranks],
        "evidence": [_evidence(one, lang) for one in report.evidence],
        "notes": [redacted(note.to(lang)) for note in report.notes],
        "files": report.files,
        "unread": [{"path": redacted(one.path), "reason": redacted(one.reason.to(lang))} for one in report.unread],
        "host": host_data(explanation, lang),
    }


def _kind(one: KindReport) -> dict[str, Any]:
    return {
        "profiler": one.profiler or None,
        "verdict": one.bound.value,
        "likely": one.likely,
        "ranks": [redacted(rank.steps.rank) for rank in one.ranks],
        "job_size": one.missing.size or None,
        "missing_ranks": list(one.missing.ranks),
    }


def _rank(one: RankVerdict) -> dict[str, Any]:
    steps = one.steps
    graph = steps.mean.gap is not None
    return {
        "rank": redacted(steps.rank),
        "verdict": one.bound.value,
        "waits_for_stage": one.waits,
        "steps": steps.number,
        "start_up_steps": steps.start_up,
        "step_us": round(steps.mean.total, 3),
        "kind": "iteration" if graph else "step",
        "shares": {name: round(steps.share(name), 4) for name in SHARES},
        "preparing": None if steps.mean.preparing is None else round(steps.share("preparing"), 4),
    }


def _evidence(one: Evidence, lang: str) -> dict[str, Any]:
    return {
        "id": one.rule,
        "title": one.title.to(lang),
        "detail": redacted(one.detail.to(lang)),
        "ranks": [redacted(rank) for rank in one.ranks],
        "share": None if one.share is None else round(one.share, 4),
        "of": one.of or None,
        "major": one.major,
        "advice": redacted(one.advice.to(lang)) if one.major else None,
        "source": one.source,
    }


def render_json(report: ProfileReport, explanation: Optional[Explanation], lang: str) -> str:
    """Return the report as one JSON document."""
    return json_text(profile_data(report, explanation, lang), 1)
