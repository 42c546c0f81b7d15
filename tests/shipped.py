"""The shipped YAML files, each parsed once per test process; nobody may change what this returns."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

# libyaml's parser where the wheel brings it: the same documents in a tenth of the time.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def parsed(path: Path) -> Any:
    """What a shipped file holds, by YAML alone; the catalogue's own reader is stricter and has tests of its own."""
    return yaml.load(path.read_text("utf-8"), Loader=_LOADER)
