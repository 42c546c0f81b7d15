"""An empty set that packets add to: the text and the JSON of nft 1.0.6 give one verdict."""

from __future__ import annotations

import json
from typing import Any, Mapping

import pytest
from helpers.examples import example_context

from envtune.audit import examine
from envtune.catalog import load
from envtune.model import Outcome

TEXT = """table inet t {
	set a {
		type ipv4_addr
%s	}

	chain input {
		type filter hook input priority filter; policy drop;
		iif "lo" accept
		ip saddr @a accept
	}
}
"""
CHAIN = {"family": "inet", "table": "t", "name": "input", "handle": 1, "type": "filter", "hook": "input", "prio": 0}
MATCH = {"op": "==", "left": {"payload": {"protocol": "ip", "field": "saddr"}}, "right": "@a"}
ITEMS = [
    {"table": {"family": "inet", "name": "t", "handle": 1}},
    {"set": {"family": "inet", "name": "a", "table": "t", "type": "ipv4_addr", "handle": 2}},
    {"chain": {**CHAIN, "policy": "drop"}},
    {"rule": {"family": "inet", "table": "t", "chain": "input", "expr": [{"match": MATCH}, {"accept": None}]}},
]
JSON = json.dumps({"nftables": ITEMS})
DYNAMIC, FIXED = TEXT % "\t\tflags dynamic\n", TEXT % ""


@pytest.mark.parametrize(
    ("commands", "outcome"),
    [
        ({"nft -j list ruleset": JSON, "nft list ruleset": DYNAMIC}, Outcome.UNKNOWN),
        ({"nft -j list ruleset": JSON, "nft list ruleset": FIXED}, Outcome.FAIL),
        ({"nft -j list ruleset": {"error": "missing"}, "nft list ruleset": DYNAMIC}, Outcome.UNKNOWN),
        ({"nft -j list ruleset": JSON}, Outcome.UNKNOWN),  # which of the two it is, this does not tell
    ],
)
def test_text_and_json_agree(commands: Mapping[str, Any], outcome: Outcome) -> None:
    host = {"like": "net", "environ": {"MASTER_PORT": "29688"}, "commands": commands}
    findings = examine(next(one for one in load().checks if one.id == "NET004"), example_context(host))
    assert {found.outcome for found in findings} == {outcome}, findings
