"""The utilization of the NPUs while a job is observed, from npu-smi."""

from __future__ import annotations

import os
from typing import Callable, Optional

from envtune.errors import HostError
from envtune.host import LocalHost


def npu_reader() -> Optional[Callable[[], dict[str, float]]]:
    """Return the function that reads the utilization of each NPU in percent; None on a machine without NPUs."""
    if not os.path.exists("/dev/davinci_manager"):
        return None
    host = LocalHost()

    def use() -> dict[str, float]:
        from envtune.resources.npu.smi import parse_info

        try:
            table = parse_info(host.run(("npu-smi", "info")).stdout)
        except HostError:
            return {}
        known = [device for device in table.devices if device.aicore is not None]
        return {f"npu{device.npu}.{device.chip}": device.aicore or 0.0 for device in known}

    return use
