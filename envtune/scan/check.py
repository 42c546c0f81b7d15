"""Check the jobs of launch files with the checks of the catalog: the same as for a host's own job."""

from __future__ import annotations

import re
from typing import Iterable, Iterator, Optional, Sequence

from envtune.audit import examine
from envtune.context.open import Expectations
from envtune.errors import Elsewhere, host_error_text
from envtune.messages import Message, Text
from envtune.model import Check, Finding, Outcome
from envtune.records import NamedTuple
from envtune.scan.job_host import UNREAD, UnreadHost, job_context
from envtune.scan.model import Found, Job, Jobs, split_place

SHOWN = (Outcome.FAIL, Outcome.UNKNOWN, Outcome.WAIVED, Outcome.ERROR)
_PROBES = "environment."  # the checks that read the environment of the job


class Rules(NamedTuple):
    """The checks for launch files."""

    checks: Sequence[Check]
    expectations: Expectations
    host: UnreadHost


def fitting(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the checks that only depend on the environment of a job, not on the host."""
    return tuple(check for check in checks if check.probe.startswith(_PROBES) and "ascend" not in check.applies)


class Findings(NamedTuple):
    """Findings about a launch file; ids of the checks that pass, and of those that also need the job's host."""

    found: tuple[Found, ...]
    passed: tuple[str, ...]
    need_host: tuple[str, ...]


def findings_of(path: str, jobs: Jobs, rules: Rules) -> Findings:
    """Return the findings about everything that a launch file starts."""
    need_host: dict[str, None] = {}
    found: dict[tuple[object, ...], Found] = {}
    passed: dict[str, None] = {}
    for job in jobs.jobs:
        context = job_context(job.environment, rules.host, rules.expectations)
        for check in rules.checks:
            for finding in examine(check, context):
                if finding.outcome is Outcome.PASS:
                    passed[check.id] = None
                elif finding.outcome is Outcome.UNKNOWN and _needs_host(finding, job):
                    need_host[check.id] = None
                elif finding.outcome in SHOWN:
                    for one in _located(finding, job, path):
                        found.setdefault(key_of(one), one)
    rows = tuple(_covered_once(list(_strongest(found.values()))))
    failed = {*need_host, *(one.finding.id for one in rows)}
    return Findings(rows, tuple(id_ for id_ in passed if id_ not in failed), tuple(need_host))


def _needs_host(finding: Finding, job: Job) -> bool:
    """Return whether something is unknown only because the job's host was not read."""
    names = re.split(", | / ", finding.subject)
    unknown = any(name in job.environment.unknown for name in names)
    known = any(name in (job.environment.variables or ()) for name in names)
    return (known and not unknown) or _is_about_host(finding.reason)


def _is_about_host(reason: Optional[Text]) -> bool:
    if not isinstance(reason, Message):
        return False
    return reason in (UNREAD, host_error_text(Elsewhere(str(reason.fields.get("path", ""))))) or any(
        _is_about_host(field) for field in reason.fields.values() if isinstance(field, Text)
    )


def _covered_once(rows: Sequence[Found]) -> Iterator[Found]:
    """Mark findings of a check that covers others if one of those has the same finding on the same line."""
    by_place: dict[tuple[str, int, Outcome], list[Found]] = {}
    for row in rows:
        by_place.setdefault((row.path, row.line, row.finding.outcome), []).append(row)
    for row in rows:
        covered = {one.check for one in row.finding.check.covers}
        names = {row.finding.subject, ""}
        alike = by_place[row.path, row.line, row.finding.outcome]
        covered_by = (one.finding.id for one in alike if one.finding.id in covered and one.finding.subject in names)
        yield row._replace(covered_by=next(covered_by, ""))


def key_of(found: Found) -> tuple[object, ...]:
    """Return the key by which two findings are the same: file, line and text."""
    finding = found.finding
    said = finding.actual.en if finding.outcome is Outcome.FAIL and finding.actual is not None else ""
    return found.path, found.line, finding.id, finding.subject, finding.outcome, said


def _strongest(found: Iterable[Found]) -> Iterator[Found]:
    """Leave out what is unknown for one job if another shows that the same line is wrong."""
    rows = list(found)
    wrong = {(row.path, row.line, row.finding.id) for row in rows if row.finding.outcome is not Outcome.UNKNOWN}
    for row in rows:
        if row.finding.outcome is not Outcome.UNKNOWN or (row.path, row.line, row.finding.id) not in wrong:
            yield row


def _located(finding: Finding, job: Job, path: str) -> Iterator[Found]:
    """Yield a finding for each line it is about; one about several variables is split."""
    subjects = [name for name in finding.subject.split(", ") if name in job.environment.places]
    if len(subjects) > 1:
        for name in subjects:
            file, line = split_place(job.environment.places[name])
            yield Found(file, line, job.name, finding._replace(subject=name))
        return
    source = finding.evidence.source
    place = source if isinstance(source, str) else ""
    if not split_place(place)[1] and subjects:
        place = job.environment.places[subjects[0]]
    file, line = split_place(place)
    if not line:
        file, line = split_place(job.place)
    yield Found(file or path, line, job.name, finding)
