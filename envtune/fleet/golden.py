"""The golden values of a policy against the facts of many hosts, waivers applied: POL001 from a store."""

from __future__ import annotations

from typing import Iterable, Mapping, Optional, Sequence

from envtune import expect
from envtune.audit.waivers import waive
from envtune.fleet.store.read import Store
from envtune.messages import Bilingual, Literal, Message, Text
from envtune.model import Check, Evidence, Finding, Outcome, Reading
from envtune.policy.golden import ID
from envtune.records import NamedTuple


class GoldenRow(NamedTuple):
    """Hosts on which a fact differs from the policy (fail), is unknown, or is accepted (waived)."""

    fact: str
    expected: Text
    outcome: Outcome
    found: Text
    hosts: tuple[str, ...]


def against_policy(
    store: Store, checks: Sequence[Check], only: Optional[Iterable[str]] = None
) -> tuple[GoldenRow, ...]:
    """Return the collected hosts that do not have the golden values among these checks."""
    wanted = None if only is None else set(only)
    hosts = {host.id: host for host in store.hosts() if host.is_current and (wanted is None or host.name in wanted)}
    runs = store.runs()
    golden = {str(check.arguments.get("name")): check for check in checks if check.id == ID}
    if not golden:
        return ()
    texts = store.texts()
    found: dict[tuple[str, Outcome, str, str], tuple[GoldenRow, list[str]]] = {}
    for row in store.value_rows(golden.__contains__):
        check, value = golden[row.name], None if row.value is None else texts[row.value][0]
        why = Bilingual(*texts[row.reason]) if row.reason is not None else None
        for host in (hosts[number] for number in row.hosts if number in hosts):
            finding = _judged(check, value, why, host.name, runs[host.seen or 0].started)
            if finding is not None:
                actual = finding.actual or finding.reason or Message("no reason given")
                key = (row.name, finding.outcome, actual.en, actual.zh)
                entry = GoldenRow(row.name, expect.describe(check.expect), finding.outcome, actual, ())
                found.setdefault(key, (entry, []))[1].append(host.name)
    order = (Outcome.FAIL, Outcome.UNKNOWN, Outcome.WAIVED)
    rows = [entry._replace(hosts=tuple(names)) for entry, names in found.values()]
    return tuple(sorted(rows, key=lambda row: (order.index(row.outcome), row.fact, -len(row.hosts))))


def _judged(check: Check, value: Optional[str], reason: Optional[Text], host: str, now: float) -> Optional[Finding]:
    """Return the finding of a fact that is not as it should be, waived or not; None if it is."""
    subject = str(check.arguments["name"])
    if value is None:
        finding = Finding(check, Outcome.UNKNOWN, check.severity, subject, None, None, reason, Evidence(""))
    elif expect.misses(check.expect, [Reading(subject, value, Evidence(""))]):
        finding = Finding(check, Outcome.FAIL, check.severity, subject, Literal(value), None, None, Evidence(""))
    else:
        return None
    return waive((finding,), check.waivers, host, now)[0] if check.waivers else finding


def exit_code(rows: Sequence[GoldenRow]) -> int:
    """Return 1 if a host differs, 3 if a fact is unknown, else 0."""
    outcomes = {row.outcome for row in rows}
    return 1 if Outcome.FAIL in outcomes else 3 if Outcome.UNKNOWN in outcomes else 0


def by_fact(rows: Iterable[GoldenRow]) -> Mapping[str, list[GoldenRow]]:
    """Return the rows of each fact."""
    found: dict[str, list[GoldenRow]] = {}
    for row in rows:
        found.setdefault(row.fact, []).append(row)
    return found
