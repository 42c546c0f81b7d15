"""The collector and the executor as the one file that travels."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from envtune.assemble import assemble
from helpers.examples import ROOT


@cache
def assembled(name: str) -> str:
    """The package `envtune.<name>` as one file, assembled once per test process."""
    return assemble(ROOT / "envtune" / name)


def collector_file(folder: Path) -> Path:
    """Write it into `folder`, with the line that names the interpreter, ready to run."""
    path = folder / "collector.py"
    path.write_text(assembled("collector"), "utf-8")
    return path
