"""Set kernel parameters: in the running kernel, and in envtune's own file for the next boot.

Other files are never edited. If one of them has precedence, envtune's file gets a name that is read after it, or the
change is left out and the file is named. Lists are merged with their current content.
"""

from __future__ import annotations

from typing import Annotated, Callable, Iterable, Literal, Mapping, NamedTuple, Optional, Sequence

from envtune import intervals
from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import HostError, Missing, Skipped, Undetermined
from envtune.host import Host
from envtune.intervals import Intervals
from envtune.messages import N_, Message, Text, clauses
from envtune.model import Change, Finding, Reading
from envtune.resources.cpu.boot import tuned_option, tuned_profiles
from envtune.resources.files.change import content, file_operation, mounted_read_only, shown
from envtune.resources.network.ports import hccl, hccl_ports, master_port, port_list
from envtune.resources.npu.command import master_port_text
from envtune.resources.sysctl.files import (
    SYSCTL_CONF,
    Setting,
    boot_settings,
    effective_setting,
    key_path,
    other_settings,
    parse_settings,
)

# The first name is the usual one; the others are for hosts on which a later file sets the same key.
OWN_FILES = ("95-envtune.conf", "99-zz-envtune.conf", "zz-envtune.conf")
HEADER = "# Written by envtune (see `envtune history`); one line per key.\n"


class DesiredValue(NamedTuple):
    """The value for a key: `merge` computes it from the current one (empty: none), `holds` if it is so already."""

    merge: Callable[[Sequence[str]], str]
    holds: Callable[[str], bool]
    checks: tuple[str, ...]  # ids of the checks it fixes


@action("sysctl.set")
def set_key(
    context: Context,
    findings: Sequence[Finding],
    *,
    key: Annotated[str, N_("Kernel parameter, such as `vm.max_map_count`.")],
    value: Annotated[str, N_("Value to set; separate several numbers with blanks.")] = "",
    add: Annotated[
        Literal["", "job_ports"], N_("Instead of `value`: `job_ports` adds the job's ports to a list of ports.")
    ] = "",
) -> Iterable[Change]:
    """Propose `value` for `key`, or adding to its list the job's ports; for now, and for the next boot."""
    desired = _job_ports(context, findings) if add == "job_ports" else _fixed_value(value, findings)
    path = f"/proc/sys/{key_path(key)}"
    try:
        live = " ".join(context.host.read(path).split())
    except Missing:
        raise Skipped(Message("this kernel has no {key}", key=key)) from None
    changes = list(_live_change(context, key, path, live, desired))
    try:
        changes += _boot_change(context, key, live, desired)
    except Skipped as skipped:
        if not changes:
            raise
        note = Message("until the next boot only: {why}", why=skipped.reason)
        changes = [change._replace(note=note, until_reboot=skipped.reason) for change in changes]
    if not changes:
        raise Skipped(Message("{key} is already set, now and for the next boot", key=key))
    return changes


# ---------------------------------------------------------------------- the desired value


def _fixed_value(value: str, findings: Sequence[Finding]) -> DesiredValue:
    text = " ".join(value.split())
    if not text:
        raise Skipped(Message("sysctl.set was given no value"))
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    return DesiredValue(lambda current: text, lambda current: current == text, ids)


def _hccl_ports(context: Context) -> Intervals:
    return hccl_ports(context).ports


def _master_port(context: Context) -> Intervals:
    text = master_port_text(context)
    return () if text is None else ((int(text), int(text)),)


class PortProbe(NamedTuple):
    """A probe that finds ports the kernel may give away, and the function that says which ports these are."""

    read: Callable[[Context], Iterable[Reading]]
    ports: Callable[[Context], Intervals]


_PORT_PROBES: Mapping[str, PortProbe] = {
    "network.hccl_ports": PortProbe(hccl, _hccl_ports),
    "network.master_port": PortProbe(master_port, _master_port),
}


def _job_ports(context: Context, findings: Sequence[Finding]) -> DesiredValue:
    """Return the ports of the job that the kernel may give away: HCCL's range, and MASTER_PORT."""
    exposed: Intervals = ()
    checks: list[str] = []
    seen: list[Reading] = []
    for id_, name in {finding.id: finding.check.probe for finding in findings}.items():
        if name not in _PORT_PROBES:
            continue
        probe = _PORT_PROBES[name]
        readings = list(probe.read(context))
        if any(reading.value == "exposed" for reading in readings):
            exposed = intervals.union((*exposed, *probe.ports(context)))
            checks.append(id_)
        seen += readings
    if not checks:
        raise Skipped(_nothing_to_reserve(findings, seen))

    def merge(current: Sequence[str]) -> str:
        kept = [pair for text in current for pair in port_list(text)]
        return intervals.port_text(intervals.union((*kept, *exposed))).replace(" ", "")

    def holds(text: str) -> bool:
        return not intervals.difference(exposed, port_list(text))

    return DesiredValue(merge, holds, tuple(checks))


def _nothing_to_reserve(findings: Sequence[Finding], readings: Sequence[Reading]) -> Text:
    """Return what else is wrong with the ports, or that nothing is: they were reserved meanwhile."""
    faults = [r.shown for r in readings if r.value in ("taken", "impossible") and r.shown is not None]
    states = [r.shown for r in readings if r.value in ("reserved", "outside", "right") and r.shown is not None]
    if states and not faults:
        return Message("nothing left to reserve: {states}", states=clauses(states))
    faults += [f.check.remedy for f in findings[:1] if f.check.remedy is not None]
    return Message("reserving ports does not help: {reasons}", reasons=clauses(faults))


def _merge(desired: DesiredValue, current: Iterable[Optional[str]], key: str) -> str:
    try:
        return desired.merge([text for text in current if text])
    except ValueError as error:
        raise Skipped(Message("{key} is not a list of ports: {error}", key=key, error=error)) from None


def _holds(desired: DesiredValue, text: str) -> bool:
    try:
        return desired.holds(text)
    except ValueError:
        return False


# ---------------------------------------------------------------------- the running kernel


def _live_change(context: Context, key: str, path: str, live: str, desired: DesiredValue) -> Iterable[Change]:
    if _holds(desired, live):
        return
    after = _merge(desired, [live], key)
    locked = mounted_read_only(context.host, path)
    if locked is not None and context.facts.value("container") == "true":
        raise Skipped(
            Message(
                "{locked}; for a container with its own network: docker run --sysctl {setting}",
                locked=locked,
                setting=f"{key}={after}",
            )
        )
    yield Change(
        finding=desired.checks[0],
        subject=key,
        playbook="",
        action="sysctl.set",
        target=key,
        before=live,
        after=after,
        scope="live",
        operations=(file_operation(context.host, path, after + "\n"),),
        other_owners=(*([] if locked is None else [locked]), *_tuned_owner(context.host, key)),
        fixes=desired.checks[1:],
    )


def _tuned_owner(host: Host, key: str) -> tuple[Text, ...]:
    """Return the note that the active tuned profile sets the key, if it does."""
    try:
        for name in reversed(tuned_profiles(host) or []):
            option = tuned_option(host, name, "sysctl", key)
            if option is not None:
                value, path = option
                return (
                    Message(
                        "tuned ({name}) sets {key}={value} when it starts ({path})",
                        name=name,
                        key=key,
                        value=value,
                        path=path,
                    ),
                )
    except (HostError, Undetermined):
        pass
    return ()


# ---------------------------------------------------------------------- the next boot


def _boot_change(context: Context, key: str, live: str, desired: DesiredValue) -> Iterable[Change]:
    host, path = context.host, key_path(key)
    if context.facts.value("container") == "true":
        return  # nothing reads sysctl.d when a container starts
    settings = boot_settings(host)
    effective = effective_setting(settings, path)
    configured = None if effective is None else effective.value
    if configured is not None and _holds(desired, configured):
        return
    others = [s for s in settings if s.key == path and s.value is not None and s.name not in OWN_FILES]
    name = _last_name(others)
    if name is None:
        location = others[-1].location
        raise Skipped(
            Message(
                "{location} sets {key} and no envtune file is read after it; change it there",
                location=location,
                key=key,
            )
        )
    after = _merge(desired, [configured, live], key)
    target = f"/etc/sysctl.d/{name}"
    before = shown(content(host, target))
    yield Change(
        finding=desired.checks[0],
        subject=key,
        playbook="",
        action="sysctl.set",
        target=target,
        before=before,
        after=with_key(before, key, after),
        scope="boot",
        operations=tuple(_operations(host, key, target, after)),
        other_owners=(
            *(_overridden(setting, key, target) for setting in others),
            *(_read_elsewhere(setting) for setting in other_settings(host, path)),
            *_tuned_owner(host, key),
        ),
        fixes=desired.checks[1:],
    )


def _last_name(others: Sequence[Setting]) -> Optional[str]:
    """Return the first of envtune's file names that is read after all others; None if there is none."""
    last = max((setting.name for setting in others), default="")
    return next((name for name in OWN_FILES if name > last), None)


def _operations(host: Host, key: str, target: str, value: str) -> Iterable[dict[str, object]]:
    yield file_operation(host, target, with_key(shown(content(host, target)), key, value))
    for name in OWN_FILES:  # an earlier choice, which no longer has an effect
        path, text = f"/etc/sysctl.d/{name}", shown(content(host, f"/etc/sysctl.d/{name}"))
        if path != target and any(setting.key == key_path(key) for setting in parse_settings(text, path)):
            yield file_operation(host, path, with_key(text, key, None))


def with_key(text: str, key: str, value: Optional[str]) -> str:
    """Return the file with one line for the key (None: without any) and all other lines unchanged."""
    new_row = "" if value is None else f"{key} = {value}"
    rows: list[str] = []
    for row in text.splitlines() if text else HEADER.splitlines():
        if any(setting.key == key_path(key) for setting in parse_settings(row, "")):
            if not new_row:
                continue
            row, new_row = new_row, ""
        rows.append(row)
    if new_row:
        rows.append(new_row)
    return "".join(row + "\n" for row in rows)


def _overridden(setting: Setting, key: str, target: str) -> Text:
    return Message(
        "{location} sets {key} = {value}; {target} is read after it",
        location=setting.location,
        key=key,
        value=setting.value,
        target=target,
    )


def _read_elsewhere(setting: Setting) -> Text:
    reader = Message("ufw sets it")
    if setting.path == SYSCTL_CONF:
        reader = Message("`sysctl --system` reads it last, but the boot does not")
    return Message(
        "{location} contains {value} ({reader})", location=setting.location, value=setting.value, reader=reader
    )
