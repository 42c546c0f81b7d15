"""Hosts as the examples of the catalog describe them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Mapping

from envtune.catalog.examples import Shared, example_host
from envtune.context import Context
from envtune.context.open import open_context, recorded_options
from envtune.job.target import TargetOptions
from helpers.shipped import parsed

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / "checks" / "examples"


def shared_host(name: str) -> Mapping[str, Any]:
    """What `like: name` means."""
    data: Mapping[str, Any] = parsed(SHARED / f"{name}.yaml")
    return data


def example_context(example: Mapping[str, Any], shared: Shared = shared_host) -> Context:
    """A context on the host that an example describes; `target:` in it names the job."""
    host = example_host(example, shared)
    target = host.data.get("target") or {}
    return open_context(host, recorded_options(target) if target else TargetOptions())
