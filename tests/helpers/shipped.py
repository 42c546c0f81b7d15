"""The shipped YAML files, each parsed once per test process."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import yaml

# libyaml's parser where the wheel brings it: the same documents in a tenth of the time.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parsed(path: Path) -> Any:
    """What a shipped file holds, by YAML alone; the catalogue's own reader is stricter and has tests of its own.

    Every caller gets a copy of its own: a test that changes a host must not change it for the others.
    """
    return pickle.loads(_kept(path))


@cache
def _kept(path: Path) -> bytes:
    return pickle.dumps(yaml.load(path.read_text("utf-8"), Loader=_LOADER))
