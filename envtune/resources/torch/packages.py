"""Packages of the job's Python that overwrite each other, belong to another torch, or are for another accelerator.

Sources: attrs and attr both install `attr` (bluesky/databroker#154, eistec/senml-python#3); triton and triton-ascend
both install `triton` (triton-lang/triton-ascend#306, vllm-project/vllm-ascend#7497 and #7790), and from 3.2.1 on
triton-ascend requires triton and is installed over it (its quick start); Requires-Dist of wheels (core metadata;
requirements.txt of vllm-ascend names one torch-npu and one triton-ascend); CUDA packages by their indexes' names
(nvidia-*-cu12, flash-attn, xformers, bitsandbytes).
"""

from __future__ import annotations

import re
from typing import Annotated, Iterable, Optional

from envtune.collector.sources.python import TRITON_LIBRARY
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined
from envtune.messages import N_, Literal, Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.python.distributions import Distribution, environment, every, requirements
from envtune.resources.torch.stack import release, version_fact

# What is built for CUDA only. flash-attn: huggingface/transformers#40262 (it cannot be installed for an NPU).
CUDA_ONLY = re.compile(
    r"nvidia-[a-z0-9-]+-cu\d+|nvidia-(?:cublas|cudnn|nccl|cuda-runtime)|flash-attn|xformers|cupy(?:-cuda\w+)?"
)
COMPANIONS = ("torchvision", "torchaudio")
EXTENSIONS = ("vllm-ascend",)  # packages with their own operators that require one torch_npu
LIBRARIES = {"triton-ascend": TRITON_LIBRARY}  # a file that both packages install
# `torch==2.1.0`, `torch (==2.1.0)`; older ones name no single version.
_EXACT = re.compile(r"(?i)(torch[-_]npu|triton[-_]ascend)\s*\(?\s*==\s*([0-9][^\s;,)*]*)\s*\)?")
_PIN = re.compile(r"torch\s*\(?\s*==\s*([0-9][0-9A-Za-z.]*)\s*\)?\s*(?:;.*)?")


@probe("torch.overwritten")
def overwritten(
    context: Context,
    *,
    wanted: Annotated[str, N_("Package to keep.")],
    other: Annotated[str, N_("Package that installs a module of the same name.")],
) -> Iterable[Reading]:
    """Number of directories in which another package overwrites this one; not applicable if neither is installed."""
    found = environment(context).found
    rows, others = found.get(wanted, ()), found.get(other, ())
    if not rows and not others:
        reason = Message("neither {one} nor {other} is installed", one=wanted, other=other)
        raise NotApplicable(reason, "; ".join(environment(context).entries))
    shared = [row for row in others if not rows or row.entry in {one.entry for one in rows}]
    if shared and wanted in LIBRARIES and _requires(context, wanted, other):
        return [_written_last(context, rows[0], shared[0])]
    both = " + ".join(f"{row.name} {row.version}".strip() for row in (*rows[:1], *shared[:1]))
    evidence = Evidence((shared or rows or others)[0].entry, both)
    return [Reading(wanted, len(shared) if rows else 0, evidence, Literal(both), Message("{name} alone", name=wanted))]


def _requires(context: Context, name: str, other: str) -> bool:
    return any(re.match(rf"{re.escape(other)}(?![\w.-])", line) for line in requirements(context, name))


def _written_last(context: Context, row: Distribution, other: Distribution) -> Reading:
    """Determine, from the size of a file in both, whether the package to be kept was installed last.

    Source: packaging.python.org, "Recording installed projects": a row of RECORD is a path, a digest and a size.
    """
    library = f"{row.entry}/{LIBRARIES[row.name]}"
    found = re.search(rf"(?m)^{re.escape(LIBRARIES[row.name])},[^,]*,(\d{{1,15}})\s*$", _record(context, row))
    if found is None:
        reason = Message("{metadata} does not show the size of {path}", metadata=row.metadata, path=library)
        raise Undetermined(reason, row.metadata)
    size = context.host.stat(library).size
    both = f"{row.name} {row.version} + {other.name} {other.version}"
    evidence = Evidence(library, f"{size} bytes, {row.name}: {found[1]}")
    shown = Message("{both}: {path} is of {name}", both=both, path=library, name=row.name)
    if size != int(found[1]):
        shown = Message("{both}: {path} is not of {name}", both=both, path=library, name=row.name)
    expected = Message("{name} installed last", name=row.name)
    return Reading(row.name, int(size != int(found[1])), evidence, shown, expected)


def _record(context: Context, row: Distribution) -> str:
    try:
        return context.host.read(f"{row.metadata}/RECORD")
    except Missing:
        return ""


@probe("torch.cuda_packages")
def cuda_packages(context: Context) -> Iterable[Reading]:
    """Packages in the job's Python that are for CUDA only; empty if none is installed."""
    known = environment(context)
    found = sorted(name for name in known.found if CUDA_ONLY.fullmatch(name))
    shown: Text = Literal(", ".join(found[:8]) + (", ..." if len(found) > 8 else "")) if found else Message("none")
    return [
        Reading("packages", tuple(found), Evidence("; ".join(known.entries), ", ".join(found)), shown, Message("none"))
    ]


@probe("torch.companions")
def companions(context: Context) -> Iterable[Reading]:
    """Whether the installed torch is the version that torchvision and torchaudio require."""
    torch = version_fact(context, "torch")
    readings = []
    for name in COMPANIONS:
        reading = _companion(context, name, torch)
        if reading is not None:
            readings.append(reading)
    if not readings:
        raise NotApplicable(Message("no installed package names one torch version"), ", ".join(COMPANIONS))
    return readings


@probe("torch.extensions")
def extensions(context: Context) -> Iterable[Reading]:
    """Whether the installed torch_npu and triton-ascend are the versions that vllm-ascend requires."""
    known = environment(context).found
    present = [name for name in EXTENSIONS if name in known]
    readings = [reading for name in present for reading in _extension(context, name)]
    if not readings:
        raise NotApplicable(Message("no installed package names one torch_npu version"), ", ".join(EXTENSIONS))
    return readings


def _extension(context: Context, name: str) -> Iterable[Reading]:
    row = every(context, name)[0]
    lines = requirements(context, name)
    for wanted, pin in ((match[1], match[2]) for match in map(_EXACT.fullmatch, lines) if match is not None):
        wanted = wanted.replace("_", "-").lower()
        rows = every(context, wanted)
        version = rows[0].version if rows else ""
        shown = Message(
            "{version} requires {name} {pin}; installed is {installed}",
            version=f"{row.name} {row.version}".strip(),
            name=wanted,
            pin=pin,
            installed=version or Message("none"),
        )
        evidence = Evidence(row.metadata, "\n".join(lines))
        same = version.partition("+")[0] == pin.partition("+")[0]
        yield Reading(f"{name}, {wanted}", same, evidence, shown, Literal(f"{wanted} {pin}"))


def _companion(context: Context, name: str, torch: str) -> Optional[Reading]:
    pin = required_torch(context, name)
    if pin is None:
        return None
    row = environment(context).found[name][0]
    shown = Message("{version} requires torch {pin}; installed is {torch}", version=row.version, pin=pin, torch=torch)
    evidence = Evidence(row.metadata, "\n".join(requirements(context, name)))
    return Reading(name, same_release(torch, pin), evidence, shown, Message("torch {pin}", pin=pin))


def required_torch(context: Context, name: str) -> Optional[str]:
    """Return the single torch version that an installed package requires in its metadata; None if it names none."""
    if not environment(context).found.get(name):
        return None
    try:
        lines = requirements(context, name)
    except (HostError, Undetermined):
        return None  # `python.damage` reports damaged metadata
    return next((match[1] for match in map(_PIN.fullmatch, lines) if match is not None), None)


def same_release(torch: str, pin: str) -> bool:
    """Return whether an installed torch meets `==pin`: 2.1.0+cpu and 2.1.0.post3 of Ascend are built as 2.1.0."""
    return torch.partition("+")[0] == pin or release(torch) == release(pin)
