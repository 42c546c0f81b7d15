"""What a check reads is in a snapshot: the verdict on a host and on the recording of that host is the same.

Every example of every check is a small host. The collector is run on it as if it were the machine, and the check judges
the recording. A new check that reads something the collector's tables do not name fails here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Iterator, Mapping

import pytest
from helpers.checks import all_examples
from helpers.examples import shared_host
from helpers.recording import recorded_again

from envtune.audit import examine
from envtune.catalog import check_from
from envtune.catalog.examples import example_host
from envtune.context.open import open_context, recorded_options
from envtune.model import Check
from envtune.snapshot.host import SnapshotHost

shared = lru_cache(maxsize=None)(shared_host)


def examples() -> Iterator[Any]:
    """The first fail of each check at once, the others where slow tests run."""
    for one in all_examples():
        quick = one.id.endswith("-fail-0")
        yield pytest.param(*one.values, id=one.id, marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(("data", "outcome", "example"), list(examples()))
def test_recorded_example(data: Mapping[str, Any], outcome: str, example: Mapping[str, Any]) -> None:
    check = check_from(data)
    host = example_host(example, shared)
    assert host.data["covered"] is None, "an example that says where it looked cannot stand for a machine"
    assert verdicts(check, recorded_again(host)) == verdicts(check, host)


def verdicts(check: Check, host: SnapshotHost) -> list[tuple[str, ...]]:
    context = open_context(host, recorded_options(host.data["target"]))
    return sorted((f.outcome.value, f.subject, f.expected.en if f.expected else "") for f in examine(check, context))
