"""Several hosts compared: facts in which they differ, checks that fail, and the result for each host."""

from __future__ import annotations

from typing import Iterable, Mapping, Optional, Sequence

from envtune.audit.verdict import Verdict, exit_code, verdict
from envtune.compare.facts import FactRow, fact_names, fact_rows, is_same_in_a_job
from envtune.compare.hosts import HostReport, Unread, without_own
from envtune.compare.kinds import Job, Kind, jobs, kinds
from envtune.messages import Text
from envtune.model import Check, Finding, Outcome, Severity
from envtune.records import NamedTuple

_UNKNOWN = (Outcome.UNKNOWN, Outcome.ERROR)


class Group(NamedTuple):
    """Hosts that are compared with each other, and the facts over them. `job` names the master of one job."""

    kind: Optional[Kind]
    job: Optional[Job]
    hosts: tuple[HostReport, ...]
    rows: tuple[FactRow, ...]

    @property
    def differences(self) -> tuple[FactRow, ...]:
        """The facts that are not the same on all hosts, what matters most first."""
        return tuple(sorted((row for row in self.rows if row.differs), key=lambda row: -row.severity.rank))


class Variant(NamedTuple):
    """The outcome of a check on some hosts: the subject, and what was found or why nothing could be."""

    subject: str
    text: Optional[Text]
    hosts: tuple[HostReport, ...]


class CheckRow(NamedTuple):
    """A check that fails, or is unknown, on some hosts; `few` are those that differ in it from most of their kind.

    `severity` is the highest on any of them, `severities` that on each.
    """

    check: Check
    severity: Severity
    hosts: tuple[str, ...]
    variants: tuple[Variant, ...]
    few: frozenset[str]
    severities: Mapping[str, Severity]


class HostRow(NamedTuple):
    """What a comparison says about one host: its verdict, failed and unknown checks, and facts that differ."""

    host: HostReport
    verdict: Verdict
    failed: tuple[str, ...]
    unknown: tuple[str, ...]
    facts: tuple[str, ...]  # facts for which most hosts of its kind or job have another value
    few: tuple[str, ...]  # those in `failed` that pass on most hosts of its kind


class Comparison(NamedTuple):
    """Several hosts, compared."""

    groups: tuple[Group, ...]  # by kind, the largest first; then jobs
    failures: tuple[CheckRow, ...]
    unknown: tuple[CheckRow, ...]
    hosts: tuple[HostRow, ...]
    unread: tuple[Unread, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of a host; not ready if hosts disagree, not sure if a snapshot was not checked."""
        found = {row.verdict for row in self.hosts}
        worst = max((row.severity.rank for row in self.differences), default=-1)
        if Verdict.NOT_READY in found or worst >= Severity.MEDIUM.rank:
            return Verdict.NOT_READY
        for none in (Verdict.NOTHING_CHECKED, Verdict.NO_NPU):
            if found <= {none}:
                return none
        if self.unread or found & {Verdict.NOT_SURE, Verdict.NOTHING_CHECKED, Verdict.NO_NPU}:
            return Verdict.NOT_SURE
        return Verdict.ADVICE if Verdict.ADVICE in found or worst >= Severity.LOW.rank else Verdict.READY

    @property
    def differences(self) -> tuple[FactRow, ...]:
        """The facts in which hosts of a kind or job differ."""
        return tuple(row for group in self.groups for row in group.differences)

    def exit_code(self, fail_on: Optional[Severity], strict: bool = False) -> int:
        """Return 1 for a finding or a difference at or above `fail_on`, 3 for what is unknown there, else 0.

        If `fail_on` is None it is always 0.
        """
        if fail_on is None:
            return 0
        codes = {exit_code(row.host.report.findings, fail_on, strict, row.host.report.facts) for row in self.hosts}
        if 1 in codes or any(row.severity.rank >= fail_on.rank for row in self.differences):
            return 1
        unknown = any(row.unknown and row.severity.rank >= fail_on.rank for group in self.groups for row in group.rows)
        return 3 if 3 in codes or self.unread or unknown else 0


def compare(hosts: Sequence[HostReport], unread: Sequence[Unread] = ()) -> Comparison:
    """Return what the hosts have in common and where they differ."""
    found = kinds(hosts)
    names = fact_names(hosts)
    groups = [Group(kind, None, kind.hosts, fact_rows(kind.hosts, names)) for kind in found]
    shared = tuple(name for name in names if is_same_in_a_job(name))
    groups += [Group(None, job, job.hosts, fact_rows(job.hosts, shared)) for job in jobs(found)]
    failures = _check_rows(hosts, found, (Outcome.FAIL,))
    unknown = _check_rows(hosts, found, _UNKNOWN)
    differing = _differing(groups)
    rows = tuple(_host_row(host, failures, unknown, differing.get(host.label, ())) for host in hosts)
    return Comparison(tuple(groups), failures, unknown, rows, tuple(unread))


def _differing(groups: Iterable[Group]) -> Mapping[str, tuple[str, ...]]:
    """Return, for each host, the facts in which it differs from most of the others."""
    found: dict[str, dict[str, None]] = {}
    for group in groups:
        for row in group.differences:
            for shared in row.minority:
                for label in shared.hosts:
                    found.setdefault(label, {})[row.name] = None
    return {label: tuple(names) for label, names in found.items()}


def _host_row(
    host: HostReport, failures: Iterable[CheckRow], unknown: Iterable[CheckRow], facts: tuple[str, ...]
) -> HostRow:
    failed = [row for row in failures if host.label in row.hosts]
    return HostRow(
        host,
        verdict(host.report.findings, host.report.facts),
        tuple(row.check.id for row in failed),
        tuple(row.check.id for row in unknown if host.label in row.hosts),
        facts,
        tuple(row.check.id for row in failed if host.label in row.few),
    )


def _check_rows(
    hosts: Sequence[HostReport], found: Sequence[Kind], outcomes: Sequence[Outcome]
) -> tuple[CheckRow, ...]:
    """Return the checks with one of these outcomes on any host, the most important first, then those few hosts have."""
    by_check: dict[str, list[tuple[HostReport, Finding]]] = {}
    order: dict[str, int] = {}
    for host in hosts:
        for finding in host.report.findings:
            order.setdefault(finding.id, len(order))
            if finding.outcome in outcomes and not finding.check.note:
                by_check.setdefault(finding.id, []).append((host, finding))
    rows = [_check_row(members, found) for members in by_check.values()]
    return tuple(sorted(rows, key=lambda row: (-row.severity.rank, not row.few, order[row.check.id])))


def _check_row(members: Sequence[tuple[HostReport, Finding]], found: Sequence[Kind]) -> CheckRow:
    labels = dict.fromkeys(host.label for host, _ in members)
    few: set[str] = set()
    for kind in found:
        own = [host.label for host in kind.hosts if host.label in labels]
        if 2 * len(own) < len(kind.hosts):
            few.update(own)
    severities: dict[str, Severity] = {}
    for host, finding in members:
        had = severities.setdefault(host.label, finding.severity)
        severities[host.label] = max(had, finding.severity, key=lambda one: one.rank)
    severity = max(severities.values(), key=lambda one: one.rank)
    return CheckRow(members[0][1].check, severity, tuple(labels), _variants(members), frozenset(few), severities)


def _variants(members: Iterable[tuple[HostReport, Finding]]) -> tuple[Variant, ...]:
    """Return what was found, grouping hosts where it is the same apart from host names; the largest group first."""
    alike: dict[tuple[str, str], tuple[Finding, dict[str, HostReport]]] = {}
    for host, finding in members:
        text = finding.actual if finding.outcome is Outcome.FAIL else finding.reason
        key = (without_own(host, finding.subject), "" if text is None else without_own(host, text.en))
        alike.setdefault(key, (finding, {}))[1][host.label] = host
    rows = (
        Variant(subject, first.actual if first.outcome is Outcome.FAIL else first.reason, tuple(hosts.values()))
        for (subject, _), (first, hosts) in alike.items()
    )
    return tuple(sorted(rows, key=lambda row: -len(row.hosts)))
