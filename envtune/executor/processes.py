"""Processes, from /proc: identity, ancestors, and the commands that a killed run left running."""

import os
from typing import Iterator, List, Optional, Tuple

RUN_VARIABLE = "ENVTUNE_RUN"  # in the environment of every command: the directory of the run it belongs to


def process_identity(pid: int) -> Optional[Tuple[int, int, str]]:
    """Return (start in clock ticks since boot, uid, state letter) of a process, None if there is none."""
    try:
        fields = _stat_fields(pid)
        return int(fields[19]), os.stat("/proc/%d" % pid).st_uid, fields[0].decode("ascii")
    except (OSError, IndexError, ValueError):
        return None


def ancestors(pid: int) -> Iterator[int]:
    """Yield the process itself, its parent, and so on."""
    while pid > 0:
        yield pid
        try:
            pid = int(_stat_fields(pid)[1])
        except (OSError, IndexError, ValueError):
            return


def _stat_fields(pid: int) -> List[bytes]:
    """Return the fields of /proc/<pid>/stat after the name, the state first."""
    with open("/proc/%d/stat" % pid, "rb") as file:
        return file.read().rpartition(b")")[2].split()


def running_commands(directory: str) -> List[int]:
    """Return the commands of a killed run that are still running: their environment names the run's directory."""
    mark = os.fsencode("%s=%s" % (RUN_VARIABLE, directory))
    running = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                with open("/proc/%s/environ" % name, "rb") as file:
                    identity = process_identity(int(name))
                    if mark in file.read().split(b"\0") and identity is not None and identity[2] != "Z":
                        running.append(int(name))
            except OSError:
                continue
    return sorted(running)
