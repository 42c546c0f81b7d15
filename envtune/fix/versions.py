"""Downgrades: a package that a change replaces by an older version of it, and what is lost with it. Pure."""

from __future__ import annotations

import re
from typing import Iterator

from envtune.messages import Message, Text
from envtune.model import Change, VersionChange


def downgrades(change: Change) -> tuple[VersionChange, ...]:
    """Return the packages that the change replaces by an older version."""
    return tuple(one for one in change.versions if _order(one.after) < _order(one.before))


def downgrade_texts(change: Change) -> Iterator[Text]:
    """Yield a sentence for each downgrade: from and to, and what is lost."""
    for one in downgrades(change):
        yield Message(
            "downgrade of {name} from {before} to {after}: what later releases added, changed and repaired, security "
            "fixes included, is lost",
            name=one.name,
            before=one.before,
            after=one.after,
        )
        if _order(one.before)[:1] > _order(one.after)[:1]:
            yield Message(
                "that is another major version: code that was written for {name} {before} may fail",
                name=one.name,
                before=one.before,
            )


_EARLY = {"dev": -5, "t": -4, "alpha": -3, "a": -3, "beta": -2, "b": -2, "c": -1, "rc": -1}
_EARLY_PART = re.compile(rf"(\d*)({'|'.join(sorted(_EARLY, key=len, reverse=True))})(\d*)")
_NUMBERS = 8  # of a release, missing ones are 0: 9.5 is 9.5.0


def _order(version: str) -> tuple[int, ...]:
    """Return a version as numbers that can be compared; one before a release (8.0.RC2, 2.1a1) is below it.

    packaging.version refuses CANN's names (6.3.RC2.alpha003).
    """
    release: list[int] = []
    for part in re.split(r"[.+_-]", version.strip().lower().lstrip("v")):
        early = _EARLY_PART.fullmatch(part)
        if early is not None:
            release += [int(early[1][:9])] if early[1] else []
            return (*_padded(release), _EARLY[early[2]], int(early[3][:9] or 0))
        if not part.isdigit():
            break
        release.append(int(part[:9]))
    return (*_padded(release), 0, 0)


def _padded(release: list[int]) -> list[int]:
    return (release + [0] * _NUMBERS)[:_NUMBERS]
