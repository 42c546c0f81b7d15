"""Files of the kernel below /proc and /sys: one value each, or a choice such as `always [madvise] never`.

A missing file needs no setting: the kernel lacks the feature. On a recorded host a file that was not recorded is
unknown, which says nothing about its kernel.
"""

from __future__ import annotations

import re
from typing import Annotated, Iterable

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, host_error_text
from envtune.host import Host
from envtune.messages import N_
from envtune.model import Reading
from envtune.resources.files.value import reading, unreadable

_CHOSEN = re.compile(r"\[([^\]\s]+)\]")


def kernel_text(host: Host, path: str) -> str:
    """Return the content of a kernel file; raises NotApplicable if it does not exist."""
    try:
        return host.read(path)
    except Missing as error:
        raise NotApplicable(host_error_text(error), path) from None


def kernel_files(host: Host, pattern: str) -> tuple[str, ...]:
    """Return the kernel files that match a pattern; raises NotApplicable if none does."""
    found = host.glob(pattern)
    if not found:
        raise NotApplicable(host_error_text(Missing(pattern)), pattern)
    return found


@probe("kernel.setting")
def setting(
    context: Context,
    *,
    path: Annotated[str, N_("File below /proc or /sys, or a pattern such as `/sys/block/sd*/queue/scheduler`.")],
) -> Iterable[Reading]:
    """Value of a kernel setting below /proc or /sys; of `always [madvise] never` the selected choice.

    Not applicable if there is no such file.
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
