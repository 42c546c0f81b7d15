"""What a `python.install` replaces by what: the form in which the choices (pillow, OpenCV, te) are handed over."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional

from envtune.messages import Text
from envtune.resources.python.distributions import Distribution


class Installation(NamedTuple):
    """What to replace by what in one directory of the import path."""

    entry: str
    remove: tuple[Distribution, ...]
    requirements: tuple[str, ...]  # what `pip install` is given: requirements or paths of wheels; none: only remove
    names: tuple[str, ...]  # the distributions concerned, normalised
    modules: tuple[str, ...]  # the top-level names they hold
    after: str
    findings: tuple[str, ...]  # check ids; the first one is the change's own
    subject: str
    prepare: tuple[tuple[str, ...], ...] = ()  # words for pip that bring the wheels to {work}/wheels
    wheels: tuple[str, ...] = ()  # where they are then
    environ: Mapping[str, str] = {}
    smoke: str = ""  # a line of Python that proves it works in the target
    note: Optional[Text] = None
    rivals: tuple[Text, ...] = ()


def binary(wheels: Optional[str], requirement: str) -> tuple[str, ...]:
    """The words for pip that bring one ready wheel to {work}/wheels, from the index or the given directory."""
    words = ("download", "--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--dest", "{work}/wheels")
    return (*words, *sources(wheels), requirement)


def sources(wheels: Optional[str]) -> tuple[str, ...]:
    """Where pip may look: the index its own configuration names, or only the given directory."""
    return () if wheels is None else ("--no-index", "--find-links", wheels)
