"""Set the governor of the running kernel, policy by policy; it is lost at the next boot."""

from __future__ import annotations

from typing import Annotated, Iterable, Mapping, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import HostError, Skipped, Undetermined, host_error_text
from envtune.host import Host
from envtune.messages import N_, Message, Text, clauses
from envtune.model import Change, Finding
from envtune.ranges import join_subjects
from envtune.resources.cpu.boot import boot_settings, enabled_link
from envtune.resources.cpu.frequency import Policy, policies
from envtune.resources.cpu.governor import RUNNING, expected_governor
from envtune.resources.files.change import file_operation, mounted_read_only


@action("cpu.set_governor")
def set_governor(
    context: Context,
    findings: Sequence[Finding],
    *,
    governor: Annotated[str, N_("Governor to set if the policy does not require another one.")] = "performance",
) -> Iterable[Change]:
    """Propose `governor` for every policy; policies for which it is not offered stay unchanged and are named."""
    host = context.host
    governor = expected_governor(context, RUNNING, governor)
    changes: list[tuple[Policy, str]] = []
    unchanged: dict[Text, list[str]] = {}
    for policy in context.cached(policies):
        try:
            before = host.read(policy.file("scaling_governor")).strip()
            reason = _not_offered(host, policy, governor)
        except HostError as error:
            before, reason = "", host_error_text(error)
        if reason is not None:
            unchanged.setdefault(reason, []).append(policy.cpus)
        elif before != governor:
            changes.append((policy, before))
    note = _unchanged_note(unchanged) if unchanged else None
    if not changes:
        raise Skipped(note or Message("every file holds {value} already", value=governor))
    owners = _other_owners(context, governor)
    return [_change(host, findings, policy, before, governor, owners, note) for policy, before in changes]


def _not_offered(host: Host, policy: Policy, governor: str) -> Optional[Text]:
    offered = host.read(policy.file("scaling_available_governors")).split()
    if governor in offered:
        return None
    return Message("{value} is not offered ({offered})", value=governor, offered=" ".join(offered) or "-")


def _unchanged_note(unchanged: Mapping[Text, Sequence[str]]) -> Text:
    parts = [Message("{cpus}: {reason}", cpus=join_subjects(cpus), reason=reason) for reason, cpus in unchanged.items()]
    return Message("left unchanged: {policies}", policies=clauses(parts))


def _change(
    host: Host,
    findings: Sequence[Finding],
    policy: Policy,
    before: str,
    governor: str,
    owners: tuple[Text, ...],
    note: Optional[Text],
) -> Change:
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    path = policy.file("scaling_governor")
    locked = mounted_read_only(host, path)
    return Change(
        finding=ids[0],
        subject=policy.cpus,
        playbook="",
        action="cpu.set_governor",
        target=path,
        before=before,
        after=governor,
        scope="live",
        operations=(file_operation(host, path, governor + "\n"),),
        other_owners=owners if locked is None else (*owners, locked),
        note=note,
        fixes=ids[1:],
    )


def _other_owners(context: Context, governor: str) -> tuple[Text, ...]:
    """Return who else sets the governor, or works against it."""
    try:
        settings = boot_settings(context.host)
    except Undetermined as verdict:
        return (verdict.reason,)
    except HostError as error:
        return (host_error_text(error),)
    owners: list[Text] = [
        Message(
            "{owner} sets {governor} when it is started ({source})",
            owner=setting.owner,
            governor=setting.governor or Message("its own governor"),
            source=setting.source,
        )
        for setting in settings
        if setting.governor != governor
    ]
    link = enabled_link(context.host, "thermald.service")
    if link is not None:
        owners.append(Message("thermald lowers the frequency limit when the CPU gets hot ({link})", link=link))
    return tuple(owners)
