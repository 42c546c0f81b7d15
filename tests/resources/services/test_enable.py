"""A site's own service, started at boot."""

from __future__ import annotations

import pytest
from helpers.examples import example_context
from helpers.findings import findings

from envtune.context.registry import find_action
from envtune.errors import Skipped

UNIT = "/usr/lib/systemd/system/irqbalance.service"


def test_an_installed_unit_is_enabled_and_undo_disables_it() -> None:
    context = example_context({"files": {UNIT: "[Unit]\n"}})
    (change,) = find_action("service.enable")(context, findings(context), unit="irqbalance.service")
    assert (change.subject, change.before, change.view) == ("irqbalance.service", "not enabled", "boot")
    (operation,) = change.operations
    assert operation["argv"] == ["systemctl", "enable", "irqbalance.service"]
    assert operation["undo"]["argv"] == ["systemctl", "disable", "irqbalance.service"]


def test_a_unit_that_is_not_installed() -> None:
    context = example_context({})
    with pytest.raises(Skipped, match=r"there is no unit lost\.service"):
        find_action("service.enable")(context, findings(context), unit="lost.service")
