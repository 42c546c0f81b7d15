"""`envtune hook`: what schedulers start. A group of verbs; each is a module here."""

from __future__ import annotations

from typing import Mapping

from envtune.messages import N_

HELP = N_(
    """Run as a hook of Slurm or Kubernetes.

A hook ends in time, and an error in envtune never drains a node or stops a job. Ready scripts and manifests: see
docs/schedulers.md.
"""
)
VERBS: Mapping[str, str] = {
    "slurm-health": "hook.slurm_health",
    "slurm-prolog": "hook.slurm_prolog",
    "k8s-init": "hook.k8s_init",
}
