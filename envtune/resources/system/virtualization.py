"""Container or virtual machine: then this user does not see the machine itself.

Based only on traces left by a runtime or a hypervisor; no command is run. Sources: namespaces(7) and the fixed inode
numbers of the first namespaces in the kernel's include/linux/proc_ns.h; the cgroup paths of docker, podman, containerd,
CRI-O, iSulad and LXC; SMBIOS names as systemd-detect-virt knows them; QEMU's hw/arm/virt.c for `linux,dummy-virt`.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Optional

from envtune.context import Context
from envtune.context.registry import fact, probe
from envtune.errors import HostError, Missing
from envtune.host import Host, exists
from envtune.messages import N_, Message
from envtune.model import Evidence, Fact, Reading

MARKERS = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
FIRST_NAMESPACE = "/proc/self/ns/pid"
FIRST_NAMESPACES = {FIRST_NAMESPACE: "pid:[4026531836]", "/proc/self/ns/cgroup": "cgroup:[4026531835]"}
CGROUP_PARENTS = ("docker", "lxc", "isulad", "containerd", "libpod_parent", "garden", "actions_job")
CGROUP_SCOPES = ("docker-", "libpod-", "cri-containerd-", "crio-", "nerdctl-", "isulad-")
RUNTIME_STORES = ("/docker/", "/containerd/", "/containers/", "/isulad/", "/lxc/", "/pods/", "/buildkit/")
INJECTED = ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/dev/termination-log")

HYPERVISORS = (
    "qemu",
    "kvm",
    "vmware",
    "virtualbox",
    "innotek",
    "xen",
    "bochs",
    "virtual machine",
    "openstack",
    "huawei cloud",
    "huaweicloud",
    "amazon ec2",
    "google compute",
    "alibaba cloud",
    "tencent cloud",
    "firecracker",
    "parallels",
    "bhyve",
    "cloud hypervisor",
    "rhev",
    "ovirt",
    "nutanix",
)
BARE_METAL = (".metal",)  # instance types that are bare metal


@fact("container")
def fact_container(context: Context) -> Fact:
    """Whether this host is a container."""
    host = context.host
    for sign in (_cgroup_sign(host), _mount_sign(host), _marker_sign(host)):
        if sign is not None:
            return Fact("container", "true", sign)
    for path in ("/proc/self/cgroup", "/proc/1/cgroup"):
        if _read(host, path) is not None:
            return Fact("container", "false", path)
    # A kernel without cgroups shows no path; then only the marker files must be known to be absent.
    if any(exists(host, path) for path in MARKERS):
        return Fact("container", "false", FIRST_NAMESPACE)
    return Fact("container", "false", MARKERS[0])


def _read(host: Host, path: str) -> Optional[str]:
    try:
        return host.read(path)
    except HostError:
        return None


def _cgroup_sign(host: Host) -> Optional[str]:
    # Our own group first: with the host's process namespace, PID 1 is the host's init.
    for path in ("/proc/self/cgroup", "/proc/1/cgroup"):
        if names_container(_read(host, path) or ""):
            return path
    return None


def names_container(text: str) -> bool:
    """Return whether a cgroup listing (`N:controllers:path`) puts its process below a container runtime."""
    for line in text.splitlines():
        parts = line.strip().split(":", 2)[-1].split("/")
        for part in parts[:-1]:
            if part in CGROUP_PARENTS or part.startswith(("kubepods", "lxc.payload")):
                return True
        last = parts[-1]
        if last.startswith(("lxc.payload", "pod")) and any(p.startswith(("kubepods", "lxc")) for p in parts):
            return True
        if any(p.startswith(CGROUP_SCOPES) and p.endswith(".scope") for p in parts):
            return True
    return False


def _mount_sign(host: Host) -> Optional[str]:
    path = "/proc/self/mountinfo"
    return path if mounted_by_runtime(_read(host, path) or "") else None


def mounted_by_runtime(text: str) -> bool:
    """Return whether mountinfo shows a root or an injected file from a container runtime's store."""
    for mount_point, origin, options in mounts(text):
        if mount_point in INJECTED and any(store in origin for store in RUNTIME_STORES):
            return True
        # Several file systems can be stacked on /; a runtime's root is the only overlay that names its store.
        if mount_point == "/" and any(store in f"{origin} {options}" for store in RUNTIME_STORES):
            return True
    return False


def mounts(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield (mount point, path within its file system, options of that) of every line of mountinfo, proc(5)."""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) > 6 and "-" in fields[6:]:
            yield fields[4], fields[3], " ".join(fields[fields.index("-", 6) + 1 :])


def _marker_sign(host: Host) -> Optional[str]:
    """Return a marker file, unless running in the initial namespaces: an image booted as a machine keeps the file."""
    for path in MARKERS:
        try:
            if exists(host, path):
                return None if _first_namespaces(host) else path
        except HostError:
            continue
    return None


def _first_namespaces(host: Host) -> bool:
    for path, first in FIRST_NAMESPACES.items():
        try:
            if host.readlink(path) != first:
                return False
        except Missing:
            if path.endswith("pid"):
                return False  # a kernel without cgroup namespaces (before 4.6) shows the runtime in its cgroup path
        except HostError:
            return False
    return True


@fact("vm")
def fact_vm(context: Context) -> Fact:
    """Whether this host is a virtual machine."""
    host = context.host
    kind, source = _smbios(host)
    if kind in ("virtual", "metal"):
        return Fact("vm", "true" if kind == "virtual" else "false", source)
    flag = hypervisor_flag(_read(host, "/proc/cpuinfo") or "")
    if flag is not None:
        return Fact("vm", "true" if flag else "false", "/proc/cpuinfo")
    for path in ("/proc/device-tree/compatible", "/proc/device-tree/hypervisor/compatible", "/sys/hypervisor/type"):
        if _says_virtual(host, path):
            return Fact("vm", "true", path)
    return Fact("vm", "false", source) if kind else _by_frequency_driver(host)


def _smbios(host: Host) -> tuple[str, str]:
    """Return what SMBIOS says about the machine (`virtual`, `metal` for a cloud's bare metal, `maker`), and where."""
    maker = ("", "")
    for name in ("sys_vendor", "product_name", "chassis_vendor"):
        path = f"/sys/class/dmi/id/{name}"
        words = (_read(host, path) or "").strip().lower()
        if any(word in words for word in BARE_METAL):
            return "metal", path
        if any(word in words for word in HYPERVISORS):
            # Bare-metal instances of Amazon and others have the cloud's vendor name: only the product name tells.
            product = (_read(host, "/sys/class/dmi/id/product_name") or "").strip().lower()
            return ("metal" if any(word in product for word in BARE_METAL) else "virtual"), path
        maker = ("maker", path) if words else maker
    return maker


def hypervisor_flag(cpuinfo: str) -> Optional[bool]:
    """Return whether an x86 CPU reports a hypervisor; None if cpuinfo has no `flags` (ARM)."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return "hypervisor" in value.split()
    return None


def _says_virtual(host: Host, path: str) -> bool:
    try:
        words = host.read_bytes(path).replace(b"\0", b" ").decode("utf-8", "replace")
    except HostError:
        return False
    if path.endswith("device-tree/compatible"):
        return "dummy-virt" in words
    return bool(words.strip())


def _by_frequency_driver(host: Host) -> Fact:
    """Decide as a last resort by the frequency driver, which a guest does not have."""
    path = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver"
    driver = (_read(host, path) or "").strip()
    if driver and driver != "virtual-cpufreq":
        return Fact("vm", "false", path)
    reason = Message("SMBIOS, CPU flags and device tree do not show whether this is a virtual machine")
    return Fact("vm", None, "/sys/class/dmi/id/product_name", reason)


@probe("system.virtualization", formerly="virtualization.kind")
def kind(context: Context) -> Iterable[Reading]:
    """Type of this host: `bare metal`, `virtual machine` or `container`.

    Source: inferred from porting guide 003:1355.
    """
    container, machine = context.facts["container"], context.facts["vm"]
    for stated, name in ((container, N_("container")), (machine, N_("virtual machine"))):
        if stated.value == "true":
            return [Reading("host", name, Evidence(stated.source, str(stated.source)), Message(name))]
    for stated in (container, machine):
        if stated.value is None:
            return [Reading("host", None, Evidence(stated.source), reason=stated.reason)]
    return [Reading("host", "bare metal", Evidence(machine.source), Message("bare metal"))]
