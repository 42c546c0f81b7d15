"""Probes for what older recordings do not hold: on those, their checks do not apply, instead of being unknown."""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable, Iterable

from envtune.errors import NotApplicable, NotRecorded
from envtune.messages import Message
from envtune.model import Reading

Probe = Callable[..., Iterable[Reading]]


def unless_older(read: Probe) -> Probe:
    """Return a probe that raises NotApplicable where the snapshot was taken before the collector recorded this."""

    @wraps(read)
    def guarded(*arguments: Any, **named: Any) -> Iterable[Reading]:
        try:
            return list(read(*arguments, **named))
        except NotRecorded as error:
            reason = Message("the snapshot was taken by an envtune that did not record {path}", path=error.path)
            raise NotApplicable(reason, error.path) from None

    return guarded
