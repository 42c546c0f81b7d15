"""What npu-smi says about a card's driver and firmware: the field Compatibility of `npu-smi info -t board`."""

from __future__ import annotations

from typing import Optional

from envtune.context import Context
from envtune.errors import HostError
from envtune.messages import Message
from envtune.model import Evidence, Reading
from envtune.records import expression

BOARD = ("npu-smi", "info", "-t", "board", "-i", "0")
_FIELD = expression(r"(?mi)^\s*Compatibility\s*:\s*(\S.*?)\s*$")
# enum dcmi_device_compat of the DCMI reference; UNKNOWN and NA say nothing.
_VALUES = {"ok": "match", "nok": "mismatch", "not ok": "mismatch"}


def compatibility(context: Context) -> Optional[Reading]:
    """Return what the first card reports about its driver and firmware; None if it reports nothing."""
    return context.cached(_read)


def _read(context: Context) -> Optional[Reading]:
    try:
        result = context.host.run(BOARD, 10.0)
    except HostError:
        return None  # no npu-smi, an older recording, or a driver that does not answer
    found = _FIELD.search(result.stdout)
    value = None if found is None else _VALUES.get(found[1].lower())
    if found is None or value is None:
        return None
    shown = Message("npu-smi says Compatibility: {value}", value=found[1])
    return Reading("npu-smi", value, Evidence(result.line, found[0].strip()), shown, Message("Compatibility: OK"))
