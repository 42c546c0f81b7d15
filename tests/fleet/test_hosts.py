"""Which hosts are meant."""

from __future__ import annotations

import pytest

from envtune.errors import UsageError
from envtune.fleet.hosts import inventory_hosts, listed_hosts, node_set, required_hosts
from envtune.fleet.ssh import require_options

INI = """\
lonely ansible_host=10.0.0.9
[npu]
node[01:03] ansible_user=root
[cpu]
login1  # the first
[all:vars]
x=1
[everything:children]
npu
cpu
"""
YAML = """\
all:
  children:
    npu:
      hosts:
        node[01:03]:
        extra: {ansible_host: 10.0.0.1}
    cpu:
      hosts:
        login1:
"""


def test_node_sets() -> None:
    assert node_set("node[1-3,7]") == ("node1", "node2", "node3", "node7")
    with pytest.raises(UsageError, match="not a node set"):
        node_set("node[1-")


def test_a_list_of_hosts() -> None:
    assert listed_hosts("# mine\nnode1\n\nnode[2-3] slots=8  # two\n") == ("node1", "node2", "node3")


@pytest.mark.parametrize(
    ("text", "group", "hosts"),
    [
        (INI, None, ("lonely", "node01", "node02", "node03", "login1")),
        (INI, "npu", ("node01", "node02", "node03")),
        (INI, "everything", ("node01", "node02", "node03", "login1")),
        (YAML, None, ("node01", "node02", "node03", "extra", "login1")),
        (YAML, "npu", ("node01", "node02", "node03", "extra")),
    ],
)
def test_inventories(text: str, group: str, hosts: tuple[str, ...]) -> None:
    assert inventory_hosts(text, group) == hosts


def test_a_group_that_is_none() -> None:
    with pytest.raises(UsageError, match="npu"):
        inventory_hosts(INI, "npus")


@pytest.mark.parametrize("name", ["-oProxyCommand=touch x", "a b", "a;b", "$(x)", "../x", "\x1b[31m", ""])
def test_a_name_that_ssh_would_read_otherwise_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        required_hosts(["node1", name])


@pytest.mark.parametrize(
    "options", ["-oStrictHostKeyChecking=no", "-o 'StrictHostKeyChecking off'", "-o stricthostkeychecking=NO"]
)
def test_a_changed_host_key_is_never_accepted(options: str) -> None:
    with pytest.raises(UsageError, match="host key"):
        require_options(options)
    require_options("-oStrictHostKeyChecking=accept-new -J jump")
