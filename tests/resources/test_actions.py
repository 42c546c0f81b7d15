"""What every action proposes, and why it proposes nothing: the cases in tests/cases/."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator

import pytest
from helpers.cases import Case, all_cases, differences, planned
from helpers.examples import ROOT

from envtune.context.registry import make_index

CASES = tuple(all_cases())
RESOURCES = ROOT / "envtune" / "resources"


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_action(case: Case) -> None:
    found = differences(case)
    assert not found, "\n".join(["", *found])


def test_every_action_has_cases_and_every_case_an_action() -> None:
    assert {case.action for case in CASES} == set(make_index()["actions"])


# Reasons that no case can give: the function that has them -> why.
WITHOUT_CASE = {
    "firewall.placement.openings": "a million rules have to be looked at; test_evaluate.py does it without a plan",
    "images.install_opencv.best": "it is asked only where there are two",
}


def refusals() -> Iterator[tuple[str, str, int, int]]:
    """(function, file, first line, last line) of every place in the resources that makes a `Skipped`."""
    for path in sorted(RESOURCES.rglob("*.py")):
        text = path.read_text("utf-8")
        module = ".".join(path.relative_to(RESOURCES).with_suffix("").parts)
        for function in ast.parse(text).body if "Skipped(" in text else ():
            for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Skipped":
                    yield f"{module}.{function.name}", str(path), node.lineno, node.end_lineno or node.lineno


def test_every_reason_to_propose_nothing_has_a_case() -> None:
    """The places that make a `Skipped`, beside those that did while the cases were planned."""
    reached = {(str(Path(path).resolve()), line) for case in CASES for path, line in planned(case).refusals}
    without = {
        f"{function} ({path}:{first})"
        for function, path, first, last in refusals()
        if function not in WITHOUT_CASE and not any(path == p and first <= line <= last for p, line in reached)
    }
    assert reached and not without, f"no case for {sorted(without)}"
    assert set(WITHOUT_CASE) <= {function for function, *_ in refusals()}
