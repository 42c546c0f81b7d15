"""Main memory, from /proc/meminfo."""

from __future__ import annotations

from typing import Iterable, Optional

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Undetermined
from envtune.messages import Message
from envtune.model import Evidence, Reading
from envtune.ranges import whole_number

MEMINFO = "/proc/meminfo"


@probe("system.memory", formerly="memory.total")
def total(context: Context, *, recommended: int) -> Iterable[Reading]:
    """The memory the kernel manages, in GB (10^9 bytes, one decimal); `recommended` is only named to the reader.

    Source: porting guide 003:134, 003:136.
    """
    text = context.host.read(MEMINFO)
    size = total_bytes(text)
    if size is None:
        raise Undetermined(Message("{MEMINFO} has no MemTotal", MEMINFO=MEMINFO), MEMINFO, text)
    amount = round(size / 1e9, 1)
    line = next(line for line in text.splitlines() if line.startswith("MemTotal"))
    expected = Message("{recommended} GB, of which firmware may keep 5 %", recommended=recommended)
    return [Reading("memory", amount, Evidence(MEMINFO, line), Message("{amount} GB", amount=amount), expected)]


def total_bytes(text: str) -> Optional[int]:
    """MemTotal of /proc/meminfo (`MemTotal:  792723456 kB`) in bytes; None when it is not there."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["MemTotal:"] and len(words) == 3 and words[2] == "kB":
            size = whole_number(words[1])
            return None if size is None else size * 1024
    return None
