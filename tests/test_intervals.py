"""Sets of ports and of addresses, and addresses as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envtune import intervals

PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8)


def points(pairs: intervals.Intervals) -> set[int]:
    return {number for low, high in pairs for number in range(low, high + 1)}


@given(PAIRS, PAIRS)
def test_intervals_are_sets_of_numbers(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    left, right = intervals.union(first), intervals.union(second)
    assert points(left) == {number for low, high in first for number in range(low, high + 1)}
    assert points(intervals.intersection(left, right)) == points(left) & points(right)
    assert points(intervals.difference(left, right)) == points(left) - points(right)
    assert all(high + 1 < low for (_, high), (low, _) in zip(left, left[1:])), "sorted, disjoint, not even touching"


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("10.1.2.3", "10.1.2.3", "10.1.2.3"),
        ("10.1.2.3/16", "10.1.0.0", "10.1.255.255"),
        ("10.1.2.3/255.255.0.0", "10.1.0.0", "10.1.255.255"),
        ("10.1.2.3/0.0.0.0", "0.0.0.0", "255.255.255.255"),
        ("2001:db8::1/64", "2001:db8::", "2001:db8::ffff:ffff:ffff:ffff"),
        ("fe80::1%eth0", "fe80::1", "fe80::1"),
    ],
)
def test_networks(text: str, first: str, last: str) -> None:
    family = intervals.address_family(first)
    ends = (intervals.address_number(first, family), intervals.address_number(last, family))
    assert intervals.network_range(text, family) == ends


@pytest.mark.parametrize(
    "text", ["", "peer", "10.1.2", "10.1.2.3/33", "10.1.2.3/0.0.0.255", "10.1.2.3/255.0.255.0", "10.1.2.3/x", "::1"]
)
def test_what_is_no_network_is_refused(text: str) -> None:
    """0.0.0.255 is a mask of the last byte to iptables; ipaddress by itself would read it as /24."""
    with pytest.raises(ValueError):
        intervals.network_range(text, 4)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=6))
def test_networks_are_exactly_the_addresses(pairs: list[tuple[int, int]]) -> None:
    base = intervals.address_number("10.0.0.0", 4)
    wanted = intervals.union((base + low, base + high) for low, high in pairs)
    ranges = [intervals.network_range(text, 4) for text in intervals.network_texts(wanted, 4)]
    assert intervals.union(ranges) == wanted
    sizes = [sum(last - first + 1 for first, last in one) for one in (ranges, wanted)]
    assert sizes[0] == sizes[1], "no address twice"


def test_networks_at_both_ends() -> None:
    last = (1 << 128) - 1
    assert intervals.network_texts(((0, (1 << 32) - 1),), 4) == ("0.0.0.0/0",)
    assert intervals.network_texts(((last, last),), 6) == ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",)


def test_text_for_people() -> None:
    everybody = intervals.unicast_addresses(4)
    assert intervals.address_text(everybody, 4) == "1.0.0.0-126.255.255.255, 128.0.0.0-223.255.255.255"
    many = intervals.union((number, number) for number in range(256, 270, 2))
    assert intervals.address_text(many, 4) == "0.0.1.0, 0.0.1.2, 0.0.1.4, 0.0.1.6 (+3)"
    assert intervals.address_text(((256, 511),), 4) == "0.0.1.0/24"
    assert intervals.port_text(((22, 22), (60000, 60031))) == "22, 60000-60031"
