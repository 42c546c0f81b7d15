"""A job on a single node meets over lo: a packet filter that drops even there is a failure."""

from __future__ import annotations

import pytest
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.model import Outcome

DROP = "*filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n%sCOMMIT\n"


@pytest.mark.parametrize(
    ("rules", "outcome"),
    [
        ("", Outcome.FAIL),
        ("-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n", Outcome.FAIL),
        ("-A INPUT -i lo -j ACCEPT\n", Outcome.NOTAPPLICABLE),
        ("-A INPUT -s 127.0.0.0/8 -j ACCEPT\n", Outcome.NOTAPPLICABLE),
    ],
)
def test_over_lo(rules: str, outcome: Outcome) -> None:
    host = {
        "like": "net",
        "environ": {"NNODES": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29688"},
        "files": {"/proc/net/ip_tables_names": "filter\n"},
        "commands": {"iptables-legacy-save": DROP % rules},
    }
    findings = examine(next(one for one in load().checks if one.id == "NET004"), example_context(host))
    assert {found.outcome for found in findings} == {outcome}, findings
