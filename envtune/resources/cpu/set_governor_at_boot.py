"""Set the governor at boot: an envtune unit, enabled by systemctl; nothing is started or stopped now.

If tuned sets it, a profile that includes the active one is used instead of the unit: two owners of one setting would
override each other. Sources: porting guide 003:1397-1399; systemd.unit(5), tuned.conf(5).
"""

from __future__ import annotations

from typing import Any, Iterable, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import Skipped
from envtune.host import Host, is_dir
from envtune.messages import Message, Text
from envtune.model import Change, Finding
from envtune.resources.cpu.boot import OWN_UNIT, UNITS, boot_settings, enabled_link, tuned_profiles
from envtune.resources.cpu.governor import AT_BOOT, expected_governor
from envtune.resources.files.change import content, file_operation, shown

_UNIT = """\
# Written by envtune (see `envtune history`).
[Unit]
Description=Set the {governor} governor on all CPU frequency policies (envtune)
Documentation=https://docs.kernel.org/admin-guide/pm/cpufreq.html
After=cpupower.service cpufrequtils.service ondemand.service power-profiles-daemon.service tuned.service
ConditionPathIsDirectory=/sys/devices/system/cpu/cpu0/cpufreq

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'bad=0; for f in /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; \
do echo {governor} > "$$f" || bad=1; done; exit $$bad'

[Install]
WantedBy=multi-user.target
"""
DEFAULT = "performance"
PROFILE = "envtune"


def unit_text(governor: str = DEFAULT) -> str:
    """Return the unit that sets the governor at boot."""
    return _UNIT.replace("{governor}", governor)


@action("cpu.set_governor_at_boot")
def set_governor_at_boot(context: Context, findings: Sequence[Finding]) -> Iterable[Change]:
    """Propose a unit that sets the expected governor, or a tuned profile if tuned is enabled."""
    active, governor = tuned_profiles(context.host), expected_governor(context, AT_BOOT, DEFAULT)
    if active is None:
        return [_unit_change(context.host, findings, governor)]
    return [_profile_change(context.host, findings, active, governor)]


def _unit_change(host: Host, findings: Sequence[Finding], governor: str) -> Change:
    target, text = f"{UNITS}/{OWN_UNIT}", unit_text(governor)
    before = shown(content(host, target))
    if before == text and enabled_link(host, OWN_UNIT) is not None:
        raise Skipped(Message("{unit} is already enabled", unit=OWN_UNIT))
    is_enabled = {"argv": ["systemctl", "is-enabled", OWN_UNIT], "contains": "enabled"}
    operations = [file_operation(host, target, text), _systemctl("enable", "disable", OWN_UNIT, is_enabled)]
    link = enabled_link(host, "ondemand.service")
    if link is not None:  # it sets its governor a minute after boot, after every unit
        gone = {"argv": ["test", "!", "-e", link]}
        operations.append(_systemctl("disable", "enable", "ondemand.service", gone))
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    return Change(
        finding=ids[0],
        subject=OWN_UNIT,
        playbook="",
        action="cpu.set_governor_at_boot",
        target=target,
        before=before or "not enabled",
        after=text,
        scope="boot",
        operations=tuple(operations),
        other_owners=_other_owners(host, governor),
        note=Message("only enabled: it starts at the next boot; the running system does not change"),
        fixes=ids[1:],
    )


def _systemctl(verb: str, undo: str, unit: str, check: dict[str, Any]) -> dict[str, Any]:
    return {
        "op": "run",
        "argv": ["systemctl", verb, unit],
        "check": check,
        "undo": {"argv": ["systemctl", undo, unit]},
        "timeout": 60,
    }


def _other_owners(host: Host, governor: str) -> tuple[Text, ...]:
    """Return who else sets a different governor at boot, and what happens to that setting."""
    owners: list[Text] = []
    for setting in boot_settings(host):
        if setting.owner == OWN_UNIT or setting.governor == governor:
            continue
        if setting.owner == "ondemand.service":
            effect = Message("it is disabled, because it runs a minute after boot")
        elif setting.owner == "power-profiles-daemon":
            effect = Message("it may change the governor again when a profile is selected")
        else:
            effect = Message("envtune's unit starts after it")
        owners.append(
            Message(
                "{owner} sets {governor} at boot: {effect} ({source})",
                owner=setting.owner,
                governor=setting.governor or "?",
                effect=effect,
                source=setting.source,
            )
        )
    return tuple(owners)


def _profile_change(host: Host, findings: Sequence[Finding], active: Sequence[str], governor: str) -> Change:
    """Return the change that adds a tuned profile, which includes the active one and sets the governor."""
    if not active:
        raise Skipped(Message("tuned is enabled without a profile; select one with tuned-adm profile"))
    if PROFILE in active:
        raise Skipped(
            Message("the profile {name} is active and was changed; select one with tuned-adm profile", name=PROFILE)
        )
    directory = "/etc/tuned/profiles" if is_dir(host, "/etc/tuned/profiles") else "/etc/tuned"
    path, text = f"{directory}/{PROFILE}/tuned.conf", _profile_text(active, governor)
    choose_profile = {
        "op": "run",
        "argv": ["tuned-adm", "profile", PROFILE],
        "check": {"argv": ["tuned-adm", "active"], "contains": f"active profile: {PROFILE}"},
        "undo": {"argv": ["tuned-adm", "profile", *active]},
        "timeout": 120,
    }
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    return Change(
        finding=ids[0],
        subject=f"tuned profile {PROFILE}",
        playbook="",
        action="cpu.set_governor_at_boot",
        target=path,
        before=shown(content(host, path)),
        after=text,
        scope="boot",
        operations=(file_operation(host, path, text), choose_profile),
        other_owners=(
            Message(
                "tuned ({names}) manages the governor here: its profile is extended, and no other service is added",
                names=" ".join(active),
            ),
        ),
        note=Message("tuned also applies the new profile at once"),
        fixes=ids[1:],
    )


def _profile_text(active: Sequence[str], governor: str) -> str:
    return (
        "# Written by envtune (see `envtune history`).\n"
        f"[main]\nsummary={' '.join(active)}, with the {governor} governor\ninclude={','.join(active)}\n\n"
        f"[cpu]\ngovernor={governor}\n"
    )
