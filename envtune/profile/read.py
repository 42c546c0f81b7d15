"""Read the files of profiles into units, one for each rank; what cannot be read is reported with the reason."""

from __future__ import annotations

import os
import sqlite3
from itertools import islice
from typing import IO, Any, Callable, Iterator, Mapping, Optional, Sequence, cast

from envtune.errors import system_error_text
from envtune.host.input import open_input
from envtune.messages import Message, Text, enumerated, plural
from envtune.profile.kinds import profiler_of
from envtune.profile.readers import database
from envtune.profile.readers.columns import unknown_columns
from envtune.profile.readers.communication import read_collectives
from envtune.profile.readers.dataset import load_json, read_idle, read_pipeline, read_pipeline_json, read_queue
from envtune.profile.readers.ends import cut_row, until
from envtune.profile.readers.files import Files, Place
from envtune.profile.readers.kernels import read_kernels
from envtune.profile.readers.layouts import TEXT_FILES, json_kind, table_kind
from envtune.profile.readers.operators import read_aicpu, read_apis, read_groups
from envtune.profile.readers.settings import read_metadata, read_settings
from envtune.profile.readers.steps import Step, mean_steps, steps_of
from envtune.profile.readers.tables import Header, as_text, header_of, lines_of, rows_of
from envtune.profile.readers.trace import read_trace
from envtune.profile.unit import Unit
from envtune.records import NamedTuple

HEAD = 1 << 16
WHOLE_JSON = 1 << 25  # bytes of a JSON file that is read as a whole; larger ones are read only if they are traces
MOST_STEPS = 100_000  # rows of a table of steps: a profile has tens of them
_SHOWN = 6  # columns of an unknown header that are listed


class Unread(NamedTuple):
    """A file that was not read, and why."""

    path: str
    reason: Text


class Reading:
    """The units while files are read."""

    def __init__(self) -> None:
        self.units: dict[str, Unit] = {}
        self.clusters: list[Unit] = []  # tables of several ranks
        self.unread: list[Unread] = []
        self.files = 0
        self.columns: dict[str, dict[str, None]] = {}  # kind of table -> unknown columns, in order
        self.remarks: list[Text] = []  # on files that were read partially

    def unit(self, place: Place) -> Unit:
        """Return the unit that a file belongs to."""
        unit = self.units.setdefault(place.unit, Unit(place.unit))
        unit.number = unit.number or place.rank
        return unit

    def see_columns(self, kind: str, names: Sequence[str]) -> None:
        """Keep the unknown columns of a table."""
        if names:
            self.columns.setdefault(kind, {}).update(dict.fromkeys(names))


def read_profiles(paths: Sequence[str], progress: Optional[Callable[[str], None]] = None) -> Reading:
    """Return the content of the files below these paths; raises OSError for a path that does not exist."""
    reading, files = Reading(), Files(paths)
    for place in files:
        if progress is not None:
            progress(place.path)
        try:
            reason = _read(reading, place)
        except OSError as error:
            reason = system_error_text(error)
        except sqlite3.Error as error:
            reason = Message("not a readable database: {reason}", reason=str(error))
        if reason is not None:
            reading.unread.append(Unread(place.path, reason))
        else:
            reading.files += 1
    _add_files(reading, files)
    for unit in reading.units.values():
        unit.prefer_tables()
    return reading


def _add_files(reading: Reading, files: Files) -> None:
    """Report which files were found twice, and which older exports were left out."""
    for path, count in files.repeated.items():
        reading.remarks.append(
            plural(
                "{path}: {count} file was given more than once and is counted once",
                "{path}: {count} files were given more than once and are counted once",
                count,
                path=path,
            )
        )
    reading.unread += [
        Unread(path, Message("an older export of the same table; {name} was read", name=name))
        for path, name in files.older
    ]


def _read(reading: Reading, place: Place) -> Optional[Text]:
    """Read one file; return why it was not read."""
    with open_input(place.path) as raw, _buffered(raw) as stream:
        head = stream.read(HEAD)
        if not head.strip():
            return Message("the file is empty")
        stream.seek(0)
        if head.startswith(database.MAGIC):
            return _read_database(reading, place, raw.fileno())
        name = os.path.basename(place.path)
        start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if start in (b"[", b"{") and not name.endswith(".csv"):
            return _read_json(reading, place, stream, head)
        text_kind = next((kind for begin, kind in TEXT_FILES.items() if name.startswith(begin)), None)
        if text_kind is not None and name.endswith(".txt"):
            if text_kind == "queue":
                unit = reading.unit(place)
                unit.queue = read_queue(lines_of(stream)) or unit.queue
            return None
        return _read_table(reading, place, stream)


def _buffered(raw: Any) -> IO[bytes]:
    import io

    return cast("IO[bytes]", io.BufferedReader(raw, 1 << 20))


class Table(NamedTuple):
    """A table whose header was read."""

    header: Header
    cells: Sequence[str]  # of the header
    stream: IO[bytes]  # after the header
    lines: Iterator[bytes]  # of the stream


def _read_table(reading: Reading, place: Place, original: IO[bytes]) -> Optional[Text]:
    stream = as_text(original)
    seekable = stream is original  # not UTF-16, which no profiler writes
    lines = lines_of(stream)
    cells = next(rows_of(iter([next(lines, b"")])), [])
    header = header_of(cells)
    kind = table_kind(header)
    if kind is None:
        return Message("unknown header: {columns}", columns=_shown(header.names))
    if kind == "other":
        return None
    reading.see_columns(kind, unknown_columns(kind, header))
    cut = cut_row(stream, len(cells)) if seekable else None
    if cut is not None:
        reading.remarks.append(
            Message("{path}: ends in the middle of a row; read up to line {line}", path=place.path, line=cut.lines)
        )
        stream = until(stream, cut.size)
        lines = lines_of(stream)
    return _read_rows(reading, place, kind, Table(header, cells, stream, lines))


def _shown(names: Sequence[str]) -> Text:
    return enumerated([name or '""' for name in names[:_SHOWN]])


def _read_rows(reading: Reading, place: Place, kind: str, table: Table) -> Optional[Text]:
    header, cells, stream, lines = table
    if kind == "kernels":
        reading.unit(place).kernels.append(read_kernels(cells, stream))
        return None
    rows = rows_of(lines)
    if kind == "cluster_steps":
        kept = list(islice(rows, MOST_STEPS))
        _add_cluster(reading, place, list(_with_stages(header, kept, steps_of(kind, header, kept, ""))))
        return _cut_short(rows)
    if kind in ("steps", "graph_steps", "iterations", "stage_steps"):
        steps = list(steps_of(kind, header, islice(rows, MOST_STEPS), place.rank or ""))
        return _add_steps(reading, place, steps, kind) or _cut_short(rows)
    _add_rows(reading.unit(place), kind, header, rows)
    return None


def _cut_short(rows: Iterator[Sequence[str]]) -> Optional[Text]:
    """Return the reason if rows are left unread, else None: every step that is read takes memory."""
    if next(rows, None) is None:
        return None
    return Message("only its first {number} rows were read", number=MOST_STEPS)


def _add_rows(unit: Unit, kind: str, header: Header, rows: Any) -> None:
    if kind == "operators":
        unit.operators += read_groups(header, rows)
    elif kind == "types":
        unit.types += read_groups(header, rows)
    elif kind == "apis":
        unit.apis += read_apis(header, rows)
    elif kind == "aicpu":
        unit.aicpu += read_aicpu(header, rows)
    else:
        unit.pipelines.insert(0, read_pipeline(header, rows))


def _add_steps(reading: Reading, place: Place, steps: Sequence[Step], kind: str = "steps") -> Optional[Text]:
    if not steps:
        return Message("no complete step in it")
    unit = reading.unit(place)
    unit.profiler = unit.profiler or profiler_of(place.unit, kind)
    for means in mean_steps(steps, place.path):
        if not any(one.rank == means.rank for one in unit.steps):
            unit.steps.append(means)
    return None


def _add_cluster(reading: Reading, place: Place, steps: Sequence[Step]) -> None:
    unit = Unit(place.path)
    unit.profiler = profiler_of(place.unit, "cluster_steps")
    unit.steps = mean_steps(steps, place.path)
    if unit.steps:
        reading.clusters.append(unit)


def _with_stages(header: Header, rows: Sequence[Sequence[str]], steps: Any) -> Any:
    """Yield the steps with the ranks of their pipeline stage, which the rows of type `stage` name."""
    kind, index = header.find("type"), header.find("index")
    stages: dict[str, str] = {}
    for row in rows:
        if kind is not None and index is not None and len(row) > max(kind, index) and row[kind] == "stage":
            for rank in row[index].strip("()[] ").split(","):
                stages[rank.strip()] = row[index]
    for step in steps:
        yield step._replace(stage=stages.get(step.rank, ""))


def _read_json(reading: Reading, place: Place, stream: IO[bytes], head: bytes) -> Optional[Text]:
    is_list = head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    size = os.fstat(stream.fileno()).st_size
    if is_list or b'"traceEvents"' in head or size > WHOLE_JSON:
        return _read_trace(reading, place, stream)
    data = load_json(stream.read(WHOLE_JSON + 1).decode("utf-8-sig", "replace"))
    if data is None:
        return Message("not complete JSON")
    kind = json_kind(data)
    if kind is None:
        shown = enumerated([str(key) for key in list(data)[:_SHOWN]])
        return Message("unknown keys: {columns}", columns=shown)
    if kind == "trace":
        stream.seek(0)
        return _read_trace(reading, place, stream)
    _add_json(reading.unit(place), kind, data, place.path)
    return None


def _read_trace(reading: Reading, place: Place, stream: IO[bytes]) -> Optional[Text]:
    trace = read_trace(stream)
    if not trace.events and not trace.complete:
        return Message("no events of a trace in it")
    own = os.path.basename(place.path).startswith(("trace_view", "step_trace"))
    unit = reading.unit(place if own else place._replace(unit=place.path))
    if unit.trace is None or trace.steps > unit.trace.steps:
        unit.trace = trace
    return None


def _add_json(unit: Unit, kind: str, data: Mapping[str, Any], path: str) -> None:
    if kind == "settings":
        unit.settings = read_settings(data)
    elif kind == "metadata":
        unit.metadata, unit.metadata_file = read_metadata(data), path
    elif kind == "communication":
        unit.collectives = read_collectives(data) or unit.collectives
    elif kind == "processors":
        unit.idle = read_idle(data)
    elif kind == "pipeline":
        unit.pipelines.append(read_pipeline_json(data))


def _read_database(reading: Reading, place: Place, descriptor: int) -> Optional[Text]:
    found = database.read_database(descriptor, place.rank or "")
    if not found.known:
        return Message("no table of a profiler in it")
    if found.steps and not any(found.steps):
        return Message("no complete step in it")
    for steps in found.steps:
        if found.cluster:
            _add_cluster(reading, place, steps)
        else:
            _add_steps(reading, place, steps)
    unit = reading.unit(place)
    unit.stored_operators += found.groups
    unit.stored_apis += found.apis
    unit.compiling = found.compiling or unit.compiling
    return None
