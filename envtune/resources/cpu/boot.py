"""What sets the CPU governor at boot: the cpupower service, tuned, power-profiles-daemon, or the kernel command line.

Read from the files of systemd and the services, so that no command is run and a recorded host gives the same result.
Sources: porting guide 003:1389-1399 (cpupower); the units and configuration files of RHEL's kernel-tools, of the
kernel's own tools/power/cpupower, Debian's cpufrequtils, Ubuntu's ondemand.service (systemd package up to 20.04), tuned
and power-profiles-daemon.
"""

from __future__ import annotations

import posixpath
import re
from typing import Iterable, Mapping, NamedTuple, Optional

from envtune.collector.sources.cpu import CPUPOWER_FILES, TUNED_ACTIVE, TUNED_PROFILES
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Missing, Undetermined
from envtune.host import Host, exists
from envtune.messages import Literal, Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.cpu.frequency import policies
from envtune.resources.system.platform import BINARY_DIRECTORIES, find_binary, programs_visible

UNITS = "/etc/systemd/system"
OWN_UNIT = "envtune-governor.service"


class BootSetting(NamedTuple):
    """Who sets which governor at boot, and the file that says so; the governor is empty if unknown."""

    owner: str
    governor: str
    source: str
    text: str


@probe("cpu.cpupower", formerly="governor_boot.cpupower")
def cpupower(context: Context) -> Iterable[Reading]:
    """State of cpupower: `ready`, `missing`, or `wrapper` if the tool for the running kernel is not installed.

    On Ubuntu /usr/bin/cpupower is a wrapper that only starts /usr/lib/linux-tools/<release>/cpupower.
    Source: porting guide 003:1389-1399.
    """
    context.cached(policies)  # without frequency control it has no use
    host = context.host
    path = find_binary(host, "cpupower")
    if path is None:
        programs_visible(host)
        evidence = Evidence(BINARY_DIRECTORIES[0] + "/cpupower", "")
        return [Reading("cpupower", "missing", evidence, Message("not installed"), _for_this_kernel(host))]
    if context.facts.value("os") != "ubuntu":
        return [Reading("cpupower", "ready", Evidence(path, path), Literal(path))]
    tool = f"/usr/lib/linux-tools/{host.uname['release']}/cpupower"
    if exists(host, tool):
        return [Reading("cpupower", "ready", Evidence(tool, tool), Literal(tool))]
    shown = Message("{path}, but no {tool}", path=path, tool=tool)
    return [Reading("cpupower", "wrapper", Evidence(tool, ""), shown, _for_this_kernel(host))]


def _for_this_kernel(host: Host) -> Text:
    release = host.uname.get("release", "")
    return Message("cpupower for kernel {release}", release=release)


_NO_UNITS = Message(
    "{path} does not exist (no systemd, or an incomplete recording), and nothing else found here sets a governor",
    path=UNITS,
)


@probe("cpu.boot_governor", formerly="governor_boot.governor")
def governor(context: Context) -> Iterable[Reading]:
    """Governor that a service sets at boot; empty if no service sets one.

    Source: porting guide 003:1397-1399.
    """
    context.cached(policies)
    host = context.host
    settings = boot_settings(host)
    if not settings:
        if not exists(host, UNITS):
            raise Undetermined(_NO_UNITS, UNITS)
        return [Reading("boot", "", Evidence(UNITS, ""), Message("no service sets a governor at boot"))]
    first = settings[0]
    if not first.governor:
        reason = Message("{owner} is enabled; its files do not show which governor it sets", owner=first.owner)
        return [Reading("boot", None, Evidence(first.source, first.text), reason=reason)]
    return [Reading("boot", first.governor, Evidence(first.source, first.text), _precedence(settings))]


def boot_settings(host: Host) -> list[BootSetting]:
    """Return everything that sets the governor at boot, by precedence."""
    owners = (_tuned, _power_profiles, _ondemand, _own_unit, _cpupower_service, _cpufrequtils, _command_line)
    return [setting for setting in (owner(host) for owner in owners) if setting is not None]


def _precedence(settings: list[BootSetting]) -> Text:
    first, others = settings[0], settings[1:]
    if not others:
        return Message("{owner} sets {governor}", owner=first.owner, governor=first.governor)
    return Message(
        "{owner} sets {governor}, overriding {others}",
        owner=first.owner,
        governor=first.governor,
        others=", ".join(f"{other.owner} ({other.governor or '?'})" for other in others),
    )


def enabled_link(host: Host, unit: str) -> Optional[str]:
    """Return the link that makes systemd start `unit` at boot; None if there is none."""
    links = host.glob(f"{UNITS}/*.wants/{unit}")
    return links[0] if links else None


def _read_optional(host: Host, path: str) -> Optional[str]:
    """Return the text, None if the file does not exist; other errors are raised, because then nothing is known."""
    try:
        return host.read(path)
    except Missing:
        return None


def _own_unit(host: Host) -> Optional[BootSetting]:
    """Return the governor set by envtune's unit; systemd starts it after cpupower's."""
    if enabled_link(host, OWN_UNIT) is None:
        return None
    path = f"{UNITS}/{OWN_UNIT}"
    text = _read_optional(host, path)
    if text is None:
        return None  # a link without its unit starts nothing
    command = re.search(r"^ExecStart=.*echo ([a-z]+) >", text, re.MULTILINE)
    return BootSetting(OWN_UNIT, command[1] if command else "", path, text)


def _cpupower_service(host: Host) -> Optional[BootSetting]:
    link = enabled_link(host, "cpupower.service")
    if link is None:
        return None
    for path in CPUPOWER_FILES:
        text = _read_optional(host, path)
        if text is not None:
            name = cpupower_governor(text)
            return BootSetting("cpupower.service", name, path, text) if name else None
    return BootSetting("cpupower.service", "", link, "")


def assignments(text: str) -> Mapping[str, str]:
    """Return the `KEY="value"` lines of a shell-like configuration file; later ones win, comments are skipped."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, mark, value = line.strip().partition("=")
        if mark and not key.startswith("#"):
            values[key.strip()] = value.strip().strip("\"'")
    return values


def cpupower_governor(text: str) -> str:
    """Return the governor of a cpupower configuration, empty if it names none.

    It is `performance` in `CPUPOWER_START_OPTS="frequency-set -g performance"` and in `GOVERNOR='performance'`.
    """
    values = assignments(text)
    options = values.get("CPUPOWER_START_OPTS", "").replace("=", " ").split()
    for flag in ("-g", "--governor"):
        if flag in options[:-1]:
            return options[options.index(flag) + 1]
    return values.get("GOVERNOR", values.get("governor", ""))


def _cpufrequtils(host: Host) -> Optional[BootSetting]:
    """Return what Debian's and Ubuntu's former init script sets, which reads /etc/default/cpufrequtils."""
    path = "/etc/default/cpufrequtils"
    if not host.glob("/etc/rc[2-5].d/S*cpufrequtils"):
        return None
    text = _read_optional(host, path)
    return BootSetting("cpufrequtils", assignments(text or "").get("GOVERNOR") or "ondemand", path, text or "")


def _command_line(host: Host) -> Optional[BootSetting]:
    """Return what `cpufreq.default_governor=` sets, since kernel 5.9."""
    path = "/proc/cmdline"
    for word in (_read_optional(host, path) or "").split():
        if word.startswith("cpufreq.default_governor="):
            return BootSetting("the kernel command line", word.partition("=")[2], path, word)
    return None


def _power_profiles(host: Host) -> Optional[BootSetting]:
    """Return the daemon that changes governors by its own rules, so that cpupower's setting may not last."""
    link = enabled_link(host, "power-profiles-daemon.service")
    return None if link is None else BootSetting("power-profiles-daemon", "", link, "")


def _ondemand(host: Host) -> Optional[BootSetting]:
    """Return what Ubuntu up to 20.04 sets a minute after boot: ondemand, or powersave if that is not available."""
    link = enabled_link(host, "ondemand.service")
    return None if link is None else BootSetting("ondemand.service", "ondemand", link, link)


def _tuned(host: Host) -> Optional[BootSetting]:
    """Return what the active profile sets under `[cpu]`; None if tuned is off or its profile sets no governor."""
    for name in reversed(tuned_profiles(host) or []):
        setting = tuned_governor(host, name)
        if setting is not None:
            governor, path = setting
            return BootSetting(f"tuned ({name})", governor, path, f"governor={governor}")
    return None


def tuned_governor(host: Host, profile: str) -> Optional[tuple[str, str]]:
    """Return (governor, file) that a tuned profile sets, following `include=`; None if it sets none."""
    option = tuned_option(host, profile, "cpu", "governor")
    # `a|b`: the first that the kernel offers
    return None if option is None else (option[0].split("|")[0].strip(), option[1])


def tuned_option(host: Host, profile: str, section: str, key: str, depth: int = 0) -> Optional[tuple[str, str]]:
    """Return (value, file) of an option of a tuned profile, following `include=`; None if it sets none."""
    text, path = _read_profile(host, profile)
    sections = ini_sections(text)
    value = sections.get(section, {}).get(key, "")
    if value:
        return value, path
    for parent in reversed(sections.get("main", {}).get("include", "").replace(",", " ").split()):
        option = tuned_option(host, parent, section, key, depth + 1) if depth < 8 else None
        if option is not None:
            return option
    return None


def tuned_profiles(host: Host) -> Optional[list[str]]:
    """Return the active profiles, the last one wins; None if tuned is not started at boot."""
    if enabled_link(host, "tuned.service") is None:
        return None
    return (_read_optional(host, TUNED_ACTIVE) or "").split()


def _read_profile(host: Host, profile: str) -> tuple[str, str]:
    """Return (text, path) of a profile's tuned.conf."""
    if "/" in profile or profile.startswith("."):
        raise Undetermined(Message("invalid tuned profile name: {profile}", profile=profile), TUNED_ACTIVE)
    for folder in TUNED_PROFILES:
        path = posixpath.join(folder, profile, "tuned.conf")
        text = _read_optional(host, path)
        if text is not None:
            return text, path
    raise Undetermined(Message("tuned uses the profile {profile}, which does not exist", profile=profile), TUNED_ACTIVE)


def ini_sections(text: str) -> Mapping[str, Mapping[str, str]]:
    """Return the `[section]` and `key=value` lines of tuned.conf; anything else is skipped."""
    sections: dict[str, dict[str, str]] = {}
    name = ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            name = line[1:-1].strip()
        elif "=" in line and not line.startswith(("#", ";")):
            key, _, value = line.partition("=")
            sections.setdefault(name, {})[key.strip()] = value.strip()
    return sections
