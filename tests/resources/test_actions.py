"""What every action proposes, and why it proposes nothing: the cases in tests/cases/."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator, NamedTuple

import pytest
from helpers.cases import Case, all_cases, differences, planned
from helpers.examples import ROOT
from helpers.rows import sampled

from envtune.context.registry import make_index

CASES = tuple(all_cases())
RESOURCES = ROOT / "envtune" / "resources"


@pytest.mark.parametrize("case", sampled([pytest.param(case, id=case.name) for case in CASES], 3))
def test_action(case: Case) -> None:
    found = differences(case)
    assert not found, "\n".join(["", *found])


def test_every_action_has_cases_and_every_case_an_action() -> None:
    assert {case.action for case in CASES} == set(make_index()["actions"])


# Reasons that no case can give (the function, and what its source says) -> why.
WITHOUT_CASE = {
    ("images.patch_torchvision._must_compile", "would not compile"): "no source is known that this happens to",
    ("firewall.placement.find_openings", "TOO_LARGE"): "a million rules have to be looked at; test_evaluate.py does it",
    ("images.install_opencv.best", "no OpenCV installed"): "it is asked only where there are two",
    ("processes.terminate._refuse_forbidden", "it has ended"): "a recording cannot tell that a process has ended",
}


class Refusal(NamedTuple):
    """A place in the resources that makes a `Skipped`."""

    function: str
    source: str
    path: str
    lines: range

    def is_excused(self) -> bool:
        return any(self.function == function and text in self.source for function, text in WITHOUT_CASE)


def refusals() -> Iterator[Refusal]:
    for path in sorted(RESOURCES.rglob("*.py")):
        text = path.read_text("utf-8")
        module = ".".join(path.relative_to(RESOURCES).with_suffix("").parts)
        for function in ast.parse(text).body if "Skipped(" in text else ():
            for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Skipped":
                    lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                    yield Refusal(f"{module}.{function.name}", ast.unparse(node), str(path), lines)


def test_every_reason_to_propose_nothing_has_a_case() -> None:
    """The places that make a `Skipped`, beside those that did while the cases were planned."""
    reached = {(str(Path(path).resolve()), line) for case in CASES for path, line in planned(case).refusals}
    without = [one for one in refusals() if not any(path == one.path and line in one.lines for path, line in reached)]
    assert reached and not [f"{one.path}:{one.lines[0]}: {one.source}" for one in without if not one.is_excused()]
    assert sum(one.is_excused() for one in without) == len(WITHOUT_CASE), "an excuse that nothing needs any more"
