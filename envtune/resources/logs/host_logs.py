"""The host logs of CANN: whether they can be read, and how much disk one run of the job may fill."""

from __future__ import annotations

import posixpath
import re
from typing import Iterable, Iterator

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, NotRecorded, Undetermined, host_error_text
from envtune.host import disk_of
from envtune.messages import Message
from envtune.model import Evidence, FileStat, Reading
from envtune.ranges import whole_number
from envtune.resources.npu.devices import ELSEWHERE, runs_elsewhere

OLD_LOGS = "/var/log/npu/slog"  # porting guide 003:2951
FILE_SIZE = 20_000_000  # bytes of one log file. Source: envref_07_0126 of CANN 8.0-9.1
DEFAULT_FILES, MOST_FILES = 10, 1000  # ASCEND_HOST_LOG_FILE_NUM, same page; another value counts as the default
COUNT = "ASCEND_HOST_LOG_FILE_NUM"


def log_directories(context: Context) -> dict[str, str]:
    """Return {what names it: absolute path}: the job's own log directory, and that of older releases.

    Source: envref_07_0007 of CANN 8.0 and 8.5 (ASCEND_PROCESS_LOG_PATH, ASCEND_WORK_PATH, $HOME/ascend/log).
    """
    variables = context.target.variables()
    places = (("ASCEND_PROCESS_LOG_PATH", ""), ("ASCEND_WORK_PATH", "log"), ("HOME", "ascend/log"))
    for name, below in places:
        value = variables.get(name, "")
        if value.startswith("/"):
            path = posixpath.normpath(posixpath.join(value, below))
            return {name if name != "HOME" else path: path, OLD_LOGS: OLD_LOGS}
    return {OLD_LOGS: OLD_LOGS}


@probe("logs.readable")
def readable(context: Context) -> Iterable[Reading]:
    """Whether this user can read each directory of CANN host logs: `readable` or `closed`.

    Source: porting guide 003:1307, 2951, 3186, 3196.
    """
    if runs_elsewhere(context):
        raise Undetermined(ELSEWHERE, context.target.environment.description)
    readings = list(_readable(context))
    if not readings:
        raise NotApplicable(Message("nothing has been logged yet"), ", ".join(log_directories(context).values()))
    return readings


def _readable(context: Context) -> Iterator[Reading]:
    expected = Message("readable by this user")
    for name, path in log_directories(context).items():
        try:
            found = context.host.stat(path)
        except (Missing, NotRecorded):
            continue
        except HostError as error:
            yield Reading(name, None, Evidence(error.path, str(error)), reason=host_error_text(error))
            continue
        value = "readable" if found.kind == "dir" and _may_read(context, found) else "closed"
        shown = Message("{path} belongs to user {uid}, mode {mode}", path=path, uid=found.uid, mode=f"{found.mode:04o}")
        yield Reading(name, value, Evidence(path, f"{found.kind} {found.mode:04o}"), shown, expected)


def _may_read(context: Context, found: FileStat) -> bool:
    """Return whether this user may list the directory; any group counts as one of the user's, as it may be."""
    if context.host.euid in (0, found.uid):
        return True
    return bool(found.mode & 0o055)


@probe("logs.volume", unit="%")
def volume(context: Context) -> Iterable[Reading]:
    """Maximum size of the host logs of one run, in percent of the free space.

    Source: envref_07_0126 of CANN 8.0-9.1.
    """
    if runs_elsewhere(context):
        raise Undetermined(ELSEWHERE, context.target.environment.description)
    text = context.target.variables().get(COUNT, "")
    count = whole_number(text)
    files = count if count is not None and 1 <= count <= MOST_FILES else DEFAULT_FILES
    processes = whole_number(context.facts.value("npu_count") or "") or 1
    name, path = next(iter(log_directories(context).items()))
    disk = disk_of(context.host, path)
    most = files * FILE_SIZE * processes
    shown = Message(
        "up to {most} GB of logs ({files} files of {processes} processes), {free} GB free at {path}",
        most=round(most / 1e9, 1),
        files=files,
        processes=processes,
        free=round(disk.free / 1e9, 1),
        path=disk.path,
    )
    percent = 100 if disk.free <= 0 else -(-most * 100 // disk.free)
    expected = Message("no more than is free")
    return [Reading(name, percent, Evidence(disk.path, f"{COUNT}={text or DEFAULT_FILES}"), shown, expected)]


@probe("logs.size", unit="%")
def size(context: Context) -> Iterable[Reading]:
    """Size of the existing host logs, in percent of the free space of their file system.

    At most 4096 names below the directory are examined, on its own file system. Source: as for `logs.readable`.
    """
    if runs_elsewhere(context):
        raise Undetermined(ELSEWHERE, context.target.environment.description)
    name, path = next(iter(log_directories(context).items()))
    try:
        found = re.match(r"bytes:(\d{1,18}) files:(\d{1,9}) (\w+)", context.host.tree_size(path))
    except Missing:
        raise NotApplicable(Message("nothing has been logged yet"), path) from None
    if found is None:
        raise Undetermined(Message("{path}: its size is unknown", path=path), path)
    whole, free = found[3] == "complete", disk_of(context.host, path).free
    used, files = int(found[1]), int(found[2])
    percent = 1000 if free <= 0 else used * 100 // free
    fields = {"used": round(used / 1e9, 1), "files": files, "path": path, "free": round(free / 1e9, 1)}
    evidence, expected = Evidence(path, found[0]), Message("less than is still free")
    if not whole and percent <= 100:
        reason = Message("{path} was looked at in part only: {used} GB in {files} files", **fields)
        return [Reading(name, None, evidence, expected=expected, reason=reason)]
    shown = Message("{used} GB in {files} files at {path}, {free} GB free", **fields)
    return [Reading(name, percent, evidence, shown, expected)]
