"""Writing knobs of the kernel below /sys: the live value, gone at the next boot."""

from __future__ import annotations

import posixpath
from typing import Iterable, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import HostError, Skipped, Undetermined, host_error_text
from envtune.host import Host, realpath
from envtune.messages import Bilingual, Message, Text
from envtune.model import Change, Finding
from envtune.ranges import join_subjects
from envtune.resources.cpu.boot import boot_settings, enabled
from envtune.resources.cpu.frequency import subject
from envtune.resources.files.change import file_operation, mounted_read_only

GOVERNOR = "scaling_governor"


@action("cpu.set_governor", formerly="sysfs.write")
def write(
    context: Context, findings: Sequence[Finding], *, paths: list[str], value: str, offered: str = ""
) -> Iterable[Change]:
    """Write `value` to every file of the first pattern of `paths` that finds any; one change per file.

    `offered` names a file beside each that lists the values the kernel takes: a file that does not take it is left.
    """
    host = context.host
    files = _files(host, paths)
    changes: list[tuple[str, str]] = []
    left: dict[Text, list[str]] = {}
    for path in files:
        try:
            before = host.read(path).strip()
            reason = _not_taken(host, path, value, offered)
        except HostError as error:
            before, reason = "", host_error_text(error)
        if reason is not None:
            left.setdefault(reason, []).append(_subject(host, path))
        elif before != value:
            changes.append((path, before))
    note = _left_words(left)
    if not changes:
        raise Skipped(note or Message("every file holds {value} already", value=value))
    rivals = _rivals(context, value) if posixpath.basename(files[0]) == GOVERNOR else ()
    return [_change(host, findings, path, before, value, rivals, note) for path, before in changes]


def _files(host: Host, paths: Sequence[str]) -> tuple[str, ...]:
    for pattern in paths:
        if not pattern.startswith("/sys/") or posixpath.normpath(pattern) != pattern:
            raise Skipped(Message("{pattern}: cpu.set_governor writes below /sys only", pattern=pattern))
    for pattern in paths:
        found = host.glob(pattern)
        outside = [path for path in found if not realpath(host, path).startswith("/sys/")]
        if outside:
            raise Skipped(Message("{outside} leads out of /sys", outside=outside[0]))
        if found:
            return tuple(sorted(found, key=lambda path: (len(path), path)))  # policy2 before policy10
    raise Skipped(Message("{paths}: this kernel has no such file", paths=paths[0]))


def _not_taken(host: Host, path: str, value: str, offered: str) -> Optional[Text]:
    if not offered:
        return None
    beside = posixpath.join(posixpath.dirname(path), offered)
    names = host.read(beside).split()
    if value in names:
        return None
    words = " ".join(names) or "-"
    return Message("{value} is not offered ({words})", value=value, words=words)


def _left_words(left: dict[Text, list[str]]) -> Optional[Text]:
    if not left:
        return None
    rows = [(join_subjects(subjects), reason) for reason, subjects in left.items()]
    en = "; ".join(f"{who}: {reason.en}" for who, reason in rows)
    zh = "；".join(f"{who}：{reason.zh}" for who, reason in rows)
    return Bilingual(f"left as it is: {en}", f"保持不变：{zh}")


def _subject(host: Host, path: str) -> str:
    return subject(host, posixpath.dirname(path)) if posixpath.basename(path) == GOVERNOR else path


def _change(
    host: Host,
    findings: Sequence[Finding],
    path: str,
    before: str,
    value: str,
    rivals: tuple[Text, ...],
    note: Optional[Text],
) -> Change:
    ids = tuple(dict.fromkeys(finding.id for finding in findings))
    locked = mounted_read_only(host, path)
    return Change(
        finding=ids[0],
        subject=_subject(host, path),
        playbook="",
        action="cpu.set_governor",
        target=path,
        before=before,
        after=value,
        view="live",
        operations=(file_operation(host, path, value + "\n"),),
        rivals=rivals if locked is None else (*rivals, locked),
        note=note,
        cures=ids[1:],
    )


def _rivals(context: Context, value: str) -> tuple[Text, ...]:
    """Who else sets the governor, or works against it."""
    try:
        settings = boot_settings(context.host)
    except Undetermined as untold:
        return (untold.reason,)
    except HostError as error:
        return (host_error_text(error),)
    found: list[Text] = [
        Message(
            "{owner} sets {governor} when it is started ({source})",
            owner=one.owner,
            governor=one.governor or Message("a governor of its own"),
            source=one.source,
        )
        for one in settings
        if one.governor != value
    ]
    link = enabled(context.host, "thermald.service")
    if link is not None:
        found.append(Message("thermald lowers the frequency ceiling when the CPU gets hot ({link})", link=link))
    return tuple(found)
