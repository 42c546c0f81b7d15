"""The Ascend Transformer Boost library (ATB) of the NNAL package, and the CANN it belongs to.

Sources: CANN's ATB guide, "Installation and Deployment" (ATB is part of the NNAL package of CANN); version.info of ATB
in public issues (`Ascend-cann-atb : 8.0.0`); ATB_HOME_PATH of its set_env.sh (`nnal/atb/latest/atb/cxx_abi_0`).
"""

from __future__ import annotations

import posixpath
import re
from typing import Iterable, Optional

from envtune.collector.sources.cann import ATB_VERSION, key_values
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Missing, NotApplicable, Undetermined
from envtune.messages import Literal, Message
from envtune.model import Evidence, Reading
from envtune.resources.torch.requirements import cann_numbers

HOME = "ATB_HOME_PATH"


@probe("torch.atb")
def atb(context: Context) -> Iterable[Reading]:
    """Whether the version of ATB (major.minor) is that of the active CANN; not applicable without ATB."""
    cann = cann_numbers(context)
    path, text = _version_file(context)
    version = atb_version(text)
    if version is None:
        raise Undetermined(Message("{path} shows no version", path=path), path, text)
    evidence = Evidence(path, text)
    expected = Message("{major}.{minor}, as CANN", major=cann[0], minor=cann[1])
    return [Reading("ATB", _numbers(version) == cann, evidence, Literal(version), expected)]


def _version_file(context: Context) -> tuple[str, str]:
    home = (context.target.environment.variables or {}).get(HOME, "")
    named = posixpath.normpath(f"{home}/../../version.info") if home.startswith("/") else ""
    for path in filter(None, (named, ATB_VERSION)):
        try:
            return path, context.host.read(path)
        except Missing:
            continue
    raise NotApplicable(Message("ATB is not installed"), ATB_VERSION)


def atb_version(text: str) -> Optional[str]:
    """Return the version of `Ascend-cann-atb : 8.0.0`; None if there is none."""
    version = key_values(text).get("ascend-cann-atb", "")
    return version if re.match(r"\d{1,3}\.\d{1,3}", version) else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.match(r"(\d+)\.(\d+)", version).groups())  # type: ignore[union-attr]
