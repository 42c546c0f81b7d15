"""Mounted file systems: type, options and free space."""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Iterable, NamedTuple, Optional

from envtune import expect
from envtune.collector.mounts import MEASURED
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Undetermined
from envtune.host import Host
from envtune.messages import N_, Message, Text
from envtune.model import Evidence, Expectation, Reading
from envtune.resources.files.value import missing, reading

MOUNTINFO = "/proc/self/mountinfo"


class Mount(NamedTuple):
    """One line of mountinfo: mount point, type, options of the mount and of its file system, and the line."""

    point: str
    kind: str
    options: tuple[str, ...]
    line: str


def mount_at(text: str, path: str) -> Optional[Mount]:
    """Return what is mounted exactly at `path`; the last of several hides the others. Source: proc(5)."""
    found = None
    for line in text.splitlines():
        head, _, tail = line.partition(" - ")
        fields, behind = head.split(), tail.split()
        if len(fields) < 6 or len(behind) < 3:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        if point == path:
            options = (*fields[5].split(","), *behind[2].split(","))
            found = Mount(point, behind[0], tuple(dict.fromkeys(options)), line)
    return found


def mount_holding(text: str, path: str) -> Optional[Mount]:
    """Return what is mounted at `path` or at its nearest parent directory; None if `text` shows nothing."""
    while True:
        mount = mount_at(text, path)
        if mount is not None or path == "/":
            return mount
        path = posixpath.dirname(path)


@probe("mount.type")
def kind(context: Context, *, path: Annotated[str, N_("Mount point, such as `/data`.")]) -> Iterable[Reading]:
    """File system type of a mount point, such as `ext4` or `nfs4`; `missing` if nothing is mounted."""
    mount = _mount(context.host, path)
    return [missing(path, MOUNTINFO) if mount is None else reading(path, mount.kind, MOUNTINFO, mount.line)]


@probe("mount.options")
def options(context: Context, *, path: Annotated[str, N_("Mount point, such as `/data`.")]) -> Iterable[Reading]:
    """Mount options of a mount point, such as `rw` and `noatime`; empty if nothing is mounted."""
    mount = _mount(context.host, path)
    if mount is None:
        return [Reading(path, (), Evidence(MOUNTINFO), Message("nothing is mounted at {path}", path=path))]
    return [Reading(path, mount.options, Evidence(MOUNTINFO, mount.line))]


def _mount(host: Host, path: str) -> Optional[Mount]:
    return mount_at(host.read(MOUNTINFO), path.rstrip("/") or "/")


@probe("mount.free", unit="GB")
def free(context: Context, *, path: Annotated[str, N_("Any path on the file system.")]) -> Iterable[Reading]:
    """Free space of a file system in GB (10^9 bytes), available to users other than root."""
    _require_measured(context.host, path)
    disk = context.host.disk(path)
    amount = round(disk.free / 1e9, 1)
    shown = Message("{amount} GB free at {path}", amount=amount, path=path)
    return [Reading(path, amount, Evidence(path, f"{disk.free} of {disk.total} bytes free"), shown, _gigabytes)]


def _require_measured(host: Host, path: str) -> None:
    """Raise Undetermined for a recorded host whose recording lacks the file system that contains `path`."""
    if host.live:
        return
    try:
        text = host.read(MOUNTINFO)
    except HostError:
        return
    above = path.rstrip("/") or "/"
    while above != "/":
        mount = mount_at(text, above)
        if mount is not None and mount.kind not in MEASURED:
            reason = Message("{point} ({kind}): its space was not recorded", point=mount.point, kind=mount.kind)
            raise Undetermined(reason, MOUNTINFO, mount.line)
        above = posixpath.dirname(above) if mount is None else "/"


def _gigabytes(expectation: Expectation) -> Optional[Text]:
    return expect.describe(expectation, expect.in_unit("GB"))
