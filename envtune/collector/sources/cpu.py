"""What the CPU checks read: frequency policies, and the services that set a governor at boot.

Sources: kernel, Documentation/admin-guide/pm/cpufreq.rst; cpupower of RHEL's kernel-tools and of the kernel, Debian's
cpufrequtils, Ubuntu's ondemand.service, tuned, power-profiles-daemon.
"""

import re
from typing import Any

from .tables import Table, quietly, read_matches

CPUPOWER_FILES = (  # what the cpupower service reads
    "/etc/sysconfig/cpupower",  # RHEL, openEuler
    "/etc/default/cpupower",
    "/etc/default/cpupower-service",
    "/etc/cpupower-service.conf",
)
TUNED_ACTIVE = "/etc/tuned/active_profile"
TUNED_PROFILES = ("/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned")
CPU_ROOT = "/sys/devices/system/cpu"
QUEUES = "/sys/class/net/*/device/msi_irqs"  # interrupts of a network card; other interfaces have none
INTERRUPTS = "/proc/irq/%d/effective_affinity_list"
INTERRUPTS_EACH = 16  # of a card; some have hundreds
CARDS = 4  # cards that are up whose interrupts are recorded
CPU = Table(
    files=CPUPOWER_FILES
    + (
        "/etc/default/cpufrequtils",
        "/etc/systemd/system/envtune-governor.service",
        "/proc/cpuinfo",
        CPU_ROOT + "/intel_pstate/*",
        CPU_ROOT + "/isolated",
        CPU_ROOT + "/online",
        CPU_ROOT + "/present",
        CPU_ROOT + "/cpu0/cpuidle/state*/disable",
        CPU_ROOT + "/cpu0/cpuidle/state*/latency",
        CPU_ROOT + "/cpu0/cpuidle/state*/name",
        CPU_ROOT + "/smt/control",
        "/sys/devices/system/node/has_cpu",
        "/sys/devices/system/node/has_memory",
    ),
    stats=(
        "/etc/rc[2-5].d/S*cpufrequtils",
        "/etc/systemd/system",
        "/etc/systemd/system/*.wants/cpupower.service",
        "/etc/systemd/system/*.wants/envtune-governor.service",
        "/etc/systemd/system/*.wants/ondemand.service",
        "/etc/systemd/system/*.wants/power-profiles-daemon.service",
        "/etc/systemd/system/*.wants/tuned.service",
        "/usr/lib/linux-tools/*/cpupower",
    ),
)
CPUFREQ_FILES = (  # scaling_cur_freq is left out: the kernel may take 10 ms to measure it, on each CPU
    "affected_cpus", "cpuinfo_max_freq", "cpuinfo_min_freq", "energy_performance_preference", "related_cpus",
    "scaling_available_governors", "scaling_driver", "scaling_governor", "scaling_max_freq", "scaling_min_freq",
)  # fmt: skip


def record_cpu(recorder: Any) -> None:
    """Record the frequency policies (on kernels without policy directories, each CPU's own) and tuned's profile."""
    folder = CPU_ROOT + "/cpufreq/policy*/"
    if not recorder.glob(folder + "scaling_governor"):
        folder = CPU_ROOT + "/cpu[0-9]*/cpufreq/"
    read_matches(recorder, [folder + name for name in CPUFREQ_FILES])
    quietly(recorder.read_bytes, CPU_ROOT + "/cpu0/cpufreq/scaling_driver")
    quietly(_record_tuned, recorder)
    quietly(_record_interrupts, recorder)


def _record_interrupts(recorder: Any) -> None:
    """Record which CPUs handle the first interrupts of the network cards that are up."""
    cards = 0
    for folder in recorder.glob(QUEUES):
        state = folder[: -len("device/msi_irqs")] + "operstate"
        quietly(recorder.read_bytes, state)
        if cards < CARDS and str(recorder.files.get(state)).strip() == "up":
            cards += 1
            names = recorder.listdir(folder)
            for number in sorted(int(name) for name in names if name.isdecimal())[:INTERRUPTS_EACH]:
                quietly(recorder.read_bytes, INTERRUPTS % number)


def _record_tuned(recorder: Any) -> None:
    """Record tuned's active profile with the profiles it includes."""
    names = recorder.read(TUNED_ACTIVE).split()
    for name in names:  # grows while the includes are found
        for folder in TUNED_PROFILES:
            try:
                text = recorder.read("%s/%s/tuned.conf" % (folder, name))
            except OSError:
                continue
            for value in re.findall(r"(?m)^\s*include\s*=\s*(.*)$", text):
                names += [n for n in value.replace(",", " ").split() if n not in names and "/" not in n]
            break
