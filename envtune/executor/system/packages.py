"""What package managers leave behind: incompletely installed packages, and changed versions."""

import os
import re
from shlex import quote
from typing import Dict, Iterable, List, Optional, Tuple

from ..commands import command_output
from ..common import Record
from ..problems import FailedError

_DPKG_QUERY = [
    "dpkg-query",
    "-W",
    "-f=${binary:Package} ${Version} ${db:Status-Status} ${db:Status-Eflag}\\n",
]
_RPM_QUERY = ["rpm", "-qa", "--qf", "%{NAME}.%{ARCH} %{VERSION}-%{RELEASE}\\n"]
_ABSENT = ("not-installed", "config-files")
# These may be installed in several versions at once (dnf.conf(5), installonlypkgs).
_SEVERAL_VERSIONS = re.compile(r"(gpg-pubkey|kernel)\b")
_RPM_REPAIR = {
    "dnf": "sudo dnf remove --duplicates",
    "yum": "sudo yum-complete-transaction --cleanup-only && sudo package-cleanup --cleandupes",
    "zypper": "sudo zypper verify",
    "rpm": "sudo rpm --rebuilddb",
}
Versions = Dict[str, str]
Unfinished = Dict[str, str]  # package -> state


class PackageDatabase:
    """The package database of an operation's command, read by dpkg-query or rpm; `unfinished` as in dpkg --audit."""

    def __init__(self, manager: str) -> None:
        self.manager = manager
        self.versions: Versions = {}
        self.unfinished: Unfinished = {}
        if manager in ("apt-get", "apt", "dpkg"):
            self._read_dpkg()
        else:
            self._read_rpm()

    def _read_dpkg(self) -> None:
        for line in command_output(_DPKG_QUERY, None).splitlines():
            words = line.split(" ")
            if len(words) != 4 or words[2] in _ABSENT:
                continue
            name, version, state, flag = words
            self.versions[name] = version
            if flag not in ("ok", ""):
                self.unfinished[name] = "%s, %s" % (state, flag)
            elif state != "installed":
                self.unfinished[name] = state

    def _read_rpm(self) -> None:
        for line in command_output(_RPM_QUERY, None).splitlines():
            name, _, version = line.partition(" ")
            if name in self.versions and self.versions[name] != version and not _SEVERAL_VERSIONS.match(name):
                self.unfinished[name] = "%s beside %s" % (version, self.versions[name])
            self.versions[name] = version


def package_database(operation: Record) -> Optional[PackageDatabase]:
    """Return the database that an operation's command writes; None for other commands, or if it cannot be read."""
    manager = _manager_of(operation)
    if manager is None:
        return None
    try:
        return PackageDatabase(manager)
    except (OSError, FailedError):
        return None


def _manager_of(operation: Record) -> Optional[str]:
    program = os.path.basename(operation["argv"][0]) if operation.get("op") == "run" else ""
    return program if program in ("apt-get", "apt", "dpkg") or program in _RPM_REPAIR else None


def changed_versions(before: PackageDatabase, after: PackageDatabase) -> Dict[str, Tuple[str, str]]:
    """Return the packages that existed before and have a different version now, as (before, after)."""
    common = set(before.versions) & set(after.versions)
    return {
        name: (before.versions[name], after.versions[name])
        for name in sorted(common)
        if before.versions[name] != after.versions[name]
    }


def require_finished_packages(operation: Record, before: Iterable[str]) -> None:
    """Raise FailedError if the operation left packages incompletely installed; the message says what to type.

    `before` are those that were incomplete before it.
    """
    database = package_database(operation)
    if database is None:
        return
    left = {name: state for name, state in database.unfinished.items() if name not in set(before)}
    if not left:
        return
    names = ", ".join("%s (%s)" % item for item in sorted(left.items()))
    commands = [_RPM_REPAIR[database.manager]] if database.manager in _RPM_REPAIR else _dpkg_repair(left)
    raise FailedError("packages-unfinished", packages=names, commands="; ".join(commands))


def _dpkg_repair(left: Unfinished) -> List[str]:
    """Return the repair commands: packages with missing files are reinstalled, the others configured."""
    incomplete = sorted(name for name, state in left.items() if state.startswith("half-installed") or "," in state)
    commands = ["sudo apt-get install --reinstall %s" % " ".join(map(quote, incomplete))] if incomplete else []
    return ["sudo dpkg --configure -a"] + commands
