"""Which version of a distribution package is installed, according to dpkg or rpm."""

from __future__ import annotations

from typing import Annotated, Iterable

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Undetermined
from envtune.messages import N_, Message
from envtune.model import Reading
from envtune.resources.files.value import missing, reading

DPKG = ("dpkg-query", "-W", "-f=${db:Status-Status}=${Version};")
RPM = ("rpm", "-q", "--qf", "%{VERSION}-%{RELEASE};")


@probe("package.version")
def version(
    context: Context, *, name: Annotated[str, N_("Name of the package in this distribution.")]
) -> Iterable[Reading]:
    """Installed version of a system package, with the release for rpm; `missing` if not installed."""
    family = context.facts["os_family"]
    if family.value not in ("debian", "rhel", "suse"):
        reason = family.reason or Message("neither dpkg nor rpm is known to manage this system's packages")
        raise Undetermined(reason, family.source)
    result = context.host.run((*(DPKG if family.value == "debian" else RPM), name), 10.0)
    rows = [row.strip() for row in result.stdout.split(";") if row.strip()]
    if result.returncode != 0 and not _says_not_installed(result.stdout + result.stderr):
        text = (result.stderr or result.stdout).strip()
        raise Undetermined(Message("{command} failed: {error}", command=result.line, error=text), result.line, text)
    if family.value == "debian":
        states = (row.partition("=") for row in rows)
        rows = [version for state, _, version in states if state == "installed"]
    elif result.returncode != 0:
        rows = []
    return [reading(name, row, result.line, result.stdout) for row in rows] or [missing(name, result.line)]


def _says_not_installed(text: str) -> bool:
    """Return whether rpm (`package x is not installed`) or dpkg-query (`no packages found matching x`) says so."""
    return "is not installed" in text or "no packages found" in text
