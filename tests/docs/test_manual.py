"""The manual page: up to date, in order for man(1) and mandoc(1), and installed where they look."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.examples import ROOT

from envtune.cli.app import VERBS

PAGES = {"en": ROOT / "docs" / "man" / "envtune.1", "zh": ROOT / "docs" / "man" / "zh" / "envtune.1"}


@pytest.fixture(scope="module")
def manual() -> Any:
    spec = importlib.util.spec_from_file_location("manual", ROOT / "scripts" / "manual.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("lang", PAGES)
def test_it_is_what_the_help_says(lang: str, manual: Any) -> None:
    assert PAGES[lang].read_text("utf-8") == manual.page(lang), "make docs"


@pytest.mark.parametrize("lang", PAGES)
def test_every_verb_and_option_is_in_it(lang: str) -> None:
    text = PAGES[lang].read_text("utf-8").replace("\\-", "-")
    for verb in VERBS:
        assert f'.SS "envtune {verb}"' in text
    for option in ("--select", "--apply", "--snapshot", "--color", "--version"):
        assert re.search(rf"^\.B .*{option}\b", text, re.MULTILINE)


@pytest.mark.parametrize("lang", PAGES)
@pytest.mark.parametrize("tool", ["mandoc", "man"])
def test_it_is_in_order(tool: str, lang: str) -> None:
    """Neither complains, and no line of the examples runs out of the page or into another."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    path = str(PAGES[lang])
    argv = ["mandoc", "-T", "lint", "-W", "error", path] if tool == "mandoc" else ["man", "--warnings", "-l", path]
    environ = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MANPAGER": "cat"}
    done = subprocess.run(argv, capture_output=True, text=True, env=environ, timeout=60, check=False)
    if tool == "man" and "minimized" in done.stdout:
        pytest.skip("man is a stub here")
    about_lines = ("break line", "adjust line")  # Chinese has few blanks to break at
    told = [line for line in done.stderr.splitlines() if not line.endswith(about_lines)]
    assert (done.returncode, told) == (0, []), done.stdout
    if tool == "man":
        assert "envtune check host.tar.gz  " in done.stdout


@pytest.mark.slow
def test_a_wheel_has_it_where_man_looks(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(argv, cwd=ROOT, capture_output=True, check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    from zipfile import ZipFile

    names = ZipFile(wheel).namelist()
    for place in ("man1", "zh_CN/man1"):
        assert any(name.endswith(f".data/data/share/man/{place}/envtune.1") for name in names)
