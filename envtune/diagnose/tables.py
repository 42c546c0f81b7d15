"""Judge the npu-smi and ps tables in a log by the checks' own rules, on a host that consists of them.

Memory in use while AI Core is idle, no step is reported and no process holds it is F19; other problems of a device in a
table, such as a health other than OK, are reported with their check.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.audit import audit
from envtune.catalog import Catalogue
from envtune.collector.redact import redact_argv
from envtune.context.open import open_context, resolve_target
from envtune.diagnose.logs.lines import Line
from envtune.diagnose.patterns import Pattern
from envtune.diagnose.scan import Hit, Scan, Table
from envtune.errors import SnapshotError
from envtune.model import Check, Finding, Outcome
from envtune.resources.npu.smi import NpuDevice, parse_info
from envtune.snapshot.host import SnapshotHost

RESIDUAL = "F19"
HEALTH, LEFT_OVER, TAKEN = "CANN007", "PROC001", "PROC002"
_PROCESS = re.compile(r"(?P<user>\S+)\s+(?P<pid>\d{1,9})\s+(?P<ppid>\d{1,9})\s+\S+\s+\S+\s+\S+\s+\S+\s+(?P<args>\S.*)")


class State(NamedTuple):
    """What a check finds in a table of a log; `device` is the row of the device, if it is idle."""

    table: Table
    finding: Finding
    device: Optional[NpuDevice] = None


def states_of(scan: Scan, catalogue: Catalogue) -> tuple[State, ...]:
    """Return what fails in the tables; memory in use only for devices on which nothing runs."""
    checks = [check for check in catalogue.checks if check.id in (HEALTH, LEFT_OVER, TAKEN)]
    states = []
    for table in (table for table in scan.tables if "npu-smi" in table.rows[0]):
        for finding in _failed(table, scan, catalogue, checks):
            device = _idle_device(table, finding, scan) if finding.id == TAKEN else None
            if finding.id != TAKEN or device is not None:
                states.append(State(table, finding, device))
    return tuple(states)


def _failed(table: Table, scan: Scan, catalogue: Catalogue, checks: Sequence[Check]) -> Iterator[Finding]:
    try:
        host = SnapshotHost(_host(table, [other for other in scan.tables if other.file is table.file]))
    except SnapshotError:
        return  # not a row of ps
    context = open_context(host, resolve_target(host), catalogue.expectations)
    yield from (found for found in audit(checks, context) if found.outcome is Outcome.FAIL and found.subject)


def _idle_device(table: Table, finding: Finding, scan: Scan) -> Optional[NpuDevice]:
    """Return the device of a finding, if its AI Core is idle and the log reports no step."""
    progress = scan.progress.get(table.file.path)
    parsed = parse_info("\n".join(table.rows))
    found = (device for device in parsed.devices if device.raw == finding.evidence.text)
    device = next(found, None) if progress is None or not progress.steps else None
    known = device is not None and device.npu not in parsed.without_processes
    return device if known and device is not None and device.aicore == 0 else None


def _host(table: Table, tables: Iterable[Table]) -> Mapping[str, Any]:
    """Return the recorded host described by a table of npu-smi, and one of ps in the same file."""
    smi = {"argv": ["npu-smi", "info"], "stdout": "\n".join(table.rows) + "\n", "rc": 0}
    rows = [row for other in tables if other is not table for row in _processes(other)]
    return {"host": "log", "commands": [smi], "processes": rows, "euid": 0}


def _processes(table: Table) -> Iterator[Mapping[str, Any]]:
    for row in table.rows[1:]:
        found = _PROCESS.match(row.strip())
        if found is not None:
            argv = list(redact_argv(found["args"].split()))
            name = argv[0].rpartition("/")[2].strip("[]")
            pids = {"pid": int(found["pid"]), "ppid": int(found["ppid"])}
            yield {**pids, "user": found["user"], "name": name, "argv": argv}


def with_states(scan: Scan, states: Sequence[State]) -> Scan:
    """Return the scan with a sign of F19 for each device whose memory is in use although nothing runs on it."""
    hits = [_residual(state, state.device, states) for state in states if state.device is not None]
    counts = dict(scan.counts)
    for hit in hits:
        counts[RESIDUAL, hit.file.path] = counts.get((RESIDUAL, hit.file.path), 0) + 1
    return replace(scan, hits=[*scan.hits, *hits], counts=counts)


def _residual(state: State, device: NpuDevice, states: Sequence[State]) -> Hit:
    """Return the sign: strong if no process is listed, or ps shows that its job is gone; else weak."""
    table = state.table
    listed = any(
        (row.npu, row.chip) == (device.npu, device.chip) for row in parse_info("\n".join(table.rows)).processes
    )
    orphaned = any(other.finding.id == LEFT_OVER and other.table is table for other in states)
    row = device.raw.splitlines()[-1]
    place = next((n for n, text in enumerate(table.rows) if text.strip() == row.strip()), 0)
    pattern = Pattern(RESIDUAL, re.escape(row), "weak" if listed and not orphaned else "strong", index=-1)
    return Hit(pattern, table.file, Line(table.line + place, row), {"device": str(device.npu)}, (row,))
