"""The search paths of the job, entry by entry: PATH, LD_LIBRARY_PATH, PYTHONPATH, and the paths of a built gcc or hdf5.

Sources: porting guide 003:2852-2860 (gcc 7.3.0), 003:2880-2885 (hdf5), ld.so(8), environ(7), CPython's Modules/getpath.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from typing import Iterable, Optional

from envtune.collector.sources.cann import SEARCH_VARIABLES
from envtune.commandline import WithheldError, quoted
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined, host_error_text
from envtune.host import Host, is_dir
from envtune.messages import Literal, Message, Text, clauses, enumerated
from envtune.model import Command, Evidence, Reading
from envtune.records import expression

SEARCHED = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
SYSTEM_PATH = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/usr/games",
    "/usr/local/games",
    "/snap/bin",
)  # login.defs(5), /etc/profile of Debian and Ubuntu
GCC_HOMES = ("/usr/local/*gcc*", "/opt/*gcc*")
HDF5 = "/usr/local/hdf5"
HDF5_ENTRIES = {"PATH": "bin", "LD_LIBRARY_PATH": "lib", "LIBRARY_PATH": "lib", "CPATH": "include"}

# The directory of one version of CANN, or of another of the vendor's packages except the driver.
_INSTALL_ROOT = expression(
    r"(.*?/(?:(?:ascend-toolkit|nnae|nnrt)/[^/]+|cann-[^/]+|Ascend/(?!driver(?:/|$)|ascend-toolkit|nnae|nnrt)[^/]+))/"
)

LISTS = frozenset((*SEARCHED, *HDF5_ENTRIES))  # search paths, for which a launcher has its own value


@probe("environment.search_path_entries", formerly="search_paths.entries")
def entries(context: Context) -> Iterable[Reading]:
    """Number of invalid entries in each search path of the job."""
    variables = context.target.variables()
    readings: list[Reading] = []
    for name in SEARCHED:
        try:
            value = variables.get(name)
        except Undetermined as verdict:
            readings.append(Reading(name, None, Evidence(verdict.source), reason=verdict.reason))
            continue
        if value:
            readings.append(_search_path(context, name, value))
    if not readings:
        reason = Message("none of {names} is set", names=enumerated(SEARCHED))
        raise NotApplicable(reason, context.target.environment.description)
    return readings


def _search_path(context: Context, name: str, value: str) -> Reading:
    evidence = Evidence(context.target.environment.place(name), f"{name}={value}")
    defects, silent = path_defects(context.host, value, files=name == "PYTHONPATH")
    wanted = Message("directories that exist, each once, no empty or relative entry")
    if not defects and silent is not None:
        return Reading(name, None, evidence, expected=wanted, reason=host_error_text(silent))
    shown = clauses(defects) if defects else Message("no problems")
    listing = Command("look", f"printf '%s\\n' \"${name}\" | tr ':' '\\n' | cat -n")  # an empty entry is an empty line
    cleaned = _cleaned(context, name, value) if defects else ()
    return Reading(name, len(defects), evidence, shown, wanted, commands=(*cleaned, listing))


def _cleaned(context: Context, name: str, value: str) -> tuple[Command, ...]:
    """Return the line that sets the search path to its sound entries, each once; none if one cannot be judged.

    Where the path mixes several CANN installs (cann.one_install), only the entries of the active one are kept.
    """
    sound: dict[str, str] = {}
    try:
        for part in value.split(":"):
            if part and not entry_defects(context.host, part, name == "PYTHONPATH"):
                sound.setdefault(posixpath.normpath(part), part)
        path = ":".join(map(quoted, _of_one_install(context, name, list(sound.values()))))
    except HostError:
        return ()
    except WithheldError as error:
        return (Command("fix", error.reason),)
    return (Command("fix", f"export {name}={path}" if path else f"unset {name}"),)


def _of_one_install(context: Context, name: str, entries: list[str]) -> list[str]:
    """Return the entries without those of other CANN installs than the active one; all if none would be left."""
    if name not in SEARCH_VARIABLES:
        return entries
    from envtune.resources.cann.installs import active_install
    from envtune.resources.cann.tree import is_of_other_install

    try:
        install = active_install(context)
    except (HostError, Undetermined):
        return entries
    return [entry for entry in entries if not is_of_other_install(context.host, install, entry)] or entries


def path_defects(host: Host, value: str, files: bool = False) -> tuple[tuple[Text, ...], Optional[HostError]]:
    """Return what is wrong with the entries of a search path, and why the first unreadable entry could not be read.

    `files`: an entry may also be a file (zip archives and eggs on PYTHONPATH).
    """
    parts = value.split(":")
    counts = Counter(posixpath.normpath(part) for part in parts if part)
    defects: list[Text] = []
    silent: Optional[HostError] = None
    if "" in parts:
        defects.append(Message("an empty entry (the current directory)"))
    for part, count in counts.items():
        if count > 1:
            defects.append(Message("{part} more than once", part=part))
        try:
            defects += entry_defects(host, part, files)
        except HostError as error:
            silent = silent or error
    return tuple(defects), silent


def entry_defects(host: Host, part: str, files: bool) -> tuple[Text, ...]:
    """Return what is wrong with an entry by itself; raises HostError where it cannot be looked at."""
    if not part.startswith("/"):
        return (Message("{part} is relative", part=part),)
    try:
        kind = host.stat(part).kind
    except Missing:
        return () if _supplied(host, part) else (Message("{part} does not exist", part=part),)
    if kind == "dir" or (files and kind == "file"):
        return ()
    return (Message("{part} is not a directory", part=part),)


def _supplied(host: Host, part: str) -> bool:
    """Return whether it is harmless: a directory of the default PATH, or one that a vendor script always lists.

    set_env.sh of CANN (and of nnal) names subdirectories that only some of the packages install. This does not apply to
    the driver: an installation has all of them.
    """
    if part in SYSTEM_PATH:
        return True
    root = _INSTALL_ROOT.match(part)
    return root is not None and root[1] != part and is_dir(host, root[1])


@probe("environment.gcc_runtime", formerly="search_paths.gcc_runtime")
def gcc_runtime(context: Context) -> Iterable[Reading]:
    """Whether LD_LIBRARY_PATH contains the lib64 directory of each gcc built in addition to the system's.

    Source: porting guide 003:2852-2860.

    The guide installs to /usr/local/linux_gcc7.3.0 but exports /usr/local/gcc7.3.0: an entry for a gcc that does not
    exist is reported, too.
    """
    value = context.target.variables().get("LD_LIBRARY_PATH", "")
    listed = [posixpath.normpath(part) for part in value.split(":") if part]
    evidence = Evidence(context.target.environment.place("LD_LIBRARY_PATH"), f"LD_LIBRARY_PATH={value}")
    homes = gcc_homes(context.host)
    dead = [part for part in listed if re.search(r"/[^/]*gcc[^/]*/lib64$", part) and not is_dir(context.host, part)]
    if not homes and not dead:
        reason = Message("no gcc built in addition to the system's ({patterns})", patterns=enumerated(GCC_HOMES))
        raise NotApplicable(reason, "/usr/local, /opt")
    for home in homes:
        library = home + "/lib64"
        present = library in listed
        words = Message("{path} is in it", path=library) if present else Message("{path} is not in it", path=library)
        yield Reading(library, present, evidence, words, Literal(library), fields={"library": library})
    for part in dead:
        shown = Message("{part} does not exist", part=part)
        wanted = Message("{homes}/lib64", homes=homes[0]) if homes else Message("an existing lib64")
        yield Reading(part, False, evidence, shown, wanted)


def gcc_homes(host: Host) -> tuple[str, ...]:
    """Return the prefixes that contain a gcc and its C++ runtime."""
    suffix = "/lib64/libstdc++.so.6"
    return tuple(path[: -len(suffix)] for pattern in GCC_HOMES for path in host.glob(pattern + suffix))


@probe("environment.hdf5", formerly="search_paths.hdf5")
def hdf5(context: Context) -> Iterable[Reading]:
    """Whether each search path contains the directory of the hdf5 built for operator dumps.

    Source: porting guide 003:2880-2885.
    """
    if not is_dir(context.host, HDF5):
        raise NotApplicable(Message("{path} does not exist", path=HDF5), HDF5)
    variables = context.target.variables()
    for name, folder in HDF5_ENTRIES.items():
        directory = f"{HDF5}/{folder}"
        try:
            value = variables.get(name, "")
        except Undetermined as verdict:
            yield Reading(name, None, Evidence(verdict.source), reason=verdict.reason)
            continue
        present = directory in [posixpath.normpath(part) for part in value.split(":") if part]
        evidence = Evidence(context.target.environment.place(name), f"{name}={value}")
        words = Message("{path} is in it", path=directory) if present else Message("{path} is missing", path=directory)
        yield Reading(
            name, present, evidence, words, Message("holds {path}", path=directory), fields={"folder": directory}
        )
