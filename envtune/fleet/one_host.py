"""What a store knows about one host."""

from __future__ import annotations

from typing import Mapping

from envtune.errors import UsageError
from envtune.fleet.collected import Collection
from envtune.fleet.store.read import Change, HostRow, Outcome, Run, Store, Value
from envtune.messages import Message, nearest
from envtune.records import NamedTuple


class OneHost(NamedTuple):
    """A host: its facts and outcomes as last collected, what changed since the first time, and every attempt."""

    host: HostRow
    runs: Mapping[int, Run]
    facts: tuple[Value, ...]
    outcomes: tuple[Outcome, ...]
    changes: tuple[Change, ...]
    attempts: tuple[tuple[int, Collection, str], ...]


def one_host(store: Store, name: str) -> OneHost:
    """Return what is known about the host; raises UsageError if there is none of that name."""
    hosts = {host.name: host for host in store.hosts()}
    if name not in hosts:
        near = nearest(name, tuple(hosts))
        if near:
            raise UsageError(Message("the store has no host {name}; did you mean {near}?", name=name, near=near[0]))
        raise UsageError(Message("the store has no host {name}", name=name))
    host = hosts[name]
    return OneHost(
        host,
        store.runs(),
        tuple(sorted(store.values(host.id), key=lambda row: row.name)),
        tuple(sorted(store.outcomes(host.id), key=lambda row: row.check)),
        tuple(store.changes(1, host.id)),
        tuple(store.attempts(host.id)),
    )
