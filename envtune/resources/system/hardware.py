"""Server and CPU model: SMBIOS for the server, /proc/cpuinfo for the CPU."""

from __future__ import annotations

import re
from typing import Iterable, Mapping, Optional

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, host_error_text
from envtune.host import Host
from envtune.messages import Literal, Message
from envtune.model import Evidence, Reading

SERVER = "/sys/class/dmi/id/product_name"
CPUINFO = "/proc/cpuinfo"
# ARM gives numbers instead: implementer 0x48 is HiSilicon (util-linux, lscpu-arm.c), part 0xd01 the core TSV110 of the
# Kunpeng 920 (the kernel's arch/arm64/include/asm/cputype.h).
ARM_CORES: Mapping[tuple[int, int], str] = {(0x48, 0xD01): "Kunpeng-920"}


@probe("system.hardware_models", formerly="hardware.models")
def models(context: Context, *, aarch64: Mapping[str, str], x86_64: Mapping[str, str]) -> Iterable[Reading]:
    """`server` and `cpu`: `recommended` where the name holds the recommended one, else the name itself.

    Each argument maps both subjects to the recommended names. Source: porting guide 003:132-136.
    """
    wanted = aarch64 if context.facts.value("arch") == "aarch64" else x86_64
    yield _judged(context.host, "server", SERVER, wanted["server"])
    yield _judged(context.host, "cpu", CPUINFO, wanted["cpu"])


def _judged(host: Host, subject: str, source: str, wanted: str) -> Reading:
    try:
        text = host.read(source)
    except HostError as error:
        return Reading(subject, None, Evidence(source, str(error)), reason=host_error_text(error))
    name = text.strip() if source == SERVER else cpu_name(text)
    if not name:
        reason = Message("{source} does not name it", source=source)
        return Reading(subject, None, Evidence(source, text[:400]), reason=reason)
    value = "recommended" if is_model(name, wanted) else name
    return Reading(subject, value, Evidence(source, name), Literal(name), Literal(wanted))


def is_model(name: str, wanted: str) -> bool:
    """Whether every word and number of `wanted` is in `name`: `Atlas 800 (Model 9000)` is an `Atlas 800 9000`."""
    return set(_words(wanted)) <= set(_words(name))


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+|\d+", name.lower())


def cpu_name(cpuinfo: str) -> Optional[str]:
    """The model of the first CPU; None where neither a name nor numbers that we know are given."""
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, mark, value = line.partition(":")
        if mark:
            fields.setdefault(key.strip().lower(), value.strip())
    if fields.get("model name"):
        return fields["model name"]  # x86, and the ARM kernels of Kylin and UOS
    try:
        numbers = int(fields["cpu implementer"], 16), int(fields["cpu part"], 16)
    except (KeyError, ValueError):
        return None
    return ARM_CORES.get(numbers, f"ARM implementer {numbers[0]:#x} part {numbers[1]:#x}")
