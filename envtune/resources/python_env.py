"""Facts of this resource (the probes follow)."""

from __future__ import annotations

from envtune.model import Fact, Text
from envtune.resources import Scene


def fact_python(scene: Scene) -> Fact:
    """Not read yet."""
    return Fact("python", None, "", Text("not read yet", "尚未读取"))


def fact_torch(scene: Scene) -> Fact:
    """Not read yet."""
    return Fact("torch", None, "", Text("not read yet", "尚未读取"))


def fact_torch_npu(scene: Scene) -> Fact:
    """Not read yet."""
    return Fact("torch_npu", None, "", Text("not read yet", "尚未读取"))
