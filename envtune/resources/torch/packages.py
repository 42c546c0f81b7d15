"""Packages of the job's Python that overwrite each other, belong to another torch, or are for another accelerator.

Sources: attrs and attr both install `attr` (bluesky/databroker#154, eistec/senml-python#3); triton and triton-ascend
both install `triton` (triton-lang/triton-ascend#306, vllm-project/vllm-ascend#7497 and #7790); Requires-Dist of wheels
(core metadata); CUDA packages by their indexes' names (nvidia-*-cu12, flash-attn, xformers, bitsandbytes).
"""

from __future__ import annotations

import re
from typing import Annotated, Iterable, Optional

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable, Undetermined
from envtune.messages import N_, Literal, Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.python.distributions import environment, requirements
from envtune.resources.torch.stack import release, version_fact

# What is built for CUDA only. flash-attn: huggingface/transformers#40262 (it cannot be installed for an NPU).
CUDA_ONLY = re.compile(
    r"nvidia-[a-z0-9-]+-cu\d+|nvidia-(?:cublas|cudnn|nccl|cuda-runtime)|flash-attn|xformers|cupy(?:-cuda\w+)?"
)
COMPANIONS = ("torchvision", "torchaudio")
# `torch==2.1.0`, `torch (==2.1.0)`; older ones name no single version.
_PIN = re.compile(r"torch\s*\(?\s*==\s*([0-9][0-9A-Za-z.]*)\s*\)?\s*(?:;.*)?")


@probe("torch.overwritten")
def overwritten(
    context: Context,
    *,
    wanted: Annotated[str, N_("Package that is to be kept.")],
    other: Annotated[str, N_("Package that installs a module of the same name.")],
) -> Iterable[Reading]:
    """How many directories have another package that overwrites the one to keep; not applicable without either."""
    found = environment(context).found
    rows, others = found.get(wanted, ()), found.get(other, ())
    if not rows and not others:
        reason = Message("neither {one} nor {other} is installed", one=wanted, other=other)
        raise NotApplicable(reason, "; ".join(environment(context).entries))
    shared = [row for row in others if not rows or row.entry in {one.entry for one in rows}]
    both = " + ".join(f"{row.name} {row.version}".strip() for row in (*rows[:1], *shared[:1]))
    evidence = Evidence((shared or rows or others)[0].entry, both)
    return [Reading(wanted, len(shared) if rows else 0, evidence, Literal(both), Message("{name} alone", name=wanted))]


@probe("torch.cuda_packages")
def cuda_packages(context: Context) -> Iterable[Reading]:
    """CUDA packages of the job's Python, which are of no use on an NPU; empty without any."""
    known = environment(context)
    found = sorted(name for name in known.found if CUDA_ONLY.fullmatch(name))
    shown: Text = Literal(", ".join(found[:8]) + (", ..." if len(found) > 8 else "")) if found else Message("none")
    return [
        Reading("packages", tuple(found), Evidence("; ".join(known.entries), ", ".join(found)), shown, Message("none"))
    ]


@probe("torch.companions")
def companions(context: Context) -> Iterable[Reading]:
    """Release of torch that torchvision and torchaudio require by their metadata: whether it is the installed one."""
    torch = version_fact(context, "torch")
    readings = []
    for name in COMPANIONS:
        reading = _companion(context, name, torch)
        if reading is not None:
            readings.append(reading)
    if not readings:
        raise NotApplicable(Message("no installed package names one torch version"), ", ".join(COMPANIONS))
    return readings


def _companion(context: Context, name: str, torch: str) -> Optional[Reading]:
    rows = environment(context).found.get(name, ())
    if not rows:
        return None
    try:
        lines = requirements(context, name)
    except (HostError, Undetermined):
        return None  # damaged metadata is what `python.damage` reads
    pins = [match[1] for match in map(_PIN.fullmatch, lines) if match is not None]
    if not pins:
        return None
    shown = Message(
        "{version} requires torch {pin}; installed is {torch}", version=rows[0].version, pin=pins[0], torch=torch
    )
    evidence = Evidence(rows[0].metadata, "\n".join(lines))
    return Reading(name, same_release(torch, pins[0]), evidence, shown, Message("torch {pin}", pin=pins[0]))


def same_release(torch: str, pin: str) -> bool:
    """Return whether an installed torch meets `==pin`: 2.1.0+cpu and 2.1.0.post3 of Ascend are built as 2.1.0."""
    return torch.partition("+")[0] == pin or release(torch) == release(pin)
