"""Facts of this resource (the probes follow)."""

from __future__ import annotations

from envtune.model import Fact, Text
from envtune.resources import Scene


def fact_cann(scene: Scene) -> Fact:
    """Not read yet."""
    return Fact("cann", None, "", Text("not read yet", "尚未读取"))


def fact_cann_generation(scene: Scene) -> Fact:
    """Not read yet."""
    return Fact("cann_generation", None, "", Text("not read yet", "尚未读取"))
