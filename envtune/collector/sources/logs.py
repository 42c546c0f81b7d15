"""What the checks of host logs read: whether the directories are there, and who may read them. Never a log itself."""

import os
from typing import Any

from .tables import Table, quietly

LOGS = Table(stats=("/var/log/npu/slog",))


def record_logs(recorder: Any) -> None:
    """Record the log directories that the job's variables name, and the default below its home."""
    for name, below in (("ASCEND_PROCESS_LOG_PATH", ""), ("ASCEND_WORK_PATH", "log"), ("HOME", "ascend/log")):
        value = recorder.variables.get(name, "")
        if value.startswith("/"):
            quietly(recorder.stat, os.path.normpath(os.path.join(value, below)))
