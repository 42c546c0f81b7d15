"""What the checks before a command mean for it."""

from __future__ import annotations

from typing import Optional

import pytest
from helpers.examples import example_context

from envtune.catalog import load
from envtune.model import Severity
from envtune.run.preflight import preflight


@pytest.mark.parametrize("fail_on", [None, Severity.INFO, Severity.CRITICAL])
def test_a_note_is_neither_a_finding_nor_a_reason_to_stop(fail_on: Optional[Severity]) -> None:
    checks = [check._replace(applies={}) for check in load().checks if check.id == "SYS007"]
    assert checks[0].note
    found = preflight(example_context({"files": {}, "euid": 1000}), checks, fail_on)
    assert (found.stopping, found.minor, found.unknown) == ((), (), ())
    (problem,) = (check._replace(note=False) for check in checks)
    found = preflight(example_context({"files": {}, "euid": 1000}), [problem], fail_on)
    assert [finding.id for finding in found.stopping] + [*found.minor] == ["SYS007"]
