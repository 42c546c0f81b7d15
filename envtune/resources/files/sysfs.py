"""`sysfs.write`: a setting of the running kernel below /sys; it is lost at the next boot."""

from __future__ import annotations

import posixpath
from typing import Annotated, Iterable, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import HostError, Skipped, host_error_text
from envtune.executor.files import normalized
from envtune.host import Host, realpath
from envtune.messages import N_, Message, Text, clauses
from envtune.model import Change, Finding
from envtune.resources.files.change import file_operation, mounted_read_only


@action("sysfs.write")
def write_sysfs(
    context: Context,
    findings: Sequence[Finding],
    *,
    paths: Annotated[list[str], N_("Patterns of files below /sys; the first pattern with a match is used.")],
    value: Annotated[str, N_("Value to write.")],
    offered: Annotated[str, N_("Name of a file in the same directory that lists the values the kernel accepts.")] = "",
) -> Iterable[Change]:
    """Propose `value` for every file of the first pattern of `paths` that matches any; one change per file.

    `offered` names a file in the same folder that lists the values the kernel accepts: a file that does not accept
    `value` is left unchanged and named.
    """
    host = context.host
    changes: list[tuple[str, str]] = []
    unchanged: list[Text] = []
    for path in _files(host, paths):
        try:
            before = host.read(path).strip()
            chosen = (normalized(path, before.encode("utf-8")) or b"").decode("utf-8")  # of `always [madvise] never`
            reason = _not_offered(host, path, value, offered)
        except HostError as error:
            before, chosen, reason = "", "", host_error_text(error)
        if reason is not None:
            unchanged.append(Message("{path}: {detail}", path=path, detail=reason))
        elif chosen != value:
            changes.append((path, before))
    note = Message("left unchanged: {policies}", policies=clauses(unchanged)) if unchanged else None
    if not changes:
        raise Skipped(note or Message("every file holds {value} already", value=value))
    return [_change(host, findings, path, before, value, note) for path, before in changes]


def _files(host: Host, paths: Sequence[str]) -> tuple[str, ...]:
    for pattern in paths:
        if not pattern.startswith("/sys/") or posixpath.normpath(pattern) != pattern:
            raise Skipped(Message("{pattern}: sysfs.write writes below /sys only", pattern=pattern))
        files = host.glob(pattern)
        outside = [path for path in files if not realpath(host, path).startswith("/sys/")]
        if outside:
            raise Skipped(Message("{path} points outside /sys", path=outside[0]))
        if files:
            return tuple(sorted(files, key=lambda path: (len(path), path)))  # policy2 before policy10
    raise Skipped(Message("{path}: this kernel has no such file", path=paths[0] if paths else "-"))


def _not_offered(host: Host, path: str, value: str, offered: str) -> Optional[Text]:
    text = host.read(posixpath.join(posixpath.dirname(path), offered)) if offered else value
    values = text.replace("[", " ").replace("]", " ").split()  # the current one may be in brackets
    return (
        None
        if value in values
        else Message("{value} is not offered ({offered})", value=value, offered=" ".join(values) or "-")
    )


def _change(
    host: Host, findings: Sequence[Finding], path: str, before: str, value: str, note: Optional[Text]
) -> Change:
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    read_only = mounted_read_only(host, path)
    return Change(
        finding=ids[0],
        subject=path,
        playbook="",
        action="sysfs.write",
        target=path,
        before=before,
        after=value,
        scope="live",
        operations=(file_operation(host, path, value + "\n"),),
        other_owners=() if read_only is None else (read_only,),
        note=note,
        fixes=ids[1:],
    )
