"""The machine itself: architecture, operating system, container or VM, and who runs us."""

from __future__ import annotations

from typing import Iterable, Mapping

from envtune.errors import Missing, Undetermined
from envtune.host import Host
from envtune.model import Evidence, Fact, Reading, Text
from envtune.resources import Scene, probe

# Words of `ID` and `ID_LIKE` in os-release, per package family. Source: porting guide 003:1391-1399, 2814-2820, 2905;
# SUSE has zypper, whatever the guide says.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "debian": ("debian", "ubuntu", "uos", "deepin"),
    "suse": ("suse", "sles", "opensuse"),
    "rhel": ("rhel", "centos", "fedora", "euleros", "openeuler", "kylin", "bclinux", "tlinux", "tencentos", "anolis"),
}


def fact_system(scene: Scene) -> Fact:
    """The kernel's name for itself: Linux."""
    name = scene.host.uname.get("sysname") or None
    return Fact("system", name, "uname -s", Text("uname gives no system name", "uname 未给出系统名称"))


def fact_arch(scene: Scene) -> Fact:
    """x86_64 or aarch64, as the kernel names it."""
    machine = scene.host.uname.get("machine", "")
    if not machine:
        return Fact("arch", None, "uname -m", Text("uname gives no machine name", "uname 未给出机器类型"))
    return Fact("arch", "aarch64" if machine == "arm64" else machine, "uname -m")


def fact_kernel(scene: Scene) -> Fact:
    """Kernel release."""
    return Fact(
        "kernel",
        scene.host.uname.get("release") or None,
        "uname -r",
        Text("uname gives no release", "uname 未给出内核版本"),
    )


def os_release(scene: Scene) -> tuple[Mapping[str, str], str]:
    """The fields of os-release and the path they were read from; Missing when there is none."""
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        try:
            text = scene.host.read(path)
        except Missing:
            continue
        return parse_os_release(text), path
    raise Missing("/etc/os-release")


def parse_os_release(text: str) -> Mapping[str, str]:
    """Shell-like assignments of os-release(5); lines that are none are skipped."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, mark, value = line.strip().partition("=")
        if mark and key.replace("_", "").isalnum():
            fields[key] = value.strip().strip("\"'")
    return fields


def fact_os(scene: Scene) -> Fact:
    """ID of os-release: ubuntu, openEuler, centos, ..."""
    fields, path = scene.once(os_release)
    return Fact("os", fields.get("ID") or None, path, Text("no ID in os-release", "os-release 中没有 ID"))


def fact_os_version(scene: Scene) -> Fact:
    """VERSION_ID of os-release."""
    fields, path = scene.once(os_release)
    return Fact(
        "os_version",
        fields.get("VERSION_ID") or None,
        path,
        Text("no VERSION_ID in os-release", "os-release 中没有 VERSION_ID"),
    )


def fact_os_family(scene: Scene) -> Fact:
    """debian, rhel or suse: which package manager speaks here."""
    fields, path = scene.once(os_release)
    words = f"{fields.get('ID', '')} {fields.get('ID_LIKE', '')}".lower().split()
    for family, names in FAMILIES.items():
        if any(word.startswith(names) for word in words):
            return Fact("os_family", family, path)
    return Fact("os_family", "other", path)


def fact_cpus(scene: Scene) -> Fact:
    """Number of CPUs that are online."""
    return Fact("cpus", str(online_cpus(scene.host)), "/sys/devices/system/cpu/online")


def online_cpus(host: Host) -> int:
    """The size of the kernel's list `0-3,8`."""
    path = "/sys/devices/system/cpu/online"
    count = 0
    for part in host.read(path).strip().split(","):
        first, _, last = part.partition("-")
        try:
            count += int(last or first) - int(first) + 1
        except ValueError:
            raise Undetermined(Text(f"{path} is not a CPU list", f"{path} 不是 CPU 列表"), path, part) from None
    return count


def fact_user(scene: Scene) -> Fact:
    """root or user: what may be read and changed."""
    return Fact("user", "root" if scene.host.euid == 0 else "user", "geteuid")


@probe("platform.fact")
def fact(scene: Scene, *, name: str) -> Iterable[Reading]:
    """A fact as a reading, so that an expectation can be put on it; untold facts are untold readings."""
    known = scene.facts[name]
    if known.value is None:
        raise Undetermined(known.reason or Text("cannot be told", "无法判断"), known.source)
    return [Reading(name, known.value, Evidence(known.source, known.value))]
