"""The generated pages of reference are what the program says, and miss nothing."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import pytest
from helpers.examples import ROOT

from envtune.catalog import load
from envtune.cli.app import VERBS

DOCS = ROOT / "docs"
INTERNAL = {"ENVTUNE_COMPLETE", "ENVTUNE_HOST_LOCK", "ENVTUNE_RUN"}  # set by envtune or by tests


@pytest.fixture(scope="module")
def made() -> Any:
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pages()


@pytest.mark.slow  # `make docs-check` does the same
def test_what_is_committed_is_what_is_generated(made: dict[str, str]) -> None:
    stale = [name for name, text in made.items() if (DOCS / name).read_text("utf-8") != text]
    assert stale == [], "make docs"


@pytest.mark.parametrize("suffix", ["", ".zh"])
def test_nothing_is_left_out(suffix: str, made: dict[str, str]) -> None:
    commands = made[f"commands{suffix}.md"]
    assert [verb for verb in VERBS if f"\n## {verb}\n" not in commands] == []
    statuses = commands.split("\n## ")[2]
    for verb in ("check", "fix", "undo", "diff", "diagnose", "run", "npu", "policy", "test-catalog"):
        assert re.search(rf"^\| \[{verb}\]\(#{verb}\) \| \S", statuses, re.MULTILINE), verb
    severity = made[f"severity{suffix}.md"]
    assert [check.id for check in load().checks if f"[{check.id}]" not in severity] == []
    symptoms = made[f"symptoms{suffix}.md"]
    shown = [entry.id for entry in load().faq if f"[{entry.id}]" in symptoms]
    assert sorted({entry.id for entry in load().faq if entry.signatures} - set(shown)) == []


def test_variables_of_the_program_are_named(made: dict[str, str]) -> None:
    """Every variable and path that the program reads for itself."""
    page = made["files.md"]
    source = "".join(path.read_text("utf-8") for path in sorted((ROOT / "envtune").rglob("*.py")))
    for name in sorted(set(re.findall(r"\bENVTUNE_[A-Z_]+\b", source)) - INTERNAL):
        assert f"`{name}`" in page, name
    for path in sorted(set(re.findall(r'"(/etc/envtune/[a-z.]+)"', source))):
        assert f"`{path}`" in page, path
