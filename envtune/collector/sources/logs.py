"""What the checks of host logs read: the directories, their permissions and sizes. Never a log itself."""

import os
from typing import Any

from .tables import Table, quietly

LOGS = Table(stats=("/var/log/npu/slog",))


def record_logs(recorder: Any) -> None:
    """Record the log directories that the job's variables name, the default one, and the size of the one in use."""
    used = ""
    for name, below in (("ASCEND_PROCESS_LOG_PATH", ""), ("ASCEND_WORK_PATH", "log"), ("HOME", "ascend/log")):
        value = recorder.variables.get(name, "")
        if value.startswith("/"):
            path = os.path.normpath(os.path.join(value, below))
            quietly(recorder.stat, path)
            used = used or path  # CANN writes to the first of them
    if used:
        quietly(recorder.tree_size, used)
