"""Render a comparison of several hosts as data, `envtune.comparison/1` (docs/schema/comparison.json)."""

from __future__ import annotations

from collections import Counter
from typing import Any, Iterable, Optional

from envtune.audit.verdict import Verdict, count_checks
from envtune.compare.comparison import CheckRow, Comparison, Group, HostRow
from envtune.compare.facts import FactRow
from envtune.compare.folding import fold
from envtune.compare.hosts import value
from envtune.messages import Text
from envtune.model import Severity
from envtune.report.redaction import redacted, redacted_data
from envtune.version import __version__

SCHEMA = "envtune.comparison/1"


def comparison_data(comparison: Comparison, lang: str) -> dict[str, Any]:
    """Return the comparison as plain data, its sentences in `lang`."""
    found = Counter(row.verdict for row in comparison.hosts)
    return {
        "schema": SCHEMA,
        "envtune": __version__,
        "verdict": comparison.verdict.value,
        "counts": {"hosts": len(comparison.hosts), **{word.value: found[word] for word in Verdict}},
        "hosts": [_host(row) for row in comparison.hosts],
        "groups": [_group(group, lang) for group in comparison.groups],
        "failures": [_check(row, lang) for row in comparison.failures],
        "unknown": [_check(row, lang) for row in comparison.unknown],
        "not_read": [
            {"source": redacted(unread.source), "reason": redacted(unread.reason.to(lang))}
            for unread in comparison.unread
        ],
    }


def _host(row: HostRow) -> dict[str, Any]:
    counts = count_checks(row.host.report.findings)
    return {
        "host": redacted(row.host.label),
        "source": redacted(row.host.source),
        "started": row.host.report.started,
        "verdict": row.verdict.value,
        "severities": {severity.value: count for severity, count in counts.severities.items()},
        "failed": list(row.failed),
        "unknown": list(row.unknown),
        "differs": {"facts": list(row.facts), "checks": list(row.few)},
    }


def _group(group: Group, lang: str) -> dict[str, Any]:
    """Return hosts that are compared with each other: which facts are the same, differ, or are not known of all."""
    traits = dict(zip(("npu", "arch", "os", "container", "vm"), group.kind.traits)) if group.kind is not None else {}
    first = group.hosts[0]
    alike = [row for row in group.rows if not row.differs and row.values]
    return {
        "kind": traits or None,
        "job": None if group.job is None else redacted(group.job.master),
        **_hosts(host.label for host in group.hosts),
        "same": redacted_data({row.name: value(first, row.name).text for row in alike if not row.unknown}),
        "differences": [_fact(row, lang) for row in group.differences],
        "unknown": [_fact(row, lang) for row in group.rows if row.unknown and not row.differs],
    }


def _fact(row: FactRow, lang: str) -> dict[str, Any]:
    return {
        "fact": row.name,
        "severity": row.severity.value,
        "majority": row.majority,
        "values": [
            {"value": None if shared.value is None else redacted(shared.value), **_hosts(shared.hosts)}
            for shared in row.values
        ],
        "unknown": [{"reason": redacted(reason.to(lang)), **_hosts(hosts)} for reason, hosts in row.unknown],
    }


def _check(row: CheckRow, lang: str) -> dict[str, Any]:
    return {
        "id": row.check.id,
        "name": row.check.name,
        "title": row.check.title.to(lang),
        "severity": row.severity.value,
        "by_severity": _by_severity(row),
        **_hosts(row.hosts),
        "differs": sorted(redacted(label) for label in row.few),
        "variants": [
            {
                "subject": redacted(variant.subject),
                "text": _to(variant.text, lang),
                **_hosts(host.label for host in variant.hosts),
            }
            for variant in row.variants
        ],
    }


def _by_severity(row: CheckRow) -> dict[str, list[str]]:
    """Return the hosts by the severity that the check has there, the worst first."""
    found = {
        severity.value: [redacted(label) for label in row.hosts if row.severities[label] is severity]
        for severity in reversed(Severity)
    }
    return {severity: labels for severity, labels in found.items() if labels}


def _hosts(labels: Iterable[str]) -> dict[str, Any]:
    """Return names of hosts one by one, and folded."""
    kept = list(labels)
    return {"hosts": [redacted(label) for label in kept], "folded": redacted(fold(kept))}


def _to(text: Optional[Text], lang: str) -> Optional[str]:
    return None if text is None else redacted(text.to(lang))
