"""libhccl.so: whether the loader finds it for the job, and whether it is built for this machine."""

from __future__ import annotations

from posixpath import dirname
from typing import Iterable, Optional

from envtune.collector.sources.cann import CANN_BASE, HCCL_LIBRARY, HCCL_PLACES
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable, Undetermined, host_error_text
from envtune.host import Host
from envtune.messages import Message, Text
from envtune.model import Reading
from envtune.resources.cann.environment import environment_script
from envtune.resources.cann.installs import active_install
from envtune.resources.cann.loader import EXPECTED, NotFound, architecture_reading, find_library, first_match
from envtune.resources.cann.tree import Install


@probe("cann.hccl_library", formerly="hccl_library.found")
def library_path(context: Context) -> Iterable[Reading]:
    """Whether the loader finds a libhccl.so built for the architecture of this host.

    It is searched even if CANN itself cannot be identified. Source: porting guide 003:2992-3002.
    """
    if context.facts.value("cann") == "none":
        raise NotApplicable(Message("CANN is not installed"), CANN_BASE)
    found = find_library(context, HCCL_LIBRARY)
    if isinstance(found, str):
        return [architecture_reading(context, found, HCCL_LIBRARY)]
    if isinstance(found, Reading):
        return [found]
    return [_missing(context, found)]


def _missing(context: Context, found: NotFound) -> Reading:
    shown, script = _whereabouts(context)
    fields = {} if script is None else {"script": script}
    return Reading(HCCL_LIBRARY, False, found.evidence, shown, EXPECTED, fields=fields)


def _whereabouts(context: Context) -> tuple[Text, Optional[str]]:
    """Return the text about the library in the active install, and the script that makes the loader find it there."""
    try:
        install = active_install(context)
    except Undetermined as verdict:
        return Message("not found; {reason}", reason=verdict.reason), None
    except HostError as error:
        return Message("not found; {reason}", reason=host_error_text(error)), None
    shipped = shipped_in(context.host, install)
    if shipped is None:
        return Message("not found, and not in {tree}", tree=install.real), None
    where = Message("not found; it is in {directory}", directory=dirname(shipped))
    return where, environment_script(context.host, install)


def shipped_in(host: Host, install: Install) -> Optional[str]:
    """Return the location of the library in the active install, None if it has none."""
    return first_match(host, install.places(*(f"{place}/{HCCL_LIBRARY}" for place in HCCL_PLACES)))
