"""The Python packages that CANN's operator compiler imports, and their versions.

Sources: CANN installation guide, "Runtime Dependencies" (8.0.RC2, 8.5.0, 9.0.0, 9.1.0) and "Dependency List" of the
older CANN in the ModelZoo documentation; vllm-project/vllm-ascend#2210 (CANN 8.2 with numpy 2: error 500001);
pytorch/pytorch#132179 (PyTorch 2.3.0 is the first one for NumPy 2).
"""

from __future__ import annotations

import re
from typing import Iterable, Mapping, Optional

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import NotApplicable
from envtune.messages import Literal, Message, Text, enumerated
from envtune.model import Evidence, Reading
from envtune.resources.python.distributions import environment, interpreter
from envtune.resources.torch.stack import release_numbers, version_fact

COMPILER = ("attrs", "cffi", "decorator", "numpy", "protobuf", "psutil", "pyyaml", "scipy", "sympy")
# Oldest versions; for CANN before 8 the older list.
MINIMUM: Mapping[str, str] = {"cffi": "1.12.3", "decorator": "4.4.0", "numpy": "1.19.2", "sympy": "1.5.1"}
MINIMUM_BEFORE_8: Mapping[str, str] = {**MINIMUM, "numpy": "1.14.3", "sympy": "1.4"}
NUMPY_2_SINCE_CANN, NUMPY_2_SINCE_TORCH, NUMPY_2_ONLY_PYTHON = (9,), (2, 3), (3, 13)


def cann_numbers(context: Context) -> tuple[int, ...]:
    """Return (8, 2) of CANN 8.2.RC1; raises NotApplicable without CANN, Undetermined if its version is unknown."""
    version = version_fact(context, "cann")
    numbers = re.match(r"(\d{1,3})\.(\d{1,3})", version)
    if numbers is None:
        raise NotApplicable(Message("no CANN found"), context.facts["cann"].source)
    return int(numbers[1]), int(numbers[2])


def minimum(context: Context) -> Mapping[str, str]:
    """Return the oldest version of each package that the active CANN needs."""
    return MINIMUM if cann_numbers(context) >= (8,) else MINIMUM_BEFORE_8


def absent(context: Context) -> tuple[str, ...]:
    """Return those of COMPILER that the job's Python does not have; the host's error if it cannot be listed."""
    known = environment(context)
    missing = tuple(name for name in COMPILER if name not in known.found)
    for error in known.closed.values() if missing else ():
        raise error
    return missing


@probe("torch.requirements")
def requirements(context: Context) -> Iterable[Reading]:
    """Python packages that CANN's operator compiler imports and that are not installed; empty if all are installed."""
    cann_numbers(context)
    python = interpreter(context)
    missing = absent(context)
    shown = Message("missing: {names}", names=enumerated(missing)) if missing else Message("all installed")
    sites = "; ".join(environment(context).entries)
    return [Reading(python.path, missing, Evidence(sites), shown, Message("all installed"))]


@probe("torch.requirement_versions")
def versions(context: Context) -> Iterable[Reading]:
    """Whether each Python package has at least the version that CANN requires."""
    known = environment(context)
    wanted = minimum(context)
    if not any(name in known.found for name in wanted):
        raise NotApplicable(
            Message("none of {names} is installed", names=enumerated(tuple(wanted))), known.python.prefix
        )
    for name, oldest in wanted.items():
        rows = known.found.get(name, ())
        if not rows or not rows[0].version:
            continue
        version = rows[0].version
        value = release_numbers(version) >= release_numbers(oldest)
        expected = Message("{version} or newer", version=oldest)
        yield Reading(name, value, Evidence(rows[0].metadata, f"{name} {version}"), Literal(version), expected)


@probe("torch.numpy")
def numpy(context: Context) -> Iterable[Reading]:
    """Whether the installed torch and CANN support the version of numpy."""
    rows = environment(context).found.get("numpy", ())
    if not rows or not rows[0].version:
        raise NotApplicable(Message("numpy is not installed"), "; ".join(environment(context).entries))
    version = rows[0].version
    reason = needs_numpy_1(context) if release_numbers(version) >= (2,) else None
    shown: Text = Literal(version)
    if reason is not None:
        shown = Message("{version}, but {reason}", version=version, reason=reason)
    evidence = Evidence(rows[0].metadata, f"numpy {version}")
    return [Reading("numpy", reason is None, evidence, shown, Message("a version before 2") if reason else None)]


def needs_numpy_1(context: Context) -> Optional[Text]:
    """Return what needs a numpy before 2; None if nothing does."""
    torch = version_fact(context, "torch")
    if torch != "none" and release_numbers(torch) < NUMPY_2_SINCE_TORCH:
        return Message("torch {version} is built for numpy 1", version=torch)
    cann = context.facts.value("cann") or "none"
    python = tuple(int(part) for part in interpreter(context).version.split(".")[:2] if part.isdecimal())
    if cann != "none" and cann_numbers(context) < NUMPY_2_SINCE_CANN and python < NUMPY_2_ONLY_PYTHON:
        return Message("CANN {version} needs numpy 1", version=cann)
    return None
