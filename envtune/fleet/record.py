"""What is stored about a host: its facts, the outcome of each check and why, as plain text in both languages."""

from __future__ import annotations

import json
from typing import Iterable, Mapping, Optional, Sequence

from envtune.audit.settings import ADDRESSES, PACKAGE, PACKAGES
from envtune.audit.subjects import subject_text
from envtune.audit.verdict import verdict, worst_outcome
from envtune.compare.hosts import HostReport, labelled, without_own
from envtune.fleet.collected import Collection
from envtune.messages import Message, Text
from envtune.model import Fact, Finding, Outcome, Report
from envtune.records import NamedTuple
from envtune.trust.characters import visible

NOTE = "note"  # of a check that failed but is not a problem
MAX_TEXT = 400  # characters of a finding
MAX_VALUE = 4096  # characters of a fact
MAX_PACKAGES = 1 << 17  # characters of all packages
MAX_FACTS = 1000
MAX_SUBJECTS = 8  # of one check
_SAID = (Outcome.FAIL, Outcome.ERROR, Outcome.UNKNOWN, Outcome.WAIVED)

Both = tuple[str, str]  # the same in English and Chinese


class FactRecord(NamedTuple):
    """A fact: its value, the value without what identifies the host, and why it is unknown."""

    value: Optional[str]
    own: Optional[str] = None
    reason: Optional[Both] = None


class CheckRecord(NamedTuple):
    """The overall outcome of a check on the host; `said` is what was found, or why nothing could be."""

    outcome: str  # an Outcome, or NOTE
    severity: str
    said: Optional[Both] = None


class HostRecord(NamedTuple):
    """A host, as one collection found it. Without checks if it was not collected; `detail` says why."""

    host: str
    collection: Collection
    detail: str = ""
    seconds: float = 0.0
    verdict: str = ""
    taken: str = ""
    facts: Mapping[str, FactRecord] = {}
    checks: Mapping[str, CheckRecord] = {}


def record_of(host: str, report: Report) -> HostRecord:
    """Return what is stored of a report."""
    named = labelled([(host, report)])[0]
    by_check: dict[str, list[Finding]] = {}
    for finding in report.findings:
        by_check.setdefault(finding.id, []).append(finding)
    return HostRecord(
        host,
        Collection.OK,
        verdict=verdict(report.findings, report.facts).value,
        taken=visible(report.started),
        facts=_facts(named),
        checks={identifier: _check(findings) for identifier, findings in by_check.items()},
    )


def _facts(named: HostReport) -> dict[str, FactRecord]:
    found = {fact.name: _fact(named, fact) for fact in named.report.facts if not fact.name.startswith(PACKAGE)}
    packages = {fact.name[len(PACKAGE) :]: fact.value for fact in named.report.facts if fact.name.startswith(PACKAGE)}
    if packages and PACKAGES not in found:
        text = json.dumps(packages, sort_keys=True, separators=(",", ":"))
        too_many = Message("too many Python packages to keep")
        found[PACKAGES] = (
            FactRecord(None, None, _both(too_many)) if len(text) > MAX_PACKAGES else FactRecord(text, text)
        )
    return dict(list(found.items())[:MAX_FACTS])


def _fact(named: HostReport, fact: Fact) -> FactRecord:
    if fact.value is None:
        return FactRecord(None, None, _both(fact.reason or Message("no reason given")))
    value = visible(fact.value)[:MAX_VALUE]
    return FactRecord(value, value if fact.name == ADDRESSES else visible(without_own(named, fact.value))[:MAX_VALUE])


def _check(findings: Sequence[Finding]) -> CheckRecord:
    outcome = worst_outcome(findings)
    decisive = [finding for finding in findings if finding.outcome is outcome]
    severity = max((finding.severity for finding in decisive), key=lambda one: one.rank)
    word = NOTE if outcome is Outcome.FAIL and decisive[0].check.note else outcome.value
    said = _both_of([_said(finding) for finding in decisive]) if outcome in _SAID else None
    return CheckRecord(word, severity.value, said)


def _said(finding: Finding) -> Optional[Text]:
    failed = finding.outcome is Outcome.FAIL
    text = finding.actual if failed or finding.reason is None else finding.reason
    if text is None or not finding.subject:
        return text
    return Message("{subject}: {text}", subject=subject_text(finding.subject), text=text)


def _both(text: Text) -> Both:
    return visible(text.en)[:MAX_TEXT], visible(text.zh)[:MAX_TEXT]


def _both_of(texts: Iterable[Optional[Text]]) -> Optional[Both]:
    found = [_both(text) for text in texts if text is not None]
    if not found:
        return None
    more = f"; +{len(found) - MAX_SUBJECTS}" if len(found) > MAX_SUBJECTS else ""
    shown, marks = found[:MAX_SUBJECTS], Message("; ")
    return marks.en.join(row[0] for row in shown) + more, marks.zh.join(row[1] for row in shown) + more
