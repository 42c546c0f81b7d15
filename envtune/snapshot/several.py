"""Which snapshots a path names: itself, or those in a directory that is not one itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Optional

from envtune.snapshot.open import MANIFEST

ENDINGS = (".tar.gz", ".tgz", ".tar", ".json")


def snapshots_in(path: Path) -> Optional[tuple[Path, ...]]:
    """Return the snapshots in a directory, sorted by name; None for a snapshot, and for a path without any."""
    try:
        names = sorted(os.listdir(path))
    except OSError:  # a file, or nothing: opening it reports that
        return None
    if MANIFEST in names:
        return None
    found = tuple(path / name for name in names if name.endswith(ENDINGS) or (path / name / MANIFEST).is_file())
    return found or None
