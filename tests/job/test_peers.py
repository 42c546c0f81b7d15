"""Who the peers are: addresses, networks, hostfiles and Slurm's node lists become addresses; everybody is nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from envtune.errors import UsageError
from envtune.job.peers import MAX_NODES, expand_nodelist, parse_hostfile, read_peers


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node1", ["node1"]),
        ("node[01-03,7],login", ["node01", "node02", "node03", "node7", "login"]),
        ("node[098-101]", ["node098", "node099", "node100", "node101"]),
        ("rack[1-2]n[0,2]-ib", ["rack1n0-ib", "rack1n2-ib", "rack2n0-ib", "rack2n2-ib"]),
        ("a,b[5]", ["a", "b5"]),
        ("", []),
        ("node[3-1]", []),
    ],
)
def test_slurm_node_lists(text: str, names: list[str]) -> None:
    assert list(expand_nodelist(text)) == names


@pytest.mark.parametrize("text", ["node[a-b]", "node[1-]", "node[-1]", "node[]", "node[1-999999]"])
def test_nonsense_is_no_node_list(text: str) -> None:
    with pytest.raises(UsageError):
        list(expand_nodelist(text))


def test_hostfiles_of_the_launchers() -> None:
    mpirun = "node1 slots=8\nnode2 slots=8  # the second\n\n# node3 slots=8\n"
    horovod = "10.0.0.1:8\r\n10.0.0.2:8\r\n"
    plain = "fd00::1\nfd00::2\n"
    assert parse_hostfile(mpirun) == ["node1", "node2"]
    assert parse_hostfile(horovod) == ["10.0.0.1", "10.0.0.2"]
    assert parse_hostfile(plain) == ["fd00::1", "fd00::2"]


def test_more_hosts_than_a_job_has_are_refused_before_any_is_looked_up(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("name.invalid\n" * (MAX_NODES + 1))
    with pytest.raises(UsageError, match="more than 65536 peers"):
        read_peers([], tmp_path / "hosts", "")


def test_addresses_stay_and_networks_are_made_whole(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("10.0.0.4 slots=8\n10.0.0.1\n")
    found = read_peers(["10.0.0.1,10.0.1.9/24", "fd00::1"], file, "ignored[1-2]")
    assert found == ("10.0.0.1", "10.0.1.0/24", "fd00::1", "10.0.0.4")


def test_slurm_is_asked_only_where_nobody_is_named() -> None:
    assert read_peers([], None, "10.0.0.[1-2]") == ("10.0.0.1", "10.0.0.2")
    assert read_peers(["10.0.0.9"], None, "10.0.0.[1-2]") == ("10.0.0.9",)


@pytest.mark.parametrize("word", ["", " ", ","])
def test_an_option_without_a_name_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="--peer names no host"):
        read_peers([word], None, "10.0.0.1")


@pytest.mark.parametrize("word", ["0.0.0.0/0", "::/0"])
def test_everybody_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="matches every host"):
        read_peers([word], None, "")


def test_a_name_without_an_address_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no-such-host\.invalid"):
        read_peers(["no-such-host.invalid"], None, "")
    with pytest.raises(UsageError, match="--hostfile"):
        read_peers([], tmp_path / "missing", "")


@pytest.mark.parametrize(
    "text", ["n[0-65535][0-65535]", "n[" + "0-65535," * 9 + "1]", "n[" + "9" * 5000 + "]", "a" + "[0-9]" * 2000]
)
def test_slurm_node_lists_that_name_more_hosts_than_there_are(text: str) -> None:
    with pytest.raises(UsageError):
        list(expand_nodelist(text))


def test_slurm_node_list_of_brackets_that_are_never_closed() -> None:
    assert list(expand_nodelist("[" * 200_000)) == []
