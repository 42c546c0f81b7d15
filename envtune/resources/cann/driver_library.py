"""libascend_hal.so, the driver's library that everything using an NPU depends on: whether the loader finds it."""

from __future__ import annotations

from posixpath import dirname
from typing import Iterable

from envtune.collector.sources.cann import DRIVER_LIBRARY, DRIVER_LIBRARY_PLACES
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable
from envtune.host import is_dir
from envtune.messages import Message, enumerated
from envtune.model import Command, Evidence, Reading
from envtune.resources.cann.driver import DEVICES, driver_trace, package_bases
from envtune.resources.cann.loader import EXPECTED, NotFound, architecture_reading, find_library, first_match
from envtune.resources.npu.devices import smi_output

# Directories of CANN with a libascend_hal.so to link against without a driver; a process that loads it fails with
# 500000 at aclInit. Source: public build files (devlib/ since 8.5, runtime/lib64/stub/ before).
STUBS = ("/devlib", "/stub")


@probe("cann.driver_library")
def library_path(context: Context) -> Iterable[Reading]:
    """Whether the loader finds the driver's libascend_hal.so, built for the architecture of this host.

    The driver's installer writes its directories to /etc/ld.so.conf.d/ascend_driver_so.conf; a container has neither
    unless both were mounted, and sets LD_LIBRARY_PATH instead.
    """
    if driver_trace(context) is None:
        raise NotApplicable(Message("no driver and no NPU device found"), enumerated(DEVICES))
    found = find_library(context, DRIVER_LIBRARY)
    if isinstance(found, Reading):
        return [found]
    if isinstance(found, NotFound):
        return [_missing(context, found)]
    if dirname(found).endswith(STUBS):
        shown = Message("{path} is a stub of CANN for linking, not the driver's", path=found)
        expected = Message("the driver's {name}", name=DRIVER_LIBRARY)
        return [Reading(DRIVER_LIBRARY, False, Evidence(found), shown, expected)]
    return [architecture_reading(context, found, DRIVER_LIBRARY)]


def _missing(context: Context, found: NotFound) -> Reading:
    """Judge a library that the loader does not find: by its location, and by whether npu-smi, which needs it, runs."""
    host = context.host
    homes = [f"{base}/driver" for base in package_bases(host, "driver")]
    shipped = first_match(
        host, (f"{home}/{place}/{DRIVER_LIBRARY}" for home in homes for place in DRIVER_LIBRARY_PLACES)
    )
    home = next((home for home in homes if is_dir(host, f"{home}/lib64")), None)
    if shipped is not None:
        shown = Message("not found; it is in {directory}", directory=dirname(shipped))
        commands = (_export_command(dirname(shipped)),)
        return Reading(DRIVER_LIBRARY, False, found.evidence, shown, EXPECTED, commands=commands)
    if home is not None:
        shown = Message("not found, and not in {tree}", tree=home)
    elif _smi_answers(context):
        reason = Message("npu-smi runs, so the driver's libraries are in a directory unknown to envtune")
        return Reading(DRIVER_LIBRARY, None, found.evidence, None, EXPECTED, reason=reason)
    else:
        folder = f"{homes[0]}/lib64"
        shown = Message("not found, and {directory} does not exist: not installed or not mounted", directory=folder)
    return Reading(DRIVER_LIBRARY, False, found.evidence, shown, EXPECTED)


def _export_command(directory: str) -> Command:
    """Return the line that adds the directory, and the one with the library's own dependencies, to the search path."""
    from envtune.commandline import WithheldError, quoted

    home = directory.rpartition("/lib64")[0]
    folders = dict.fromkeys((directory, f"{home}/lib64/common"))
    try:
        joined = ":".join(map(quoted, folders))
    except WithheldError as error:
        return Command("fix", error.reason)
    return Command("fix", f"export LD_LIBRARY_PATH={joined}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}")


def _smi_answers(context: Context) -> bool:
    try:
        return bool(smi_output(context).table.devices)
    except HostError:
        return False
