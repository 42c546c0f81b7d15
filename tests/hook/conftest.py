"""A site's check that fails while a file exists, and the hooks as a scheduler starts them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Callable, Mapping

import pytest
from helpers.program import completed

SITE = """\
id: SITE101
name: marked-as-sick
title: The host is marked as sick
severity: high
probe: {{file.kind: {{path: {marker}}}}}
expect: {{eq: missing}}
"""
Hook = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    """What slurmd gives a hook, and directories of the test; the compiled catalog is shared."""
    return {
        "PATH": os.environ["PATH"],
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
        "ENVTUNE_STATE": str(tmp_path / "state"),
        "HOME": str(tmp_path),
        "SLURMD_NODENAME": "node1",
    }


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A catalog with SITE101, which fails while `sick` exists next to it."""
    checks = tmp_path / "site" / "checks" / "site"
    checks.mkdir(parents=True)
    (checks / "SITE101-marked-as-sick.yaml").write_text(SITE.format(marker=tmp_path / "sick"))
    return tmp_path / "site"


@pytest.fixture
def hook(environ: Mapping[str, str]) -> Hook:
    """Run `envtune hook WORDS` as slurmd does: with little in the environment, and in /."""

    def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return completed("hook", *words, env={**environ, **variables}, cwd=Path("/"))

    return run
