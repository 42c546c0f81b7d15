"""The shipped YAML files, each read once per test process, as the catalog's own reader reads them."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path
from typing import Any

from envtune.catalog.compile import entry_of
from envtune.catalog.forms import EXAMPLE_HOST
from envtune.catalog.yaml import Diagnostics, read_yaml
from envtune.schema.validate import Validator

# They pass and fail by what other hosts answer, which no recording holds (tests/resources/network/test_peers.py).
ASK_OTHER_HOSTS = frozenset({"NET102"})
_HOSTS = ("examples", "hosts")


def parsed(path: Path) -> Any:
    """What a shipped file holds: a check, an FAQ entry, a playbook, or a host of checks/examples or tests/hosts.

    Every caller gets a copy of its own: a test that changes a host must not change it for the others.
    """
    return pickle.loads(_kept(path))


@cache
def _kept(path: Path) -> bytes:
    diagnostics = Diagnostics(str(path))
    node = read_yaml(path.read_bytes(), diagnostics)
    assert node is not None, diagnostics.found
    if path.parent.name in _HOSTS:
        data = Validator(diagnostics.report).judge(node, EXAMPLE_HOST)
    else:
        kind = "playbooks" if "playbooks" in path.parts else "faq" if path.parent.name == "faq" else "checks"
        data = entry_of(node, kind, diagnostics)
    assert not diagnostics.found, [diagnostic.message().en for diagnostic in diagnostics.found]
    return pickle.dumps(data)
