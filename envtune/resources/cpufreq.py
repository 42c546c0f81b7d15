"""CPU frequency policies: /sys/devices/system/cpu/cpufreq, every policy and not only cpu0's."""

from __future__ import annotations

from typing import Iterable

from envtune.errors import HostError, NotApplicable
from envtune.facts import host_error_text
from envtune.host import Host
from envtune.model import Evidence, Reading, Text
from envtune.resources import Scene, probe

ROOT = "/sys/devices/system/cpu"


@probe("cpufreq.governors")
def governors(scene: Scene) -> Iterable[Reading]:
    """The governor of every policy. Source: porting guide 003:1355, which reads cpu0 only."""
    return [_reading(scene.host, path) for path in policies(scene.host, "scaling_governor")]


def policies(host: Host, name: str) -> tuple[str, ...]:
    """The file `name` of every policy; kernels without policy directories have one per CPU."""
    found = host.glob(f"{ROOT}/cpufreq/policy[0-9]*/{name}") or host.glob(f"{ROOT}/cpu[0-9]*/cpufreq/{name}")
    if not found:
        raise NotApplicable(
            Text(
                "this kernel offers no CPU frequency control (virtual machine, container, or disabled in the BIOS)",
                "内核未提供 CPU 调频接口（虚拟机、容器或 BIOS 中已禁用）",
            ),
            f"{ROOT}/cpufreq",
        )
    return tuple(sorted(found, key=_number))


def _number(path: str) -> int:
    digits = "".join(c for c in path[len(ROOT) :] if c.isdigit())
    return int(digits or 0)


def _reading(host: Host, path: str) -> Reading:
    subject = f"cpu{_number(path)}"
    try:
        text = host.read(path)
    except HostError as error:
        return Reading(subject, None, Evidence(path, str(error)), reason=host_error_text(error))
    return Reading(subject, text.strip(), Evidence(path, text))
