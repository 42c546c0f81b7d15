"""Read the SQLite generation: analysis.db, cluster_analysis.db, ascend_pytorch_profiler_*.db and msprof_*.db.

Tables and columns: mindstudio-profiler-tools, docs of cluster_analysis.db; torch_npu, `_db_parser` and its tests. A
database is opened read-only by its descriptor, without waiting for locks.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import Any, Iterator, Optional, Sequence

from envtune.profile.readers.compiling import Compiling, compiling, spans
from envtune.profile.readers.kernels import KernelGroup
from envtune.profile.readers.operators import Api
from envtune.profile.readers.steps import Step, steps_of
from envtune.profile.readers.tables import header_of
from envtune.records import NamedTuple

MAGIC = b"SQLite format 3\0"
SECONDS = 30.0  # for all queries of one database
_GROUPS = """
    SELECT type.value, core.value, COUNT(*), SUM(task.endNs - task.startNs) / 1000.0
    FROM COMPUTE_TASK_INFO AS info JOIN TASK AS task ON task.globalTaskId = info.globalTaskId
    LEFT JOIN STRING_IDS AS type ON type.id = info.opType LEFT JOIN STRING_IDS AS core ON core.id = info.taskType
    GROUP BY info.opType, info.taskType"""
_COLLECTIVES = """
    SELECT name.value, 'HCCL', COUNT(*), SUM(op.endNs - op.startNs) / 1000.0
    FROM COMMUNICATION_OP AS op LEFT JOIN STRING_IDS AS name ON name.id = op.opType GROUP BY op.opType"""
_APIS = """
    SELECT name.value, COUNT(*), SUM(api.endNs - api.startNs) / 1000.0, MAX(api.endNs - api.startNs) / 1000.0
    FROM CANN_API AS api JOIN STRING_IDS AS name ON name.id = api.name GROUP BY api.name"""
_COMPILES = """
    SELECT api.startNs / 1000.0, (api.endNs - api.startNs) / 1000.0
    FROM CANN_API AS api JOIN STRING_IDS AS name ON name.id = api.name
    WHERE name.value GLOB 'aclopCompile*' AND api.endNs IS NOT NULL"""
_STEP_TIMES = "SELECT startNs / 1000.0, (endNs - startNs) / 1000.0 FROM STEP_TIME WHERE endNs IS NOT NULL"


class Database(NamedTuple):
    """The content of a database, in the form of the text tables."""

    steps: tuple[tuple[Step, ...], ...]  # of each table of steps
    cluster: bool  # whether the steps are those of several ranks
    groups: tuple[KernelGroup, ...]
    apis: tuple[Api, ...]
    compiling: Optional[Compiling]  # in which steps; None if the database does not tell
    known: bool  # whether it has any of the tables


def read_database(descriptor: int, rank: str) -> Database:
    """Return the content of the database; raises sqlite3.Error."""
    place = f"file:/proc/self/fd/{descriptor}?mode=ro&immutable=1"
    with closing(sqlite3.connect(place, uri=True, timeout=0)) as connection:
        deadline = time.monotonic() + SECONDS
        connection.set_progress_handler(lambda: int(time.monotonic() > deadline), 100_000)
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        cluster = "ClusterStepTraceTime" in tables
        steps = [
            tuple(_steps(connection, table, kind, rank))
            for table, kind in (("StepTraceTime", "steps"), ("ClusterStepTraceTime", "cluster_steps"))
            if table in tables
        ]
        groups: list[KernelGroup] = []
        if {"COMPUTE_TASK_INFO", "TASK", "STRING_IDS"} <= tables:
            groups += _groups(connection, _GROUPS, False)
        if {"COMMUNICATION_OP", "STRING_IDS"} <= tables:
            groups += _groups(connection, _COLLECTIVES, True)
        apis = tuple(_apis(connection)) if {"CANN_API", "STRING_IDS"} <= tables else ()
        compiled = _compiling(connection) if apis and "STEP_TIME" in tables else None
    return Database(tuple(steps), cluster, tuple(groups), apis, compiled, bool(steps or groups or apis))


def _steps(connection: sqlite3.Connection, table: str, kind: str, rank: str) -> Iterator[Step]:
    cursor = connection.execute(f"SELECT * FROM {table}")
    header = header_of([column[0] for column in cursor.description])
    return steps_of(kind, header, (_cells(row) for row in cursor), rank)


def _cells(row: Sequence[Any]) -> list[str]:
    return ["" if value is None else str(value) for value in row]


def _groups(connection: sqlite3.Connection, question: str, communicates: bool) -> Iterator[KernelGroup]:
    try:
        rows = connection.execute(question).fetchall()
    except sqlite3.OperationalError:  # a column of another release
        return
    for type_, core, count, total in rows:
        yield KernelGroup(str(type_ or "?"), str(core or ""), int(count), float(total or 0.0), communicates)


def _apis(connection: sqlite3.Connection) -> Iterator[Api]:
    try:
        rows = connection.execute(_APIS).fetchall()
    except sqlite3.OperationalError:
        return
    for name, count, total, longest in rows:
        yield Api(str(name), int(count), float(total or 0.0), float(longest or 0.0))


def _compiling(connection: sqlite3.Connection) -> Optional[Compiling]:
    try:
        steps = spans(connection.execute(_STEP_TIMES))
        return compiling(steps, spans(connection.execute(_COMPILES)))
    except (sqlite3.OperationalError, TypeError):  # columns of another release, text in them
        return None
