"""The tools of CANN, of the driver and of hdf5, looked up where each release installs them, without a search."""

from __future__ import annotations

from typing import Annotated, Iterable, Sequence

from envtune.collector.sources.cann import FIXED_TOOLS, OPERATOR_PLACES, TOOL_PLACES
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Denied, HostError, Missing, Undetermined, host_error_text
from envtune.host import exists
from envtune.messages import N_, Literal, Message
from envtune.model import Evidence, Reading
from envtune.resources.cann.installs import active_install

_KNOWN = (*TOOL_PLACES, *FIXED_TOOLS)


@probe("cann.tools")
def tools(
    context: Context,
    *,
    names: Annotated[Sequence[str], N_("Tools: `aoe`, `atc`, `msprof`, `msaccucmp`, `npu-smi` and others.")],
) -> Iterable[Reading]:
    """Path of each CANN or driver tool; `missing` if not found.

    Source: porting guide 003:808, 1563-1576, 1707-1718, 1769-1787, 2688-2694; set_env.sh of CANN for its directories.
    """
    return [_tool(context, name) for name in names]


def _tool(context: Context, name: str) -> Reading:
    if name not in _KNOWN:
        reason = Message("{name} is none of {known}", name=name, known=", ".join(_KNOWN))
        raise Undetermined(reason, name)
    host = context.host
    try:
        patterns = FIXED_TOOLS.get(name) or active_install(context).places(*TOOL_PLACES[name])
        found = next((path for pattern in patterns for path in host.glob(pattern)), None)
        if found is None and name in FIXED_TOOLS:
            any(exists(host, pattern) for pattern in patterns)  # raises if it cannot be examined
    except Missing:
        return Reading(name, "missing", Evidence("/usr/local/Ascend"), Message("no CANN is installed"))
    except Denied as error:
        return Reading(name, None, Evidence(error.path), reason=host_error_text(error), needs_privilege=True)
    if found is None:
        places = ", ".join(patterns[:4])
        return Reading(name, "missing", Evidence(places), Message("missing"), Message("found"))
    return Reading(name, found, Evidence(found), Literal(found), Message("found"))


@probe("cann.operator_files")
def operator_files(
    context: Context, *, names: Annotated[Sequence[str], N_("File names of operators, such as `five_2_four.py`.")]
) -> Iterable[Reading]:
    """Whether the active CANN includes each of the given operator files.

    Source: porting guide 001:75.
    """
    install = active_install(context)
    folders = [folder for place in OPERATOR_PLACES for folder in context.host.glob(f"{install.real}/{place}")]
    if not folders:
        raise Undetermined(Message("{path} has no directory of operators", path=install.real), install.real)
    for name in names:
        found = [path for folder in folders for path in _below(context, folder, name)]
        shown = Literal(found[0]) if found else Message("not in {folder}", folder=folders[0])
        yield Reading(name, bool(found), Evidence(folders[0], name), shown, Message("present"))


def _below(context: Context, folder: str, name: str) -> Iterable[str]:
    try:
        yield from (path for depth in ("", "dynamic/") for path in context.host.glob(f"{folder}/{depth}{name}"))
    except HostError as error:
        raise Undetermined(host_error_text(error), error.path) from None
