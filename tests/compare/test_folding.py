"""Names of hosts, folded so that other programs read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envtune.compare.folding import fold

NAMES = st.builds(
    "{}{}{}".format,
    st.sampled_from(["node", "rack2-node", "n", "", "a.b-"]),
    st.sampled_from(["0", "1", "2", "3", "8", "9", "10", "11", "99", "100", "01", "02", "09", "007", "010", "00"]),
    st.sampled_from(["", ".lab", "-ib"]),
)


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["node7", "node2", "node1", "node9", "node3"], "node[1-3,7,9]"),
        (["node18"], "node18"),
        (["node18", "node18"], "node18"),
        (["node3", "node1", "node2", "node3", "node1", "node5", "node5"], "node[1-3,5]"),
        (["a", "b", "a"], "a,b"),
        (["node09", "node10", "node11", "node08"], "node[08-11]"),
        (["n9", "n10"], "n[9-10]"),
        (["n9", "n10", "n09"], "n[9],n[09-10]".replace("n[9]", "n9")),
        (["pod3-node2", "pod3-node1", "pod4-node1"], "pod3-node[1-2],pod4-node1"),
        (["node1.lab", "node2.lab"], "node[1-2].lab"),
        (["192.0.2.11", "192.0.2.10"], "192.0.2.[10-11]"),
        (["login", "node2", "node1", "login"], "node[1-2],login"),
        (["node1 (b.tar.gz)", "a[1-99999999]"], "a[1-99999999],node1 (b.tar.gz)"),
        (["x" * 300 + "1", "1" * 30], "1" * 30 + "," + "x" * 300 + "1"),
        ([], ""),
    ],
)
def test_fold(names: list[str], folded: str) -> None:
    assert fold(names) == folded


@given(st.sets(NAMES, min_size=1))
def test_another_program_reads_the_same_names(names: set[str]) -> None:
    nodeset = pytest.importorskip("ClusterShell.NodeSet")
    assert set(nodeset.NodeSet(fold(names), resolver=nodeset.RESOLVER_NOGROUP)) == names
