"""A node as `scontrol` shows and changes it."""

from __future__ import annotations

import os
import re
from typing import Any, Sequence

from envtune.hook.records import HookError, Node
from envtune.trust.start import start_program

_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]*")  # one node: not a list or range, not the word ALL
_STATE = re.compile(r"^\s*State=(\S+)", re.MULTILINE)
_REASON = re.compile(r"^\s*Reason=(.*?)(?: \[([^\]\n]*)\])?$", re.MULTILINE)
_MARKS = "*~#!%$@^-+"  # suffixes that sinfo(1) adds to a state
_UTC = {"TZ": "UTC0", "SLURM_TIME_FORMAT": "standard"}  # a reason is recognized by the time it was set
_OUTPUT = 1 << 16  # bytes


class SlurmError(HookError):
    """Slurm did not answer, or refused; the text is its message."""


def node_name(named: str) -> str:
    """Return the name of this node: the named one, slurmd's, or the host's short name. Raises SlurmError."""
    name = named or os.environ.get("SLURMD_NODENAME", "") or os.uname().nodename.partition(".")[0]
    if not _NAME.fullmatch(name) or name.lower() == "all":
        raise SlurmError(f"{name[:80]!r} does not name one node")
    return name


class Slurm:
    """The commands of Slurm about one node."""

    def __init__(self, scontrol: str, node: str) -> None:
        self.scontrol = scontrol
        self.node = node

    def show(self) -> Node:
        """Return the node. Raises SlurmError."""
        return parse_node(self._run("show", "node", self.node))

    def drain(self, reason: str) -> None:
        """Drain the node, so that no further job starts on it. Raises SlurmError."""
        self._run("update", f"NodeName={self.node}", "State=DRAIN", f"Reason={reason}")

    def resume(self) -> None:
        """Undo a drain; a node that is down stays down. Raises SlurmError."""
        self._run("update", f"NodeName={self.node}", "State=UNDRAIN")

    def _run(self, *words: str) -> str:
        import subprocess

        try:
            streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            child = start_program([self.scontrol, *words], marks=_UTC, **streams)
        except (OSError, ValueError) as error:
            raise SlurmError(f"{self.scontrol}: {getattr(error, 'strerror', None) or error}") from error
        text = child.communicate()[0][:_OUTPUT].decode("utf-8", "replace")  # the waiting process enforces the deadline
        if child.returncode != 0:
            raise SlurmError(f"{_line(self.scontrol, words)}: {' '.join(text.split())[:300] or child.returncode}")
        return str(text)


def parse_node(text: str) -> Node:
    """Return the node of `scontrol show node`. Raises SlurmError if no state is shown.

    A multi-line reason has no time in its first line, and so counts as somebody else's.
    """
    state, reason = _STATE.search(text), _REASON.search(text)
    if state is None:
        raise SlurmError(f"no state in: {' '.join(text.split())[:200]}")
    words = [re.sub(f"[{re.escape(_MARKS)}]+$", "", word).upper() for word in state[1].split("+")]
    return Node(frozenset(filter(None, words)), reason[1] if reason else "", (reason[2] or "") if reason else "")


def _line(program: str, words: Sequence[str]) -> str:
    return " ".join([os.path.basename(program), *words])
