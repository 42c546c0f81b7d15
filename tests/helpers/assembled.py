"""The collector as the one file that travels."""

from __future__ import annotations

from pathlib import Path

from envtune.assemble import assemble
from helpers.examples import ROOT


def collector_file(folder: Path) -> Path:
    """Write it into `folder`, with the line that names the interpreter, ready to run."""
    path = folder / "collector.py"
    path.write_text(assemble(ROOT / "envtune" / "collector"), "utf-8")
    return path
