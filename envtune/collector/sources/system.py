"""What the system checks read: distribution, container, hardware, package managers, limits, and where jobs write."""

import os
from typing import Any, List

from ...trust.programs import SYSTEM_DIRECTORIES
from .tables import Table, quietly

SYSTEM = Table(
    files=(
        "/.dockerenv",
        "/etc/centos-release",
        "/etc/envtune/attestations.json",
        "/etc/euleros-release",
        "/etc/kylin-release",
        "/etc/openEuler-release",
        "/etc/os-release",
        "/etc/redhat-release",
        "/etc/system-release",
        "/proc/1/cgroup",
        "/proc/cmdline",
        "/proc/device-tree/compatible",
        "/proc/device-tree/hypervisor/compatible",
        "/proc/meminfo",
        "/proc/self/cgroup",
        "/proc/self/limits",
        "/proc/self/mountinfo",
        "/proc/self/status",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/numa_balancing",
        "/proc/sys/vm/dirty_background_bytes",
        "/proc/sys/vm/dirty_background_ratio",
        "/proc/sys/vm/dirty_bytes",
        "/proc/sys/vm/dirty_ratio",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/vm/swappiness",
        "/proc/sys/vm/zone_reclaim_mode",
        "/proc/version",
        "/run/.containerenv",
        "/run/systemd/container",
        "/sys/block/nvme*/queue/scheduler",
        "/sys/block/nvme*/size",
        "/sys/class/dmi/id/chassis_vendor",
        "/sys/class/dmi/id/product_name",
        "/sys/class/dmi/id/sys_vendor",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "/sys/hypervisor/type",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/usr/lib/os-release",
    ),
    stats=(
        "/proc/self/ns/cgroup",
        "/proc/self/ns/mnt",
        "/proc/self/ns/pid",
        "/tmp",
    ),
    listings=("/sys/block",),
)
PROGRAMS = ("env", "apt-get", "dnf", "yum", "zypper", "cpupower")  # whose presence checks look for
# Where jobs write much, by the variables CANN reads (porting guide 003:1582, 1660-1664).
OUTPUT_VARIABLES = (
    "TUNE_BANK_PATH", "ASCEND_PROCESS_LOG_PATH", "ASCEND_WORK_PATH", "ASCEND_CACHE_PATH", "ACL_OP_COMPILER_CACHE_DIR",
    "DUMP_GRAPH_PATH", "NPU_COLLECT_PATH",
)  # fmt: skip
# Files with the counters of a control group, by controller: of version 1, of version 2.
COUNTERS = {
    "cpu": ("cpu.stat", "cpu.stat"),
    "memory": ("memory.oom_control", "memory.events"),
    "pids": ("pids.events", "pids.events"),
}


def record_system(recorder: Any) -> None:
    """Record package managers and cpupower, where builds and jobs write, and the limits of the job's groups."""
    _record_output(recorder)
    for folder in SYSTEM_DIRECTORIES:
        for name in PROGRAMS:
            quietly(recorder.stat, folder + "/" + name)
    for process in {"self", str(recorder.target.get("pid") or "self")}:
        quietly(recorder.read_bytes, "/proc/%s/status" % process)
        quietly(_record_quota, recorder, process)


def _record_output(recorder: Any) -> None:
    """Record whether the directories that builds and jobs write to exist."""
    named = [recorder.variables.get(name, "") for name in OUTPUT_VARIABLES]
    homes = [variables["HOME"] for variables in (recorder.variables, recorder.environ) if variables.get("HOME")]
    for path in named + [recorder.environ.get("TMPDIR", "")] + [home + "/ascend/log" for home in homes]:
        if path.startswith("/"):
            quietly(recorder.stat, os.path.normpath(path))


def _record_quota(recorder: Any, process: str) -> None:
    """Record the CPU quota and the counters of a process's control groups and of their parents."""
    for line in recorder.read("/proc/%s/cgroup" % process).splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        while True:
            for file in _group_files(controllers.split(",") if controllers else []):
                folder, _, name = file.rpartition("/")
                quietly(recorder.read_bytes, "%s%s/%s" % (folder, path.rstrip("/"), name))
            if path in ("", "/"):
                break
            path = path.rpartition("/")[0]


def _group_files(controllers: List[str]) -> List[str]:
    """Return the files of a group for these controllers, as in the topmost group; no controllers means version 2."""
    if not controllers:
        return ["/sys/fs/cgroup/cpu.max"] + ["/sys/fs/cgroup/" + new for _, new in COUNTERS.values()]
    quota = ["/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"]
    files = quota if "cpu" in controllers else []
    return files + ["/sys/fs/cgroup/%s/%s" % (name, COUNTERS[name][0]) for name in COUNTERS if name in controllers]
