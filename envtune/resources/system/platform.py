"""The machine itself: architecture, operating system, container or VM, and the user of envtune."""

from __future__ import annotations

import re
from typing import Annotated, Iterable, Mapping, Optional

from envtune.context import Context
from envtune.context.registry import fact, probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined
from envtune.host import Host
from envtune.messages import N_, Literal, Message, alternatives
from envtune.model import Evidence, Fact, Reading
from envtune.ranges import cpu_numbers
from envtune.records import expression

# Words of `ID` and `ID_LIKE` in os-release, per package family. Source: porting guide 003:1391-1399, 2814-2820, 2905;
# SUSE has zypper, whatever the guide says. UOS has two editions with one ID: see RPM_PLATFORMS.
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "debian": ("debian", "ubuntu", "uos", "deepin"),
    "suse": ("suse", "sles", "opensuse"),
    "rhel": ("rhel", "centos", "fedora", "euleros", "openeuler", "kylin", "bclinux", "tlinux", "tencentos", "anolis",
             "hce", "ctyunos"),
}  # fmt: skip
# PLATFORM_ID of UOS Server, which is rpm-based; the desktop is of the debian family. Source: ansible#86957.
RPM_PLATFORMS = expression(r"platform:uelc?\d+")

RELEASE_FILES = (
    "/etc/euleros-release",
    "/etc/openEuler-release",
    "/etc/kylin-release",
    "/etc/centos-release",
    "/etc/redhat-release",
    "/etc/system-release",
)
# The package managers of each family, the better one first: dnf is yum's successor, and SUSE has zypper.
MANAGERS: Mapping[str, tuple[str, ...]] = {"debian": ("apt-get",), "rhel": ("dnf", "yum"), "suse": ("zypper",)}
BINARY_DIRECTORIES = ("/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin", "/usr/local/sbin")


@fact("system")
def fact_system(context: Context) -> Fact:
    """Kernel name, such as `Linux`."""
    name = context.host.uname.get("sysname") or None
    return Fact("system", name, "uname -s", Message("uname gives no system name"))


@fact("arch")
def fact_arch(context: Context) -> Fact:
    """CPU architecture, such as `x86_64` or `aarch64`."""
    machine = context.host.uname.get("machine", "")
    if not machine:
        return Fact("arch", None, "uname -m", Message("uname gives no machine name"))
    return Fact("arch", "aarch64" if machine == "arm64" else machine, "uname -m")


@fact("kernel")
def fact_kernel(context: Context) -> Fact:
    """Kernel release, as shown by `uname -r`."""
    return Fact(
        "kernel",
        context.host.uname.get("release") or None,
        "uname -r",
        Message("uname gives no release"),
    )


def os_release(context: Context) -> tuple[Mapping[str, str], str]:
    """Return the fields of os-release and where they were read; raises Missing if the host does not name its system."""
    host = context.host
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        text = _text(host, path)
        if text is not None:
            return parse_os_release(text), path
    for path in RELEASE_FILES:
        fields = parse_release_line(_text(host, path) or "")
        if fields:
            return fields, path
    return _by_distro(host), "distro"


def _text(host: Host, path: str) -> Optional[str]:
    try:
        return host.read(path)
    except Missing:
        return None


def _by_distro(host: Host) -> Mapping[str, str]:
    """Ask the `distro` package about older systems (lsb_release and the like); the live machine only."""
    if host.live:
        import distro

        if distro.id():
            return {"ID": distro.id(), "VERSION_ID": distro.version(), "ID_LIKE": distro.like()}
    raise Missing("/etc/os-release")


def parse_os_release(text: str) -> Mapping[str, str]:
    """Return the shell-like assignments of os-release(5); other lines are skipped."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, mark, value = line.strip().partition("=")
        if mark and key.replace("_", "").isalnum():
            fields[key] = value.strip().strip("\"'")
    return fields


def parse_release_line(text: str) -> Mapping[str, str]:
    """Return `CentOS Linux release 7.6.1810 (Core)`, `EulerOS release 2.0 (SP8)` as os-release fields, else none."""
    line = text.strip().partition("\n")[0]
    name, mark, rest = line.partition(" release ")
    version = rest.split()[0] if rest.split() else ""
    if not mark or not version[:1].isdecimal() or not name:
        return {}
    return {"ID": name.split()[0].lower(), "VERSION_ID": version, "PRETTY_NAME": line}


@fact("os")
def fact_os(context: Context) -> Fact:
    """Distribution ID from os-release, such as `ubuntu` or `openEuler`."""
    fields, path = context.cached(os_release)
    return Fact("os", fields.get("ID") or None, path, Message("no ID in os-release"))


@fact("os_version")
def fact_os_version(context: Context) -> Fact:
    """Distribution version, VERSION_ID from os-release."""
    fields, path = context.cached(os_release)
    return Fact(
        "os_version",
        fields.get("VERSION_ID") or None,
        path,
        Message("no VERSION_ID in os-release"),
    )


@fact("os_family")
def fact_os_family(context: Context) -> Fact:
    """Distribution family, by package manager: `debian`, `rhel`, `suse` or `other`."""
    fields, path = context.cached(os_release)
    words = f"{fields.get('ID', '')} {fields.get('ID_LIKE', '')}".lower().split()
    if "uos" in words and RPM_PLATFORMS.fullmatch(fields.get("PLATFORM_ID", "")):
        return Fact("os_family", "rhel", path)
    for family, names in FAMILIES.items():
        if any(word.startswith(names) for word in words):
            return Fact("os_family", family, path)
    found = {family: manager for family in MANAGERS for manager in [_family_manager(context.host, family)] if manager}
    if len(found) == 1:
        ((family, manager),) = found.items()
        return Fact("os_family", family, manager)
    return Fact("os_family", "other", path)


def _family_manager(host: Host, family: str) -> Optional[str]:
    """Return the path of the family's package manager, None if there is none or it was not recorded."""
    try:
        return next((path for name in MANAGERS[family] for path in [find_binary(host, name)] if path), None)
    except HostError:
        return None


@fact("cpus")
def fact_cpus(context: Context) -> Fact:
    """Number of online CPUs."""
    return Fact("cpus", str(online_cpus(context.host)), "/sys/devices/system/cpu/online")


def online_cpus(host: Host) -> int:
    """Return the size of the kernel's list `0-3,8`."""
    path = "/sys/devices/system/cpu/online"
    text = host.read(path)
    count = len(cpu_numbers(text))
    if count == 0:
        raise Undetermined(Message("{path} is not a CPU list", path=path), path, text)
    return count


@fact("user")
def fact_user(context: Context) -> Fact:
    """User that runs envtune: `root`, or `user` for any other user."""
    return Fact("user", "root" if context.host.euid == 0 else "user", "geteuid")


@probe("system.fact", formerly="platform.fact")
def fact_reading(
    context: Context, *, name: Annotated[str, N_("Name of the fact, as listed by `envtune list facts`.")]
) -> Iterable[Reading]:
    """Value of a fact about this host."""
    known = context.facts[name]
    if known.value is None:
        raise Undetermined(known.reason or Message("its value is unknown"), known.source)
    return [Reading(name, known.value, Evidence(known.source, known.value))]


@probe("system.package_manager", formerly="platform.package_manager")
def package_manager(context: Context) -> Iterable[Reading]:
    """Package manager of the distribution, such as `apt-get`; `missing`, or `unknown family` if its family is unknown.

    Source: porting guide 003:1391-1399, 2814-2820, 2905-2911.
    """
    family = context.facts["os_family"]
    if family.value is None:
        return [Reading("packages", None, Evidence(family.source), reason=family.reason)]
    name = context.facts.value("os") or "?"
    managers = MANAGERS.get(family.value, ())
    if not managers:
        shown = Message("{name}: unknown distribution family", name=name)
        return [
            Reading(
                "packages",
                "unknown family",
                Evidence(family.source, name),
                shown,
                alternatives(("apt-get", "dnf", "yum", "zypper")),
            )
        ]
    for manager in managers:
        path = find_binary(context.host, manager)
        if path is not None:
            shown = Message("{manager} ({name}, {value} family)", manager=manager, name=name, value=family.value)
            return [Reading("packages", manager, Evidence(path, path), shown)]
    programs_visible(context.host)
    wanted = alternatives(managers)
    shown = Message("{name}, {value} family, but no {wanted}", name=name, value=family.value, wanted=wanted)
    return [Reading("packages", "missing", Evidence(f"{BINARY_DIRECTORIES[0]}/{managers[0]}", ""), shown, wanted)]


def programs_visible(host: Host) -> None:
    """Raise Undetermined if not even `env` is visible: then the absence of a program is not evidence."""
    if find_binary(host, "env") is None:
        reason = Message("no system programs found: the recording is incomplete")
        raise Undetermined(reason, f"{BINARY_DIRECTORIES[0]}/env")


def find_binary(host: Host, name: str) -> Optional[str]:
    """Return the first executable of that name in the system's directories; None if there is none."""
    for folder in BINARY_DIRECTORIES:
        path = f"{folder}/{name}"
        try:
            found = host.stat(path)
        except Missing:
            continue
        if found.kind == "file" and found.mode & 0o111:
            return path
    return None


def distribution(context: Context) -> Iterable[Reading]:
    """`id major.minor` of the distribution in lower case, for example `centos 7.6`, `euleros 2.8`, `ubuntu 18.04`.

    CentOS 7 gives its minor version only in /etc/centos-release (or /etc/redhat-release, a link to it); EulerOS 2.8
    calls itself 2.0 (SP8).
    """
    fields, path = context.cached(os_release)
    name, version = fields.get("ID", "").lower(), fields.get("VERSION_ID", "")
    text = f"{fields.get('VERSION', '')} {fields.get('PRETTY_NAME', '')}"
    if name == "centos" and "." not in version:
        path, text = _centos_release(context.host)
        version = parse_release_line(text).get("VERSION_ID", version)
    pack = re.search(r"\(SP(\d+)\)", text)
    if name == "euleros" and pack is not None:
        version = f"{version.partition('.')[0]}.{pack[1]}"
    short = ".".join(version.split(".")[:2])
    shown = Literal(fields.get("PRETTY_NAME") or f"{name} {version}")
    return [Reading("os", f"{name} {short}", Evidence(path, text.strip()), shown)]


def _centos_release(host: Host) -> tuple[str, str]:
    """Return the path and text of the file that names CentOS with its minor version; Missing if there is none."""
    path = "/etc/redhat-release"
    text = _text(host, "/etc/centos-release")
    return ("/etc/centos-release", text) if text is not None else (path, host.read(path))


@probe("system.transplant_os", formerly="platform.transplant_os")
def transplant_os(
    context: Context, *, cann: Annotated[str, N_("Major version of CANN to which the check applies.")]
) -> Iterable[Reading]:
    """Distribution and version, such as `ubuntu 18.04`; not applicable if the active CANN has another major version.

    The list it is compared with is the porting guide's (003:645-647), written for CANN 5; later tools have their own.
    """
    known = context.facts["cann"]
    if known.value is None:
        raise Undetermined(known.reason or Message("the CANN version is unknown"), known.source)
    if known.value == "none":
        raise NotApplicable(Message("CANN is not installed"), known.source, known.value)
    if known.value.partition(".")[0] != cann:
        reason = Message("CANN is {value}; the list is for CANN {cann}", value=known.value, cann=cann)
        raise NotApplicable(reason, known.source, known.value)
    return distribution(context)
