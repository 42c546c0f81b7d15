"""Waivers of a site's policy: a finding stays, with the reason, but no longer counts; an expired waiver is reported."""

from __future__ import annotations

from typing import Iterable, Iterator, Optional, Sequence

from envtune.messages import Message, Text, clauses
from envtune.model import Finding, Outcome, Waiver
from envtune.policy.dates import date_of, is_expired
from envtune.policy.patterns import matches, matches_host
from envtune.ranges import join_subjects, single_subjects


def waive(findings: Iterable[Finding], waivers: Sequence[Waiver], host: str, now: float) -> tuple[Finding, ...]:
    """Return the findings of one check, marked as waived where a waiver applies; `now` in seconds since the epoch.

    A finding about several subjects becomes one for each waiver and one for the rest.
    """
    today = date_of(now)
    here = [waiver for waiver in waivers if matches_host(waiver.hosts, host)]
    return tuple(one for finding in findings for one in _waived(finding, here, today))


def _waived(finding: Finding, waivers: Sequence[Waiver], today: str) -> Iterator[Finding]:
    waivers = [waiver for waiver in waivers if _covers(waiver, finding.outcome)]
    if not waivers:
        yield finding
        return
    groups: dict[Optional[Waiver], list[str]] = {}
    for subject in _subjects(finding.subject):
        groups.setdefault(_waiver_of(subject, waivers, today), []).append(subject)
    for waiver, subjects in groups.items():
        about = finding if len(groups) == 1 else finding._replace(subject=join_subjects(subjects))
        yield about if waiver is None else _with(about, waiver, today)


def _covers(waiver: Waiver, outcome: Outcome) -> bool:
    return outcome is Outcome.FAIL or (outcome is Outcome.UNKNOWN and waiver.unknown)


def _subjects(joined: str) -> Iterator[str]:
    """Yield the single names; a range that is too long to expand is yielded unchanged."""
    for part in joined.split(", "):
        first, *single = single_subjects(part)
        yield from single or [first]


def _waiver_of(subject: str, waivers: Sequence[Waiver], today: str) -> Optional[Waiver]:
    """Return the waiver in force for a subject, else one that has expired."""
    fitting = [waiver for waiver in waivers if matches(waiver.subject, subject)]
    return next((waiver for waiver in fitting if not is_expired(waiver, today)), fitting[0] if fitting else None)


def _with(finding: Finding, waiver: Waiver, today: str) -> Finding:
    if is_expired(waiver, today):
        return finding._replace(waiver=waiver, reason=_both(finding.reason, expired_text(waiver)))
    reason = _both(finding.reason, waived_text(waiver))
    return finding._replace(outcome=Outcome.WAIVED, waiver=waiver, reason=reason, commands=())


def _both(reason: Optional[Text], more: Text) -> Text:
    return more if reason is None else clauses([reason, more])


def waived_text(waiver: Waiver) -> Text:
    """Return who waives it until when, and why."""
    return Message(
        "waived until {expires} by {owner}: {reason}",
        expires=waiver.expires,
        owner=waiver.owner,
        reason=waiver.reason,
    )


def expired_text(waiver: Waiver) -> Text:
    """Return the text that it is no longer waived, and whom to ask."""
    return Message(
        "the waiver expired on {expires} (owner: {owner}; reason: {reason})",
        expires=waiver.expires,
        owner=waiver.owner,
        reason=waiver.reason,
    )
