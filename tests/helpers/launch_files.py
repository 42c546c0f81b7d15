"""Written launch files of tests/cases/scan, and scanning them in a directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Mapping

import pytest
import yaml

from envtune.catalog import Catalogue, select
from envtune.host import LocalHost
from envtune.model import Outcome
from envtune.scan.check import Rules, fitting
from envtune.scan.job_host import UnreadHost
from envtune.scan.model import Found, Problem, ScanReport
from envtune.scan.scan import scan
from helpers.examples import ROOT

CASES = [
    pytest.param(case, id=f"{path.stem}: {case['name']}")
    for path in sorted((ROOT / "tests" / "cases" / "scan").glob("*.yaml"))
    for case in yaml.safe_load(path.read_text("utf-8"))
]


def write(folder: Path, case: Mapping[str, Any]) -> None:
    for name, text in case["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
    for name, target in case.get("links", {}).items():
        (folder / name).symlink_to(target)
    for name, data in case.get("bytes", {}).items():
        (folder / name).write_bytes(bytes.fromhex(str(data)))
    for name, size in case.get("sizes", {}).items():
        (folder / name).write_bytes(b"#" * size)
    for name in case.get("fifos", ()):
        os.mkfifo(folder / name)


def rules(catalogue: Catalogue) -> Rules:
    return Rules(fitting(select(catalogue.checks, (), (), ())), catalogue.expectations, UnreadHost())


def scanned(folder: Path, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch, *paths: str) -> ScanReport:
    monkeypatch.chdir(folder)
    return scan(LocalHost(), paths or ["."], rules(catalogue), [check.id for check in catalogue.checks])


def row(found: Found) -> str:
    word = {Outcome.FAIL: "", Outcome.UNKNOWN: " unknown"}.get(found.finding.outcome, f" {found.finding.outcome.value}")
    return f"{found.path}:{found.line} {found.finding.id}" + (" ignored" if found.suppression else word)


def problem_row(problem: Problem) -> str:
    place = f"{problem.path}:{problem.line}" if problem.line else problem.path
    return f"{place} {problem.reason.en}"
