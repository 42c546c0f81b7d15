"""The recorded hosts of tests/hosts: assembled from published formats of real files, no one machine's copy.

A host file is a snapshot mapping in the short form of the catalogue's examples; `like:` names another host file or a
shared example.
"""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any, Callable, Mapping

from envtune import catalog
from envtune.audit import audit
from envtune.audit.remedies import with_refusals
from envtune.catalog.examples import example_data
from envtune.context.open import describe_target, open_context, recorded_options
from envtune.fix.fixable import find_fixes
from envtune.model import Finding, Outcome, Report
from envtune.snapshot.host import SnapshotHost
from helpers.shipped import parsed

ROOT = Path(__file__).resolve().parents[2]
HOSTS = ROOT / "tests" / "hosts"
SHARED = ROOT / "checks" / "examples"


def host_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in HOSTS.glob("[!_]*.yaml")))


@cache
def _source(name: str) -> Mapping[str, Any]:
    for folder in (HOSTS, SHARED):
        path = folder / f"{name}.yaml"
        if path.exists():
            data: Mapping[str, Any] = parsed(path)
            return data
    raise LookupError(name)


@cache
def _data(name: str) -> Mapping[str, Any]:
    return resolve(name)


def resolve(name: str) -> dict[str, Any]:
    """The full snapshot mapping of a host, everything it is `like` merged in."""
    return example_data({"like": name}, _source)


def host_data(name: str) -> dict[str, Any]:
    """A copy that a test may change."""
    return copy.deepcopy(dict(_data(name)))


@cache
def catalogue() -> catalog.Catalogue:
    """The shipped catalogue, loaded once per test process."""
    return catalog.load()


@cache
def recorded_report(name: str) -> Report:
    """The report on a recorded host as it is."""
    return report(host_data(name))


def judge(data: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Every finding on a recorded host."""
    return report(data).findings


def report(data: Mapping[str, Any], selected: tuple[str, ...] = ()) -> Report:
    """The report on a recorded host, without the time it took."""
    host = SnapshotHost(data)
    context = open_context(host, recorded_options(data.get("target") or {}))
    findings = audit(
        [c for c in catalogue().checks if (c.id in selected if selected else c.status == "stable")], context
    )
    facts = tuple(context.facts[name] for name in context.facts.names())
    fixes = find_fixes(catalogue().playbooks, context, [f for f in findings if f.outcome is Outcome.FAIL])
    found = with_refusals(findings, fixes.refused)
    target = describe_target(context.target)
    return Report(host.name, "2026-01-01T00:00:00Z", 0.0, target, facts, found, fixes.checks)


Change = Callable[[dict[str, Any]], None]


def verdicts(findings: tuple[Finding, ...]) -> set[tuple[str, str, str]]:
    """What a report says, as a set: (check id, outcome, subject); who passed is not a verdict of its own."""
    return {(f.id, f.outcome.value, "" if f.outcome is Outcome.PASS else f.subject) for f in findings}


def flipped(before: tuple[Finding, ...], after: tuple[Finding, ...]) -> set[str]:
    """The ids of the checks that say something else now."""
    return {row[0] for row in verdicts(before) ^ verdicts(after)}
