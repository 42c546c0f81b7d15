"""Sets of connections, exact: which of our ports, reached from which peer addresses.

`Intervals` are sorted, disjoint, inclusive pairs of integers (ports or addresses). A `Region` is a set of points (port,
address): rows of a port interval and the addresses that go with it, the port intervals sorted and disjoint. Rules cut
regions apart; nothing is ever sampled, so a verdict on a region is one on every connection in it.
"""

from __future__ import annotations

import socket
from typing import Iterable, Optional, Sequence

Intervals = tuple[tuple[int, int], ...]
Row = tuple[int, int, Intervals]
Region = tuple[Row, ...]

LAST = {4: (1 << 32) - 1, 6: (1 << 128) - 1}
_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}


def intervals(pairs: Iterable[tuple[int, int]]) -> Intervals:
    """Any pairs as sorted, disjoint ones."""
    done: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if done and low <= done[-1][1] + 1:
            if high > done[-1][1]:
                done[-1] = (done[-1][0], high)
        elif low <= high:
            done.append((low, high))
    return tuple(done)


def common(one: Intervals, two: Intervals) -> Intervals:
    """What is in both."""
    done: list[tuple[int, int]] = []
    i = j = 0
    while i < len(one) and j < len(two):
        low, high = max(one[i][0], two[j][0]), min(one[i][1], two[j][1])
        if low <= high:
            done.append((low, high))
        if one[i][1] < two[j][1]:
            i += 1
        else:
            j += 1
    return tuple(done)


def without(one: Intervals, two: Intervals) -> Intervals:
    """What is in `one` and not in `two`."""
    done: list[tuple[int, int]] = []
    j = 0
    for low, high in one:
        while j < len(two) and two[j][1] < low:
            j += 1
        k = j
        while k < len(two) and two[k][0] <= high:
            if two[k][0] > low:
                done.append((low, two[k][0] - 1))
            low = two[k][1] + 1
            k += 1
        if low <= high:
            done.append((low, high))
    return tuple(done)


def box(ports: Intervals, addresses: Intervals) -> Region:
    """Every address on every port."""
    return tuple((low, high, addresses) for low, high in ports) if addresses else ()


def region(boxes: Sequence[tuple[Intervals, Intervals]]) -> Region:
    """The union of (ports, addresses) boxes."""
    rows = [(low, high, addresses) for ports, addresses in boxes for low, high in ports]
    starts = sorted({low for low, _, _ in rows} | {high + 1 for _, high, _ in rows})
    done: list[Row] = []
    for low, after in zip(starts, starts[1:]):
        pairs = [pair for first, last, addresses in rows if first <= low <= last for pair in addresses]
        addresses = intervals(pairs)
        if done and done[-1][1] == low - 1 and done[-1][2] == addresses:
            done[-1] = (done[-1][0], after - 1, addresses)
        elif addresses:
            done.append((low, after - 1, addresses))
    return tuple(done)


def meet(one: Region, two: Region) -> Region:
    """What is in both regions."""
    done: list[Row] = []
    for low, high, addresses in one:
        for first, last, others in two:
            if first <= high and low <= last:
                both = addresses if addresses is others else common(addresses, others)
                if both:
                    done.append((max(low, first), min(high, last), both))
    return tuple(done)


def minus(one: Region, two: Region) -> Region:
    """What is in `one` and not in `two`."""
    done: list[Row] = []
    for low, high, addresses in one:
        at = low
        for first, last, others in two:
            if first > high or last < at:
                continue
            if first > at:
                done.append((at, first - 1, addresses))
            left = without(addresses, others)
            if left:
                done.append((max(at, first), min(high, last), left))
            at = last + 1
        if at <= high:
            done.append((at, high, addresses))
    return tuple(done)


def join(one: Region, two: Region) -> Region:
    """What is in either region."""
    if not one or not two:
        return one or two
    return region([(((low, high),), addresses) for low, high, addresses in (*one, *two)])


def ports_of(part: Region) -> Intervals:
    """The ports of a region."""
    return intervals((low, high) for low, high, _ in part)


def addresses_of(part: Region) -> Intervals:
    """The addresses of a region, on any of its ports."""
    return intervals(pair for _, _, addresses in part for pair in addresses)


def decimal(text: str) -> Optional[int]:
    """A whole number in plain digits, None for anything else (signs, other scripts' digits, absurd lengths)."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None


def number(address: str, family: int) -> int:
    """An address as an integer; ValueError when it is none of this family."""
    try:
        return int.from_bytes(socket.inet_pton(_FAMILIES[family], address.partition("%")[0]), "big")
    except OSError:
        raise ValueError(address) from None


def family_of(address: str) -> int:
    """4 or 6; ValueError when `address` is a name or nonsense."""
    for family in (4, 6):
        try:
            number(address, family)
        except ValueError:
            continue
        return family
    raise ValueError(address)


def network(text: str, family: int) -> tuple[int, int]:
    """`10.0.0.0/8`, `10.0.0.0/255.0.0.0` or a single address as its first and last one; ValueError otherwise."""
    address, _, length = text.partition("/")
    width = 32 if family == 4 else 128
    if not length:
        bits = width
    elif (told := decimal(length)) is not None:
        bits = told
    else:
        mask = number(length, family)
        bits = bin(mask).count("1")
        if mask != (LAST[family] << (width - bits)) & LAST[family]:
            raise ValueError(text)
    if not 0 <= bits <= width:
        raise ValueError(text)
    first = number(address, family) >> (width - bits) << (width - bits)
    return first, first | ((1 << (width - bits)) - 1)


def peers(family: int) -> Intervals:
    """Every address a peer on the network can have: unicast, not this host's loopback."""
    if family == 4:
        return ((1 << 24, (127 << 24) - 1), (128 << 24, (224 << 24) - 1))  # 1.0.0.0-126.255.255.255, 128.0.0.0-223.*
    return ((2, (0xFF << 120) - 1),)  # without ::, ::1 and multicast


def address_text(pairs: Intervals, family: int, limit: int = 4) -> str:
    """`10.0.0.0/8, 192.0.2.7`; at most `limit` of them and how many more."""
    words = [_interval_text(low, high, family) for low, high in pairs[:limit]]
    return ", ".join(words) + (f" (+{len(pairs) - limit})" if len(pairs) > limit else "")


def _interval_text(low: int, high: int, family: int) -> str:
    width = 32 if family == 4 else 128
    first = socket.inet_ntop(_FAMILIES[family], low.to_bytes(width // 8, "big"))
    if low == high:
        return first
    size = high - low + 1
    if size & (size - 1) == 0 and low % size == 0:
        return f"{first}/{width - size.bit_length() + 1}"
    return f"{first}-{socket.inet_ntop(_FAMILIES[family], high.to_bytes(width // 8, 'big'))}"


def networks(pairs: Intervals, family: int) -> tuple[str, ...]:
    """Exactly these addresses as networks and single addresses: every front end takes those, and few take ranges."""
    width = 32 if family == 4 else 128
    done = []
    for low, high in pairs:
        while low <= high:
            bits = min((low & -low).bit_length() - 1 if low else width, (high - low + 1).bit_length() - 1)
            done.append(_interval_text(low, low + (1 << bits) - 1, family))
            low += 1 << bits
    return tuple(done)


def port_text(pairs: Intervals) -> str:
    """`29688, 60000-60031`."""
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in pairs)
