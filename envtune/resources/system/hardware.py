"""Server and CPU model, from SMBIOS and /proc/cpuinfo; main memory, from /proc/meminfo."""

from __future__ import annotations

import re
from typing import Annotated, Iterable, Mapping, Optional

from envtune import expect
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Undetermined, host_error_text
from envtune.host import Host
from envtune.messages import N_, Literal, Message, Text
from envtune.model import Evidence, Expectation, Reading
from envtune.ranges import whole_number

SERVER = "/sys/class/dmi/id/product_name"
CPUINFO = "/proc/cpuinfo"
MEMINFO = "/proc/meminfo"
# ARM gives numbers instead: implementer 0x48 is HiSilicon (util-linux, lscpu-arm.c), part 0xd01 the core TSV110 of the
# Kunpeng 920 (the kernel's arch/arm64/include/asm/cputype.h).
ARM_CORES: Mapping[tuple[int, int], str] = {(0x48, 0xD01): "Kunpeng-920"}


@probe("system.hardware_models", formerly="hardware.models")
def models(
    context: Context,
    *,
    aarch64: Annotated[Mapping[str, str], N_("Recommended `server` and `cpu` on aarch64.")],
    x86_64: Annotated[Mapping[str, str], N_("Recommended `server` and `cpu` on x86_64.")],
) -> Iterable[Reading]:
    """Model of `server` and `cpu`: `recommended` if it is a recommended one, otherwise its name.

    Each argument maps both subjects to the recommended names. Source: porting guide 003:132-136.
    """
    recommended = aarch64 if context.facts.value("arch") == "aarch64" else x86_64
    yield _compared(context.host, "server", SERVER, recommended["server"])
    yield _compared(context.host, "cpu", CPUINFO, recommended["cpu"])


def _compared(host: Host, subject: str, source: str, recommended: str) -> Reading:
    try:
        text = host.read(source)
    except HostError as error:
        return Reading(subject, None, Evidence(source, str(error)), reason=host_error_text(error))
    name = text.strip() if source == SERVER else cpu_name(text)
    if not name:
        reason = Message("{source} does not name it", source=source)
        return Reading(subject, None, Evidence(source, text[:400]), reason=reason)
    value = "recommended" if is_model(name, recommended) else name
    return Reading(subject, value, Evidence(source, name), Literal(name), Literal(recommended))


def is_model(name: str, model: str) -> bool:
    """Return whether every word and number of `model` is in `name`: `Atlas 800 (Model 9000)` is an `Atlas 800 9000`."""
    return set(_name_parts(model)) <= set(_name_parts(name))


def _name_parts(name: str) -> list[str]:
    return re.findall(r"[a-z]+|\d+", name.lower())


def cpu_name(cpuinfo: str) -> Optional[str]:
    """Return the model of the first CPU; None if neither a name nor known numbers are given."""
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


@probe("system.memory", formerly="memory.total", former_arguments=("recommended",), unit="GB")
def total(context: Context) -> Iterable[Reading]:
    """Memory of this host in GB (10^9 bytes).

    Source: porting guide 003:134, 003:136.
    """
    text = context.host.read(MEMINFO)
    size = total_bytes(text)
    if size is None:
        raise Undetermined(Message("{path} has no MemTotal", path=MEMINFO), MEMINFO, text)
    amount = round(size / 1e9, 1)
    line = next(line for line in text.splitlines() if line.startswith("MemTotal"))
    return [Reading("memory", amount, Evidence(MEMINFO, line), Message("{amount} GB", amount=amount), _gigabytes)]


def _gigabytes(expectation: Expectation) -> Text:
    least = expect.only(expectation, "ge")
    if least is None:
        return expect.describe(expectation, expect.in_unit("GB"))
    return Message("{amount} GB or more", amount=least)


def total_bytes(text: str) -> Optional[int]:
    """Return MemTotal of /proc/meminfo (`MemTotal:  792723456 kB`) in bytes; None if missing."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["MemTotal:"] and len(words) == 3 and words[2] == "kB":
            size = whole_number(words[1])
            return None if size is None else size * 1024
    return None
