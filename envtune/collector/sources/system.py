"""What the system checks read: distribution, container, hardware, package managers, limits, and where jobs write."""

import os
from typing import Any

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
        "/proc/version",
        "/run/.containerenv",
        "/run/systemd/container",
        "/sys/block/nvme*/size",
        "/sys/class/dmi/id/chassis_vendor",
        "/sys/class/dmi/id/product_name",
        "/sys/class/dmi/id/sys_vendor",
        "/sys/hypervisor/type",
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
PROGRAMS = ("env", "apt-get", "dnf", "yum", "zypper", "cpupower")  # whose presence a check asks for
# Where a job writes much, by the variables CANN reads (porting guide 003:1582, 1660-1664).
OUTPUT_VARIABLES = (
    "TUNE_BANK_PATH", "ASCEND_PROCESS_LOG_PATH", "ASCEND_WORK_PATH", "ASCEND_CACHE_PATH", "ACL_OP_COMPILER_CACHE_DIR",
    "DUMP_GRAPH_PATH", "NPU_COLLECT_PATH",
)  # fmt: skip


def record_system(recorder: Any) -> None:
    """Record package managers and cpupower, where builds and jobs write, and the CPU quota of the job's group."""
    _record_output(recorder)
    for folder in SYSTEM_DIRECTORIES:
        for name in PROGRAMS:
            quietly(recorder.stat, folder + "/" + name)
    for process in {"self", str(recorder.target.get("pid") or "self")}:
        quietly(recorder.read_bytes, "/proc/%s/status" % process)
        quietly(_record_quota, recorder, process)


def _record_output(recorder: Any) -> None:
    """Record whether the directories are there that builds and jobs write to."""
    named = [recorder.variables.get(name, "") for name in OUTPUT_VARIABLES]
    homes = [variables["HOME"] for variables in (recorder.variables, recorder.environ) if variables.get("HOME")]
    for path in named + [recorder.environ.get("TMPDIR", "")] + [home + "/ascend/log" for home in homes]:
        if path.startswith("/"):
            quietly(recorder.stat, os.path.normpath(path))


def _record_quota(recorder: Any, process: str) -> None:
    """Record the CPU quota of a process's control group and of those above it."""
    for line in recorder.read("/proc/%s/cgroup" % process).splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        files = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
        folder = "/sys/fs/cgroup/cpu" if controllers else "/sys/fs/cgroup"
        while True:
            for name in files:
                quietly(recorder.read_bytes, "%s%s/%s" % (folder, path.rstrip("/"), name))
            if path in ("", "/"):
                break
            path = path.rpartition("/")[0]
