"""What sets the kernel's parameters at boot: the files of sysctl.d, and which of them has the last word.

Sources: sysctl.d(5) and systemd-sysctl (files of all directories are read in the order of their names, one name is read
once, /etc wins over /run over /usr; a key that is named wins over one that is matched by a glob); procps' `sysctl
--system` reads /etc/sysctl.conf last, which systemd does not read unless a link in /etc/sysctl.d leads to it.
"""

from __future__ import annotations

import fnmatch
import posixpath
from typing import Iterator, NamedTuple, Optional

from envtune.collector.sources.network import SYSCTL_DIRECTORIES
from envtune.errors import HostError, Missing
from envtune.host import Host

MAIN = "/etc/sysctl.conf"


class Line(NamedTuple):
    """One setting. `key` is the path below /proc/sys; `value` is None for `-key`, which excludes it from globs."""

    key: str
    value: Optional[str]
    path: str
    number: int

    @property
    def place(self) -> str:
        """file:line."""
        return f"{self.path}:{self.number}"

    @property
    def name(self) -> str:
        """The name of the file, which decides the order."""
        return posixpath.basename(self.path)


def key_path(key: str) -> str:
    """`net.ipv4.ip_forward` and `net/ipv4/ip_forward` as the path below /proc/sys.

    Where the first separator is a dot, dots separate and slashes stand for dots in a name (`net.ipv4.conf.eth0/7.mtu`).
    """
    first = next((letter for letter in key if letter in "./"), "/")
    return key.strip("/") if first == "/" else key.translate(str.maketrans("./", "/."))


def lines(text: str, path: str) -> Iterator[Line]:
    """The settings of one file; comments (`#`, `;`) and what is no setting are left out."""
    for number, row in enumerate(text.splitlines(), 1):
        row = row.strip()
        if not row or row[0] in "#;":
            continue
        key, equals, value = row.partition("=")
        silent = key.startswith("-")  # a failure to set it is no error
        name = key.lstrip("-").strip()
        if name and (equals or silent):
            yield Line(key_path(name), value.strip() if equals else None, path, number)


def files(host: Host) -> tuple[str, ...]:
    """The files that are read at boot, in order; raises HostError where a directory may not be listed."""
    chosen: dict[str, str] = {}
    for folder in SYSCTL_DIRECTORIES:
        try:
            names = host.listdir(folder)
        except Missing:
            continue
        for name in names:
            if name.endswith(".conf"):
                chosen.setdefault(name, posixpath.join(folder, name))
    return tuple(chosen[name] for name in sorted(chosen))


def settings(host: Host) -> tuple[Line, ...]:
    """Every setting of every file that is read at boot, in order; a link to /dev/null hides the files of its name."""
    found: list[Line] = []
    for path in files(host):
        try:
            if host.stat(path).kind == "file":
                found.extend(lines(host.read(path), path))
        except Missing:
            continue  # a link that leads nowhere
    return tuple(found)


def winner(every: tuple[Line, ...], key: str) -> Optional[Line]:
    """The setting that holds after a boot; None when no file sets the key."""
    named = [line for line in every if line.key == key]
    valued = [line for line in named if line.value is not None]
    if valued:
        return valued[-1]
    matched = [line for line in every if line.value is not None and _matches(line.key, key)]
    return matched[-1] if matched and not named else None


def _matches(pattern: str, key: str) -> bool:
    """A glob of the file system: `*` does not cross a slash."""
    one, two = pattern.split("/"), key.split("/")
    return len(one) == len(two) and all(fnmatch.fnmatchcase(word, part) for part, word in zip(one, two))


def elsewhere(host: Host, key: str) -> tuple[Line, ...]:
    """Settings of the key in files that something else than the boot reads: `sysctl --system`, and ufw at its start."""
    found: list[Line] = []
    linked = {path for path in files(host) if _leads_to_main(host, path)}
    for path in (MAIN, "/etc/ufw/sysctl.conf"):
        if path == MAIN and linked:
            continue
        try:
            found.extend(line for line in lines(host.read(path), path) if line.key == key and line.value is not None)
        except HostError:
            continue
    return tuple(found)


def _leads_to_main(host: Host, path: str) -> bool:
    try:
        if host.stat(path, follow=False).kind != "link":
            return False
        return posixpath.normpath(posixpath.join(posixpath.dirname(path), host.readlink(path))) == MAIN
    except HostError:
        return False
