"""Exact sets of connections: which of a host's ports are reached from which source addresses.

A `Region` is a set of points (port, address): rows of a port interval and its addresses, the port intervals sorted and
disjoint. Rules split regions; a verdict on a region applies to every connection in it.
"""

from __future__ import annotations

from envtune import intervals
from envtune.intervals import Intervals

Row = tuple[int, int, Intervals]
Region = tuple[Row, ...]


def product(ports: Intervals, addresses: Intervals) -> Region:
    """Return every address on every port."""
    return tuple((low, high, addresses) for low, high in ports) if addresses else ()


def union(*parts: Region) -> Region:
    """Return the union of the regions."""
    if sum(map(bool, parts)) <= 1:
        return next(filter(None, parts), ())
    rows = [row for part in parts for row in part]
    starts = sorted({low for low, _, _ in rows} | {high + 1 for _, high, _ in rows})
    merged: list[Row] = []
    for low, after in zip(starts, starts[1:]):
        addresses = intervals.union(pair for first, last, inside in rows if first <= low <= last for pair in inside)
        if merged and merged[-1][1] == low - 1 and merged[-1][2] == addresses:
            merged[-1] = (merged[-1][0], after - 1, addresses)
        elif addresses:
            merged.append((low, after - 1, addresses))
    return tuple(merged)


def intersection(left: Region, right: Region) -> Region:
    """Return the intersection of both regions."""
    shared: list[Row] = []
    for low, high, addresses in left:
        for first, last, others in right:
            if first <= high and low <= last:
                both = addresses if addresses is others else intervals.intersection(addresses, others)
                if both:
                    shared.append((max(low, first), min(high, last), both))
    return tuple(shared)


def difference(left: Region, right: Region) -> Region:
    """Return what is in `left` but not in `right`."""
    remaining: list[Row] = []
    for low, high, addresses in left:
        at = low
        for first, last, others in right:
            if first > high or last < at:
                continue
            if first > at:
                remaining.append((at, first - 1, addresses))
            outside = intervals.difference(addresses, others)
            if outside:
                remaining.append((max(at, first), min(high, last), outside))
            at = last + 1
        if at <= high:
            remaining.append((at, high, addresses))
    return tuple(remaining)


def ports_of(part: Region) -> Intervals:
    """Return the ports of a region."""
    return intervals.union((low, high) for low, high, _ in part)


def addresses_of(part: Region) -> Intervals:
    """Return the addresses of a region, on any of its ports."""
    return intervals.union(pair for _, _, addresses in part for pair in addresses)


def size_of(part: Region) -> int:
    """Return the number of points of a region."""
    return sum((high - low + 1) * sum(b - a + 1 for a, b in addresses) for low, high, addresses in part)
