"""The hdf5 that operator dumps are written with."""

from __future__ import annotations

import re
from typing import Iterable

from envtune.collector.sources.build import HDF5_HOME, HDF5_SETTINGS
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Missing, NotApplicable, Undetermined
from envtune.host import is_dir
from envtune.messages import Literal, Message
from envtune.model import Evidence, Reading

_VERSION = re.compile(r"(?m)^\s*HDF5 Version:\s*(\S+)")


@probe("build.hdf5")
def hdf5(context: Context) -> Iterable[Reading]:
    """Version of hdf5 in /usr/local/hdf5; `incomplete` without libhdf5.settings, not applicable without the directory.

    Source: porting guide 003:1638-1640, 2862-2885.
    """
    if not is_dir(context.host, HDF5_HOME):
        raise NotApplicable(Message("{path} does not exist", path=HDF5_HOME), HDF5_HOME)
    try:
        text = context.host.read(HDF5_SETTINGS)
    except Missing:
        shown = Message("{path} does not exist", path=HDF5_SETTINGS)
        return [Reading("hdf5", "incomplete", Evidence(HDF5_SETTINGS), shown)]
    found = _VERSION.search(text)
    if found is None:
        raise Undetermined(Message("{path} names no version", path=HDF5_SETTINGS), HDF5_SETTINGS, text[:400])
    return [Reading("hdf5", found[1], Evidence(HDF5_SETTINGS, found[0].strip()), Literal(found[1]))]
