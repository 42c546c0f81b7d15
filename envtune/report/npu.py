"""Render the NPUs of a host: a table for people, a document (`envtune.npu/1`) for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, Sequence

from envtune.messages import Literal, Message, Text, enumerated, in_context
from envtune.ranges import join_subjects
from envtune.report.layout import Paint, clip, display_width, indent, pad, printable, wrap
from envtune.report.redaction import redacted
from envtune.trust.characters import json_text
from envtune.version import __version__

if TYPE_CHECKING:
    from envtune.resources.processes.inventory import NpuRow
    from envtune.resources.processes.usage import DeviceProcess

SCHEMA = "envtune.npu/1"
UNKNOWN = "?"
_HEADINGS: Mapping[str, Text] = {
    "subject": Literal("NPU"),
    "model": in_context("column", "model"),
    "health": Message("health"),
    "temperature": Message("temp."),
    "memory": Message("memory"),
    "processes": Message("owner"),
}


def render(host: str, rows: Sequence[NpuRow], lang: str, *, width: int = 80, colour: bool = False) -> str:
    """Return the table, and below it why cells are unknown."""
    if not rows:
        none = Message("{host}: no NPU found: no npu-smi table, device node or PCI device", host=host)
        return "\n".join(wrap(printable(none.to(lang)), width))
    paint = Paint(colour)
    heading = [text.to(lang) for text in _HEADINGS.values()]
    cells = [_cells(row, lang) for row in rows]
    widths = [max(display_width(line[at]) for line in (heading, *cells)) for at in range(len(heading) - 1)]
    left = sum(widths) + 2 * len(widths)
    lines = [paint(_line(heading, widths), "bold")]
    for row, line in zip(rows, cells):
        first = _line(line[:-1], widths)
        owners = clip(line[-1], max(width - left, 12), 2)
        bad = row.health is not None and row.health.upper() != "OK"
        lines.append((paint(first, "red") if bad else first) + owners[0])
        lines += [" " * left + owner for owner in owners[1:]]
    return "\n".join(line.rstrip() for line in (*lines, *_reasons(rows, lang, width)))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    fixed = "".join(pad(cell, width + 2) for cell, width in zip(cells, widths))
    return fixed + "".join(cells[len(widths) :])


def _cells(row: NpuRow, lang: str) -> list[str]:
    return [
        printable(row.subject),
        printable(row.model or UNKNOWN),
        printable(row.health or UNKNOWN),
        UNKNOWN if row.temperature is None else f"{row.temperature:g} C",
        UNKNOWN if row.memory is None else f"{row.memory.used}/{row.memory.total} MB",
        _owners(row, lang),
    ]


def _owners(row: NpuRow, lang: str) -> str:
    if row.processes is None:
        return UNKNOWN
    names = [_owner(process, lang) for process in row.processes]
    return enumerated([*names, *([UNKNOWN] if "processes" in row.unknown else [])]).to(lang) or "-"


def _owner(process: DeviceProcess, lang: str) -> str:
    name = f"{process.pid} {printable(process.name)}".rstrip()
    if process.process is None:
        return name
    user = Message("{process} of {user}", process=name, user=printable(process.process.user))
    return user.to(lang)


def _reasons(rows: Sequence[NpuRow], lang: str, width: int) -> Iterator[str]:
    """Yield each reason once, with the cells that it is about."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for row in rows:
        by_reason: dict[str, list[str]] = {}
        for column, reason in row.unknown.items():
            by_reason.setdefault(printable(reason.to(lang)), []).append(column)
        for text, columns in by_reason.items():
            found.setdefault((text, tuple(columns)), []).append(row.subject)
    if found:
        yield ""
    for (text, names), subjects in found.items():
        what = enumerated(_HEADINGS[name] for name in names)
        about = in_context(
            "npu", "{subjects} ({columns}): {reason}", subjects=join_subjects(subjects), columns=what, reason=text
        )
        yield from indent(about.to(lang), width, f"{UNKNOWN} ", "  ")


def npu_data(host: str, rows: Sequence[NpuRow], lang: str) -> dict[str, Any]:
    """Return the NPUs as plain data; what is null is unknown, and `unknown` says why, by key."""
    return {
        "schema": SCHEMA,
        "envtune": __version__,
        "host": host,
        "devices": [_device(row, lang) for row in rows],
    }


def _device(row: NpuRow, lang: str) -> dict[str, Any]:
    memory = None if row.memory is None else {"used": row.memory.used, "total": row.memory.total}
    return {
        "id": row.subject,
        "model": _text(row.model),
        "health": _text(row.health),
        "temperature": row.temperature,
        "memory": memory,
        "bus": row.bus or None,
        "processes": None if row.processes is None else [_process(process) for process in row.processes],
        "unknown": {column: redacted(reason.to(lang)) for column, reason in row.unknown.items()},
    }


def _process(process: DeviceProcess) -> dict[str, Any]:
    user = None if process.process is None else redacted(process.process.user)
    return {"pid": process.pid, "name": redacted(process.name), "user": user, "memory": process.memory}


def _text(value: Optional[str]) -> Optional[str]:
    return None if value is None else redacted(value)


def render_json(host: str, rows: Sequence[NpuRow], lang: str) -> str:
    """Return the NPUs as one JSON document."""
    return json_text(npu_data(host, rows, lang), 1)
