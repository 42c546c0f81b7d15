"""Build the wheel's data.

The YAML as it is, its compiled form that spares every run from reading it, and the programs that run on other hosts
(collector, executor) as one file each.

An editable install gets neither, because there the package is the checkout and reads the YAML in place.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CatalogueHook(BuildHookInterface):  # type: ignore[type-arg]
    """Add `envtune/_data` to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the catalog and assemble the programs, which also refuses to build a wheel from broken ones."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from envtune.assemble import assemble
        from envtune.catalog.store import compile_tree

        self._made = tempfile.TemporaryDirectory()
        made = Path(self._made.name)
        (made / "catalog.json").write_bytes(compile_tree(self.root))
        for name in ("collector", "executor"):
            if Path(self.root, "envtune", name, "__main__.py").exists():
                (made / f"{name}.py").write_text(assemble(Path(self.root, "envtune", name)), "utf-8")
        for path in (Path(self.root, "checks"), Path(self.root, "playbooks"), *made.iterdir()):
            build_data["force_include"][str(path)] = f"envtune/_data/{path.name}"
        # under the GPL, with its license in it; `envtune fleet fix` has ansible-playbook read it
        build_data["force_include"][str(Path(self.root, "ansible"))] = "envtune/_data/ansible"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made for the build."""
        if version != "editable":
            self._made.cleanup()
