"""Whether a unit of systemd starts at boot, and whether it runs.

Sources: systemctl(1), is-enabled and is-active; systemd.unit(5), the order of the unit directories.
"""

from __future__ import annotations

import re
from typing import Annotated, Iterable, Optional

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Missing, Undetermined
from envtune.host import Host
from envtune.messages import N_, Message
from envtune.model import Reading
from envtune.resources.files.value import missing, reading
from envtune.resources.services.enable import UNIT_FOLDERS

# Directories whose links make units start: the administrator's, this boot's, the vendor's.
_LINKS = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
_INSTALL = re.compile(r"(?m)^\[Install\]\s*$")
_STATES = frozenset(
    ("active", "inactive", "failed", "activating", "deactivating", "reloading", "maintenance", "refreshing")
)


@probe("service.enabled")
def enabled(
    context: Context, *, unit: Annotated[str, N_("Unit with its suffix, such as `chronyd.service`.")]
) -> Iterable[Reading]:
    """Whether a systemd unit starts at boot: `enabled`, `disabled`, `masked`, `static` or `missing`."""
    host = context.host
    path = _unit_file(host, unit)
    if path is None:
        return [missing(unit, f"{UNIT_FOLDERS[0]}/{unit}")]
    if _leads_to_nothing(host, path):
        return [reading(unit, "masked", path)]
    link = _start_link(host, unit)
    if link is not None:
        return [reading(unit, "enabled", link)]
    return [reading(unit, "disabled" if _INSTALL.search(host.read(path)) else "static", path)]


def _unit_file(host: Host, unit: str) -> Optional[str]:
    """Return the file of a unit, of an instance (`a@b.service`) its own or its template; the first directory wins."""
    names = dict.fromkeys((unit, re.sub("@[^.]+", "@", unit)))
    for name in names:
        for folder in UNIT_FOLDERS:
            try:
                host.stat(f"{folder}/{name}", False)
            except Missing:
                continue
            return f"{folder}/{name}"
    return None


def _leads_to_nothing(host: Host, path: str) -> bool:
    return host.stat(path, False).kind == "link" and host.readlink(path) == "/dev/null"


def _start_link(host: Host, unit: str) -> Optional[str]:
    patterns = (f"{folder}/*.{suffix}/{unit}" for folder in _LINKS for suffix in ("wants", "requires"))
    return next((link for pattern in patterns for link in host.glob(pattern)), None)


@probe("service.active")
def active(
    context: Context, *, unit: Annotated[str, N_("Unit with its suffix, such as `chronyd.service`.")]
) -> Iterable[Reading]:
    """State of a systemd unit, as shown by `systemctl is-active`: `active`, `inactive`, `failed` or another."""
    result = context.host.run(("systemctl", "is-active", unit), 10.0)
    word = result.stdout.strip()
    if word not in _STATES:
        text = (result.stderr or result.stdout).strip()
        raise Undetermined(Message("{command}: {text}", command=result.line, text=text or "-"), result.line, text)
    return [reading(unit, word, result.line)]
