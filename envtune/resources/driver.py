"""Facts of this resource (the probes follow)."""

from __future__ import annotations

from envtune.model import Fact, Text
from envtune.resources import Scene


def fact_driver(scene: Scene) -> Fact:
    """Not read yet."""
    return Fact("driver", None, "", Text("not read yet", "尚未读取"))


def fact_firmware(scene: Scene) -> Fact:
    """Not read yet."""
    return Fact("firmware", None, "", Text("not read yet", "尚未读取"))
