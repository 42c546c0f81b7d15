"""A ClusterShell worker for ssh that passes on raw bytes, up to a limit, when a host is done. Needs ClusterShell."""

from __future__ import annotations

import time
from typing import Any, Callable, Optional, Sequence

from ClusterShell.NodeSet import NodeSet
from ClusterShell.Worker.EngineClient import EngineClientEOF
from ClusterShell.Worker.Ssh import SshClient, WorkerSsh

from envtune.fleet.collected import Answer

OUTPUT_LIMIT = 256 * 1024  # bytes: a frame, and banners around it
ERRORS_LIMIT = 16 * 1024
OnAnswer = Callable[[str, Answer], None]


class Client(SshClient):  # type: ignore[misc]  # ClusterShell has no types
    """One ssh."""

    def _start(self) -> Any:
        self.began = time.monotonic()
        self.kept = {self.worker.SNAME_STDOUT: bytearray(), self.worker.SNAME_STDERR: bytearray()}
        return super()._start()

    def _handle_read(self, sname: str) -> None:
        """Keep a host's output; if there is too much, close the pipe, which ends ssh."""
        data, kept = self._read(sname), self.kept[sname]
        is_output = sname == self.worker.SNAME_STDOUT
        limit = OUTPUT_LIMIT if is_output else ERRORS_LIMIT
        kept += data[: limit - len(kept)]
        if len(kept) == limit and is_output:
            raise EngineClientEOF()

    def _flush_read(self, sname: str) -> None:
        pass  # lines are not buffered

    def answer(self, status: Optional[int]) -> Answer:
        """Return what was received, and release it."""
        output, errors = (bytes(self.kept[name]) for name in (self.worker.SNAME_STDOUT, self.worker.SNAME_STDERR))
        self.kept = {}
        return Answer(output, errors, status, time.monotonic() - self.began)


class Worker(WorkerSsh):  # type: ignore[misc]
    """The hosts of one task."""

    SHELL_CLASS = Client

    def __init__(self, hosts: Sequence[str], command: str, timeout: float, on_answer: OnAnswer) -> None:
        self._on_answer = on_answer
        super().__init__(NodeSet.fromlist(hosts), None, timeout, command=command, stderr=True)
        self._by_host = {client.key: client for client in self._clients}

    def _on_node_close(self, node: str, rc: int) -> None:
        self._on_answer(node, self._by_host.pop(node).answer(rc))

    def _on_node_timeout(self, node: str) -> None:
        self._on_answer(node, self._by_host.pop(node).answer(None))

    def _on_start(self, key: str) -> None:
        pass  # nobody listens
