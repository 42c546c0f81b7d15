"""Answers about many hosts, from a store: which checks fail where, who differs, what changed, who is missing."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from itertools import chain
from operator import itemgetter
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence

from envtune.audit.settings import PACKAGE, PACKAGES, VARIABLE, VARIABLES
from envtune.compare.comparison import Group
from envtune.compare.facts import NAMES, FactRow, fact_row_of, is_same_in_a_job, title
from envtune.compare.hosts import HostReport
from envtune.compare.hosts import Value as CompareValue
from envtune.compare.hosts import value as value_of
from envtune.compare.kinds import jobs, kinds
from envtune.fleet.collected import Collection
from envtune.fleet.record import Both
from envtune.fleet.store.read import NOT_FINE, Change, HostRow, Run, Store, ValueRow
from envtune.messages import Bilingual, Message, Text
from envtune.model import Fact, Report, Severity
from envtune.records import NamedTuple

_NO_REPORT = Report("", "", 0.0, {}, (), ())
_NOTHING = re.compile(r"(?!)")
_MARKERS = {VARIABLE: VARIABLES}


class Said(NamedTuple):
    """The outcome of a check on some hosts, in both languages."""

    text: Optional[Both]
    hosts: tuple[str, ...]


class CheckSummary(NamedTuple):
    """A check that fails, is unknown or waived on some hosts; `since` is the earliest run that found it so."""

    id: str
    outcome: str
    severity: Severity
    hosts: tuple[str, ...]
    said: tuple[Said, ...]
    since: int


class Matrix(NamedTuple):
    """The outcome of every check on every host: hosts grouped by equal outcomes, in CODES, the worst first."""

    checks: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


CODES: Mapping[str, str] = {
    "pass": "p",
    "fail": "f",
    "error": "e",
    "unknown": "u",
    "waived": "w",
    "note": "n",
    "fixed": "x",
    "notapplicable": "-",
}


class Overview(NamedTuple):
    """The whole fleet as of each host's last collection."""

    runs: Mapping[int, Run]
    hosts: tuple[HostRow, ...]
    checks: tuple[CheckSummary, ...]
    groups: tuple[Group, ...]
    changes: tuple[Change, ...]  # since the collection before, of each host
    matrix: Matrix = Matrix((), ())

    @property
    def collected(self) -> tuple[HostRow, ...]:
        """The hosts whose last attempt yielded a snapshot."""
        return tuple(host for host in self.hosts if host.is_current)

    @property
    def missing(self) -> Mapping[Collection, tuple[HostRow, ...]]:
        """The hosts that were not collected, by cause, the most frequent first."""
        counts = Counter(host.collection for host in self.hosts if not host.is_current)
        return {
            cause: tuple(host for host in self.hosts if host.collection is cause) for cause, _ in counts.most_common()
        }

    @property
    def verdicts(self) -> Mapping[str, int]:
        """The number of collected hosts by verdict."""
        return dict(Counter(host.verdict for host in self.collected).most_common())

    @property
    def failing(self) -> tuple[CheckSummary, ...]:
        """The checks that fail, the most important first."""
        return tuple(check for check in self.checks if check.outcome in ("fail", "error"))

    def exit_code(self, fail_on: Optional[Severity]) -> int:
        """Return 1 for a failed check or a difference at or above `fail_on`, 3 if something is unknown, else 0."""
        if fail_on is None:
            return 0
        rows = [row for group in self.groups for row in group.differences]
        serious = [check for check in self.checks if check.severity.rank >= fail_on.rank]
        if any(check.outcome == "fail" for check in serious) or any(row.severity.rank >= fail_on.rank for row in rows):
            return 1
        unknown = any(check.outcome in ("unknown", "error") for check in serious)
        return 3 if unknown or self.missing or not self.hosts else 0


def overview(
    store: Store,
    only: Optional[Iterable[str]] = None,
    groups: Sequence[Sequence[str]] = (),
    with_matrix: bool = False,
) -> Overview:
    """Return what the store knows about every host, or about `only` these; compared by kind, or in `groups`."""
    wanted = None if only is None else set(only)
    hosts = tuple(host for host in store.hosts() if wanted is None or host.name in wanted)
    current = {host.id: host.name for host in hosts if host.is_current}
    return Overview(
        store.runs(),
        hosts,
        check_summaries(store, current),
        compared(store, current, groups),
        tuple(change for change in store.last_changes() if wanted is None or change.host in wanted),
        matrix(store, current) if with_matrix else Matrix((), ()),
    )


def differences(
    store: Store, only: Optional[Iterable[str]] = None, groups: Sequence[Sequence[str]] = ()
) -> tuple[Group, ...]:
    """Return the facts of the hosts whose last attempt was collected, as `overview` compares them."""
    wanted = None if only is None else set(only)
    hosts = {
        host.id: host.name for host in store.hosts() if host.is_current and (wanted is None or host.name in wanted)
    }
    return compared(store, hosts, groups)


def matrix(store: Store, hosts: Mapping[int, str]) -> Matrix:
    """Return the outcome of every check on the hosts."""
    outcomes = {host: (own, codes) for host, own, codes in store.matrix(CODES) if host in hosts}
    checks = sorted({check for own in {own for own, _ in outcomes.values()} for check in own})
    if not checks:
        return Matrix((), (("", tuple(hosts.values())),) if hosts else ())
    in_order: dict[tuple[str, ...], itemgetter[Any]] = {}
    for own in {(), *(own for own, _ in outcomes.values())}:
        place = {check: number for number, check in enumerate(own)}
        in_order[own] = itemgetter(*(place.get(check, -1) for check in checks))
    rows: dict[str, list[str]] = {}
    for host, name in hosts.items():
        own, codes = outcomes.get(host, ((), ""))
        known = codes + CODES["notapplicable"]  # the last one is for a check that was not run
        rows.setdefault("".join(in_order[own](known)), []).append(name)
    ordered = sorted(rows.items(), key=lambda row: (-row[0].count("f"), -len(row[1]), row[0]))
    return Matrix(tuple(checks), tuple((codes, tuple(names)) for codes, names in ordered))


def check_summaries(store: Store, hosts: Mapping[int, str]) -> tuple[CheckSummary, ...]:
    """Return the checks that did not pass on some of the hosts, the most important first."""
    texts = store.texts()
    found: dict[tuple[str, str], dict[Optional[int], list[str]]] = {}
    first: dict[tuple[str, str], int] = {}
    severities: dict[tuple[str, str], set[str]] = {}
    for row in store.outcome_rows():
        names = [name for name in map(hosts.get, row.hosts) if name is not None]
        if names:
            key = (row.check, row.outcome)
            found.setdefault(key, {}).setdefault(row.said, []).extend(names)
            first[key] = min(row.first, first.get(key, row.first))
            severities.setdefault(key, set()).add(row.severity)
    order = {word: number for number, word in enumerate(NOT_FINE)}
    summaries = [
        CheckSummary(
            *key,
            max((Severity(word) for word in severities[key]), key=lambda severity: severity.rank),
            tuple(chain.from_iterable(by_text.values())),
            tuple(
                Said(None if text is None else texts[text], tuple(names))
                for text, names in sorted(by_text.items(), key=lambda item: -len(item[1]))
            ),
            first[key],
        )
        for key, by_text in found.items()
    ]
    return tuple(sorted(summaries, key=lambda row: (order[row.outcome], -row.severity.rank, -len(row.hosts), row.id)))


# ---------------------------------------------------------------------------------------------- who differs

_TRAITS = ("npu", "arch", "os", "os_version", "container", "vm")
_OF_A_JOB = (VARIABLE + "MASTER_ADDR", VARIABLE + "MASTER_PORT", VARIABLE + "NNODES")
_APART = frozenset((*_TRAITS, *_OF_A_JOB))
_OTHERS = frozenset((*_APART, PACKAGES, *_MARKERS.values()))
_ABSENT = CompareValue(None, None)
Values = dict[CompareValue, list[str]]


def _is_compared(name: str) -> bool:
    return name in NAMES or name in _OTHERS or name.startswith(VARIABLE)


def compared(store: Store, hosts: Mapping[int, str], groups: Sequence[Sequence[str]] = ()) -> tuple[Group, ...]:
    """Return the facts across hosts of one kind, and across those of one job; or across each of `groups`."""
    texts, values = store.texts(), list(store.value_rows(_is_compared))
    reports = _reports(values, hosts, texts)
    if groups:
        members = [tuple(reports[name] for name in names if name in reports) for names in groups]
        found = [Group(None, None, some, ()) for some in members]
    else:
        by_kind = kinds(tuple(reports.values()))
        found = [Group(kind, None, kind.hosts, ()) for kind in by_kind]
        found += [Group(None, job, job.hosts, ()) for job in jobs(by_kind)]
    several = [group for group in found if len(group.hosts) > 1]
    rows = _values(values, hosts, texts, several)
    _add_systems(rows, several)
    alone = [group for group in found if len(group.hosts) < 2]  # it has nothing to differ from
    return (*(group._replace(rows=_rows(group, own)) for group, own in zip(several, rows)), *alone)


def _reports(values: Iterable[ValueRow], hosts: Mapping[int, str], texts: Mapping[int, Both]) -> dict[str, HostReport]:
    """Return, by name, the facts that distinguish kinds and jobs."""
    facts: dict[int, dict[str, Fact]] = {number: {} for number in hosts}
    for row in values:
        if row.name in _APART:
            known = _known(texts, row.value, None, row.reason)
            fact = Fact(row.name, known.text, "", known.reason)
            for host in row.hosts:
                if host in facts:
                    facts[host][row.name] = fact
    shared: dict[tuple[int, ...], dict[str, Fact]] = {}  # most hosts share the same ones
    return {
        hosts[number]: HostReport(
            hosts[number], hosts[number], _NO_REPORT, shared.setdefault(tuple(map(id, found.values())), found), _NOTHING
        )
        for number, found in facts.items()
    }


def _values(
    values: Iterable[ValueRow], hosts: Mapping[int, str], texts: Mapping[int, Both], groups: Sequence[Group]
) -> list[dict[str, Values]]:
    """Return, for each group and fact, the hosts that have each value."""
    numbers: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        for report in group.hosts:
            numbers.setdefault(report.label, []).append(number)
    places = {host: (label, numbers[label]) for host, label in hosts.items() if label in numbers}
    found: list[dict[str, Values]] = [{} for _ in groups]
    for row in values:
        labels: dict[int, list[str]] = defaultdict(list)
        for host in row.hosts:
            if host in places:
                label, members = places[host]
                for number in members:
                    labels[number].append(label)
        value = _known(texts, row.value, row.own, row.reason)
        for number, some in labels.items():
            found[number].setdefault(row.name, {}).setdefault(value, []).extend(some)
    return found


def _known(texts: Mapping[int, Both], value: Optional[int], own: Optional[int], reason: Optional[int]) -> CompareValue:
    """Return a value from the numbers of its texts."""
    if value is not None:
        return CompareValue(texts[value][0], texts[value if own is None else own][0])
    return CompareValue(None, None, Message("no reason given") if reason is None else Bilingual(*texts[reason]))


def _add_systems(rows: Sequence[dict[str, Values]], groups: Sequence[Group]) -> None:
    """Combine name and version of the system into one fact, as in other comparisons."""
    for values, group in zip(rows, groups):
        alike: dict[tuple[Optional[Fact], Optional[Fact]], list[HostReport]] = {}
        for report in group.hosts:
            alike.setdefault((report.facts.get("os"), report.facts.get("os_version")), []).append(report)
        values["os"] = {}
        for reports in alike.values():
            labels = values["os"].setdefault(value_of(reports[0], "os"), [])
            labels.extend(report.label for report in reports)


def _rows(group: Group, values: Mapping[str, Values]) -> tuple[FactRow, ...]:
    every = [host.label for host in group.hosts]
    names = [*NAMES, *sorted(name for name in values if name.startswith(VARIABLE))]
    if group.job is not None:
        names = [name for name in names if is_same_in_a_job(name)]
    rows = [fact_row_of(name, _complete(values, name, every)) for name in names]
    return tuple(rows if group.job is not None else [*rows, *_package_rows(values.get(PACKAGES, {}))])


def _complete(values: Mapping[str, Values], name: str, every: Sequence[str]) -> Values:
    """Return the values of a fact; hosts without it have none, or a reason why it is unknown."""
    found = dict(values.get(name, {}))
    left = set(every).difference(*found.values())
    for why, labels in values.get(_MARKERS.get(name.partition(":")[0] + ":", ""), {}).items():
        if why.reason is not None:
            found[why] = [label for label in labels if label in left]
            left.difference_update(labels)
    if left:
        found[_ABSENT] = [label for label in every if label in left]
    return {value: labels for value, labels in found.items() if labels}


def _package_rows(sets: Values) -> Iterator[FactRow]:
    """Yield a row for each Python package; nothing if all hosts have the same set."""
    if len(sets) < 2:
        return
    expanded = {value: _packages(value.text) for value in sets if value.reason is None}
    for name in sorted({name for found in expanded.values() for name in found}):
        values: Values = {}
        for value, labels in sets.items():
            version = expanded[value].get(name) if value in expanded else None
            own = value if value.reason is not None else CompareValue(version, version)
            values.setdefault(own, []).extend(labels)
        if len(values) > 1:
            yield fact_row_of(PACKAGE + name, values)


def _packages(text: Optional[str]) -> Mapping[str, str]:
    try:
        found = json.loads(text or "{}")
    except ValueError:  # a hostile host
        return {}
    return {str(name): str(version) for name, version in found.items()} if isinstance(found, dict) else {}


def fact_title(name: str) -> Text:
    """Return the display name of a fact, including the whole set of packages."""
    return Message("Python packages") if name == PACKAGES else title(name)
