"""Resource limits of the processes running on the NPUs: set by a launcher or a container, not those of this shell.

Source: proc_pid_limits(5).
"""

from __future__ import annotations

import re
from typing import Iterable

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotRecorded, host_error_text
from envtune.messages import Message
from envtune.model import Evidence, Reading
from envtune.resources.processes.placement import Rank, ranks

ROW = "Max locked memory"


@probe("processes.locked_memory")
def locked_memory(context: Context) -> Iterable[Reading]:
    """Soft limit on locked memory of each NPU process, in bytes; may be `unlimited`."""
    return [_limit(context, rank) for rank in ranks(context)]


def _limit(context: Context, rank: Rank) -> Reading:
    source = f"/proc/{rank.process.pid}/limits"
    try:
        found = re.search(rf"(?m)^{ROW}\s+(\S+)", context.host.read(source))
    except Missing:
        ended = Message("process {pid} has just ended", pid=rank.process.pid)
        reason = ended if context.host.live else host_error_text(NotRecorded(source))
        return Reading(rank.subject, None, Evidence(source), reason=reason)
    except HostError as error:
        return Reading(rank.subject, None, Evidence(source), reason=host_error_text(error))
    if found is None:
        reason = Message("{path} has no line for {name}", path=source, name=ROW)
        return Reading(rank.subject, None, Evidence(source), reason=reason)
    return Reading(rank.subject, found[1], Evidence(source, found[0]))
