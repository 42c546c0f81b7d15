"""Run a program on many hosts through gateways: ClusterShell's tree. Needs ClusterShell, on the gateways as well.

A host without a complete frame is asked again directly by the caller: what was sent to a failed gateway did not arrive,
and a hung gateway reports nothing about its hosts.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from typing import Any, Sequence

from ClusterShell.Event import EventHandler
from ClusterShell.NodeSet import NodeSet
from ClusterShell.Task import Task
from ClusterShell.Topology import TopologyGraph
from ClusterShell.Worker.Tree import TreeWorker

from envtune.fleet.clients import ERRORS_LIMIT, OUTPUT_LIMIT, OnAnswer
from envtune.fleet.collected import Answer

_ROOT = "envtune-audit"  # stands for this machine, not for a host
# How a gateway is started, unless the caller's environment sets it; it writes no log.
_DEFAULTS = {"CLUSTERSHELL_GW_PYTHON_EXECUTABLE": "python3", "CLUSTERSHELL_GW_LOG_DIR": os.devnull}


class GatewayWorker(TreeWorker):  # type: ignore[misc]  # ClusterShell has no types
    """The hosts of one task, reached through gateways; their output arrives in lines and is kept up to a limit."""

    def __init__(self, hosts: Sequence[str], command: str, timeout: float, on_answer: OnAnswer) -> None:
        self._on_answer, self._began = on_answer, time.monotonic()
        self._lines: dict[tuple[str, str], bytearray] = defaultdict(bytearray)
        super().__init__(NodeSet.fromlist(hosts), EventHandler(), timeout, command=command, stderr=True)

    def _on_node_msgline(self, node: str, msg: bytes, sname: str) -> None:
        kept = self._lines[node, sname]
        limit = OUTPUT_LIMIT if sname == self.SNAME_STDOUT else ERRORS_LIMIT
        kept += (msg + b"\n")[: limit - len(kept)]

    def _on_remote_node_msgline(self, node: str, msg: bytes, sname: str, gateway: str) -> None:
        self._on_node_msgline(node, msg, sname)

    def _on_node_close(self, node: str, rc: int) -> None:
        self._end(node, rc)
        super()._on_node_close(node, rc)

    def _on_remote_node_close(self, node: str, rc: int, gateway: str) -> None:
        self._end(node, rc)
        super()._on_remote_node_close(node, rc, gateway)

    def _on_node_timeout(self, node: str) -> None:
        self._end(node, None)
        super()._on_node_timeout(node)

    def _on_remote_node_timeout(self, node: str, gateway: str) -> None:
        self._end(node, None)
        super()._on_remote_node_timeout(node, gateway)

    def _end(self, node: str, status: Any) -> None:
        output, errors = (bytes(self._lines.pop((node, name), b"")) for name in (self.SNAME_STDOUT, self.SNAME_STDERR))
        self._on_answer(node, Answer(output, errors, status, time.monotonic() - self._began))


def add_gateways(task: Task, hosts: Sequence[str], gateways: Sequence[str]) -> None:
    """Make the task reach the hosts through the gateways."""
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    graph = TopologyGraph()
    graph.add_route(NodeSet(_ROOT), NodeSet.fromlist(gateways))
    graph.add_route(NodeSet.fromlist(gateways), NodeSet.fromlist(hosts))
    task.topology, task.router = graph.to_tree(_ROOT), None


def longest(hosts: int, gateways: int, fanout: int, seconds: float) -> float:
    """Return how long this may take: `seconds` times the number of hosts that a gateway handles one after the other."""
    return seconds * (1 + hosts // (gateways * fanout))
