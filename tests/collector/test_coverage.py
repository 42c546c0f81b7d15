"""What a check reads is in a snapshot: the verdict on a host and on the recording of that host is the same.

Every example of every check is a small host. The collector is run on it as if it were the machine, and the check judges
the recording. A new check that reads something the collector's tables do not name fails here.
"""

from __future__ import annotations

import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, Mapping

import pytest
from helpers.checks import check_files
from helpers.examples import shared_host
from helpers.recording import recorded_again
from helpers.rows import sampled

from envtune.audit import examine
from envtune.catalog import check_from
from envtune.catalog.examples import example_host
from envtune.collector.machine import Machine
from envtune.collector.snapshot import take
from envtune.context.open import open_context, recorded_options
from envtune.model import Check
from envtune.snapshot.host import SnapshotHost

shared = lru_cache(maxsize=None)(shared_host)


CHECKS = pytest.mark.parametrize("data", [pytest.param(data, id=data["id"]) for data in check_files()])


FAILING = [data for data in check_files() if "fail" in data["examples"]]
FAMILIES = {data["id"][:3]: data for data in FAILING}


@pytest.mark.parametrize("data", sampled(FAMILIES.values(), 2), ids=lambda data: data["id"])
def test_a_failure_of_each_family(data: Mapping[str, Any]) -> None:
    recorded_as_it_is(data, "fail", data["examples"]["fail"][0])


@pytest.mark.slow
@CHECKS
def test_every_example(data: Mapping[str, Any]) -> None:
    for outcome, examples in data["examples"].items():
        for example in examples:
            recorded_as_it_is(data, outcome, example)


def recorded_as_it_is(data: Mapping[str, Any], outcome: str, example: Mapping[str, Any]) -> None:
    check = check_from(data)
    host = example_host(example, shared)
    assert host.data["covered"] is None, "an example that says where it looked cannot stand for a machine"
    assert verdicts(check, recorded_again(host)) == verdicts(check, host), (outcome, example)


def verdicts(check: Check, host: SnapshotHost) -> list[tuple[str, ...]]:
    context = open_context(host, recorded_options(host.data["target"]))
    return sorted((f.outcome.value, f.subject, f.expected.en if f.expected else "") for f in examine(check, context))


def test_where_a_named_process_works_is_looked_at(tmp_path: Path) -> None:
    """It is the first place on the import path of a script there."""
    with subprocess.Popen([sys.executable, "-I", "-c", "input()"], stdin=subprocess.PIPE, cwd=tmp_path) as child:
        recorded = take({"pid": child.pid}, Machine(), {"PATH": "/usr/bin:/bin"})["files"]
        child.communicate(b"\n")
    assert f"{tmp_path}/torch" in recorded
