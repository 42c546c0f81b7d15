"""What to do about the waivers of a policy: expired, expiring soon, without effect."""

from __future__ import annotations

from typing import Iterable, Optional, Sequence

from envtune.model import Finding, Waiver
from envtune.policy.dates import is_expired
from envtune.policy.patterns import matches_host
from envtune.records import NamedTuple

VALID, SOON, EXPIRED = "valid", "soon", "expired"


class ReviewedWaiver(NamedTuple):
    """A waiver, whether it is still in force, and whether it waives anything; `used` is None if no host was checked."""

    waiver: Waiver
    state: str
    used: Optional[bool]

    @property
    def needs_work(self) -> bool:
        """Whether somebody should change the policy now."""
        return self.state == EXPIRED or self.used is False


def review(
    waivers: Iterable[Waiver], findings: Iterable[Finding], hosts: Sequence[str], today: str, soon: str
) -> tuple[ReviewedWaiver, ...]:
    """Return what the checks of these hosts say about each waiver; `soon`: the last day that counts as soon."""
    used = {finding.waiver for finding in findings if finding.waiver is not None}
    return tuple(
        ReviewedWaiver(
            waiver,
            EXPIRED if is_expired(waiver, today) else SOON if waiver.expires <= soon else VALID,
            waiver in used if any(matches_host(waiver.hosts, host) for host in hosts) else None,
        )
        for waiver in waivers
    )
