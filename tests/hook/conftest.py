"""A site's check that fails while a file exists, and the hooks as processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest
from helpers.examples import ROOT

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
def site(tmp_path: Path) -> Path:
    """A catalogue with SITE101, which fails while `sick` exists next to it."""
    checks = tmp_path / "site" / "checks" / "site"
    checks.mkdir(parents=True)
    (checks / "SITE101-marked-as-sick.yaml").write_text(SITE.format(marker=tmp_path / "sick"))
    return tmp_path / "site"


@pytest.fixture
def hook(tmp_path: Path) -> Hook:
    """Run `envtune hook WORDS` as slurmd does: with little in the environment, and in /."""

    def run(*words: str, seconds: float = 60, **variables: str) -> subprocess.CompletedProcess[str]:
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            "ENVTUNE_STATE": str(tmp_path / "state"),
            "HOME": str(tmp_path),
            "SLURMD_NODENAME": "node1",
            **variables,
        }
        argv = [sys.executable, "-m", "envtune", "hook", *words]
        return subprocess.run(argv, env=environ, cwd="/", capture_output=True, text=True, timeout=seconds)

    return run
