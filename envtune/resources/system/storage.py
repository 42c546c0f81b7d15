"""Disks and free space."""

from __future__ import annotations

import json
import posixpath
from typing import Iterable, Mapping

from envtune import expect
from envtune.collector.sources.system import OUTPUT_VARIABLES
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, host_error_text
from envtune.host import Host, disk_of
from envtune.messages import Literal, Message, Text
from envtune.model import Disk, Evidence, Expectation, Reading
from envtune.ranges import whole_number

SECTOR = 512  # bytes; the unit of /sys/block/*/size, whatever the disk's own sector is (Documentation/ABI/stable)
DUMP_CONFIGURATION = "TORCH_ACL_INIT_CONFIG_PATH"
OLD_LOG_DIRECTORY = "/var/log/npu/slog"  # porting guide 003:2951


@probe("system.nvme", formerly="storage.nvme", former_arguments=("recommended",), unit="TB")
def nvme(context: Context) -> Iterable[Reading]:
    """Size of each NVMe disk in TB (10^12 bytes); 0 without an NVMe disk.

    Source: porting guide 003:134, 003:136.
    """
    host = context.host
    paths = [path for path in host.glob("/sys/block/nvme*n*/size") if _is_whole(path)]
    if paths:
        return [_nvme(host, path) for path in paths]
    host.listdir("/sys/block")  # if no disk at all is visible, the absence of one is not evidence
    return [Reading("nvme", 0, Evidence("/sys/block/nvme*"), Message("no NVMe disk"), _terabytes)]


def _is_whole(path: str) -> bool:
    """Return whether it is a controller's namespace, `nvme0n1`: no partition, nor one path of several (`nvme0c1n1`)."""
    number, mark, rest = posixpath.basename(posixpath.dirname(path))[len("nvme") :].partition("n")
    return bool(mark) and number.isdecimal() and rest.isdecimal()


def _nvme(host: Host, path: str) -> Reading:
    name = posixpath.basename(posixpath.dirname(path))
    try:
        text = host.read(path)
    except HostError as error:
        return Reading(name, None, Evidence(path, str(error)), reason=host_error_text(error))
    sectors = whole_number(text)
    if sectors is None:
        return Reading(name, None, Evidence(path, text), reason=Message("{path} is not a number", path=path))
    size = sectors * SECTOR / 1e12
    return Reading(name, size, Evidence(path, text), Literal(f"{size:.2f} TB"), _terabytes)


def _terabytes(expectation: Expectation) -> Text:
    least = expect.only(expectation, "ge")
    if least is None:
        return expect.describe(expectation, expect.in_unit("TB"))
    if "any" in expectation:
        return Message("one of {size} TB or more", size=least)
    return Message("{size} TB or more", size=least)


@probe("system.temporary_space", formerly="storage.temporary", former_arguments=("wanted",), unit="GB")
def temporary(context: Context) -> Iterable[Reading]:
    """Free space for temporary files (TMPDIR, or /tmp) in GB (10^9 bytes).

    Source: porting guide 003:2809-2811.
    """
    host = context.host
    named = host.environ.get("TMPDIR", "")
    path = named if named.startswith("/") else "/tmp"
    try:
        return [_free("temporary files", host.disk(path))]
    except Missing:
        shown = Message("{path} does not exist", path=path)
        return [Reading("temporary files", 0, Evidence(path, ""), shown, _gigabytes)]


@probe("system.output_space", formerly="storage.output", former_arguments=("wanted",), unit="GB")
def output(context: Context) -> Iterable[Reading]:
    """Free space for the job's logs, caches and tuning data in GB (10^9 bytes).

    Source: porting guide 003:1582, 003:1660-1664.
    """
    host = context.host
    variables = context.target.variables()
    places = output_directories(variables)
    dump = _dump_path(host, variables.get(DUMP_CONFIGURATION, ""))
    for name, path in {**places, **({"dump_path": dump} if dump else {})}.items():
        yield _space(host, name, path)
    if host.glob(OLD_LOG_DIRECTORY):
        yield _space(host, OLD_LOG_DIRECTORY, OLD_LOG_DIRECTORY)


def _dump_path(host: Host, configuration: str) -> str:
    """Return the dump path of the job's acl.json; empty if it names no absolute path."""
    try:
        place = json.loads(host.read(configuration))["dump"]["dump_path"] if configuration.startswith("/") else ""
    except (HostError, ValueError, KeyError, TypeError):
        return ""  # other checks report what is wrong with it
    return place if isinstance(place, str) and place.startswith("/") else ""


def output_directories(variables: Mapping[str, str]) -> dict[str, str]:
    """Return {what names it: absolute path}; without a variable for the logs they go below the home directory."""
    found = {name: variables[name] for name in OUTPUT_VARIABLES if variables.get(name, "").startswith("/")}
    home = variables.get("HOME", "")
    if "ASCEND_PROCESS_LOG_PATH" not in found and "ASCEND_WORK_PATH" not in found and home.startswith("/"):
        found["logs"] = posixpath.join(home, "ascend/log")
    return found


def _space(host: Host, name: str, path: str) -> Reading:
    """Read the file system that contains `path`, or will contain it once the job has created it."""
    try:
        return _free(name, disk_of(host, posixpath.normpath(path)))
    except HostError as error:
        return Reading(name, None, Evidence(path, str(error)), reason=host_error_text(error))


def _free(name: str, disk: Disk) -> Reading:
    amount = round(disk.free / 1e9, 1)
    shown = Message("{amount} GB free at {path}", amount=amount, path=disk.path)
    return Reading(name, amount, Evidence(disk.path, f"{disk.free} of {disk.total} bytes free"), shown, _gigabytes)


def _gigabytes(expectation: Expectation) -> Text:
    least = expect.only(expectation, "ge")
    if least is None:
        return expect.describe(expectation, expect.in_unit("GB"))
    return Message("{amount} GB or more", amount=least)
