"""Read a store: the hosts and their last collection, the current outcomes of their checks, and what changed when."""

from __future__ import annotations

import json
import sqlite3
from heapq import merge
from operator import itemgetter
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

from envtune.fleet.collected import Collection
from envtune.fleet.record import Both
from envtune.fleet.store.schema import NOT_FINE_NOW, STATES
from envtune.records import NamedTuple

# Condition on a span `s`: it covers run :run, provided the host was collected in that run.
IN_RUN = "s.first <= :run AND (s.last >= :run OR s.last IS NULL)"
_OUTCOMES = "SELECT host, n.name, first, state, said FROM outcome s JOIN name n ON n.id = s.name WHERE last IS NULL"
_VALUES = "SELECT host, n.name, first, value, own, reason FROM fact s JOIN name n ON n.id = s.name WHERE last IS NULL"
NOT_FINE = ("fail", "error", "unknown", "waived", "note")


class Run(NamedTuple):
    """An audit or an ingest; `ended` is None if it was interrupted."""

    id: int
    started: float
    ended: Optional[float]
    source: str
    version: str
    policy: str


class HostRow(NamedTuple):
    """A host: how its last attempt ended, its last collection and the one before, and its verdict then."""

    id: int
    name: str
    attempt: int
    collection: Collection
    detail: str
    seconds: float
    seen: Optional[int]
    before: Optional[int]
    verdict: str

    @property
    def is_current(self) -> bool:
        """Whether the stored data comes from the last attempt."""
        return self.collection is Collection.OK


class Outcome(NamedTuple):
    """The outcome of a check on a host, from run `first` on."""

    host: int
    check: str
    first: int
    outcome: str
    severity: str
    said: Optional[Both]


class Value(NamedTuple):
    """A fact of a host, from run `first` on: the value, without what identifies the host, and why it is unknown."""

    host: int
    name: str
    first: int
    value: Optional[str]
    own: Optional[str]
    reason: Optional[Both]


class OutcomeRow(NamedTuple):
    """A check's outcome shared by hosts, since run `first` at the earliest; `said` is the number of a text."""

    check: str
    outcome: str
    severity: str
    said: Optional[int]
    first: int
    hosts: list[int]


class ValueRow(NamedTuple):
    """A fact's value shared by hosts: the numbers of its text, of that without the host's name, of the reason."""

    name: str
    value: Optional[int]
    own: Optional[int]
    reason: Optional[int]
    hosts: list[int]


class Change(NamedTuple):
    """A change, in a run, of a host that had been collected before: a check's outcome or a fact, before and after."""

    run: int
    host: str
    kind: str  # check | fact
    name: str
    before: Optional[str]
    after: Optional[str]


class Store:
    """Read access to a store."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._store = connection
        self._kept: dict[str, tuple[object, dict[int, Any]]] = {}

    def runs(self) -> Mapping[int, Run]:
        """Return every run by its number."""
        rows = self._store.execute("SELECT id, started, ended, source, version, policy FROM run ORDER BY id")
        return {row[0]: Run(*row) for row in rows}

    def hosts(self) -> tuple[HostRow, ...]:
        """Return every host, by name."""
        rows = self._store.execute(
            "SELECT h.id, h.name, h.attempt, c.collection, t.en, c.seconds, h.seen, h.before,"
            " (SELECT verdict FROM collected WHERE run = h.seen AND host = h.id)"
            " FROM host h JOIN collected c ON c.run = h.attempt AND c.host = h.id"
            " LEFT JOIN text t ON t.id = c.detail ORDER BY h.name"
        )
        return tuple(
            HostRow(
                row[0], row[1], row[2], Collection(row[3]), row[4] or "", row[5] or 0.0, row[6], row[7], row[8] or ""
            )
            for row in rows
        )

    def host_names(self) -> frozenset[str]:
        """Return the names of all hosts."""
        return frozenset(row[0] for row in self._store.execute("SELECT name FROM host"))

    def outcomes(self, host: int) -> Iterator[Outcome]:
        """Yield the outcomes of the checks in the last collection of a host."""
        for row in self._store.execute(_OUTCOMES + " AND host = ?", (host,)):
            yield Outcome(row[0], row[1], row[2], *STATES[row[3]], self.text(row[4]))

    def values(self, host: int) -> Iterator[Value]:
        """Yield the facts of the last collection of a host."""
        for row in self._store.execute(_VALUES + " AND host = ?", (host,)):
            value, own, reason = (self.text(number) for number in row[3:])
            yield Value(row[0], row[1], row[2], value and value[0], own and own[0], reason)

    def outcome_rows(self) -> Iterator[OutcomeRow]:
        """Yield the current outcomes that are not fine, with their hosts."""
        names = self._names()
        sql = (
            "SELECT name, state, said, min(first), group_concat(host) FROM outcome"
            f" WHERE {NOT_FINE_NOW} GROUP BY name, state, said"
        )
        for name, state, said, first, hosts in self._store.execute(sql):
            yield OutcomeRow(names[name], *STATES[state], said, first, _numbers(hosts))

    def value_rows(self, is_wanted: Callable[[str], bool]) -> Iterator[ValueRow]:
        """Yield the current values of the wanted facts, with their hosts."""
        names = {number: name for number, name in self._names().items() if is_wanted(name)}
        numbers = ",".join(map(str, names))
        sql = (
            "SELECT name, value, own, reason, group_concat(host) FROM fact"
            f" WHERE last IS NULL AND +name IN ({numbers}) GROUP BY name, value, own, reason"
        )
        for name, value, own, reason, hosts in self._store.execute(sql):
            yield ValueRow(names[name], value, own, reason, _numbers(hosts))

    def texts(self) -> Mapping[int, Both]:
        """Return every text by its number."""
        sql = "SELECT id, en, zh FROM text"
        return self._kept_of(sql, lambda rows: {number: (en, zh or en) for number, en, zh in rows})

    def _names(self) -> Mapping[int, str]:
        """Return the names of checks and facts by their numbers."""
        return self._kept_of("SELECT id, name FROM name", dict)

    def _kept_of(self, sql: str, by_number: Callable[[Any], dict[int, Any]]) -> dict[int, Any]:
        """Return rows by their number; they are cached until the store changes."""
        state = self._store.total_changes, *self._store.execute("PRAGMA data_version")
        if self._kept.get(sql, (None,))[0] != state:
            self._kept[sql] = state, by_number(self._store.execute(sql))
        return self._kept[sql][1]

    def text(self, number: Optional[int]) -> Optional[Both]:
        """Return a text by its number."""
        if number is None:
            return None
        row = self._store.execute("SELECT en, zh FROM text WHERE id = ?", (number,)).fetchone()
        return row[0], row[1] or row[0]

    def matrix(self, codes: Mapping[str, str]) -> Iterator[tuple[int, tuple[str, ...], str]]:
        """Yield each host's checks and their outcomes in its last collection: one character each, from `codes`.

        Hosts with the same checks have the same tuple.
        """
        names = self._names()
        sql = "SELECT host, group_concat(name), group_concat(state, '') FROM outcome WHERE last IS NULL GROUP BY host"
        code = {int(str(state), 16): codes[outcome] for state, (outcome, _) in STATES.items()}
        table = bytes(ord(code.get(byte, " ")) for byte in range(256))
        checks: dict[str, tuple[str, ...]] = {}
        for host, numbers, found in self._store.execute(sql):
            if numbers not in checks:
                checks[numbers] = tuple(names[int(number)] for number in numbers.split(","))
            states = bytes.fromhex(found)  # two digits each: there are more than a million, and this is fastest
            yield host, checks[numbers], states.translate(table).decode("ascii")

    def changes(self, first_run: int, host: Optional[int] = None) -> Iterator[Change]:
        """Yield what began in this run or later about hosts that had been collected before, the latest first.

        `host` restricts the result to one.
        """
        about, only = ("", ()) if host is None else (" AND host = ?", (host,))
        sql = f"SELECT host, min(run) FROM collected WHERE collection = 'ok'{about} GROUP BY host"
        began = dict(self._store.execute(sql, only))
        sql = "{table} s CROSS JOIN host h ON h.id = s.host WHERE s.first >= ?" + about.replace("host", "s.host")
        text = self.texts().__getitem__ if host is None else self.text
        return self._changes(sql, (first_run, *only), text, lambda row: row[0] > began.get(row[1], row[0]))

    def last_changes(self) -> list[Change]:
        """Return the changes in the last collection of each host that had been collected before."""
        sql = (
            "{table} s CROSS JOIN host h ON h.id = s.host"  # in this order: the reverse takes three times as long
            " WHERE s.first = h.seen AND h.attempt = h.seen AND h.before IS NOT NULL"
            " AND s.first >= (SELECT min(seen) FROM host WHERE attempt = seen)"  # most spans need no lookup of the host
        )
        return list(self._changes(sql, (), self.texts().__getitem__))

    def _changes(
        self,
        spans: str,
        values: Sequence[int],
        text: Callable[[int], Optional[Both]],
        is_change: Optional[Callable[[Sequence[Any]], bool]] = None,
    ) -> Iterator[Change]:
        """Yield the changes with which these spans began: `s`, of a host `h`. There may be a million."""
        names = self._names()
        hosts = dict(self._store.execute("SELECT id, name FROM host"))
        outcomes: dict[Optional[int], Optional[str]] = {None: None, **{state: row[0] for state, row in STATES.items()}}

        def of_table(kind: str, table: str, column: str, meaning: Callable[[Any], Optional[str]]) -> Iterator[Change]:
            before = (
                f"(SELECT e.{column} FROM {table} e WHERE e.host = s.host AND e.name = s.name AND e.first < s.first"
                " ORDER BY e.first DESC LIMIT 1)"
            )
            sql = (
                f"SELECT s.first, s.host, s.name, {before}, s.{column} FROM {spans.format(table=table)}"
                " ORDER BY s.first DESC, (SELECT name FROM name WHERE id = s.name), h.name"
            )
            for run, host, name, old, new in filter(is_change, self._store.execute(sql, values)):
                yield Change(run, hosts[host], kind, names[name], meaning(old), meaning(new))

        def text_of(number: Optional[int]) -> Optional[str]:
            return None if number is None else (text(number) or ("",))[0]

        checks = of_table("check", "outcome", "state", outcomes.__getitem__)
        return merge(checks, of_table("fact", "fact", "value", text_of), key=itemgetter(0), reverse=True)

    def outcomes_in(self, run: int) -> Iterator[tuple[str, str, str]]:
        """Yield (host, check, outcome) of a run; nothing about hosts that were not collected in it."""
        sql = (
            "SELECT h.name, n.name, s.state FROM collected c JOIN outcome s ON s.host = c.host"
            " JOIN host h ON h.id = c.host JOIN name n ON n.id = s.name"
            f" WHERE c.run = :run AND c.collection = 'ok' AND {IN_RUN}"
        )
        for host, check, state in self._store.execute(sql, {"run": run}):
            yield host, check, STATES[state][0]

    def attempts(self, host: int) -> Iterator[tuple[int, Collection, str]]:
        """Yield (run, collection verdict, overall verdict) of a host, the latest first."""
        sql = "SELECT run, collection, verdict FROM collected WHERE host = ? ORDER BY run DESC"
        for run, collection, verdict in self._store.execute(sql, (host,)):
            yield run, Collection(collection), verdict or ""


def _numbers(hosts: str) -> list[int]:
    """Return the numbers that group_concat() has joined, sorted. There are hundreds of thousands: this is fastest."""
    if "," not in hosts:
        return [int(hosts)]
    found: list[int] = json.loads(f"[{hosts}]")
    found.sort()
    return found
