"""What the checks before a command mean for it."""

from __future__ import annotations

from typing import Optional

import pytest
from helpers.examples import example_context

from envtune.catalog import load
from envtune.cli.run import _preflight_lines
from envtune.model import Severity
from envtune.run.preflight import Preflight, preflight


@pytest.mark.parametrize("fail_on", [None, Severity.INFO, Severity.CRITICAL])
def test_a_note_is_neither_a_finding_nor_a_reason_to_stop(fail_on: Optional[Severity]) -> None:
    checks = [check._replace(applies={}) for check in load().checks if check.id == "SYS007"]
    assert checks[0].note
    found = preflight(example_context({"files": {}, "euid": 1000}), checks, fail_on)
    assert (found.stopping, found.minor, found.unknown) == ((), (), ())
    (problem,) = (check._replace(note=False) for check in checks)
    found = preflight(example_context({"files": {}, "euid": 1000}), [problem], fail_on)
    assert [finding.id for finding in found.stopping] + [*found.minor] == ["SYS007"]


@pytest.mark.parametrize(
    ("minor", "en", "zh"),
    [
        (("NET007",), "1 problem: NET007 (envtune check)", "1 个问题：NET007（envtune check）"),
        (
            ("CPU001", "NET007"),
            "2 problems: CPU001, NET007 (envtune check)",
            "2 个问题：CPU001、NET007（envtune check）",
        ),
    ],
)
def test_what_does_not_stop_the_command_is_counted(minor: tuple[str, ...], en: str, zh: str) -> None:
    (line,) = _preflight_lines(Preflight((), minor, ()))
    assert (line.to("en"), line.to("zh")) == (en, zh)
