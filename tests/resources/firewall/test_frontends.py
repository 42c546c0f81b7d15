"""What firewall-cmd and ufw say of themselves, as tables."""

from __future__ import annotations

import pytest
from helpers.rule_walks import ALL, recorded, walk

from envtune.firewall import Table
from envtune.resources.firewall.frontends import ufw_table, zone_table


@pytest.mark.parametrize(("name", "expected"), [("drop", "closed"), ("peer", "part"), ("any", "open")])
def test_ufw_status(name: str, expected: str) -> None:
    assert walk([ufw_table(recorded(f"ufw-{name}.status"), 4)]) == {expected: ALL}


@pytest.mark.parametrize(
    "table",
    [zone_table(recorded("firewalld-rich.list-all"), 4), ufw_table(recorded("ufw-peer.status"), 4)],
    ids=["firewalld", "ufw"],
)
def test_open_for_the_peer_that_was_named(table: Table) -> None:
    assert walk([table], peer="10.77.0.1") == {"open": ALL}
    assert "open" not in walk([table], peer="10.77.0.9")


def test_every_text_is_read_or_leaves_a_doubt() -> None:
    for text in (
        "",
        "\n",
        "public",
        "public (active)\n  target: %%REJECT%%\n  ports: ²/tcp 1-/tcp -/tcp x\n  rich rules: \n\trule x\n",
    ):
        assert "open" not in walk([zone_table(text, 4)])
    for text in (
        "",
        "Status: active",
        "Status: active\nDefault: deny (incoming)\n\n²/tcp    ALLOW IN    x\nAnywhere on eth0   ALLOW IN  Anywhere\n",
    ):
        assert "open" not in walk([ufw_table(text, 4)])
