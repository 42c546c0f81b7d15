"""`envtune fleet`: many hosts. A group of verbs; each is a module here."""

from __future__ import annotations

from typing import Mapping

from envtune.messages import N_

HELP = N_(
    """Check many hosts over ssh and report on them.

\b
  envtune fleet audit -w node[1-64]   collect and check hosts
  envtune fleet report                problems, differences, hosts not collected
  envtune fleet drift                 facts that differ between hosts
  envtune fleet host node7            one host
  envtune fleet since 2026-11-01      what changed
  envtune fleet golden                hosts that differ from the policy
  envtune fleet ingest DIR            snapshots collected another way
  envtune fleet fix -w node[1-64]     fix hosts in stages
  envtune fleet undo RUN              undo such a fix

Only fix and undo write on the hosts; nothing is installed there. See docs/fleet.md.
"""
)
VERBS: Mapping[str, str] = {
    "audit": "fleet.audit",
    "ingest": "fleet.ingest",
    "fix": "fleet.fix",
    "undo": "fleet.undo",
    "report": "fleet.report",
    "drift": "fleet.drift",
    "host": "fleet.host",
    "since": "fleet.since",
    "golden": "fleet.golden",
}
