"""Which hosts are compared with each other: those of one kind, and those of one job.

A kind is hardware and system. A single host next to a larger kind of the same hardware counts as a deviating member of
that kind (another system after a reinstallation, NPUs that are gone), not as a separate kind.
"""

from __future__ import annotations

from typing import Callable, Iterable, Iterator, Optional, Sequence, TypeVar

from envtune.audit.settings import VARIABLE
from envtune.compare.hosts import HostReport, text_of
from envtune.records import NamedTuple

_MUST = ("container", "vm")  # a container is never a deviating host
_TRAITS = ("npu", "arch", "os")
_GONE = (None, "none")  # NPUs that no longer answer, or that a recording does not contain
SHARED_TRAITS = 2  # of _TRAITS that make a host a member of a larger kind
MOST_UNLIKE = 3  # hosts of the same hardware that are compared although no two are of one kind
FEW = 2  # hosts at most that join a kind at least twice as large

Traits = tuple[Optional[str], ...]
_Found = TypeVar("_Found")


class Kind(NamedTuple):
    """Hosts that are compared with each other, and the traits of most of them: npu, arch, os, container, vm."""

    traits: Traits  # None: unknown
    hosts: tuple[HostReport, ...]


class Job(NamedTuple):
    """Hosts of several kinds with the same master: `address:port`."""

    master: str
    hosts: tuple[HostReport, ...]


def kinds(hosts: Sequence[HostReport]) -> tuple[Kind, ...]:
    """Return the kinds, the largest first; two or three hosts of the same hardware form one."""
    found: dict[Traits, list[HostReport]] = {}
    for host, read in _of_each(hosts, _traits):
        found.setdefault(read, []).append(host)
    ordered = sorted(found.items(), key=lambda row: -len(row[1]))
    if 1 < len(found) == len(hosts) <= MOST_UNLIKE and _all_alike(tuple(found)):
        return (Kind((None,) * len(_TRAITS + _MUST), tuple(hosts)),)
    kept: dict[Traits, list[HostReport]] = {}
    larger: list[Traits] = []  # kinds of several hosts; there may be thousands of single ones
    for traits, members in ordered:
        place = _larger(traits, len(members), found, larger) or traits
        kept.setdefault(place, []).extend(members)
        if len(members) > 1 and place is traits:
            larger.append(traits)
    position = {host.label: number for number, host in enumerate(hosts)}
    return tuple(
        Kind(traits, tuple(sorted(members, key=lambda host: position[host.label]))) for traits, members in kept.items()
    )


def _of_each(hosts: Iterable[HostReport], read: Callable[[HostReport], _Found]) -> Iterator[tuple[HostReport, _Found]]:
    """Yield the hosts, each with its traits; hosts with identical facts are read once."""
    known: dict[tuple[int, int], _Found] = {}
    for host in hosts:
        facts = (id(host.facts), id(host.own))
        if facts not in known:
            known[facts] = read(host)
        yield host, known[facts]


def _traits(host: HostReport) -> Traits:
    return tuple(text_of(host, name) for name in (*_TRAITS, *_MUST))


def _larger(
    traits: Traits, size: int, found: dict[Traits, list[HostReport]], kept: Iterable[Traits]
) -> Optional[Traits]:
    """Return the kind that these few hosts belong to: the one with which they share most; None for a separate kind."""
    if size > FEW:
        return None
    shared = {
        other: sum(one is not None and one == two for one, two in zip(traits[: len(_TRAITS)], other))
        for other in kept
        if other[len(_TRAITS) :] == traits[len(_TRAITS) :]
        and len(found[other]) >= 2 * size
        and _same_hardware(traits, other)
    }
    best = max(shared, key=lambda other: shared[other], default=None)
    return best if best is not None and shared[best] >= SHARED_TRAITS else None


def _all_alike(found: Sequence[Traits]) -> bool:
    return all(_same_hardware(one, other) for one in found for other in found)


def _same_hardware(one: Traits, other: Traits) -> bool:
    """Return whether these may be the same machines: other NPUs mean other machines, missing ones may be broken."""
    same_npu = one[0] == other[0] or one[0] in _GONE or other[0] in _GONE
    same_arch = one[1] == other[1] or None in (one[1], other[1])
    return same_npu and same_arch


def jobs(found: Sequence[Kind]) -> tuple[Job, ...]:
    """Return the jobs that run on hosts of more than one kind; hosts of one kind are compared anyway."""
    by_master: dict[str, list[tuple[int, HostReport]]] = {}
    for number, kind in enumerate(found):
        for host, master in _of_each(kind.hosts, _master):
            if master is not None:
                by_master.setdefault(master, []).append((number, host))
    return tuple(
        Job(master, tuple(host for _, host in members))
        for master, members in by_master.items()
        if len({number for number, _ in members}) > 1
    )


def _master(host: HostReport) -> Optional[str]:
    """Return `address:port` of the job's master; None for a job on one node."""
    address, port, nodes = (text_of(host, VARIABLE + name) for name in ("MASTER_ADDR", "MASTER_PORT", "NNODES"))
    if not address or not port or nodes == "1":
        return None
    own = address == "localhost" or address.startswith("127.") or address == "::1"
    return None if own else f"{address}:{port}"
