"""The process table, from /proc."""

import errno
import os
from typing import Any, Dict, List, Optional

from .files import read_bytes

STATUS_LIMIT = 4096  # bytes of /proc/PID/stat: 52 numbers and a name of at most 64 characters
KERNEL_THREAD = 0x00200000  # PF_KTHREAD of the kernel's include/linux/sched.h: a process without arguments
ARGUMENTS_LIMIT = 16384  # bytes read of one process's arguments; anybody can start one with megabytes


def process_table(with_devices: bool = False) -> List[Dict[str, Any]]:
    """Return every process of /proc that this user may list. `with_devices`: look for open /dev/davinci* nodes, too."""
    boot = _boot_time()
    ticks = os.sysconf("SC_CLK_TCK")
    users: Dict[int, str] = {}
    table = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            row = _process(int(name), boot, ticks, users, with_devices)
            if row is not None:
                table.append(row)
    return table


def _boot_time() -> float:
    for line in read_bytes("/proc/stat").decode("ascii", "replace").splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    raise OSError(errno.EINVAL, "no btime in /proc/stat")


def _process(pid: int, boot: float, ticks: int, users: Dict[int, str], with_devices: bool) -> Optional[Dict[str, Any]]:
    folder = "/proc/%d" % pid
    try:
        head, _, tail = _read(folder + "/stat", STATUS_LIMIT).decode("utf-8", "replace").rpartition(")")
        fields = tail.split()
        uid = os.stat(folder).st_uid
        argv = [] if int(fields[6]) & KERNEL_THREAD else _arguments(folder)
    except OSError:
        return None  # it has ended meanwhile
    row = {
        "pid": pid,
        "ppid": int(fields[1]),
        "name": head.partition("(")[2],
        "state": fields[0],
        "started": boot + int(fields[19]) / ticks,
        "user": _user(uid, users),
        "argv": [a.decode("utf-8", "replace") for a in argv if a],
    }
    if with_devices:
        try:
            row["devices"] = open_devices(pid)
        except OSError:
            row["opaque"] = True
    return row


def _arguments(folder: str) -> List[bytes]:
    """Return the arguments of a process, without the one cut off by ARGUMENTS_LIMIT and those after it."""
    data = _read(folder + "/cmdline", ARGUMENTS_LIMIT)
    return data.split(b"\0")[: -1 if len(data) == ARGUMENTS_LIMIT else None]


def _read(path: str, size: int) -> bytes:
    """Return at most the first `size` bytes of a file in /proc/PID, which is always a regular file."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(descriptor, size)
        while len(data) >= os.sysconf("SC_PAGE_SIZE") and len(data) < size:  # the kernel may return one page at a time
            more = os.read(descriptor, size - len(data))
            if not more:
                break
            data += more
        return data
    finally:
        os.close(descriptor)


def _user(uid: int, known: Dict[int, str]) -> str:
    if uid not in known:
        import pwd

        try:
            known[uid] = pwd.getpwuid(uid).pw_name
        except KeyError:
            known[uid] = str(uid)
    return known[uid]


def open_devices(pid: int) -> List[str]:
    """Return the /dev/davinci* nodes that a process has open; raises OSError if that cannot be read."""
    devices = set()
    folder = "/proc/%d/fd" % pid
    for number in os.listdir(folder):
        try:
            target = os.readlink(folder + "/" + number)
        except OSError:
            continue
        if target.startswith("/dev/davinci"):
            devices.add(target)
    return sorted(devices)
