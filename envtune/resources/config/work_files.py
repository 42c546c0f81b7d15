"""Files in the job's working directory: leftovers of debugging, and the data set that its command names."""

from __future__ import annotations

import posixpath
import re
from typing import Iterable, NamedTuple, Optional

from envtune.collector.sources.config import DATA_OPTIONS, LEFTOVERS, POSITIONAL_DATA
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined, host_error_text
from envtune.host import Host, exists, realpath
from envtune.messages import Literal, Message
from envtune.model import Evidence, Reading
from envtune.resources.npu.command import job_command, job_folder, option_value
from envtune.resources.npu.devices import ELSEWHERE, runs_elsewhere
from envtune.resources.system.mounts import MOUNTINFO, Mount, mount_holding

NETWORK = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p")  # from one server; parallel file systems are different


@probe("config.leftovers")
def leftovers(context: Context) -> Iterable[Reading]:
    """Number of files that debugging left in the job's working directory, such as dumped graphs.

    Source: porting guide 003:2787-2792; DUMP_GE_GRAPH in the reference of CANN.
    """
    folder = job_folder(context)
    found = [path for pattern in LEFTOVERS for path in context.host.glob(posixpath.join(folder, pattern))]
    names = ", ".join(posixpath.relpath(path, folder) for path in found[:3]) + (", ..." if len(found) > 3 else "")
    shown = Literal(names) if found else Message("none")
    return [Reading(folder, len(found), Evidence(folder, names), shown, Message("none"))]


class Data(NamedTuple):
    """The data set that the command names, by option and path."""

    path: str
    source: str


def data_set(context: Context) -> Data:
    """Return the data set of the named job; raises NotApplicable if the command names none by an absolute path."""
    command = job_command(context)
    if command is None:
        raise NotApplicable(Message("no job given (--script or --pid)"), "--script, --pid")
    found = option_value(context, DATA_OPTIONS)
    if found is None:
        placed = re.search(POSITIONAL_DATA, command.text)
        found = None if placed is None else (placed[1], command.source)
    if found is None or not found[0].startswith("/"):
        raise NotApplicable(Message("the command names no data set by an absolute path"), "--data, --data_path")
    if runs_elsewhere(context):
        raise Undetermined(ELSEWHERE, found[1])
    return Data(posixpath.normpath(found[0]), found[1])


@probe("config.data_set")
def data_set_present(context: Context) -> Iterable[Reading]:
    """Whether the data set named in the job's command exists.

    Source: porting guide 003:574-576, 582.
    """
    data = data_set(context)
    kind = _kind(context, data.path)
    shown = Message("{path} exists", path=data.path) if kind else Message("{path} does not exist", path=data.path)
    return [Reading("data set", bool(kind), Evidence(data.source, data.path), shown, Message("a data set that exists"))]


def _kind(context: Context, path: str) -> str:
    """Return the type of a path; `prefix` if file names begin with it, as with Megatron; empty if neither.

    With several comma-separated paths, as accepted by loaders of JSON files, all must exist.
    """
    try:
        return context.host.stat(path).kind
    except Missing:
        if context.host.glob(path + "*"):
            return "prefix"
    parts = path.split(",")
    return "list" if len(parts) > 1 and all(_kind(context, posixpath.normpath(part)) for part in parts) else ""


@probe("config.data_storage")
def data_storage(context: Context) -> Iterable[Reading]:
    """Storage of the data set: `local` (SSD), `rotating` (hard disk) or `network`.

    Source: porting guide 003:132-136; Documentation/ABI/stable/sysfs-block of Linux (queue/rotational).
    """
    data = data_set(context)
    if not _kind(context, data.path):
        raise NotApplicable(Message("{path} does not exist", path=data.path), data.source)
    mount = mount_of(context.host, data.path.partition(",")[0])
    if mount is None:
        raise Undetermined(Message("{path} is on no mount of {source}", path=data.path, source=MOUNTINFO), MOUNTINFO)
    expected, evidence = Message("a local SSD"), Evidence(MOUNTINFO, mount.line)
    if mount.kind in NETWORK:
        shown = Message("{kind}, mounted at {point}", kind=mount.kind, point=mount.point)
        return [Reading(data.path, "network", evidence, shown, expected)]
    disk = _disk_of(context, mount)
    if disk is None:
        raise NotApplicable(Message("{kind} is on no disk of this host", kind=mount.kind), mount.line)
    source = f"/sys/block/{disk}/queue/rotational"
    try:
        text = context.host.read(source).strip()
    except HostError as error:
        return [Reading(data.path, None, Evidence(source, str(error)), reason=host_error_text(error))]
    return [Reading(data.path, "rotating" if text == "1" else "local", Evidence(source, text), Literal(disk), expected)]


def mount_of(host: Host, path: str) -> Optional[Mount]:
    """Return the mount that contains a path, or will contain it once created; links are followed."""
    while path != "/" and not exists(host, path):
        path = posixpath.dirname(path)
    return mount_holding(host.read(MOUNTINFO), realpath(host, path))


def _disk_of(context: Context, mount: Mount) -> Optional[str]:
    """Return the disk of /sys/block that a mounted partition is on, None for other kinds of devices."""
    device = mount.line.partition(" - ")[2].split()[1]
    if not device.startswith("/dev/"):
        return None
    name = posixpath.basename(device)
    for disk in context.host.listdir("/sys/block"):
        rest = name[len(disk) :].lstrip("p")
        if name.startswith(disk) and (not rest or rest.isdecimal()):
            return disk
    return None
