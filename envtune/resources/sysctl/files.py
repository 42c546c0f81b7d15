"""What sets the kernel's parameters at boot: the files of sysctl.d, and their precedence.

Sources: sysctl.d(5) and systemd-sysctl (files of all directories are read in the order of their names, one name is read
once, /etc wins over /run over /usr; an exact key wins over one that is matched by a glob); procps' `sysctl
--system` reads /etc/sysctl.conf last, which systemd does not read unless a link in /etc/sysctl.d leads to it.
"""

from __future__ import annotations

import fnmatch
import posixpath
from typing import Iterator, NamedTuple, Optional, Sequence

from envtune.collector.sources.network import SYSCTL_DIRECTORIES
from envtune.errors import HostError, Missing
from envtune.host import Host

SYSCTL_CONF = "/etc/sysctl.conf"


class Setting(NamedTuple):
    """One line of a file; `key` is the path below /proc/sys, `value` None for `-key`, which excludes it from globs."""

    key: str
    value: Optional[str]
    path: str
    number: int

    @property
    def location(self) -> str:
        """Return file:line."""
        return f"{self.path}:{self.number}"

    @property
    def name(self) -> str:
        """Return the name of the file, which determines the order."""
        return posixpath.basename(self.path)


def key_path(key: str) -> str:
    """Return the path below /proc/sys of `net.ipv4.ip_forward` or `net/ipv4/ip_forward`.

    If the first separator is a dot, dots separate and slashes stand for dots in a name (`net.ipv4.conf.eth0/7.mtu`).
    """
    first = next((letter for letter in key if letter in "./"), "/")
    return key.strip("/") if first == "/" else key.translate(str.maketrans("./", "/."))


def parse_settings(text: str, path: str) -> Iterator[Setting]:
    """Yield the settings of one file; comments (`#`, `;`) and invalid lines are left out."""
    for number, row in enumerate(text.splitlines(), 1):
        row = row.strip()
        if not row or row[0] in "#;":
            continue
        key, equals, value = row.partition("=")
        ignores_failure = key.startswith("-")
        name = key.lstrip("-").strip()
        if name and (equals or ignores_failure):
            yield Setting(key_path(name), value.strip() if equals else None, path, number)


def boot_files(host: Host) -> tuple[str, ...]:
    """Return the files that are read at boot, in order; raises HostError if a directory cannot be listed."""
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


def boot_settings(host: Host) -> tuple[Setting, ...]:
    """Return every setting of every file that is read at boot, in order.

    A link to /dev/null hides the files of its name.
    """
    settings: list[Setting] = []
    for path in boot_files(host):
        try:
            if host.stat(path).kind == "file":
                settings.extend(parse_settings(host.read(path), path))
        except Missing:
            continue  # a dangling link
    return tuple(settings)


def effective_setting(settings: Sequence[Setting], key: str) -> Optional[Setting]:
    """Return the setting in effect after a boot; None if no file sets the key."""
    named = [setting for setting in settings if setting.key == key]
    assigned = [setting for setting in named if setting.value is not None]
    if assigned:
        return assigned[-1]
    matched = [setting for setting in settings if setting.value is not None and _matches(setting.key, key)]
    return matched[-1] if matched and not named else None


def _matches(pattern: str, key: str) -> bool:
    """Return whether a file system glob matches the key: `*` does not cross a slash."""
    globs, names = pattern.split("/"), key.split("/")
    return len(globs) == len(names) and all(fnmatch.fnmatchcase(name, glob) for glob, name in zip(globs, names))


def other_settings(host: Host, key: str) -> tuple[Setting, ...]:
    """Return the key's settings in files that are not read at boot, but by `sysctl --system` or ufw when it starts."""
    paths = ["/etc/ufw/sysctl.conf"]
    if not any(_links_to_sysctl_conf(host, path) for path in boot_files(host)):
        paths.insert(0, SYSCTL_CONF)
    settings: list[Setting] = []
    for path in paths:
        try:
            settings += parse_settings(host.read(path), path)
        except HostError:
            continue
    return tuple(setting for setting in settings if setting.key == key and setting.value is not None)


def _links_to_sysctl_conf(host: Host, path: str) -> bool:
    try:
        if host.stat(path, follow=False).kind != "link":
            return False
        return posixpath.normpath(posixpath.join(posixpath.dirname(path), host.readlink(path))) == SYSCTL_CONF
    except HostError:
        return False
