"""The parts of the host's driver mounted into a container: its version file, the DCMI library, npu-smi.

Source: Ascend Docker Runtime, "Default Content Mounted by Ascend Docker Runtime" (tables of the training servers).
"""

from __future__ import annotations

import re
from typing import Annotated, Iterable

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, NotRecorded, TimedOut
from envtune.host import exists
from envtune.messages import N_, Literal, Message, enumerated
from envtune.model import Evidence, Reading
from envtune.resources.containers.devices import require_devices
from envtune.resources.npu.devices import smi_output

# What the dynamic loader prints, ld.so(8): `npu-smi: error while loading shared libraries: libdcmi.so: cannot open ...`
UNLOADABLE = re.compile(r"error while loading shared libraries: ([^\s:]+)")


@probe("containers.mounted")
def mounted(
    context: Context, *, paths: Annotated[Iterable[str], N_("Absolute paths; one that exists is enough.")]
) -> Iterable[Reading]:
    """Whether part of the host's driver is available in the container; not applicable without an NPU."""
    require_devices(context)
    names = tuple(paths)
    found = next((path for path in names if exists(context.host, path)), None)
    shown = Message("missing") if found is None else Literal(found)
    return [Reading(found or names[0], found is not None, Evidence(enumerated(names)), shown, enumerated(names))]


@probe("containers.npu_smi")
def npu_smi(context: Context) -> Iterable[Reading]:
    """Shared library that npu-smi cannot load in the container; empty if it starts."""
    require_devices(context)
    try:
        output = smi_output(context)
    except TimedOut:
        raise NotApplicable(Message("npu-smi did not respond"), "npu-smi info") from None
    except (Missing, NotRecorded) as error:
        raise NotApplicable(Message("npu-smi not found"), error.path) from None
    except HostError as error:
        raise error
    lacking = UNLOADABLE.search(output.text)
    shown = Message("starts") if lacking is None else Message("{library} not found", library=lacking[1])
    value = "" if lacking is None else lacking[1]
    return [Reading("npu-smi", value, Evidence(output.source, output.text), shown, Message("starts"))]
