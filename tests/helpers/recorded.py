"""The recorded hosts of tests/hosts: assembled from published formats of real files, no one machine's copy.

A host file is a snapshot mapping in the short form of the catalog's examples; `like:` names another host file or a
shared example.
"""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path
from typing import Any, Callable, Mapping

from envtune import catalog
from envtune.audit import audit
from envtune.audit.remedies import with_refusals
from envtune.catalog.examples import example_data
from envtune.context.open import describe_target, open_context, open_host, recorded_options
from envtune.fix.fixable import find_fixes
from envtune.host import Host
from envtune.job.target import TargetOptions
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
def _data(name: str) -> bytes:
    return pickle.dumps(resolve(name))


def resolve(name: str) -> dict[str, Any]:
    """The full snapshot mapping of a host, everything it is `like` merged in."""
    return example_data({"like": name}, _source)


def host_data(name: str) -> dict[str, Any]:
    """A copy that a test may change."""
    data: dict[str, Any] = pickle.loads(_data(name))
    return data


@cache
def catalogue() -> catalog.Catalogue:
    """The shipped catalog, loaded once per test process."""
    return catalog.load()


@cache
def recorded_report(name: str) -> Report:
    """The report on a recorded host as it is."""
    return report(host_data(name))


KEPT = ROOT / "tests" / "contracts"


def kept_names() -> tuple[str, ...]:
    """The snapshots that an older envtune took (tests/test_contracts.py)."""
    return tuple(sorted(f"kept-{path.name[: -len('.tar.gz')]}" for path in KEPT.glob("*.tar.gz")))


@cache
def kept_report(name: str) -> Report:
    """The report on one of them, as `envtune check --snapshot` makes it."""
    path = KEPT / f"{name[len('kept-') :]}.tar.gz"
    return report_on(open_host(path), TargetOptions())._replace(snapshot=path.name)


def judge(data: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Every finding on a recorded host."""
    return report(data).findings


def report(data: Mapping[str, Any], selected: tuple[str, ...] = ()) -> Report:
    """The report on a recorded host, without the time it took."""
    return report_on(SnapshotHost(data), recorded_options(data.get("target") or {}), selected)


def report_on(host: Host, options: TargetOptions, selected: tuple[str, ...] = ()) -> Report:
    context = open_context(host, options)
    findings = audit(
        [c for c in catalogue().checks if (c.id in selected if selected else c.status == "stable")], context
    )
    facts = tuple(context.facts[name] for name in context.facts.names())
    fixes = find_fixes(catalogue().playbooks, context, [f for f in findings if f.outcome is Outcome.FAIL])
    found = with_refusals(findings, fixes.refused)
    target = describe_target(context.target)
    started = "2026-01-01T00:00:00Z"
    return Report(host.name, started, 0.0, target, facts, found, fixes.checks, elsewhere=fixes.elsewhere)


Change = Callable[[dict[str, Any]], None]


def verdicts(findings: tuple[Finding, ...]) -> set[tuple[str, str, str]]:
    """What a report says, as a set: (check id, outcome, subject); who passed is not a verdict of its own."""
    return {(f.id, f.outcome.value, "" if f.outcome is Outcome.PASS else f.subject) for f in findings}


def flipped(before: tuple[Finding, ...], after: tuple[Finding, ...]) -> set[str]:
    """The ids of the checks that say something else now."""
    return {row[0] for row in verdicts(before) ^ verdicts(after)}
