"""Sets of whole numbers as sorted, disjoint, inclusive pairs: ports, and IP addresses as numbers.

Nothing is ever sampled, so a statement about an interval holds for every port or address in it. docs/adr/0012 explains
why no library is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Union

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

Intervals = tuple[tuple[int, int], ...]


def union(pairs: Iterable[tuple[int, int]]) -> Intervals:
    """Return arbitrary inclusive pairs as intervals; a pair that ends before it begins is empty."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        elif low <= high:
            merged.append((low, high))
    return tuple(merged)


def intersection(left: Intervals, right: Intervals) -> Intervals:
    """Return the intersection."""
    shared: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            shared.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(shared)


def difference(left: Intervals, right: Intervals) -> Intervals:
    """Return what is in `left` but not in `right`."""
    remaining: list[tuple[int, int]] = []
    j = 0
    for low, high in left:
        while j < len(right) and right[j][1] < low:
            j += 1
        k = j
        while k < len(right) and right[k][0] <= high:
            if right[k][0] > low:
                remaining.append((low, right[k][0] - 1))
            low = right[k][1] + 1
            k += 1
        if low <= high:
            remaining.append((low, high))
    return tuple(remaining)


def port_text(ports: Intervals) -> str:
    """Return ports for people: `29688, 60000-60031`."""
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in ports)


# ---------------------------------------------------------------------- IP addresses
# ipaddress is imported where an address has to be parsed: most runs parse none.


def address_number(address: str, family: int) -> int:
    """Return an address of IPv4 (4) or IPv6 (6) as a number, without its zone; raises ValueError if it is neither."""
    from ipaddress import IPv4Address, IPv6Address

    plain = address.partition("%")[0]
    return int(IPv4Address(plain) if family == 4 else IPv6Address(plain))


def address_family(address: str) -> int:
    """Return 4 or 6; raises ValueError if `address` is not an IP address."""
    from ipaddress import ip_address

    return ip_address(address.partition("%")[0]).version


def network_range(text: str, family: int) -> tuple[int, int]:
    """Return the first and last address of `10.0.0.0/8`, `10.0.0.0/255.0.0.0` or one address; ValueError otherwise."""
    address, _, length = text.partition("/")
    first = address_number(address, family)
    if not length:
        return first, first
    from ipaddress import ip_network

    network = ip_network(f"{address.partition('%')[0]}/{length}", strict=False)
    if "." in length and length != str(network.netmask):  # ipaddress reads 0.0.0.255 as /24
        raise ValueError(text)
    return int(network[0]), int(network[-1])


def unicast_addresses(family: int) -> Intervals:
    """Return every address a peer on the network can have: unicast, not this host's loopback."""
    if family == 4:
        return ((1 << 24, (127 << 24) - 1), (128 << 24, (224 << 24) - 1))  # 1.0.0.0-126.255.255.255, 128.0.0.0-223.*
    return ((2, (0xFF << 120) - 1),)  # without ::, ::1 and multicast


def network_texts(addresses: Intervals, family: int) -> tuple[str, ...]:
    """Return exactly these addresses as networks and single addresses: every tool takes those, but few take ranges."""
    return tuple(_network_text(network) for low, high in addresses for network in _networks(low, high, family))


def address_text(addresses: Intervals, family: int, limit: int = 4) -> str:
    """Return addresses for people, `10.0.0.0/8, 192.0.2.7`: at most `limit` intervals and the number of the rest."""
    texts = [_interval_text(low, high, family) for low, high in addresses[:limit]]
    return ", ".join(texts) + (f" (+{len(addresses) - limit})" if len(addresses) > limit else "")


def _interval_text(low: int, high: int, family: int) -> str:
    networks = _networks(low, high, family)
    return _network_text(networks[0]) if len(networks) == 1 else f"{networks[0][0]}-{networks[-1][-1]}"


def _networks(low: int, high: int, family: int) -> list[Union[IPv4Network, IPv6Network]]:
    from ipaddress import IPv4Address, IPv6Address, summarize_address_range

    if family == 4:
        return list(summarize_address_range(IPv4Address(low), IPv4Address(high)))
    return list(summarize_address_range(IPv6Address(low), IPv6Address(high)))


def _network_text(network: Union[IPv4Network, IPv6Network]) -> str:
    return str(network[0]) if network.prefixlen == network.max_prefixlen else str(network)
