"""Find the operation that limits a MindSpore data pipeline, from the queues between its operations.

Seed: an operation between a full queue and an empty one is too slow, and needs more workers (004:654-660). The fill
levels for full and empty are those of MindInsight's analyzer (minddata_analyser.py, 0.8 and 0.2).
"""

from __future__ import annotations

import json
import re
from typing import Any, Iterable, Mapping, Optional, Sequence

from envtune.profile.readers.tables import Header, cell, number
from envtune.records import NamedTuple

FULL, EMPTY = 0.8, 0.2
BUSY = 0.20  # idle CPU time below which the CPUs are busy: MindInsight's minddata_cpu_utilization_analyser.py
_ID = re.compile(r"\d+")


class Operation(NamedTuple):
    """An operation of the pipeline; `fill` is the mean fill level of its output queue, None if unknown."""

    number: str
    name: str
    workers: Optional[int]
    fill: Optional[float]
    inputs: tuple[str, ...]


class Pipeline(NamedTuple):
    """What the queues show: the operation that is too slow, whether all queues are full, or neither."""

    operations: tuple[Operation, ...]
    bottleneck: Optional[Operation]
    keeps_up: bool
    starved: bool  # the last queue with a known fill level is empty
    last: str  # the operation that feeds the device


class Queue(NamedTuple):
    """The queue to the device: records of its length, and of how many it was empty."""

    records: int
    empty: int


def read_pipeline(header: Header, rows: Iterable[Sequence[str]]) -> Pipeline:
    """Return what minddata_pipeline_raw_*.csv says."""
    operations = []
    for row in rows:
        name = cell(row, header.find("op id"))
        if not name:
            continue
        workers = number(cell(row, header.find("num workers")))
        sizes = cell(row, header.find("output queue size"))
        fill = number(cell(row, header.find("output queue usage rate"))) if sizes else None
        inputs = tuple(_ID.findall(cell(row, header.find("children id")) or ""))
        kind = cell(row, header.find("op type")) or "?"
        operations.append(Operation(name, kind, None if workers is None else int(workers), fill, inputs))
    return pipeline_of(operations)


def read_pipeline_json(data: Mapping[str, Any]) -> Pipeline:
    """Return what pipeline_profiling_*.json says."""
    operations = []
    entries = data.get("op_info")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping):
            workers = entry.get("num_workers")
            inputs = entry.get("children")
            operations.append(
                Operation(
                    str(entry.get("op_id")),
                    str(entry.get("op_type")),
                    workers if isinstance(workers, int) else None,
                    _fill(entry.get("metrics")),
                    tuple(map(str, inputs)) if isinstance(inputs, list) else (),
                )
            )
    return pipeline_of(operations)


def _fill(metrics: Any) -> Optional[float]:
    queue = metrics.get("output_queue") if isinstance(metrics, Mapping) else None
    sizes, length = (queue.get("size"), queue.get("length")) if isinstance(queue, Mapping) else (None, None)
    if not isinstance(sizes, list) or not isinstance(length, (int, float)) or not sizes or length <= 0:
        return None
    known = [size for size in sizes if isinstance(size, (int, float))]
    return sum(known) / len(known) / length if known else None


def pipeline_of(operations: Sequence[Operation]) -> Pipeline:
    """Return what the queues of these operations show; the operation that no other reads from is the last."""
    by_number = {one.number: one for one in operations}
    fed = {number for one in operations for number in one.inputs}
    order = [one for one in operations if one.number not in fed]
    for one in order:  # breadth first, from the device's end
        order += [by_number[number] for number in one.inputs if number in by_number and by_number[number] not in order]
    known = [one for one in order if one.fill is not None]
    slow = next((one for one in order if _is_slow(one, by_number)), None)
    keeps_up = bool(known) and all((one.fill or 0.0) >= FULL for one in known)
    starved = bool(known) and (known[0].fill or 0.0) <= EMPTY
    return Pipeline(tuple(operations), slow, keeps_up, starved, order[0].name if order else "")


def _is_slow(one: Operation, by_number: Mapping[str, Operation]) -> bool:
    if one.fill is None or one.fill > EMPTY:
        return False
    fills = [by_number[number].fill for number in one.inputs if number in by_number]
    return all(fill is not None and fill >= FULL for fill in fills)


def read_queue(lines: Iterable[bytes]) -> Optional[Queue]:
    """Return what device_queue_profiling_*.txt says: `1 capacity batch length [time]` is a record of the queue."""
    records = empty = 0
    for line in lines:
        cells = line.split()
        if len(cells) >= 4 and cells[0] == b"1" and all(word.isdigit() for word in cells[:4]):
            records += 1
            empty += cells[3] == b"0"
    return Queue(records, empty) if records else None


def read_idle(data: Mapping[str, Any]) -> Optional[float]:
    """Return the mean share of idle CPU time that minddata_cpu_utilization_*.json says, 0 to 1."""
    host = data.get("device_info")
    values = host.get("idle_utilization") if isinstance(host, Mapping) else None
    known = [value for value in values if isinstance(value, (int, float))] if isinstance(values, list) else []
    return sum(known) / len(known) / 100 if known else None


def load_json(text: str) -> Optional[Mapping[str, Any]]:
    """Return the JSON object; None if it is truncated or something else."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, Mapping) else None
