"""`service.enable`: start an installed unit at boot from now on; nothing is started or stopped now."""

from __future__ import annotations

from typing import Annotated, Iterable, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import Skipped
from envtune.host import exists
from envtune.messages import N_, Message
from envtune.model import Change, Finding
from envtune.resources.cpu.boot import OWN_UNIT, UNITS, enabled_link
from envtune.resources.cpu.set_governor_at_boot import set_governor_at_boot

UNIT_FOLDERS = (
    UNITS,
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)


@action("service.enable")
def enable_unit(
    context: Context,
    findings: Sequence[Finding],
    *,
    unit: Annotated[str, N_("Installed unit with its suffix, such as `chronyd.service`.")],
) -> Iterable[Change]:
    """Propose to enable `unit`; the unit that sets the governor is written first (see `cpu.set_governor_at_boot`)."""
    if unit == OWN_UNIT:
        return set_governor_at_boot(context, findings)
    if not any(exists(context.host, f"{folder}/{unit}") for folder in UNIT_FOLDERS):
        raise Skipped(Message("no unit {unit}", unit=unit))
    if enabled_link(context.host, unit) is not None:
        raise Skipped(Message("{unit} is already enabled", unit=unit))
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    operation = {
        "op": "run",
        "argv": ["systemctl", "enable", unit],
        "check": {"argv": ["systemctl", "is-enabled", unit], "contains": "enabled"},
        "undo": {"argv": ["systemctl", "disable", unit]},
        "timeout": 60,
    }
    change = Change(
        finding=ids[0],
        subject=unit,
        playbook="",
        action="service.enable",
        target=f"{UNITS}/{unit}",
        before="not enabled",
        after="enabled at boot",
        scope="boot",
        operations=(operation,),
        note=Message("only enabled: it starts at the next boot; the running system does not change"),
        fixes=ids[1:],
    )
    return [change]
