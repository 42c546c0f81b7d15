"""Where the loader finds a shared library for the job: LD_LIBRARY_PATH, ld.so.conf, the system's directories.

Instead of /etc/ld.so.cache, the configuration it is generated from is read. Source: ld.so(8).
"""

from __future__ import annotations

import struct
from posixpath import dirname, join
from typing import Iterable, Mapping, NamedTuple, Optional, Union

from envtune.collector.sources.cann import LOADER_CONF, LOADER_CONF_DEPTH, LOADER_DIRECTORIES, loader_conf
from envtune.context import Context
from envtune.errors import Denied, HostError, Missing, NotRecorded, Undetermined, host_error_text
from envtune.host import Host, exists
from envtune.messages import Message, enumerated
from envtune.model import Evidence, Reading
from envtune.resources.cann.environment import absolute_paths

# e_machine of the ELF specification.
MACHINES: Mapping[int, str] = {62: "x86_64", 183: "aarch64", 3: "i386", 40: "arm"}
EXPECTED = Message("found through LD_LIBRARY_PATH or ld.so.conf")


class NotFound(NamedTuple):
    """A library that is in none of the directories the loader searches; `evidence` lists them."""

    evidence: Evidence


def find_library(context: Context, library: str) -> Union[str, NotFound, Reading]:
    """Return the path that the loader uses, or NotFound; a reading with the reason if a directory cannot be read.

    Undetermined if the job's LD_LIBRARY_PATH is unknown and the library is not found elsewhere.
    """
    why_unknown = context.target.environment.why_unknown("LD_LIBRARY_PATH")
    value = "" if why_unknown is not None else context.target.variables().get("LD_LIBRARY_PATH", "")
    try:
        for folder in (*absolute_paths(value), *loader_directories(context.host, context)):
            path = join(folder, library)
            if exists(context.host, path):
                return path
    except (Denied, NotRecorded) as error:
        reason, privilege = host_error_text(error), isinstance(error, Denied)
        return Reading(library, None, Evidence(error.path), reason=reason, needs_privilege=privilege)
    place = context.target.environment.place("LD_LIBRARY_PATH")
    if why_unknown is not None:
        raise Undetermined(why_unknown, place, needs_privilege=context.target.environment.needs_privilege)
    return NotFound(Evidence(enumerated((place, LOADER_CONF)), f"LD_LIBRARY_PATH={value}"))


def architecture_reading(context: Context, path: str, library: str) -> Reading:
    """Read whether the library used by the loader is built for this machine."""
    arch = context.facts.value("arch") or ""
    expected = Message("{library} for {arch}", library=library, arch=arch)
    try:
        machine = elf_machine(context.host.head(path))
    except HostError as error:
        why = host_error_text(error)
        shown = Message("{path} (architecture not checked: {why})", path=path, why=why)
        return Reading(library, True, Evidence(path), shown, expected)
    except ValueError:
        shown = Message("{path} is not an ELF library", path=path)
        return Reading(library, False, Evidence(path, "no ELF header"), shown, expected)
    shown = Message("{path}, {machine}", path=path, machine=machine)
    return Reading(library, machine == arch or not arch, Evidence(path, f"e_machine: {machine}"), shown, expected)


def elf_machine(head: bytes) -> str:
    """Return the machine an ELF file is built for, as uname names it; raises ValueError if it is not an ELF file."""
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


def first_match(host: Host, patterns: Iterable[str]) -> Optional[str]:
    """Return the first path that matches one of the patterns, None if there is none."""
    for pattern in patterns:
        try:
            for path in host.glob(pattern):
                return path
        except NotRecorded:
            continue
    return None
