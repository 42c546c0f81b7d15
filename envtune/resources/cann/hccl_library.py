"""libhccl.so: whether the loader finds it for the job, and whether it is built for this machine."""

from __future__ import annotations

import struct
from posixpath import dirname, join
from typing import Iterable, Mapping, Optional

from envtune.collector.sources.cann import (
    HCCL_LIBRARY,
    HCCL_PLACES,
    LOADER_CONF,
    LOADER_CONF_DEPTH,
    LOADER_DIRECTORIES,
    loader_conf,
)
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Denied, HostError, Missing, NotRecorded, Undetermined, host_error_text
from envtune.host import Host, exists
from envtune.messages import Joined, Message
from envtune.model import Evidence, Reading
from envtune.resources.cann.environment import absolute_paths, environment_script
from envtune.resources.cann.installs import active_install
from envtune.resources.cann.tree import Install

# e_machine of the ELF specification.
MACHINES: Mapping[int, str] = {62: "x86_64", 183: "aarch64", 3: "i386", 40: "arm"}


@probe("cann.hccl_library", formerly="hccl_library.found")
def library_path(context: Context) -> Iterable[Reading]:
    """Read where the loader finds libhccl.so: LD_LIBRARY_PATH first, then ld.so.conf and the system directories.

    Source: porting guide 003:2992-3002. Of /etc/ld.so.cache only the configuration it is made from is read.
    """
    host, install = context.host, active_install(context)
    why_unknown = context.target.environment.why_unknown("LD_LIBRARY_PATH")
    value = "" if why_unknown is not None else context.target.variables().get("LD_LIBRARY_PATH", "")
    try:
        for folder in (*absolute_paths(value), *loader_directories(host, context)):
            path = join(folder, HCCL_LIBRARY)
            if exists(host, path):
                return [_architecture_reading(context, path)]
    except (Denied, NotRecorded) as error:
        reason, privilege = host_error_text(error), isinstance(error, Denied)
        return [Reading(HCCL_LIBRARY, None, Evidence(error.path), reason=reason, needs_privilege=privilege)]
    place = context.target.environment.place("LD_LIBRARY_PATH")
    if why_unknown is not None:
        raise Undetermined(why_unknown, place, needs_privilege=context.target.environment.needs_privilege)
    shipped = shipped_in(host, install)
    expected = Message("found through LD_LIBRARY_PATH or ld.so.conf")
    evidence = Evidence(Joined([place, LOADER_CONF], ", "), f"LD_LIBRARY_PATH={value}")
    if shipped is None:
        shown = Message("not found, and {tree} does not hold it", tree=install.real)
    else:
        shown = Message("not found; it is in {directory}", directory=dirname(shipped))
    script = environment_script(host, install) if shipped is not None else None
    fields = {} if script is None else {"script": script}
    return [Reading(HCCL_LIBRARY, False, evidence, shown, expected, fields=fields)]


def _architecture_reading(context: Context, path: str) -> Reading:
    arch = context.facts.value("arch") or ""
    expected = Message("{library} for {arch}", library=HCCL_LIBRARY, arch=arch)
    try:
        machine = elf_machine(context.host.head(path))
    except HostError as error:
        why = host_error_text(error)
        shown = Message("{path} (architecture not checked: {why})", path=path, why=why)
        return Reading(HCCL_LIBRARY, True, Evidence(path), shown, expected)
    except ValueError:
        shown = Message("{path} is not an ELF library", path=path)
        return Reading(HCCL_LIBRARY, False, Evidence(path, "no ELF header"), shown, expected)
    shown = Message("{path}, {machine}", path=path, machine=machine)
    return Reading(HCCL_LIBRARY, machine == arch or not arch, Evidence(path, f"e_machine: {machine}"), shown, expected)


def elf_machine(head: bytes) -> str:
    """Return the machine an ELF file is built for, as uname names it; ValueError when it is no ELF file."""
    if len(head) < 20 or head[:4] != b"\x7fELF" or head[5] not in (1, 2):
        raise ValueError("no ELF header")
    (number,) = struct.unpack_from("<H" if head[5] == 1 else ">H", head, 18)
    return MACHINES.get(number, f"e_machine {number}")


def loader_directories(host: Host, context: Context) -> Iterable[str]:
    """Yield the directories of ld.so.conf in order, then the system's own."""
    yield from _conf_directories(host, LOADER_CONF, LOADER_CONF_DEPTH)
    arch = context.facts.value("arch") or ""
    for folder in LOADER_DIRECTORIES:
        yield folder.format(arch=arch)


def _conf_directories(host: Host, path: str, depth: int) -> Iterable[str]:
    try:
        text = host.read(path)
    except (Missing, NotRecorded):
        return
    for kind, value in loader_conf(text):
        if kind == "directory":
            yield value
        elif depth > 0:
            for file in host.glob(value if value.startswith("/") else join(dirname(path), value)):
                yield from _conf_directories(host, file, depth - 1)


def shipped_in(host: Host, install: Install) -> Optional[str]:
    """Return where the active install keeps the library, None when it has none."""
    for pattern in install.places(*(f"{place}/{HCCL_LIBRARY}" for place in HCCL_PLACES)):
        try:
            for path in host.glob(pattern):
                return path
        except NotRecorded:
            continue
    return None
