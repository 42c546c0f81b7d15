"""The variables that a message asks for, as a line for the shell that starts the job."""

from __future__ import annotations

import re
from typing import Iterator, Sequence

from envtune.diagnose.rank import Candidate
from envtune.ranges import decimal

_NUMBER = re.compile(r"\{([a-z_]+)(?:\+(\d+))?\}")


def exports(candidate: Candidate) -> str:
    """Return `export NAME=number` with what the log asks for; empty where it names no number.

    Ranks may ask for different numbers: the largest serves all.
    """
    settings = candidate.entry.settings
    numbers = {name: max(_numbers(templates, candidate), default=None) for name, templates in settings.items()}
    words = [f"{name}={number}" for name, number in numbers.items() if number is not None]
    return " ".join(["export", *words]) if words else ""


def _numbers(templates: Sequence[str], candidate: Candidate) -> Iterator[int]:
    """Yield the numbers that the hits name: `{needed}` is the captured one, `{above+1}` one more than it."""
    for found in filter(None, map(_NUMBER.fullmatch, templates)):
        numbers = (decimal(hit.groups.get(found[1], "")) for hit in candidate.hits)
        yield from (number + int(found[2] or 0) for number in numbers if number is not None)
