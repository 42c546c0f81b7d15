"""Builds the wheel's catalogue: the YAML as it is, and the compiled form that spares every run from reading it.

An editable install gets neither, because there the package is the checkout and reads the YAML in place.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CatalogueHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds `envtune/_data` to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the catalogue, which also refuses to build a wheel from a broken one."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from envtune.catalog.store import compile_tree

        self._made = tempfile.TemporaryDirectory()
        compiled = Path(self._made.name, "catalog.json")
        compiled.write_bytes(compile_tree(self.root))
        for name in ("checks", "playbooks"):
            build_data["force_include"][str(Path(self.root, name))] = f"envtune/_data/{name}"
        build_data["force_include"][str(compiled)] = "envtune/_data/catalog.json"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made for the build."""
        if version != "editable":
            self._made.cleanup()
