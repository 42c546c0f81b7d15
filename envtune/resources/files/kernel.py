"""Files of the kernel below /proc and /sys: one value each, or a choice such as `always [madvise] never`.

A kernel that lacks a file lacks the feature: what is not there needs no setting. A snapshot of an older envtune does
not hold every file that checks read today: these checks do not apply to it, so that it says what it said before.
"""

from __future__ import annotations

import re
from typing import Annotated, Iterable

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, NotRecorded
from envtune.host import Host
from envtune.messages import N_, Message
from envtune.model import Reading
from envtune.resources.files.value import reading, unreadable

OLDER_SNAPSHOT = Message("not in the snapshot, which an older envtune took: take it again")
_CHOSEN = re.compile(r"\[([^\]\s]+)\]")


def kernel_text(host: Host, path: str) -> str:
    """Return what a file of the kernel holds; NotApplicable where this kernel has none."""
    try:
        return host.read(path)
    except Missing:
        raise NotApplicable(Message("this kernel has no {path}", path=path), path) from None
    except NotRecorded:
        raise NotApplicable(OLDER_SNAPSHOT, path) from None


def kernel_files(host: Host, pattern: str) -> tuple[str, ...]:
    """Return the files of the kernel that match a pattern; NotApplicable where none does."""
    try:
        found = host.glob(pattern)
    except NotRecorded:
        raise NotApplicable(OLDER_SNAPSHOT, pattern) from None
    if not found:
        raise NotApplicable(Message("this kernel has no {path}", path=pattern), pattern)
    return found


@probe("kernel.setting")
def setting(
    context: Context,
    *,
    path: Annotated[str, N_("File below /proc or /sys, or a pattern of several: `/sys/block/sd*/queue/scheduler`.")],
) -> Iterable[Reading]:
    """Kernel setting in a file: of `always [madvise] never` the choice in brackets, else the whole text.

    Not applicable where this kernel has no such file.
    """
    host = context.host
    if not re.search(r"[*?\[]", path):
        return [_reading(path, kernel_text(host, path))]
    found = []
    for file in kernel_files(host, path):
        try:
            found.append(_reading(file, host.read(file)))
        except HostError as error:
            found.append(unreadable(_subject(file), error))
    return found


def _reading(path: str, text: str) -> Reading:
    chosen = _CHOSEN.search(text)
    return reading(_subject(path), chosen[1] if chosen else " ".join(text.split()), path, text)


def _subject(path: str) -> str:
    """Return the name of a sysctl, the disk of one of its settings, else the last two parts of the path."""
    if path.startswith("/proc/sys/"):
        return path[len("/proc/sys/") :].replace("/", ".")
    found = re.match(r"/sys/block/([^/]+)/", path)
    return found[1] if found else "/".join(path.rsplit("/", 2)[1:])
