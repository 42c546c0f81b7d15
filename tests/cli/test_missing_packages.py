"""A Python package that is not installed is named, with the command that installs it; it is no error of envtune."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.examples import ROOT
from helpers.rows import sampled

from envtune.errors import PACKAGES

ROWS = {
    "typer": (["check"], "typer"),
    "yaml": (["check", "--catalog", "more"], "PyYAML"),
    "ClusterShell": (["fleet", "audit", "-w", "node1"], "envtune[fleet]"),
    "jinja2": (["check", "--select", "SYS", "-f", "html"], "envtune[html]"),
}
PROGRAM = (
    "import sys; module, *words = sys.argv[1:]\n"
    "sys.modules[module] = None\n"  # importing it fails as if it were not there
    "sys.argv = ['envtune', *words]\n"
    "from envtune.cli import main\nmain()"
)


@pytest.mark.parametrize("lang", [pytest.param("en", marks=pytest.mark.slow), "zh"])
@pytest.mark.parametrize("module", sampled(ROWS, 2))
def test_it_is_named(module: str, lang: str, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "SITE1.yaml").touch()
    words, installed = ROWS[module]
    env = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM, module, *words, "--lang", lang]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    package = PACKAGES[module][0]
    told = f"the Python package {package} is missing" if lang == "en" else f"缺少 Python 软件包 {package}"
    assert done.stderr.startswith(f"envtune: {told}") and done.stderr.count("\n") == 1
    assert re.search(rf" -m pip install '?{re.escape(installed)}'?$", done.stderr)


def test_every_package_is_one_that_is_installed_with_envtune() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    for package, extra in PACKAGES.values():
        if package == "MarkupSafe":  # comes with Jinja2
            continue
        part = re.search(rf"(?ms)^{extra or 'dependencies'} = \[(.*?)\]", text)
        assert part is not None and f'"{package}' in part[1], package
