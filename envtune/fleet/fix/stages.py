"""The stages of a staged fix, and when it stops. Pure.

The first stage has one host of each group (the canaries), the next ones 1 %, 10 % and 25 % of all hosts, the last one
the rest. A run stops if a canary fails, if more than 10 % of a stage fail, or if a check newly fails.
"""

from __future__ import annotations

from typing import Mapping, Optional, Sequence

from envtune.messages import Message, Text, listed, plural
from envtune.records import NamedTuple

PERCENT = (1, 10, 25)  # of all hosts, in the stages after the canaries
MOST_FAILED = 10  # percent of a stage
# States of a host in a run; `envtune.executor.fleet` answers with those from `changed` on.
PLANNED, BEGUN, UNREACHABLE, RUNNING = "planned", "begun", "unreachable", "running"
CHANGED, BUSY, UNCHANGED, UNDONE = "changed", "busy", "unchanged", "undone"
FAILED = ("failed", "left", "partly", "refused", "interrupted", RUNNING, "unknown", UNREACHABLE, BEGUN, PLANNED)
# In these states nothing of the run is on the host.
UNTOUCHED = (PLANNED, UNREACHABLE, BUSY, UNCHANGED, "refused", "failed")
# In these states something of the run is, or may be, on the host.
WRITTEN = (CHANGED, "partly", "left", "interrupted", RUNNING, "unknown", "partly-undone", BEGUN)


class Stage(NamedTuple):
    """Hosts that are fixed together."""

    hosts: tuple[str, ...]
    canary: bool = False


class HostOutcome(NamedTuple):
    """How a host ended: its state, the checks that still fail although all was written, and those that newly fail.

    `collected`: it could be checked again.
    """

    state: str
    still_failing: tuple[str, ...] = ()
    newly_failing: tuple[str, ...] = ()
    collected: bool = True

    @property
    def failed(self) -> bool:
        """Whether it counts as failed: one that was left alone because of a running job does not.

        One that is still planned after its stage does: Ansible did not get that far with it.
        """
        if self.state != CHANGED:
            return self.state in FAILED
        return bool(self.still_failing or self.newly_failing) or not self.collected


def make_stages(hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> tuple[Stage, ...]:
    """Return the stages for these hosts, in order; `groups` says which belong together."""
    canaries: dict[tuple[str, ...], str] = {}
    for host in hosts:
        canaries.setdefault(tuple(groups[host]), host)
    chosen = set(canaries.values())
    found = [Stage(tuple(host for host in hosts if host in chosen), canary=True)] if hosts else []
    rest = [host for host in hosts if host not in chosen]
    for percent in (*PERCENT, 100):
        size = max(1, len(hosts) * percent // 100)
        if rest[:size]:
            found.append(Stage(tuple(rest[:size])))
        rest = rest[size:]
    return tuple(found)


def why_stop(stage: Stage, outcomes: Mapping[str, HostOutcome]) -> Optional[Text]:
    """Return why no further stage is begun after this one; None if the run continues."""
    fresh = {check for outcome in outcomes.values() for check in outcome.newly_failing}
    if fresh:
        hosts = [host for host, outcome in outcomes.items() if outcome.newly_failing]
        checks = listed(sorted(fresh))
        return plural(
            "checks fail that passed before: {checks} ({count} host)",
            "checks fail that passed before: {checks} ({count} hosts)",
            len(hosts),
            checks=checks,
        )
    failed = [host for host in stage.hosts if outcomes[host].failed]
    if failed and stage.canary:
        return Message("the first host of a group failed: {hosts}", hosts=listed(failed))
    if len(failed) * 100 > MOST_FAILED * len(stage.hosts):
        return Message(
            "{failed} of {count} hosts of the stage failed, more than {percent}%",
            failed=len(failed),
            count=len(stage.hosts),
            percent=MOST_FAILED,
        )
    return None
