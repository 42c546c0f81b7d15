"""What the container checks read: parts of the driver that are mounted into a container, and the memory limit."""

from typing import Any

from .tables import Table, quietly

CONTAINERS = Table(
    files=("/proc/self/status",),
    stats=(
        "/etc/ascend_install.info",
        "/usr/local/Ascend/driver/version.info",
        "/usr/local/bin/npu-smi",
        "/usr/local/dcmi",
        "/usr/local/sbin/npu-smi",
    ),
)


def record_containers(recorder: Any) -> None:
    """Record the memory limit of this process's control group and of its parents."""
    for line in recorder.read("/proc/self/cgroup").splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        place = "/sys/fs/cgroup/memory%s/memory.limit_in_bytes" if controllers else "/sys/fs/cgroup%s/memory.max"
        while True:
            quietly(recorder.read_bytes, place % path.rstrip("/"))
            if path in ("", "/"):
                break
            path = path.rpartition("/")[0]
