"""Disks and free space."""

from __future__ import annotations

import posixpath
from typing import Iterable, Mapping

from envtune.collector.sources.system import OUTPUT_VARIABLES
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, host_error_text
from envtune.host import Host
from envtune.messages import Literal, Message, Text
from envtune.model import Disk, Evidence, Reading
from envtune.ranges import whole_number

SECTOR = (
    512  # bytes; /sys/block/*/size counts these whatever the disk's own sector is (kernel: Documentation/ABI/stable)
)
OLD_LOG_DIRECTORY = "/var/log/npu/slog"  # porting guide 003:2951


@probe("system.nvme", formerly="storage.nvme")
def nvme(context: Context, *, recommended: float) -> Iterable[Reading]:
    """Size of every NVMe disk in TB (10^12 bytes), one reading of 0 when there is none; `recommended` is named only.

    Source: porting guide 003:134, 003:136.
    """
    host = context.host
    wanted = Message("one of {recommended} TB or more", recommended=recommended)
    paths = [path for path in host.glob("/sys/block/nvme*n*/size") if _is_whole(path)]
    if paths:
        return [_nvme(host, path, wanted) for path in paths]
    host.listdir("/sys/block")  # where no disk at all can be seen, the absence of one is no evidence
    return [Reading("nvme", 0, Evidence("/sys/block/nvme*"), Message("no NVMe disk"), wanted)]


def _is_whole(path: str) -> bool:
    """A namespace of a controller, `nvme0n1`; not a partition, not one path of several (`nvme0c1n1`)."""
    number, mark, rest = posixpath.basename(posixpath.dirname(path))[len("nvme") :].partition("n")
    return bool(mark) and number.isdecimal() and rest.isdecimal()


def _nvme(host: Host, path: str, wanted: Text) -> Reading:
    name = posixpath.basename(posixpath.dirname(path))
    try:
        text = host.read(path)
    except HostError as error:
        return Reading(name, None, Evidence(path, str(error)), reason=host_error_text(error))
    sectors = whole_number(text)
    if sectors is None:
        return Reading(name, None, Evidence(path, text), reason=Message("{path} is not a number", path=path))
    size = sectors * SECTOR / 1e12
    words = f"{size:.2f} TB"
    return Reading(name, size, Evidence(path, text), Literal(words), wanted)


@probe("system.temporary_space", formerly="storage.temporary")
def temporary(context: Context, *, wanted: int) -> Iterable[Reading]:
    """Free space in GB (10^9 bytes) where a build writes: TMPDIR, else /tmp; `wanted` is only named.

    Source: porting guide 003:2809-2811.
    """
    host = context.host
    named = host.environ.get("TMPDIR", "")
    path = named if named.startswith("/") else "/tmp"
    try:
        return [_free("temporary files", host.disk(path), wanted)]
    except Missing:
        shown = Message("{path} is not there", path=path)
        return [Reading("temporary files", 0, Evidence(path, ""), shown, _enough(wanted))]


@probe("system.output_space", formerly="storage.output")
def output(context: Context, *, wanted: int) -> Iterable[Reading]:
    """Free space in GB (10^9 bytes) where the job will write logs, caches and tuning data; `wanted` is named only.

    Source: porting guide 003:1582, 003:1660-1664.
    """
    host = context.host
    for name, path in output_directories(context.target.variables()).items():
        yield _space(host, name, path, wanted)
    if host.glob(OLD_LOG_DIRECTORY):
        yield _space(host, OLD_LOG_DIRECTORY, OLD_LOG_DIRECTORY, wanted)


def output_directories(variables: Mapping[str, str]) -> dict[str, str]:
    """{what names it: absolute path}; without a variable for the logs they go below the home directory."""
    found = {name: variables[name] for name in OUTPUT_VARIABLES if variables.get(name, "").startswith("/")}
    home = variables.get("HOME", "")
    if "ASCEND_PROCESS_LOG_PATH" not in found and "ASCEND_WORK_PATH" not in found and home.startswith("/"):
        found["logs"] = posixpath.join(home, "ascend/log")
    return found


def _space(host: Host, name: str, path: str, wanted: int) -> Reading:
    """Of the file system that holds `path`, or will hold it once the job has made it."""
    try:
        return _free(name, _disk(host, posixpath.normpath(path)), wanted)
    except HostError as error:
        return Reading(name, None, Evidence(path, str(error)), reason=host_error_text(error))


def _disk(host: Host, path: str) -> Disk:
    try:
        return host.disk(path)
    except Missing:
        if path == "/":
            raise
        return _disk(host, posixpath.dirname(path))


def _free(name: str, disk: Disk, wanted: int) -> Reading:
    amount = round(disk.free / 1e9, 1)
    shown = Message("{amount} GB free at {path}", amount=amount, path=disk.path)
    return Reading(name, amount, Evidence(disk.path, f"{disk.free} of {disk.total} bytes free"), shown, _enough(wanted))


def _enough(wanted: int) -> Text:
    return Message("{wanted} GB or more", wanted=wanted)
