"""Facts of this resource (the probes follow)."""

from __future__ import annotations

from envtune.model import Fact, Text
from envtune.resources import Scene


def fact_npu(scene: Scene) -> Fact:
    """Not read yet."""
    return Fact("npu", None, "", Text("not read yet", "尚未读取"))


def fact_npu_count(scene: Scene) -> Fact:
    """Not read yet."""
    return Fact("npu_count", None, "", Text("not read yet", "尚未读取"))


def fact_ascend(scene: Scene) -> Fact:
    """Not read yet."""
    return Fact("ascend", None, "", Text("not read yet", "尚未读取"))
