"""Days as written in a policy: 2027-01-31, in UTC; they sort as text."""

from __future__ import annotations

import time

from envtune.model import Waiver

DAY = 86400  # seconds


def date_of(now: float) -> str:
    """Return the day; `now` in seconds since the epoch."""
    return time.strftime("%Y-%m-%d", time.gmtime(now))


def is_expired(waiver: Waiver, today: str) -> bool:
    """Return whether its last day is over."""
    return waiver.expires < today
