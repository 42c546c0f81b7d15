"""A site's own setting below /sys: what is proposed, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.examples import example_context
from helpers.findings import findings

from envtune.context.registry import find_action
from envtune.errors import Skipped
from envtune.model import Change

THP = "/sys/kernel/mm/transparent_hugepage/enabled"
QUEUES = {f"/sys/block/nvme{n}n1/queue/scheduler": "mq-deadline\n" for n in (10, 2)}


def proposed(files: dict[str, Any], *paths: str, value: str = "none", **more: Any) -> list[Change]:
    context = example_context({"files": files})
    return list(find_action("sysfs.write")(context, findings(context), paths=list(paths), value=value, **more))


def test_every_file_of_the_first_pattern_that_matches() -> None:
    changes = proposed(QUEUES, "/sys/block/sd*/queue/scheduler", "/sys/block/nvme*/queue/scheduler")
    assert [(c.subject, c.before, c.after, c.view) for c in changes] == [
        ("/sys/block/nvme2n1/queue/scheduler", "mq-deadline", "none", "live"),
        ("/sys/block/nvme10n1/queue/scheduler", "mq-deadline", "none", "live"),
    ]


def test_a_value_that_the_kernel_does_not_offer_is_left_and_named() -> None:
    files = {"/sys/a/1/mode": "slow", "/sys/a/1/modes": "slow", "/sys/a/2/mode": "slow", "/sys/a/2/modes": "slow fast"}
    (change,) = proposed(files, "/sys/a/*/mode", value="fast", offered="modes")
    assert change.target == "/sys/a/2/mode"
    assert change.note is not None and change.note.en == "left as it is: /sys/a/1/mode: fast is not offered (slow)"


@pytest.mark.parametrize(
    ("files", "path", "reason"),
    [
        ({THP: "never"}, THP, "every file holds never already"),
        ({}, THP, "this kernel has no such file"),
        ({}, "/etc/passwd", "below /sys only"),
        ({}, "/sys/../etc/passwd", "below /sys only"),
        ({"/sys/x": {"link": "/etc/passwd"}, "/etc/passwd": "root"}, "/sys/x", "leads out of /sys"),
    ],
)
def test_nothing_is_proposed(files: dict[str, Any], path: str, reason: str) -> None:
    with pytest.raises(Skipped, match=reason):
        proposed(files, path, value="never")
