"""What is damaged in the site directories of the job's Python."""

from __future__ import annotations

from typing import Iterable

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Undetermined, host_error_text
from envtune.messages import Bilingual, Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.python.distributions import environment, every, installed


@probe("python.damage", formerly="python_damage.found")
def found(context: Context, *, names: Iterable[str]) -> Iterable[Reading]:
    """Per site directory of the job's Python what is damaged; the metadata of `names` is read as well."""
    known = environment(context)
    yield from (
        Reading(
            entry,
            None,
            Evidence(entry),
            reason=host_error_text(error),
            needs_privilege=isinstance(error, PermissionError),
        )
        for entry, error in known.closed.items()
    )
    broken: dict[str, list[Text]] = {}
    for problem in known.problems:
        place = problem.path.rpartition("/")
        broken.setdefault(place[0], []).append(Message("{place}: {what}", place=place[2], what=problem.what))
    for name in names:
        try:
            installed(context, name)
        except Undetermined as unsettled:
            folder = next(row.entry for row in every(context, name))
            broken.setdefault(folder, []).append(unsettled.reason)
        except HostError:
            continue  # reported above, by its directory
    for entry, listing in known.names.items():
        texts = broken.get(entry, [])
        shown = Bilingual("; ".join(t.en for t in texts), "；".join(t.zh for t in texts)) if texts else None
        evidence = Evidence(entry, "\n".join(t.en for t in texts) or f"{len(listing)} entries")
        yield Reading(entry, len(texts), evidence, shown=shown or Message("undamaged"))
