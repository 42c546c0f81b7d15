"""Running processes that use what a change replaces: files of a Python mapped or open, or the NPUs."""

from __future__ import annotations

import re
from typing import Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.errors import HostError, Missing
from envtune.host import Host
from envtune.messages import Message, Text
from envtune.model import Change, Process

_SITE = re.compile(r"(.*/(?:site|dist)-packages)(?:/|$)")


class ProcessUse(NamedTuple):
    """A process and what it uses that a change replaces: a file, or a device."""

    process: Process
    used: str

    @property
    def text(self) -> Text:
        """Name the process, its owner, what it runs (without further arguments: they may contain secrets) and uses."""
        process = self.process
        command = " ".join(process.argv[:2])[:120] or process.name
        fields = {"pid": process.pid, "user": process.user, "command": command, "used": self.used}
        return Message("pid {pid} ({user}) {command}: {used}", **fields)


class Running(NamedTuple):
    """Which processes use what a change replaces, by the change's id; `unreadable` of them could not be examined."""

    uses: Mapping[str, tuple[ProcessUse, ...]]
    unreadable: int = 0


NOTHING_RUNNING = Running({})


def find_running(host: Host, changes: Iterable[Change]) -> Running:
    """Return the processes that use what the changes replace, except envtune and its ancestors."""
    paths = {change.id: _used_paths(change) for change in changes}
    if not any(paths.values()):
        return NOTHING_RUNNING
    try:
        rows = host.processes()
    except HostError:
        return NOTHING_RUNNING
    own = _own_processes(host, rows)
    files = [path for each in paths.values() for path in each if not path.startswith("/dev/")]
    uses: dict[str, list[ProcessUse]] = {}
    unreadable = 0
    for process in rows:
        if process.pid in own or process.state == "Z":
            continue
        opened = _open_files(host, process.pid) if files else ()
        unreadable += opened is None
        names = (*(opened or ()), *process.devices)
        for change, wanted in paths.items():
            used = next((name for name in names if any(_is_below(name, path) for path in wanted)), None)
            if used is not None:
                uses.setdefault(change, []).append(ProcessUse(process, used))
    return Running({change: tuple(found) for change, found in uses.items()}, unreadable)


def _used_paths(change: Change) -> tuple[str, ...]:
    """Return what a process affected by the change has open: the Python's site directory, else the NPUs."""
    paths: dict[str, None] = {}
    for operation in change.operations:
        if operation["op"] == "swap":
            paths[change.target.rstrip("/") if change.target.startswith("/") else operation["root"]] = None
        elif operation["op"] == "file":
            found = _SITE.match(operation["path"])
            paths.update({} if found is None else {found[1]: None})
        elif operation["op"] == "signal":
            return ()  # the process it ends is its subject
    if not paths and change.disruption != "none":
        return ("/dev/davinci",)
    return tuple(paths)


def _is_below(name: str, path: str) -> bool:
    return name.startswith(path if path.startswith("/dev/") else path + "/")


def _own_processes(host: Host, rows: Sequence[Process]) -> set[int]:
    """Return the pids of envtune's own process and its ancestors."""
    parents = {process.pid: process.ppid for process in rows}
    own: set[int] = set()
    try:
        pid = int(host.read("/proc/self/stat").split()[0])
    except (HostError, ValueError, IndexError):
        return own
    while pid > 0 and pid not in own:
        own.add(pid)
        pid = parents.get(pid, 0)
    return own


def _open_files(host: Host, pid: int) -> Optional[tuple[str, ...]]:
    """Return the files that a process has mapped or open; None if they cannot be read."""
    try:
        mapped = [line.split(None, 5) for line in host.read(f"/proc/{pid}/maps").splitlines()]
        names = {words[5] for words in mapped if len(words) == 6}
        names.update(_descriptors(host, f"/proc/{pid}/fd"))
    except HostError as error:
        return () if isinstance(error, Missing) else None
    return tuple(sorted(name for name in names if name.startswith("/")))


def _descriptors(host: Host, folder: str) -> Iterator[str]:
    for name in host.listdir(folder):
        try:
            yield host.readlink(f"{folder}/{name}")
        except HostError:
            continue  # closed meanwhile
