"""checks x host -> findings. Never raises, never hangs: a broken check is an `error`, a hung one `unknown`.

Probes and facts are read on a worker thread with a deadline. A worker that does not return (a read stuck in the kernel)
is abandoned and the next check gets a new one, so a hung check affects only itself.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Callable, Iterable, Iterator, Mapping, Optional, Sequence, Union

from envtune import expect
from envtune.audit.applicability import excluded, surely_excluded
from envtune.audit.remedies import commands_for, with_refusals
from envtune.catalog import Catalogue, load
from envtune.catalog import select as select_checks
from envtune.context import Context
from envtune.context.open import NO_EXPECTATIONS, UNNAMED, Expectations, describe_target, open_context, resolve_target
from envtune.context.registry import find_probe, probe_unit
from envtune.context.worker import Worker, no_answer
from envtune.errors import (
    NO_MEMORY,
    Denied,
    HostError,
    NotApplicable,
    Undetermined,
    host_error_text,
    internal_error_text,
    long_number_text,
)
from envtune.host import Host, LocalHost
from envtune.job.target import Target, TargetOptions
from envtune.messages import Message, Text
from envtune.model import Check, Command, Evidence, Fact, Finding, Fixes, Outcome, Reading, Report, Severity, Source
from envtune.ranges import NumberTooLongError, join_subjects
from envtune.records import NamedTuple, expression

Progress = Callable[[Check], None]


class TargetRead(NamedTuple):
    """The job was read; `target` as a report shows it."""

    target: Mapping[str, Source]


class Began(NamedTuple):
    """A check begins."""

    check: Check


class Found(NamedTuple):
    """The findings of the check that began last."""

    findings: tuple[Finding, ...]


class FactsRead(NamedTuple):
    """Every fact about the host."""

    facts: tuple[Fact, ...]


class FixesRead(NamedTuple):
    """What `envtune fix` would do."""

    fixes: Fixes


Event = Union[TargetRead, Began, Found, FixesRead, FactsRead]
FindFixes = Callable[[Context, Sequence[Finding]], Fixes]  # fix.fixable: this layer knows no plan
MoreFacts = Callable[[Context], "tuple[Fact, ...]"]

_DIGITS = expression(r"\d+")
EVIDENCE_LIMIT = 2000  # characters of raw text kept with a finding
FACT_DEADLINE = 20.0  # seconds, as for a check


def check(
    host: Optional[Host] = None,
    target: TargetOptions = UNNAMED,
    *,
    catalogue: Optional[Catalogue] = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    tags: Sequence[str] = (),
    severity: Severity = Severity.INFO,
    progress: Optional[Progress] = None,
) -> Report:
    """Check a host and return the report.

    Args:
        host: The host to read; None means this machine. `envtune.open_snapshot(path)` opens a recorded one.
        target: The job whose Python and environment are checked. Without one it is the job a snapshot was taken for,
            or what this shell would start.
        catalogue: What to check; None means the shipped catalog with the site's changes.
        select: Ids, id prefixes (`CPU`), names or tags of checks; nothing means all stable checks.
        ignore: Checks to leave out, named in the same way.
        tags: Only checks with one of these tags.
        severity: Only checks of this severity and above.
        progress: Called with each check before it runs.

    Returns:
        The facts about the host and the findings, in the order of the catalog. Reading never fails as a whole: what
        could not be read becomes a finding with the outcome `unknown`, a bug in envtune one with the outcome `error`.

    Raises:
        UsageError: `select`, `ignore` or `tags` name nothing, or `target` names what is not on the host.
        CatalogError: A file of the catalog is wrong.

    Example:
        >>> import envtune
        >>> report = envtune.check(select=["SYS"])
        >>> [finding.id for finding in report.findings if finding.outcome == "fail"]  # doctest: +SKIP
        ['SYS009']
    """
    catalogue = catalogue or load()
    checks = select_checks(catalogue.checks, select, ignore, tags, severity)
    return check_host(LocalHost() if host is None else host, target, checks, progress, catalogue.expectations)


def check_host(
    host: Host,
    target: TargetOptions,
    checks: Iterable[Check],
    progress: Optional[Progress] = None,
    expectations: Expectations = NO_EXPECTATIONS,
    find_fixes: Optional[FindFixes] = None,
    more_facts: Optional[MoreFacts] = None,
) -> Report:
    """Return the report of these checks; raises UsageError when `target` names something that is not on the host.

    The result of `more_facts`, which never raises, is appended to its facts.
    """
    watched = progress is not None
    found = events(host, target, checks, expectations, find_fixes, more_facts, watched)
    return report_of(host, found, progress)


def events(
    host: Host,
    target: TargetOptions,
    checks: Iterable[Check],
    expectations: Expectations = NO_EXPECTATIONS,
    find_fixes: Optional[FindFixes] = None,
    more_facts: Optional[MoreFacts] = None,
    watched: bool = True,
) -> Iterator[Event]:
    """Check a host and yield the parts of a report: the target, each check and its findings, fixes, the facts.

    Without a watcher, the checks are yielded when all are done.
    """
    context = open_context(host, resolve_target(host, target), expectations)
    yield TargetRead(describe_target(context.target))
    findings: list[Finding] = []
    for event in audited(checks, context, watched):
        if isinstance(event, Found):
            findings.extend(event.findings)
        yield event
    if find_fixes is not None:
        yield from _fixes(find_fixes, context, findings)
    yield FactsRead(read_facts(context) + (more_facts(context) if more_facts is not None else ()))


def _fixes(find_fixes: FindFixes, context: Context, findings: Sequence[Finding]) -> Iterator[FixesRead]:
    """Yield what can be fixed; nothing if that is not known in time, or if envtune itself fails."""
    worker = Worker()
    try:
        found = worker.call(partial(find_fixes, context, findings), FACT_DEADLINE)
    except Exception:  # the report only loses its marks
        found = None
    worker.end()
    if found is not None:
        yield FixesRead(found)


def report_of(host: Host, judged: Iterable[Event], progress: Optional[Progress] = None) -> Report:
    """Return the report built from the events."""
    began, clock = time.time(), time.monotonic()
    target: Mapping[str, Source] = {}
    facts: tuple[Fact, ...] = ()
    findings: list[Finding] = []
    fixes = Fixes(None)
    for event in judged:
        if isinstance(event, Began) and progress is not None:
            progress(event.check)
        elif isinstance(event, Found):
            findings.extend(event.findings)
        elif isinstance(event, TargetRead):
            target = event.target
        elif isinstance(event, FixesRead):
            fixes = event.fixes
        elif isinstance(event, FactsRead):
            facts = event.facts
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began if host.live else host.now))
    found = with_refusals(findings, fixes.refused)
    elsewhere = () if fixes.checks is None else fixes.elsewhere
    return Report(host.name, started, time.monotonic() - clock, target, facts, found, fixes.checks, elsewhere=elsewhere)


def audit(checks: Iterable[Check], context: Context, progress: Optional[Progress] = None) -> tuple[Finding, ...]:
    """Return every finding of every check, in the order of the checks; at least one finding per check."""
    findings: list[Finding] = []
    for event in audited(checks, context, progress is not None):
        if isinstance(event, Found):
            findings.extend(event.findings)
        elif progress is not None:
            progress(event.check)
    return tuple(findings)


def audited(checks: Iterable[Check], context: Context, watched: bool = True) -> Iterator[Union[Began, Found]]:
    """Yield each check when it begins, and its findings; without a watcher, when all checks are done."""
    if not watched:
        yield from _audited_at_once(tuple(checks), context)
        return
    worker = Worker()
    for check in checks:
        yield Began(check)
        if not check.severity_by and surely_excluded(check.applies, context.facts):
            yield Found(examine(check, context))  # reads nothing that could hang
            continue
        found = worker.call(partial(examine, check, context), check.deadline)
        yield Found(_answered(check, found))
    worker.end()


def _audited_at_once(checks: Sequence[Check], context: Context) -> Iterator[Union[Began, Found]]:
    worker = Worker()
    answers = worker.call_each([(partial(examine, check, context), check.deadline) for check in checks])
    worker.end()
    for check, found in zip(checks, answers):
        yield Began(check)
        yield Found(_answered(check, found))


def _answered(check: Check, found: Optional[tuple[Finding, ...]]) -> tuple[Finding, ...]:
    return (unanswered(check, no_answer(check.deadline)),) if found is None else found


def read_facts(context: Context) -> tuple[Fact, ...]:
    """Return every fact; one that hangs is unknown."""
    worker, names = Worker(), context.facts.names()
    facts = worker.call_each([(partial(context.facts.__getitem__, name), FACT_DEADLINE) for name in names])
    worker.end()
    return tuple(fact or Fact(name, None, "", no_answer(FACT_DEADLINE)) for name, fact in zip(names, facts))


def examine(check: Check, context: Context) -> tuple[Finding, ...]:
    """Return the findings of one check; any exception becomes an outcome.

    For root no finding says that privileges are missing: what root cannot read is denied by a security module or a file
    server.
    """
    found = _examined(check, context)
    if not context.host.euid:
        found = tuple(finding._replace(needs_privilege=False) for finding in found)
    if not check.waivers:
        return found
    from envtune.audit.waivers import waive

    return waive(found, check.waivers, context.host.name, context.host.now)


def _examined(check: Check, context: Context) -> tuple[Finding, ...]:
    severity = check.severity
    try:
        severity = severity_of(check, context)  # for findings that are not about one value
        check = _noted(check, context)
        fact, reason, known = excluded(check.applies, context.facts)
        if fact is not None:
            outcome = Outcome.NOTAPPLICABLE if known else Outcome.UNKNOWN
            return (_single(check, severity, outcome, reason, Evidence(fact.source, fact.value or "")),)
        return _judge(check, severity, _readings(check, context), context)
    except NotApplicable as verdict:
        evidence = Evidence(verdict.source, _cut(verdict.text))
        return (_single(check, severity, Outcome.NOTAPPLICABLE, verdict.reason, evidence),)
    except Undetermined as verdict:
        evidence = Evidence(verdict.source, _cut(verdict.text))
        return (_single(check, severity, Outcome.UNKNOWN, verdict.reason, evidence, verdict.needs_privilege),)
    except HostError as error:
        evidence = Evidence(error.path, str(error))
        needs_privilege = isinstance(error, Denied)
        return (_single(check, severity, Outcome.UNKNOWN, host_error_text(error), evidence, needs_privilege),)
    except MemoryError:
        return (unanswered(check, NO_MEMORY),)
    except NumberTooLongError as error:
        return (_single(check, severity, Outcome.UNKNOWN, long_number_text(error), Evidence(check.probe, str(error))),)
    except Exception as error:  # a bug in envtune: report it and continue with the other checks
        return (
            _single(check, severity, Outcome.ERROR, internal_error_text(error), Evidence(check.probe, repr(error))),
        )


def _noted(check: Check, context: Context) -> Check:
    """Return the check, marked as a note if it is only a note on this host."""
    is_note = check.note_when and excluded(check.note_when, context.facts)[0] is None
    return check._replace(note=True) if is_note else check


def _readings(check: Check, context: Context) -> Sequence[Reading]:
    """Return the probe's readings, without those about variables that a launch file leaves to its caller.

    Raises NotApplicable if no reading remains, and whatever the probe raises.
    """
    environment = context.target.environment
    try:
        readings = tuple(find_probe(check.probe)(context, **check.arguments))
    except Undetermined as verdict:
        if _is_left_open(verdict.reason, context.target):
            raise NotApplicable(verdict.reason, verdict.source, verdict.text) from None
        raise
    own = [reading for reading in readings if not _is_left_open(reading.reason, context.target)]
    if readings and not own and environment.unknown_by_default is not None:
        raise NotApplicable(environment.unknown_by_default, environment.description)
    return own


def _is_left_open(reason: Optional[Text], target: Target) -> bool:
    return target.environment.left_open and reason is not None and reason is target.environment.unknown_by_default


def severity_of(check: Check, context: Context, value: object = None) -> Severity:
    """Return the severity on this host (`severity_by` may lower or raise it by a fact, or by the value read)."""
    for row in check.severity_by:
        if row.value in (None, value) and excluded(row.when, context.facts)[0] is None:
            return row.severity
    return check.severity


def _failed(check: Check, context: Context, group: Sequence[Reading]) -> Finding:
    severity = severity_of(check, context, group[0].value)
    return _finding(check, severity, Outcome.FAIL, group, commands_for(check, context, group))


def _judge(check: Check, severity: Severity, readings: Sequence[Reading], context: Context) -> tuple[Finding, ...]:
    known = [reading for reading in readings if reading.reason is None]
    unknown = [reading for reading in readings if reading.reason is not None]
    misses = expect.misses(check.expect, known)
    findings = [_failed(check, context, group) for group in _groups(check, misses)]
    plain = check._replace(commands=(), commands_by=())  # what repairs it is shown with the failure
    findings += [
        _finding(check, severity, Outcome.UNKNOWN, group, commands_for(plain, context, group[:1]))
        for group in _alike(unknown)
    ]
    if findings:
        return tuple(findings)
    if not known:
        reason = Message("the probe found nothing to check")
        return (_single(check, severity, Outcome.UNKNOWN, reason, Evidence(check.probe)),)
    return tuple(_finding(check, severity, Outcome.PASS, group) for group in _groups(check, known))


def _groups(check: Check, readings: Sequence[Reading]) -> list[list[Reading]]:
    """Group readings that differ only in their subject."""
    groups: dict[tuple[str, str], list[Reading]] = {}
    usual = ""  # what is expected if the reading itself does not say: the same for hundreds of CPUs
    for reading in readings:
        expected = usual if reading.expected is None else ""
        if not expected:
            expected = expect.expected_value(reading, check.expect, check.expected).en
            usual = expected if reading.expected is None else usual
        groups.setdefault((expect.actual_value(reading).en, expected), []).append(reading)
    return list(groups.values())


def _alike(readings: Sequence[Reading]) -> list[list[Reading]]:
    """Group readings that are unknown for reasons that differ only in a number in a path."""
    groups: dict[tuple[str, bool], list[Reading]] = {}
    for reading in readings:
        reason = reading.reason.en if reading.reason is not None else ""
        groups.setdefault((_DIGITS.sub("#", reason), reading.needs_privilege), []).append(reading)
    return list(groups.values())


def _finding(
    check: Check, severity: Severity, outcome: Outcome, group: Sequence[Reading], commands: tuple[Command, ...] = ()
) -> Finding:
    first = group[0]
    return Finding(
        check,
        outcome,
        severity,
        join_subjects([r.subject for r in group]),
        expect.actual_value(first) if first.reason is None else first.shown,
        expect.expected_value(first, check.expect, check.expected),
        first.reason,
        Evidence(first.evidence.source, _cut(first.evidence.text)),
        first.needs_privilege,
        commands,
    )


def _single(
    check: Check,
    severity: Severity,
    outcome: Outcome,
    reason: Optional[Text],
    evidence: Evidence,
    needs_privilege: bool = False,
) -> Finding:
    expected = check.expected or expect.describe(check.expect, expect.in_unit(probe_unit(check.probe)))
    return Finding(check, outcome, severity, "", None, expected, reason, evidence, needs_privilege)


def _cut(text: str) -> str:
    return text if len(text) <= EVIDENCE_LIMIT else text[:EVIDENCE_LIMIT] + " [...]"


def unanswered(check: Check, reason: Text) -> Finding:
    """Return the finding of a check that did not finish."""
    return _single(check, check.severity, Outcome.UNKNOWN, reason, Evidence(check.probe))


def summary(findings: Iterable[Finding]) -> Mapping[str, int]:
    """Return the number of findings per outcome, with every outcome as a key."""
    counts = {outcome.value: 0 for outcome in Outcome}
    for finding in findings:
        counts[finding.outcome.value] += 1
    return counts
