"""Memory settings that are judged together with another value.

Sources: kernel, Documentation/admin-guide/sysctl/vm.rst; proc_meminfo(5).
"""

from __future__ import annotations

import re
from typing import Iterable, Optional

from envtune import expect
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import NotApplicable, Undetermined
from envtune.host import Host
from envtune.messages import Message, Text
from envtune.model import Evidence, Expectation, Reading
from envtune.ranges import whole_number
from envtune.resources.files.kernel import kernel_text
from envtune.resources.files.value import reading

MEMINFO = "/proc/meminfo"
VM = "/proc/sys/vm"


@probe("system.swappiness")
def swappiness(context: Context) -> Iterable[Reading]:
    """Value of `vm.swappiness`; not applicable without swap."""
    host = context.host
    found = re.search(r"(?m)^SwapTotal:\s+(\d+) kB", host.read(MEMINFO))
    if found is None or int(found[1]) == 0:  # a kernel without swap, or a recording by hand, may lack the line
        raise NotApplicable(Message("this host has no swap"), MEMINFO)
    path = f"{VM}/swappiness"
    return [reading("vm.swappiness", kernel_text(host, path).strip(), path)]


@probe("system.dirty_background", unit="%")
def dirty_background(context: Context) -> Iterable[Reading]:
    """Threshold of background writing, in percent of the threshold at which writers have to wait."""
    host = context.host
    unit, background, limit = _dirty(host, "bytes")
    if not background and not limit:
        unit, background, limit = _dirty(host, "ratio")
    if not background or not limit:
        raise Undetermined(Message("one limit is in bytes, the other in percent of the free memory"), f"{VM}/dirty_*")
    shown = Message(
        "vm.dirty_background_{unit} = {low}, vm.dirty_{unit} = {high}", unit=unit, low=background, high=limit
    )
    evidence = Evidence(f"{VM}/dirty_{unit}", f"{background} {limit}")
    return [Reading(f"vm.dirty_background_{unit}", background * 100 // limit, evidence, shown, _below)]


def _dirty(host: Host, unit: str) -> tuple[str, int, int]:
    """Return the unit, the background limit and the limit; 0 means not set."""
    values = []
    for name in (f"dirty_background_{unit}", f"dirty_{unit}"):
        path = f"{VM}/{name}"
        value = whole_number(kernel_text(host, path))
        if value is None:
            raise Undetermined(Message("{path} is not a number", path=path), path)
        values.append(value)
    return unit, values[0], values[1]


def _below(expectation: Expectation) -> Optional[Text]:
    if expect.only(expectation, "lt") == 100:
        return Message("background limit below the limit")
    return expect.describe(expectation, expect.in_unit("%"))
