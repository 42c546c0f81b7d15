"""Which facts of hosts are compared, how much a difference matters, and which hosts have which value."""

from __future__ import annotations

import re
from typing import Iterable, Mapping, Optional, Sequence

from envtune.audit.settings import PACKAGE, VARIABLE
from envtune.compare.hosts import HostReport, Value, value
from envtune.messages import Literal, Message, Text
from envtune.model import Severity
from envtune.records import NamedTuple
from envtune.resources.environment.reference import path_variables

# What the ranks of one job must have in common: HCCL compares versions and settings of the ranks when it connects them
# (EI0005, checks/codes), and a rank with another torch runs another program.
_SAME_IN_A_JOB = Severity.HIGH
NAMES: Mapping[str, tuple[Severity, Text]] = {
    "npu": (_SAME_IN_A_JOB, Literal("NPU")),
    "npu_count": (Severity.MEDIUM, Message("number of NPUs")),
    "arch": (_SAME_IN_A_JOB, Message("architecture")),
    "os": (Severity.MEDIUM, Message("operating system")),
    "kernel": (Severity.MEDIUM, Message("kernel")),
    "cpus": (Severity.MEDIUM, Message("number of CPUs")),
    "smt": (Severity.LOW, Message("hyper-threads")),
    "iommu": (Severity.LOW, Message("IOMMU parameters of the kernel")),
    "mitigations": (Severity.LOW, Message("parameters for CPU vulnerabilities")),
    "container": (Severity.MEDIUM, Message("container")),
    "vm": (Severity.MEDIUM, Message("virtual machine")),
    "driver": (_SAME_IN_A_JOB, Message("driver")),
    "firmware": (Severity.MEDIUM, Message("firmware")),
    "cann": (_SAME_IN_A_JOB, Literal("CANN")),
    "python": (Severity.MEDIUM, Literal("Python")),
    "torch": (_SAME_IN_A_JOB, Literal("torch")),
    "torch_npu": (_SAME_IN_A_JOB, Literal("torch_npu")),
}
# A different value means a different job: if most hosts agree, the others would not find them.
_JOB = frozenset(VARIABLE + name for name in ("MASTER_ADDR", "MASTER_PORT", "NNODES", "WORLD_SIZE", "RANK_TABLE_FILE"))
_EACH = _JOB | {VARIABLE + "HCCL_IF_IP"}  # if there is no majority, it differs per job or host
_PLACES = frozenset(("PYTHONPATH", "LD_PRELOAD", "TOOLCHAIN_HOME", "ASCEND_TOOLKIT_HOME"))  # and what ends with _PATH
_OF_A_NODE = re.compile(r"LOG|DEBUG|DFS|DIAGNOSE|SUPERPOD")  # HCCL_*: what a node logs, and where it is located


class Shared(NamedTuple):
    """A value and the hosts that have it; None if it is not set or not installed."""

    value: Optional[str]
    hosts: tuple[str, ...]


class FactRow(NamedTuple):
    """A fact over several hosts: its values, the most frequent first, and the hosts for which it is unknown, by reason.

    `majority`: whether more than half of the hosts for which it is known have the first value.
    """

    name: str
    severity: Severity
    values: tuple[Shared, ...]
    unknown: tuple[tuple[Text, tuple[str, ...]], ...]
    majority: bool

    @property
    def differs(self) -> bool:
        """Whether two hosts are known to have different values."""
        return len(self.values) > 1

    @property
    def minority(self) -> tuple[Shared, ...]:
        """The values of those that differ from the majority; none if there is no majority."""
        return self.values[1:] if self.majority else ()


def title(name: str) -> Text:
    """Return the display name of the fact; a variable or package keeps its own name."""
    return NAMES[name][1] if name in NAMES else Literal(name.partition(":")[2] or name)


def severity_of(name: str) -> Severity:
    """Return how much it matters that two hosts differ in a fact."""
    if name in NAMES:
        return NAMES[name][0]
    plain = name.partition(":")[2]
    if is_package(name) or plain in _PLACES or plain in path_variables() or plain.endswith("_PATH"):
        return Severity.LOW
    of_hccl = plain.startswith("HCCL_") and _OF_A_NODE.search(plain) is None
    return _SAME_IN_A_JOB if name in _JOB or of_hccl else Severity.MEDIUM


def is_package(name: str) -> bool:
    """Return whether it is a Python package; hosts may have hundreds of them."""
    return name.startswith(PACKAGE)


def is_same_in_a_job(name: str) -> bool:
    """Return whether the ranks of one job must have the fact in common."""
    return severity_of(name) is _SAME_IN_A_JOB


def fact_names(hosts: Iterable[HostReport]) -> tuple[str, ...]:
    """Return the facts that are compared: those of every host, then variables and packages of any host."""
    further = {name for host in hosts for name in host.facts if name.startswith((VARIABLE, PACKAGE))}
    return (*NAMES, *sorted(further, key=lambda name: (name.startswith(PACKAGE), name)))


def fact_rows(hosts: Sequence[HostReport], names: Iterable[str]) -> tuple[FactRow, ...]:
    """Return these facts across the hosts."""
    return tuple(fact_row(name, [(host.label, value(host, name)) for host in hosts]) for name in names)


def fact_row(name: str, values: Iterable[tuple[str, Value]]) -> FactRow:
    """Return the row of one fact by (host, value)."""
    hosts: dict[Value, list[str]] = {}
    for label, found in values:
        hosts.setdefault(found, []).append(label)
    return fact_row_of(name, hosts)


def fact_row_of(name: str, hosts: Mapping[Value, Sequence[str]]) -> FactRow:
    """Return the row of one fact by the hosts that have each value.

    Values are compared unchanged or without what identifies the host, whichever way more hosts agree: a value with the
    host's own name or address (HCCL_IF_IP) is right on every host, and so is a list of all hosts.
    """
    unknown: dict[Text, list[str]] = {}
    for found, labels in hosts.items():
        if found.reason is not None:
            unknown.setdefault(found.reason, []).extend(labels)
    known = [(found, labels) for found, labels in hosts.items() if found.reason is None]
    total = sum(len(labels) for _, labels in known)
    shared = _shared((found.text, labels) for found, labels in known)
    own = _shared((found.own, labels) for found, labels in known) if name not in _JOB else shared
    best = own if own and len(own[0].hosts) >= len(shared[0].hosts) else shared
    majority = bool(best) and 2 * len(best[0].hosts) > total
    severity = severity_of(name)
    if name in _EACH and not majority:
        severity = Severity.INFO
    return FactRow(name, severity, best, tuple((why, tuple(labels)) for why, labels in unknown.items()), majority)


def _shared(values: Iterable[tuple[Optional[str], Sequence[str]]]) -> tuple[Shared, ...]:
    hosts: dict[Optional[str], list[str]] = {}
    for text, labels in values:
        hosts.setdefault(text, []).extend(labels)
    rows = sorted(hosts.items(), key=lambda row: -len(row[1]))
    return tuple(Shared(text, tuple(labels)) for text, labels in rows)
