"""firewall.allow: what its rules rest on, for whom they hold, and what no plan may do to a firewall."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from helpers.cases import planned, the_case
from helpers.examples import example_context
from helpers.rule_walks import recorded

from envtune.audit import examine
from envtune.catalog import load
from envtune.fix.plan import make_plan
from envtune.fix.policy import refusal
from envtune.model import FixOptions, Outcome

CHECK = next(check for check in load().checks if check.id == "NET004")
PEER = "198.51.100.7"


def test_undo_finds_its_rule_by_the_comment() -> None:
    (change,) = planned(the_case("firewall/allow/nftables-before-the-final-reject")).plan.changes
    assert change.after.splitlines()[1:] == change.before.splitlines()
    (operation,) = change.operations
    mark = operation["argv"][-1].strip('"')
    listing = f'\t\ttcp dport 1 accept comment "other" # handle 3\n\t\taccept comment "{mark}" # handle 42\n'
    found = re.search(operation["undo"]["find"]["pattern"], listing)
    assert found is not None and found["handle"] == "42"


def test_firewalld_whose_last_reject_is_not_in_a_zone() -> None:
    """Before firewalld 1.0 the zones' chains only return; the zone is the one whose opening helps."""
    listing = json.loads(recorded("firewalld-public.json"))
    old = [
        item
        for item in listing["nftables"]
        if not ("rule" in item and item["rule"]["chain"] == "filter_IN_public" and "reject" in item["rule"]["expr"][-1])
    ]
    assert len(old) == len(listing["nftables"]) - 1
    commands = {"nft -j list ruleset": json.dumps({"nftables": old}), "firewall-cmd --state": "running\n"}
    context = example_context({"like": "net", "commands": commands, "target": {"peers": [PEER]}})
    plan = make_plan(examine(CHECK, context), load().playbooks, context, FixOptions(peers=(PEER,)))
    assert [change.target for change in plan.changes] == [
        "firewalld zone public (runtime)",
        "firewalld zone public (permanent)",
    ]
    assert "filter_INPUT" not in str([change.operations for change in plan.changes])


ACCEPTED = """table inet f {
\tchain input {
\t\ttype filter hook input priority filter; policy drop;
\t\tct state established,related accept
\t\tip saddr 198.51.100.7 tcp dport 60000-60031 accept
\t}
}
"""


@pytest.mark.parametrize(
    ("peers", "outcome"),
    [
        ((), Outcome.UNKNOWN),
        ((PEER,), Outcome.PASS),
        ((PEER, "198.51.100.8"), Outcome.FAIL),
        (("192.0.2.10",), Outcome.NOTAPPLICABLE),  # this host itself
    ],
)
def test_after_the_rule_the_check_passes_for_these_peers_and_for_no_others(
    peers: tuple[str, ...], outcome: Outcome
) -> None:
    commands = {"nft -j list ruleset": {"rc": 1}, "nft list ruleset": ACCEPTED}
    example = {"like": "net", "commands": commands, "target": {"peers": list(peers)} if peers else None}
    assert examine(CHECK, example_context(example))[0].outcome is outcome


COMMENT = r'( -m comment --comment| comment) "?envtune:[0-9a-f]+"?'


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("nftables-at-the-end-of-a-chain", "saddr"),
        ("iptables-before-the-reject-of-centos", "-p"),
        ("ufw-drop", "allow"),
        ("firewalld-on-nftables", "firewall-cmd"),
    ],
)
def test_people_type_the_rule_that_a_fix_runs(name: str, start: str) -> None:
    """But for the comment by which envtune finds its rule again."""
    case = planned(the_case(f"firewall/allow/{name}"))
    typed = [
        " ".join(shlex.split(line)) for finding in case.findings for line in (str(one.line) for one in finding.commands)
    ]
    operations = [operation for change in case.plan.changes for operation in change.operations]
    run = [re.sub(COMMENT, "", " ".join(operation["argv"])) for operation in operations]
    assert typed and all(line.startswith("sudo ") for line in typed)
    assert [line[line.index(start) :] for line in typed] == [line[line.index(start) :] for line in run]


# ---------------------------------------------------------------------- refusals

MARK = "-m comment --comment envtune:0123456789ab -j ACCEPT"
NEVER = [
    "nft flush ruleset",
    "nft delete table inet f",
    "nft add rule inet f input accept",
    'nft insert rule inet f input tcp dport 60000-60031 accept comment "envtune:0123456789ab"',
    'nft insert rule inet f input ip saddr 0.0.0.0/0 tcp dport 60000-60031 accept comment "envtune:0123456789ab"',
    'nft insert rule inet f input ip saddr { 10.0.0.1, 0.0.0.0/1 } tcp dport 1-65535 accept comment "envtune:01ab"',
    "nft add chain inet f input { policy accept ; }",
    "nft -f /tmp/rules",
    "iptables -F",
    "iptables -P INPUT ACCEPT",
    "iptables -w -I INPUT 1 -j ACCEPT",
    f"iptables -w -I INPUT 1 -p tcp -m multiport --dports 60000:60031 {MARK}",
    f"iptables -w -I INPUT 1 -p tcp -s 0.0.0.0/0 -m multiport --dports 60000:60031 {MARK}",
    f"ip6tables -w -I INPUT 1 -p tcp -s ::/0 -m multiport --dports 60000:60031 {MARK}",
    "iptables -w -D INPUT -j DROP",
    "ufw disable",
    "ufw default allow incoming",
    "ufw allow 60000:60031/tcp",
    "ufw allow from any to any port 60000:60031 proto tcp",
    "ufw delete deny from 10.0.0.1 to any port 22 proto tcp",
    "firewall-cmd --reload",
    "firewall-cmd --runtime-to-permanent",
    "firewall-cmd --set-default-zone=trusted",
    "firewall-cmd --zone=public --add-port=60000-60031/tcp",
    "firewall-cmd --zone=trusted --add-interface=eth0",
    "ufw allow from 10.0.0.1 to any port 60000:60031",
    "ufw allow proto udp from 10.0.0.1 to any port 60000:60031",
    "systemctl stop firewalld",
    "systemctl disable --now nftables.service",
    "systemctl mask ufw",
]


@pytest.mark.parametrize("line", NEVER)
def test_never(line: str) -> None:
    """Not as the step, not as its way back, not as its check, whoever wrote the plan."""
    ok = ["test", "-e", "/etc/hostname"]
    words = line.split()
    for operation in (
        {"op": "run", "argv": words, "check": {"argv": ok}},
        {"op": "run", "argv": ok, "check": {"argv": words}},
        {"op": "run", "argv": ok, "check": {"argv": ok}, "undo": {"argv": words}},
    ):
        assert refusal(operation) is not None


def test_never_a_rich_rule_for_everybody() -> None:
    for rule in (
        'rule family="ipv4" port port="60000-60031" protocol="tcp" accept',
        'rule family="ipv4" source address="0.0.0.0/0" port port="60000-60031" protocol="tcp" accept',
        'rule family="ipv4" source address="10.0.0.1" accept',
    ):
        argv = ["firewall-cmd", "--zone=public", f"--add-rich-rule={rule}"]
        assert refusal({"op": "run", "argv": argv, "check": {"argv": ["firewall-cmd", "--state"]}}) is not None


@pytest.mark.parametrize("words", ["allow {} proto tcp", "allow proto tcp {}"], ids=["of 0.1.0", "of today"])
def test_a_rule_for_a_peer_is_allowed_in_the_words_of_every_release(words: str) -> None:
    line = "ufw " + words.format("from 10.0.0.1 to any port 60000:60031")
    check = {"argv": ["ufw", "show", "added"], "contains": "x"}
    undo = {"argv": line.replace("allow", "delete allow").split()}
    argv = [*line.split(), "comment", "envtune:0123456789ab"]
    assert refusal({"op": "run", "argv": argv, "check": check, "undo": undo}) is None
