"""The columns that known releases write into each kind of table; other columns are reported, not used.

Tables of kernels are not included: their columns depend on the options of the recording (aic_metrics) and on the NPU.
"""

from __future__ import annotations

import re
from typing import Mapping

from envtune.profile.readers.tables import Header, plain_name

_SUMS = (
    r"device id|step|computing|communication ?\(?not overlapped\)?|overlapped|communication|free|stage|bubble|preparing"
    r"|communication ?\(?not overlapped and exclude receive\)?"
)
# Sources: those of layouts.py.
_KNOWN: Mapping[str, str] = {
    "steps": _SUMS,
    "cluster_steps": rf"{_SUMS}|type|(?:\w+ )?index",
    "iterations": (
        r"device id|iteration id|fp start|bp end|iteration end|iteration time|fp to bp time|iteration refresh"
        r"|data aug bound|model id|reduce .*"
    ),
    "graph_steps": (
        r"step num|start point|end point|total|fp point|bp point|iteration interval|fp and bp|tail"
        r"|(?:stream|reduce|allreduce|alltoall|reducescatter|allgather|send|receive|broadcast)\b.*"
    ),
    "stage_steps": (
        r"computation time|communication alone time|stage time|receive alone time"
        r"|collective communication alone time"
    ),
    "operators": r"model name|device id|op type|core type|count|(?:total|min|avg|max) time|ratio(?:\(%\))?",
    "apis": r"device id|level|api name|time|count|avg|min|max|variance",
    "dataset": (
        r"op id|op type|num workers|output queue (?:size|average size|length|usage rate)|sample interval|parent id"
        r"|children id"
    ),
}


def unknown_columns(kind: str, header: Header) -> list[str]:
    """Return the columns of a table of this kind that no known release writes, as the file spells them."""
    known = _KNOWN.get(kind)
    if known is None:
        return []
    return [name for name in header.names if name and re.fullmatch(known, plain_name(name)[0]) is None]
