"""Find log files: the files, directories and standard input that were named (blocks.py reads them).

A directory is searched for the log trees of every CANN generation: `$HOME/ascend/log/{debug,run}/plog`, `device-<id>`,
`/var/log/npu/slog/host-0`; the newest run first. What is not a log, judged by its name or first bytes, is skipped.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Optional, Sequence

from envtune.errors import UsageError, missing_text
from envtune.messages import Message

BIG = 8 << 20  # bytes of input above which optimizing pays off
MAX_PLOGS = 64  # files of one run that are read, the newest
_LOG_NAME = re.compile(
    r"\.(log|txt|out|err|stdout|stderr|(?<!\.tar\.)gz)(\.\d+|\.gz)*$|^nohup|^stdout|^stderr|^slurm-|log[-_.\d]*$"
)
_RANK_IN_NAME = re.compile(r"(?:rank|worker|node_rank|local_rank)[-_.]?(\d+)", re.IGNORECASE)
_TORCHRUN = re.compile(r"[/\\]attempt_\d+[/\\](\d+)[/\\]std(?:out|err)\.log$")  # --log-dir: the rank on its host
_PLOG_NAME = re.compile(r"^(?:plog|device)-(?P<pid>\d+)_(?P<time>\d{14,17})\.log")


@dataclass(frozen=True)
class LogFile:
    """One input. `host` and `rank` come from its location and name; empty or None if these do not tell."""

    path: str  # "-" is standard input
    host: str = ""
    rank: Optional[int] = None
    pid: Optional[int] = None
    modified: float = 0.0
    content: Optional[bytes] = None  # of an in-memory input; `path` is then only its name
    size: int = 0  # bytes on disk; 0 if it does not exist


def find_logs(arguments: Sequence[str]) -> tuple[LogFile, ...]:
    """Return the inputs that the arguments name, in order; files of a directory newest run first.

    Raises UsageError for a file that does not exist and for a directory without logs.
    """
    found: list[LogFile] = []
    hosts = _hosts([argument for argument in arguments if argument != "-" and os.path.isdir(argument)])
    for argument in arguments:
        if argument == "-":
            found.append(LogFile("-"))
        elif argument in hosts:
            inside = _in_directory(argument, hosts[argument])
            if not inside:
                raise UsageError(Message("{path}: no log file in this directory", path=argument))
            found.extend(inside)
        elif os.path.exists(argument):
            found.append(log_file(argument, ""))
        else:
            raise UsageError(Message("{path}: {reason}", path=argument or "''", reason=missing_text()))
    distinct = {os.path.realpath(file.path) if file.path != "-" else "-": file for file in reversed(found)}
    return tuple(distinct.values())[::-1]


def _hosts(folders: Sequence[str]) -> Mapping[str, str]:
    """Return the distinguishing parts of directories: a and b of a/ascend/log and b/ascend/log; nothing for one."""
    paths = {folder: list(Path(folder).resolve().parts) for folder in folders}
    if len({tuple(parts) for parts in paths.values()}) < 2:
        return dict.fromkeys(folders, "")
    while len({parts[-1] for parts in paths.values()}) == 1 and all(len(parts) > 1 for parts in paths.values()):
        for parts in paths.values():
            parts.pop()
    return {folder: parts[-1] for folder, parts in paths.items()}


def find_plogs(environ: Mapping[str, str], since: float) -> tuple[LogFile, ...]:
    """Return the plog files written since a time (seconds since the epoch); none if there is no log tree.

    Source of the paths: CANN 8.5, envref_07_0007.
    """
    work = environ.get("ASCEND_WORK_PATH")
    roots = [
        environ.get("ASCEND_PROCESS_LOG_PATH"),
        os.path.join(work, "log") if work else None,
        os.path.join(environ.get("HOME", "/root"), "ascend", "log"),
    ]
    found: list[LogFile] = []
    for root in roots:
        if root and os.path.isdir(root):
            found.extend(file for file in _in_directory(root, "") if file.modified >= since)
    return tuple(found[:MAX_PLOGS])


def _in_directory(folder: str, host: str) -> list[LogFile]:
    files = []
    for base, names, leaves in os.walk(folder):
        names.sort()
        for name in leaves:
            path = os.path.join(base, name)
            if is_log_name(name) and os.path.isfile(path):
                files.append(log_file(path, host))
    return sorted(files, key=lambda f: (-run_time(f), f.path))


def is_log_name(name: str) -> bool:
    """Return whether a file of that name is a log."""
    return _LOG_NAME.search(name) is not None


def run_time(file: LogFile) -> float:
    """Return seconds; a plog's name contains the start time of its process, which a copy keeps, unlike its mtime."""
    named = _PLOG_NAME.match(os.path.basename(file.path))
    if named is None:
        return file.modified
    import calendar

    digits = named["time"]
    parts = (digits[0:4], digits[4:6], digits[6:8], digits[8:10], digits[10:12], digits[12:14])
    try:
        return float(calendar.timegm(tuple(int(part) for part in parts)))
    except ValueError:  # digits, but not a date
        return file.modified


def log_file(path: str, host: str) -> LogFile:
    """Return the file with the data in its name; raises OSError."""
    name = os.path.basename(path)
    rank, plog = _RANK_IN_NAME.search(name), _PLOG_NAME.match(name)
    if rank is None:
        rank = _RANK_IN_NAME.fullmatch(os.path.basename(os.path.dirname(path))) or _TORCHRUN.search(path)
    status = os.stat(path)
    return LogFile(
        path,
        host,
        int(rank[1]) if rank else None,
        int(plog["pid"]) if plog else None,
        status.st_mtime,
        size=status.st_size,
    )
