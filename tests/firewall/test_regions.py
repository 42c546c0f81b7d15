"""Set arithmetic on connections."""

from __future__ import annotations

from envtune.firewall import regions

ONE = regions.product(((1, 10),), ((0, 9),))
TWO = regions.product(((5, 20),), ((5, 30),))


def test_union_cuts_ports_where_the_addresses_change() -> None:
    assert regions.union(ONE, TWO) == ((1, 4, ((0, 9),)), (5, 10, ((0, 30),)), (11, 20, ((5, 30),)))
    assert regions.union() == regions.union((), ()) == ()
    assert regions.union((), ONE, ()) is ONE


def test_difference_and_union_are_each_other_s_way_back() -> None:
    both = regions.union(ONE, TWO)
    hole = ((3, 6, ((2, 3),)),)
    assert regions.difference(both, both) == ()
    assert regions.union(regions.difference(both, hole), hole) == both


def test_intersection_holds_what_is_in_both() -> None:
    assert regions.intersection(ONE, TWO) == ((5, 10, ((5, 9),)),)
    assert regions.intersection(ONE, regions.product(((11, 12),), ((0, 9),))) == ()
    assert regions.product(((1, 2),), ()) == ()


def test_ports_addresses_and_size() -> None:
    both = regions.union(ONE, TWO)
    assert regions.ports_of(both) == ((1, 20),)
    assert regions.addresses_of(both) == ((0, 30),)
    assert regions.size_of(both) == 4 * 10 + 6 * 31 + 10 * 26
