"""What a site's checks read is in a snapshot that is taken with them: the same verdict as on the host itself."""

from __future__ import annotations

from typing import Any, Mapping

import pytest
from helpers.examples import shared_host
from helpers.recording import RecordedMachine
from helpers.rows import sampled

from envtune.audit import examine
from envtune.catalog import check_from
from envtune.catalog.compile import entry_of
from envtune.catalog.examples import example_host
from envtune.catalog.reference import example_text
from envtune.catalog.yaml import Diagnostics, read_yaml
from envtune.collector.snapshot import take
from envtune.context.open import open_context
from envtune.context.recording import record_checks
from envtune.context.registry import probe_names
from envtune.job.target import TargetOptions
from envtune.model import Check
from envtune.snapshot.host import SnapshotHost

PROBES = [name for name in probe_names() if example_text("probes", name) is not None]


def verdicts(check: Check, host: SnapshotHost) -> list[tuple[str, str, str]]:
    findings = examine(check, open_context(host))
    return [(f.outcome.value, f.subject, f.actual.en if f.actual is not None else "") for f in findings]


def example_of(probe: str) -> Mapping[str, Any]:
    diagnostics = Diagnostics("example")
    node = read_yaml((example_text("probes", probe) or "").encode("utf-8"), diagnostics)
    assert node is not None
    data = entry_of(node, "checks", diagnostics, False)
    assert diagnostics.found == []
    return data


@pytest.mark.parametrize("probe", sampled(PROBES, 8))
def test_every_example_is_recorded(probe: str) -> None:
    data = example_of(probe)
    check = check_from(data)
    for outcome in ("pass", "fail"):
        host = example_host(data["examples"][outcome][0], shared_host)
        snapshot = take(
            {},
            RecordedMachine(host),
            host.environ,
            lambda recorder: record_checks(recorder, [check], TargetOptions()),
        )
        assert verdicts(check, SnapshotHost(snapshot)) == verdicts(check, host), outcome


def test_a_probe_that_fails_costs_only_itself() -> None:
    good = check_from(example_of("file.kind"))
    bad = good._replace(arguments={"path": 1})
    host = example_host({"files": {"/etc/site/license.dat": "x"}}, shared_host)
    snapshot = take(
        {}, RecordedMachine(host), {}, lambda recorder: record_checks(recorder, [bad, good], TargetOptions())
    )
    assert snapshot["files"]["/etc/site/license.dat"]["size"] == 1
