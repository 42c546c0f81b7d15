"""POL001: the facts of a host against the golden values of the policy, a check for each fact."""

from __future__ import annotations

from typing import Iterator, Mapping

from envtune.messages import Message
from envtune.model import Check, Expectation, Severity

ID = "POL001"
CHECK = Check(
    id=ID,
    name="fact-differs-from-policy",
    title=Message("The host differs from the site's policy"),
    status="stable",
    severity=Severity.MEDIUM,
    rationale=Message(
        "The site's policy defines the host's expected configuration (`facts`). A host with another "
        "driver, CANN or kernel than the other hosts of a job can fail or slow down the whole job."
    ),
    origin="outside",
    probe="system.fact",
    arguments={},
    expect={},
    tags=("fleet", "preflight"),
    remedy=Message("Change the host to match the policy, or change `facts` in the policy."),
    by_policy=True,
)


def golden_checks(facts: Mapping[str, Expectation]) -> Iterator[Check]:
    """Yield the check of every fact that has a golden value."""
    for name, expectation in facts.items():
        yield CHECK._replace(arguments={"name": name}, expect=expectation)


def overview(facts: Mapping[str, Expectation]) -> Check:
    """Return the check for explanations: about all facts that have a golden value."""
    return CHECK._replace(arguments={"name": ", ".join(facts)}, expect={})
