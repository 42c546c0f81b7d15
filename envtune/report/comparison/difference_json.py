"""Render what differs between two hosts as data, `envtune.difference/1` (docs/schema/difference.json)."""

from __future__ import annotations

from typing import Any

from envtune.compare.difference import CheckPair, Difference, FactPair, Side
from envtune.compare.hosts import HostReport, Value
from envtune.report.redaction import redacted
from envtune.version import __version__

SCHEMA = "envtune.difference/1"


def difference_data(found: Difference, lang: str) -> dict[str, Any]:
    """Return what differs as plain data, its sentences in `lang`."""
    return {
        "schema": SCHEMA,
        "envtune": __version__,
        "differs": found.differs,
        "left": _host_data(found.left),
        "right": _host_data(found.right),
        "facts": [_fact_data(pair, lang) for pair in found.facts],
        "checks": [_check_data(pair, lang) for pair in found.checks],
        "unknown": {
            "facts": [_fact_data(pair, lang) for pair in found.unknown_facts],
            "checks": [_check_data(pair, lang) for pair in found.unknown_checks],
        },
        "same": {"facts": found.same_facts, "checks": found.same_checks},
    }


def _host_data(host: HostReport) -> dict[str, Any]:
    report = host.report
    return {"host": redacted(host.label), "source": redacted(host.source), "started": report.started}


def _fact_data(pair: FactPair, lang: str) -> dict[str, Any]:
    return {"fact": pair.name, "left": _value_data(pair.left, lang), "right": _value_data(pair.right, lang)}


def _value_data(value: Value, lang: str) -> dict[str, Any]:
    return {
        "value": None if value.text is None else redacted(value.text),
        "unknown": None if value.reason is None else redacted(value.reason.to(lang)),
    }


def _check_data(pair: CheckPair, lang: str) -> dict[str, Any]:
    return {
        "id": pair.check.id,
        "name": pair.check.name,
        "title": pair.check.title.to(lang),
        "severity": pair.severity.value,
        "left": _side_data(pair.left, lang),
        "right": _side_data(pair.right, lang),
    }


def _side_data(side: Side, lang: str) -> dict[str, Any]:
    return {"outcome": side.outcome.value, "texts": [redacted(text.to(lang)) for text in side.texts]}
