"""The gcc installations of this host, found by their directories: no compiler is started."""

from __future__ import annotations

import posixpath
import re
from typing import Iterable, NamedTuple

from envtune.collector.sources.build import GCC_VERSIONS, LOCAL, PREREQUISITES, SOURCE_FOLDERS
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable
from envtune.host import exists
from envtune.messages import Literal, Message
from envtune.model import Evidence, Reading
from envtune.ranges import checked_int

LEAST = (7, 3)


class Compiler(NamedTuple):
    """A gcc: its prefix, its version as far as its directory name tells, and that directory."""

    prefix: str
    version: tuple[int, ...]
    folder: str


@probe("build.gcc")
def gcc(context: Context) -> Iterable[Reading]:
    """Newest gcc on this host: `new` for 7.3.0 or newer, `old` otherwise; not applicable if gcc is not installed.

    Source: porting guide 003:2803-2860; Dependencies of the CANN 8.0 installation guide (7.3.0 or later).
    """
    found = compilers(context)
    if not found:
        raise NotApplicable(Message("no gcc is installed"), ", ".join(GCC_VERSIONS))
    newest = max(found, key=lambda one: one.version)
    shown = Message("gcc {version} in {prefix}", version=".".join(map(str, newest.version)), prefix=newest.prefix)
    expected = Message("gcc 7.3.0 or newer")
    if newest.version == LEAST[:1]:
        reason = Message("{folder} does not show which gcc 7 it is", folder=newest.folder)
        return [Reading("gcc", None, Evidence(newest.folder), shown, expected, reason=reason)]
    value = "new" if newest.version >= LEAST else "old"
    return [Reading("gcc", value, Evidence(newest.folder), shown, expected)]


def compilers(context: Context) -> tuple[Compiler, ...]:
    """Return every gcc of the system and in the usual prefixes that has a compiler proper (cc1)."""
    found = []
    for pattern in GCC_VERSIONS:
        for path in context.host.glob(pattern):
            folder = posixpath.dirname(path)
            version = posixpath.basename(folder)
            if re.fullmatch(r"\d+(?:\.\d+){0,2}", version):
                prefix = re.split(r"/(?:lib|lib64|libexec)/gcc/", folder)[0]
                found.append(Compiler(prefix, tuple(map(checked_int, version.split("."))), folder))
    return tuple(found)


@probe("build.gcc_prefix")
def gcc_prefix(context: Context) -> Iterable[Reading]:
    """Install prefix of each gcc built on this host: `shared` for /usr/local, `own` for any other directory.

    A distribution installs a gcc below /usr or, as a software collection, below root/usr of its own directory. Source:
    porting guide 003:2850.
    """
    _is_there(context, LOCAL)  # raises if it cannot be examined
    built = [one for one in compilers(context) if one.prefix != "/usr" and not one.prefix.endswith("/root/usr")]
    if not built:
        raise NotApplicable(Message("no gcc was built in addition to the system's"), ", ".join(GCC_VERSIONS))
    for one in built:
        version = ".".join(map(str, one.version))
        value = "shared" if one.prefix == "/usr/local" else "own"
        shown = Message("gcc {version} in {prefix}", version=version, prefix=one.prefix)
        yield Reading(one.prefix, value, Evidence(one.folder), shown, Message("a separate directory"))


@probe("build.gcc_prerequisites")
def prerequisites(context: Context) -> Iterable[Reading]:
    """Libraries in each gcc 7.3.0 source tree that the build needs: `complete`, `missing` or `duplicate`.

    Examines gcc-7.3.0 in the working directory, in the home directory and in /usr/local/src. Source: 003:2814-2842.
    """
    homes = (context.host.environ.get("HOME", ""), context.host.cwd)
    folders = dict.fromkeys((*SOURCE_FOLDERS, *(f"{home}/gcc-7.3.0" for home in homes if home.startswith("/"))))
    trees = [folder for folder in folders if _is_there(context, f"{folder}/configure")]
    if not trees:
        raise NotApplicable(Message("no gcc-7.3.0 source tree here"), ", ".join(folders))
    return [_tree(context, folder) for folder in trees]


def _is_there(context: Context, path: str) -> bool:
    try:
        return exists(context.host, path)
    except Missing:
        return False


def _tree(context: Context, folder: str) -> Reading:
    host = context.host
    expected = Message("the four archives, each once")
    try:
        lacking = [name for library, name in PREREQUISITES.items() if not _has(context, folder, library, name)]
        duplicates = [path for path in host.glob(f"{folder}/*.[0-9]") if ".tar." in path]
    except HostError as error:
        return Reading(folder, None, Evidence(error.path, str(error)), expected=expected, reason=Literal(str(error)))
    if lacking:
        shown = Message("missing: {names}", names=", ".join(lacking))
        return Reading(folder, "missing", Evidence(folder, ", ".join(lacking)), shown, expected)
    if duplicates:
        names = ", ".join(posixpath.basename(path) for path in duplicates)
        return Reading(folder, "duplicate", Evidence(folder, names), Message("downloaded twice: {names}", names=names))
    return Reading(folder, "complete", Evidence(folder), Message("complete"), expected)


def _has(context: Context, folder: str, library: str, archive: str) -> bool:
    """Return whether the archive exists, or the directory contrib/download_prerequisites unpacks it to."""
    return _is_there(context, f"{folder}/{archive}") or _is_there(context, f"{folder}/{library}")
