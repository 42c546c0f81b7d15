"""Find the logs of this user's newest run where CANN, frameworks and launchers write them, if none is named.

A file counts as the user's own if it belongs to that user or to root. Files of other users are counted but not read,
even for root: what another user could have written must be named to be read.
"""

from __future__ import annotations

import calendar
import glob
import os
import re
import stat
import tempfile
import time
from dataclasses import replace
from typing import Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.diagnose.logs.blocks import blocks
from envtune.diagnose.logs.files import LogFile, is_log_name, log_file, run_time
from envtune.diagnose.logs.lines import NO_YEAR, in_year, time_of, year_of
from envtune.errors import UsageError, system_error_text
from envtune.messages import Joined, Literal, Message, Text, listed, plural

MAX_FILES, MAX_BYTES = 256, 1 << 30  # of the newest run
MAX_ENTRIES, MAX_DEPTH = 20_000, 8  # of the tree of one place
MAX_KERNEL_LOG = 256 << 20  # bytes
SLACK = 60.0  # seconds between files of one run; also between clocks in it
RANK_SLACK = 3600.0  # seconds between the ends of the ranks of one run, if no start is known
AROUND = 600.0  # seconds before and after a run in which kernel messages are read
_VARIABLE = re.compile(r"\$(\w+)")
_KERNEL = re.compile(rb"^.{0,80}? kernel: .*", re.M)


class Place(NamedTuple):
    """Where logs are written. `folder` may begin with ~ or a variable and contain `*`; `names` limits file names."""

    folder: str
    writer: str
    source: str
    names: tuple[str, ...] = ()  # patterns of files directly in the folder; none: all logs of the tree
    shared: bool = False  # written by the system for all users


_ENVREF = "CANN 8.0 and 8.5 envref_07_0007: ASCEND_PROCESS_LOG_PATH > ASCEND_WORK_PATH > $HOME/ascend/log"
_AGENT = "torch distributed/elastic: mkdtemp(prefix='torchelastic_')"
_MSRUN = "MindSpore msrun: worker_N.log, scheduler.log in --log_dir, by default the working directory"
PLACES = (
    Place("$ASCEND_PROCESS_LOG_PATH", "CANN", _ENVREF),
    Place("$ASCEND_WORK_PATH/log", "CANN", _ENVREF),
    Place("~/ascend/log", "CANN", _ENVREF),
    Place("/var/log/npu/slog", "CANN", "published logs of older releases: /var/log/npu/slog/host-0", shared=True),
    Place("$PET_LOG_DIR", "torchrun", "torch distributed/argparse_util.py: PET_ and the name of the option"),
    Place("$TMPDIR/torchelastic_*", "torchrun", _AGENT),
    Place("$GLOG_log_dir", "MindSpore", "MindSpore environment variables: GLOG_log_dir"),
    Place("./msrun_log", "msrun", _MSRUN),
    Place("./output/msrun_log", "msrun", "MindFormers scripts/msrun_launcher.sh"),
    Place("/tmp/ray/session_latest/logs", "Ray", "Ray: logs of the newest session"),
    Place("./log", "torchrun --log-dir log", "examples of torchrun"),
    Place("./logs", "torchrun --log-dir logs", "examples of torchrun"),
    Place(".", "nohup, Slurm, msrun", "nohup(1), sbatch(1) --output", ("nohup.out", "slurm-*.out", "*.log")),
    Place("~", "nohup", "nohup(1): where the working directory cannot be written", ("nohup.out",)),
)
# Written by rsyslog: Debian and Ubuntu, then the families of RHEL and openEuler.
KERNEL_LOGS = ("/var/log/kern.log", "/var/log/messages")


class Looked(NamedTuple):
    """A location and what was found there: files to read, older ones, and those of other users."""

    path: str
    writer: str
    files: int = 0
    older: int = 0
    foreign: int = 0
    reason: Optional[Text] = None  # why it could not be read

    @property
    def empty(self) -> bool:
        """Whether nothing was found there."""
        return not (self.files or self.older or self.foreign or self.reason)

    @property
    def text(self) -> Text:
        """What is reported about it."""
        parts: list[Text] = []
        if self.reason is not None:
            parts.append(self.reason)
        elif self.files or not (self.older or self.foreign):
            parts.append(plural("{count} file", "{count} files", self.files) if self.files else Message("no log"))
        if self.older:
            parts.append(plural("{count} file of older runs", "{count} files of older runs", self.older))
        if self.foreign:
            parts.append(plural("{count} file of other users", "{count} files of other users", self.foreign))
        return Message("{path} ({writer}): {found}", path=self.path, writer=self.writer, found=listed(parts))


class OwnLogs(NamedTuple):
    """The files of the newest run, and every location that was searched."""

    files: tuple[LogFile, ...]
    looked: tuple[Looked, ...]


def find_own_logs(environ: Mapping[str, str]) -> OwnLogs:
    """Return the logs of the newest run of this user, the newest file first; raises UsageError if there are none."""
    found: dict[str, LogFile] = {}
    inside: list[tuple[Looked, list[str]]] = []
    for place in PLACES:
        for folder in _folders(place.folder, environ):
            looked, files = _look(folder, place)
            new = [file for file in files if os.path.realpath(file.path) not in found]
            found.update((os.path.realpath(file.path), file) for file in new)
            inside.append((looked, [file.path for file in new]))
    run = _newest_run(found.values())
    chosen = {file.path for file in run}
    places = [
        place._replace(files=len(chosen.intersection(paths)), older=len(set(paths) - chosen)) for place, paths in inside
    ]
    if not run:
        raise UsageError(_nothing_found(places))
    kernel = list(_kernel_logs(run))
    return OwnLogs((*run, *(file for file, _ in kernel if file)), (*places, *(place for _, place in kernel)))


def _nothing_found(looked: Sequence[Looked]) -> Text:
    places = Joined([Joined(["  ", place.text], "") for place in looked], "\n")
    return Message(
        "no log given, and none of yours found; looked in\n"
        "{places}\n"
        "specify one: `envtune diagnose train.log`, a directory, or `... 2>&1 | envtune diagnose -`",
        places=places,
    )


def _folders(pattern: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the directories of a location: none if its variable is not set."""
    variable = _VARIABLE.match(pattern)
    value = ""
    if variable is not None:
        value = tempfile.gettempdir() if variable[1] == "TMPDIR" else environ.get(variable[1], "")
        if not value:
            return
        pattern = pattern[variable.end() :]
    elif pattern.startswith("~"):
        value, pattern = environ.get("HOME", "/root"), pattern[1:]
    if "*" not in pattern:
        yield value + pattern
        return
    yield from sorted(glob.glob(glob.escape(value) + pattern)) or [value + pattern]


def _look(folder: str, place: Place) -> tuple[Looked, list[LogFile]]:
    looked = Looked(folder, place.writer)
    try:
        status = os.stat(folder)
    except OSError as error:
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        return looked._replace(reason=None if missing else system_error_text(error)), []
    files, foreign = [], 0
    if stat.S_ISDIR(status.st_mode):
        for path, found in _in_names(folder, place.names) if place.names else _in_tree(folder):
            if not stat.S_ISREG(found.st_mode) or not found.st_size:
                continue
            if place.shared or found.st_uid in (os.geteuid(), 0):
                files.append(log_file(os.path.normpath(path), ""))
            else:
                foreign += 1
    return looked._replace(foreign=foreign), files


def _in_names(folder: str, patterns: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    paths = {path for pattern in patterns for path in glob.glob(os.path.join(glob.escape(folder), pattern))}
    yield from _with_status(sorted(paths))


def _in_tree(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the logs below a directory; links are not followed."""
    entries = 0
    top = os.path.realpath(folder)
    for base, names, leaves in os.walk(top):
        entries += len(names) + len(leaves)
        names.sort(reverse=True)
        if entries > MAX_ENTRIES or os.path.relpath(base, top).count(os.sep) >= MAX_DEPTH:
            names.clear()
        yield from _with_status(os.path.join(base, name) for name in sorted(leaves) if is_log_name(name))


def _with_status(paths: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    for path in paths:
        try:
            yield path, os.lstat(path)
        except OSError:
            continue  # removed meanwhile


def _newest_run(files: Iterable[LogFile]) -> list[LogFile]:
    """Return the files that were written at the same time as the newest one, the newest first.

    The name of a plog says when its process started; of other files only the end is known.
    """
    run: list[LogFile] = []
    begin, size = float("inf"), 0
    for file in sorted(files, key=lambda file: (-file.modified, file.path)):
        slack = SLACK if file.rank is None else RANK_SLACK
        if run and file.modified < begin - slack:
            break
        size += file.size
        if run and (len(run) >= MAX_FILES or size > MAX_BYTES):
            break
        begin = min(begin, _begin(file))
        run.append(file)
    return run


def _begin(file: LogFile) -> float:
    """Return when the file was begun, in seconds; if its name does not tell, when it was last written."""
    named = run_time(file)
    if named == file.modified:
        return named
    local = time.mktime((*time.gmtime(named)[:8], -1))  # the name has no time zone
    return min(local, file.modified)


# ---------------------------------------------------------------- the kernel's lines


def _kernel_logs(run: Sequence[LogFile]) -> Iterator[tuple[Optional[LogFile], Looked]]:
    """Yield what the kernel logged during the run, with all other lines emptied, so that line numbers stay correct."""
    since = _as_written(min(map(_begin, run)) - AROUND)
    until = _as_written(max(file.modified for file in run) + AROUND)
    for path in KERNEL_LOGS:
        looked = Looked(path, "kernel")
        try:
            size = os.stat(path).st_size
            if size > MAX_KERNEL_LOG:
                yield None, looked._replace(reason=Literal(f"> {MAX_KERNEL_LOG >> 20} MiB"))
                continue
            file = log_file(path, "")
            content = b"".join(_kernel_lines(block.text, since, until) for block in blocks(file))
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                yield None, looked._replace(reason=system_error_text(error))
            continue
        if content.strip():
            yield replace(file, content=content), looked._replace(files=1)
        else:
            yield None, looked


def _kernel_lines(text: bytes, since: float, until: float) -> bytes:
    kept: list[bytes] = []
    end = 0
    for line in _KERNEL.finditer(text):
        moment = time_of(line[0][:80].decode("utf-8", "replace"))
        if moment is not None and year_of(moment) == NO_YEAR:
            moment = in_year(moment, year_of(until))
        if moment is not None and since <= moment <= until:
            kept += [b"\n" * text.count(b"\n", end, line.start()), line[0]]
            end = line.end()
    return b"".join(kept) + b"\n" * text.count(b"\n", end)


def _as_written(moment: float) -> float:
    """Return the time in seconds that a line written then has: local time, read as UTC."""
    return float(calendar.timegm(time.localtime(moment)))
