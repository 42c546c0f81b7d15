"""LD_PRELOAD, and the OpenMP runtimes bundled in wheels.

Sources: ld.so(8) (`object '...' from LD_PRELOAD cannot be preloaded: ignored`); opencv/opencv#14884,
NVIDIA/DALI#5519, hiyouga/LlamaFactory#8768 (an Ascend host): `libgomp...: cannot allocate memory in static TLS block`.
"""

from __future__ import annotations

import re
from typing import Iterable

from envtune.collector.sources.python import BUNDLED_OPENMP
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, host_error_text
from envtune.messages import Literal, Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.npu.devices import runs_elsewhere
from envtune.resources.python.distributions import environment

PRELOAD = "LD_PRELOAD"


@probe("torch.preload")
def preload(context: Context) -> Iterable[Reading]:
    """Whether each file that LD_PRELOAD lists by path exists."""
    place = context.target.environment.place(PRELOAD)
    paths = [path for path in _preloaded(context) if path.startswith("/") and "$" not in path]
    if not paths or runs_elsewhere(context):
        raise NotApplicable(Message("{name} names no file of this host", name=PRELOAD), place)
    for path in dict.fromkeys(paths):
        evidence = Evidence(place, f"{PRELOAD}: {path}")
        try:
            kind = context.host.stat(path).kind
        except Missing:
            yield Reading(f"{PRELOAD} {path}", False, evidence, Message("missing"), Message("a library"))
            continue
        except HostError as error:
            yield Reading(f"{PRELOAD} {path}", None, evidence, reason=host_error_text(error))
            continue
        yield Reading(f"{PRELOAD} {path}", kind == "file", evidence, Message("exists"), Message("a library"))


@probe("torch.bundled_openmp")
def bundled_openmp(context: Context) -> Iterable[Reading]:
    """OpenMP libraries bundled with wheels other than torch that are not preloaded; empty if all are."""
    known = environment(context)
    found = [path for entry in known.entries for path in context.host.glob(f"{entry}/{BUNDLED_OPENMP}")]
    others = [path for path in found if "/torch.libs/" not in path and "/torch/" not in path]
    if not others:
        raise NotApplicable(Message("no wheel brings an OpenMP runtime"), "; ".join(known.entries))
    preloaded = _preloaded(context)
    left = [path for path in others if path not in preloaded]
    if any(path.rpartition("/")[2].startswith("libgomp") for path in preloaded):
        left = []
    shown: Text = Message("preloaded")
    if left:
        shown = Literal(", ".join(path.split("/site-packages/")[-1] for path in left[:4]))
    fields = {"library": left[0]} if left else {}
    return [
        Reading(
            "libgomp", tuple(left), Evidence(others[0], "\n".join(others)), shown, Message("preloaded"), fields=fields
        )
    ]


def _preloaded(context: Context) -> tuple[str, ...]:
    """Return the libraries in LD_PRELOAD, separated by blanks and colons, ld.so(8)."""
    return tuple(filter(None, re.split(r"[\s:]+", context.target.variables().get(PRELOAD, ""))))
