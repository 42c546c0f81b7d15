"""Variables of the job whose name is one letter away from a documented one: nothing reads them.

A name that is read or documented somewhere never counts as misspelled, nor does the name of another library's variable
(NCCL_SOCKET_IFNAME) or one of a series (MASTER_PORT2, HCCL_IF_IPS).
"""

from __future__ import annotations

import re
from typing import Iterable, Optional

from envtune.context import Context
from envtune.context.registry import probe
from envtune.messages import Literal, Message, plural
from envtune.model import Evidence, Reading
from envtune.resources.environment.reference import documented, table

SHORTEST = 8  # characters; shorter names are one letter away from too many words
_LIBRARY = re.compile(r"(?:^|_)([A-Z]CCL|[A-Z]PU|CUDA|ROCM)(?=_|$)")  # NCCL and HCCL, GPU and NPU

_NO_DIGIT = re.compile(r"\D")


@probe("environment.misspelt_names")
def misspelt_names(context: Context) -> Iterable[Reading]:
    """Documented name for each variable of the job whose name looks misspelled; empty if none does."""
    environment = context.target.environment
    context.target.variables()  # raises Undetermined if the job's are unknown
    names = sorted({*(environment.variables or {}), *environment.unknown})
    meant = {name: right for name in names for right in [intended(name)] if right is not None}
    for name, right in meant.items():
        wanted = Literal(right)
        shown = Message("{name}, which nothing reads", name=name)
        yield Reading(name, (right,), Evidence(environment.place(name), name), shown, wanted)
    if environment.unknown_by_default is not None:
        yield Reading("other variables", None, Evidence(environment.description), reason=environment.unknown_by_default)
    elif not meant:
        shown = plural("{count} name, none misspelled", "{count} names, none misspelled", len(names))
        yield Reading("", (), Evidence(environment.description), shown, Message("documented names, spelled correctly"))


def intended(name: str) -> Optional[str]:
    """Return the documented name that `name` is one edit away from; None if it is real, or similar to none."""
    known = documented()
    if len(name) < SHORTEST or name in known or name in table()["reads"]:
        return None
    return next((right for right in sorted(known) if len(right) >= SHORTEST and _is_misspelt(name, right)), None)


def _is_misspelt(name: str, right: str) -> bool:
    if not _is_one_edit(name, right) or _LIBRARY.findall(name) != _LIBRARY.findall(right):
        return False
    numbered = _NO_DIGIT.sub("", name) != _NO_DIGIT.sub("", right)
    varied = (name[:-1] == right and name[-1] in "S_") or (name[1:] == right and name[0] == "_")
    return not numbered and not varied


def _is_one_edit(one: str, other: str) -> bool:
    """Return whether one letter was omitted, added, replaced, or swapped with its neighbor."""
    if one == other or abs(len(one) - len(other)) > 1:
        return False
    same = next((n for n, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    if len(one) == len(other):
        exchanged = one[same : same + 2] == other[same : same + 2][::-1] and one[same + 2 :] == other[same + 2 :]
        return exchanged or one[same + 1 :] == other[same + 1 :]
    short, long = sorted((one, other), key=len)
    return short[same:] == long[same + 1 :]
