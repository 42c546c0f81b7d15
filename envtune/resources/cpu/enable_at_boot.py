"""Services that start at boot: enabled by systemctl, which keeps its own links; nothing is started or stopped now.

The unit that sets the governor is ours. Where tuned rules, a profile of ours that includes the active one takes its
place: two writers of one knob would fight. Sources: porting guide 003:1397-1399; systemd.unit(5), tuned.conf(5).
"""

from __future__ import annotations

from typing import Any, Iterable, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import Skipped
from envtune.host import Host, exists, is_dir
from envtune.messages import Message, Text
from envtune.model import Change, Finding
from envtune.resources.cpu.boot import OWN_UNIT, UNITS, boot_settings, enabled, tuned_profiles
from envtune.resources.files.change import content, file_operation, shown

GOVERNOR_UNIT = """\
# Written by envtune (see `envtune history`).
[Unit]
Description=Set the performance governor on all CPU frequency policies (envtune)
Documentation=https://docs.kernel.org/admin-guide/pm/cpufreq.html
After=cpupower.service cpufrequtils.service ondemand.service power-profiles-daemon.service tuned.service
ConditionPathIsDirectory=/sys/devices/system/cpu/cpu0/cpufreq

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'bad=0; for f in /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; \
do echo performance > "$$f" || bad=1; done; exit $$bad'

[Install]
WantedBy=multi-user.target
"""
OWN_UNITS = {OWN_UNIT: GOVERNOR_UNIT}
UNIT_FOLDERS = (
    UNITS,
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)
PROFILE = "envtune"


@action("cpu.enable_at_boot", formerly="service.enable")
def enable(context: Context, findings: Sequence[Finding], *, unit: str) -> Iterable[Change]:
    """Have `unit` started at boot; one of ours is written first."""
    host = context.host
    if unit == OWN_UNIT and tuned_profiles(host) is not None:
        return [_child_profile(host, findings)]
    operations: list[dict[str, Any]] = []
    target = f"{UNITS}/{unit}"
    before, after = shown(content(host, target)), ""
    if unit in OWN_UNITS:
        after = OWN_UNITS[unit]
        operations.append(file_operation(host, target, after))
    elif not any(exists(host, f"{folder}/{unit}") for folder in UNIT_FOLDERS):
        raise Skipped(Message("there is no unit {unit}", unit=unit))
    if unit in OWN_UNITS and before == after and enabled(host, unit) is not None:
        raise Skipped(Message("{unit} is enabled already", unit=unit))
    operations.append(
        _systemctl("enable", "disable", unit, {"argv": ["systemctl", "is-enabled", unit], "contains": "enabled"})
    )
    return [_change(host, findings, unit, before, after, operations)]


def _systemctl(verb: str, back: str, unit: str, check: dict[str, Any]) -> dict[str, Any]:
    return {
        "op": "run",
        "argv": ["systemctl", verb, unit],
        "check": check,
        "undo": {"argv": ["systemctl", back, unit]},
        "timeout": 60,
    }


def _change(
    host: Host, findings: Sequence[Finding], unit: str, before: str, after: str, operations: list[dict[str, Any]]
) -> Change:
    rivals: list[Text] = []
    if unit == OWN_UNIT:
        link = enabled(host, "ondemand.service")
        if link is not None:  # it sets its governor a minute after boot, behind every unit
            gone = {"argv": ["test", "!", "-e", link]}
            operations.append(_systemctl("disable", "enable", "ondemand.service", gone))
        rivals = _rivals(host)
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    note = Message("only enabled: it is started at the next boot, and what runs now does not change")
    status = Message("enabled at boot")
    return Change(
        finding=ids[0],
        subject=unit,
        playbook="",
        action="cpu.enable_at_boot",
        target=f"{UNITS}/{unit}",
        before=before or "not enabled",
        after=after or status.en,
        view="boot",
        operations=tuple(operations),
        rivals=tuple(rivals),
        note=note,
        cures=ids[1:],
    )


def _rivals(host: Host) -> list[Text]:
    found: list[Text] = []
    for one in boot_settings(host):
        if one.owner == OWN_UNIT or one.governor == "performance":
            continue
        if one.owner == "ondemand.service":
            effect = Message("it is disabled, because it comes a minute after boot")
        elif one.owner == "power-profiles-daemon":
            effect = Message("it may move the governor again when a profile is chosen")
        else:
            effect = Message("ours is started after it")
        governor = one.governor or "?"
        found.append(
            Message(
                "{owner} sets {governor} at boot: {effect} ({source})",
                owner=one.owner,
                governor=governor,
                effect=effect,
                source=one.source,
            )
        )
    return found


def _child_profile(host: Host, findings: Sequence[Finding]) -> Change:
    """A tuned profile that includes the active one and sets the governor."""
    active = tuned_profiles(host) or []
    if not active or PROFILE in active:
        if not active:
            raise Skipped(Message("tuned is enabled without a profile; choose one with tuned-adm profile"))
        raise Skipped(
            Message("the profile {name} is active and was changed; choose one with tuned-adm profile", name=PROFILE)
        )
    folder = "/etc/tuned/profiles" if is_dir(host, "/etc/tuned/profiles") else "/etc/tuned"
    path = f"{folder}/{PROFILE}/tuned.conf"
    text = (
        "# Written by envtune (see `envtune history`).\n"
        f"[main]\nsummary={' '.join(active)}, with the performance governor\ninclude={','.join(active)}\n\n"
        "[cpu]\ngovernor=performance\n"
    )
    choose = {
        "op": "run",
        "argv": ["tuned-adm", "profile", PROFILE],
        "check": {"argv": ["tuned-adm", "active"], "contains": f"active profile: {PROFILE}"},
        "undo": {"argv": ["tuned-adm", "profile", *active]},
        "timeout": 120,
    }
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    names = " ".join(active)
    return Change(
        finding=ids[0],
        subject=f"tuned profile {PROFILE}",
        playbook="",
        action="cpu.enable_at_boot",
        target=path,
        before=shown(content(host, path)),
        after=text,
        view="boot",
        operations=(file_operation(host, path, text), choose),
        rivals=(
            Message(
                "tuned ({names}) owns the governor here: its profile is extended, no second owner is added", names=names
            ),
        ),
        note=Message("tuned applies the new profile at once, too"),
        cures=ids[1:],
    )
