"""firewall.allow on recorded rule sets: where the rule goes, for whom, and what is refused."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any, Mapping, Optional, Sequence

import pytest
from helpers.examples import shared_host
from helpers.rule_walks import recorded

from envtune.audit import examine
from envtune.catalog import load
from envtune.catalog.examples import example_data
from envtune.context import Context
from envtune.context.open import open_context
from envtune.executor.plan import plan_fault
from envtune.fix.plan import Plan, executable, make_plan
from envtune.fix.policy import refusal
from envtune.job.target import TargetOptions
from envtune.model import Change, Finding, FixOptions, Outcome
from envtune.snapshot.host import SnapshotHost

CHECK = next(check for check in load().checks if check.id == "NET004")
PEER = "198.51.100.7"
JSON, TEXT, SAVE, LEGACY = "nft -j list ruleset", "nft list ruleset", "iptables-save", "iptables-legacy-save"
NO_NFT = {JSON: {"error": "missing"}, "nft list ruleset": {"error": "missing"}}


def planned(
    commands: Mapping[str, Any],
    peers: Sequence[str] = (PEER,),
    environ: Optional[Mapping[str, str]] = None,
    files: Optional[Mapping[str, Any]] = None,
) -> Plan:
    """What `fix NET004 --peer ...` plans on a host with these rule sets."""
    findings, context = closed(commands, peers, environ, files)
    plan = make_plan(findings, load().playbooks, context, FixOptions(peers=tuple(peers)))
    assert plan_fault(executable(plan.changes)) is None
    return plan


def closed(
    commands: Mapping[str, Any],
    peers: Sequence[str] = (PEER,),
    environ: Optional[Mapping[str, str]] = None,
    files: Optional[Mapping[str, Any]] = None,
) -> tuple[tuple[Finding, ...], Context]:
    """The findings of NET004 on a host with these rule sets, which keep the peers out."""
    rows = {line: row if isinstance(row, (str, dict)) else dict(row) for line, row in commands.items()}
    data = example_data({"like": "net", "environ": environ or {}, "files": files or {}, "commands": rows}, shared_host)
    context = open_context(SnapshotHost(data), TargetOptions(peers=tuple(peers)))
    findings = examine(CHECK, context)
    assert findings[0].outcome is Outcome.FAIL, findings[0]
    return findings, context


def only(plan: Plan) -> Change:
    assert not plan.skipped, plan.skipped
    (change,) = plan.changes
    assert (change.safety, change.disruption, change.root, change.undoable) == ("confirm", "none", True, True)
    return change


def lines(change: Change) -> list[str]:
    return [" ".join(operation["argv"]) for operation in change.operations]


def reason(plan: Plan) -> str:
    assert not plan.changes
    (skipped,) = plan.skipped
    assert skipped.reason.zh and skipped.reason.zh != skipped.reason.en
    return skipped.reason.en


def drops(
    family: str, name: str, chain: str, *rules: str, policy: str = "drop", prio: int = 0, hook: str = "input"
) -> str:
    """A table with one base chain, as `nft -j` lists it; each rule is the JSON of its expressions."""
    start = f'{{"table": {{"family": "{family}", "name": "{name}", "handle": 1}}}}, {{"chain": {{"family": "{family}", "table": "{name}", "name": "{chain}", "handle": 1, "type": "filter", "hook": "{hook}", "prio": {prio}, "policy": "{policy}"}}}}'  # noqa: E501
    rest = [
        f'{{"rule": {{"family": "{family}", "table": "{name}", "chain": "{chain}", "handle": {number + 7}, "expr": [{rule}]}}}}'  # noqa: E501
        for number, rule in enumerate(rules)
    ]
    return ", ".join([start, *rest])


def nft(*tables: str) -> dict[str, str]:
    return {JSON: '{"nftables": [{"metainfo": {"json_schema_version": 1}}, ' + ", ".join(tables) + "]}"}


ESTABLISHED = (
    '{"match": {"op": "in", "left": {"ct": {"key": "state"}}, "right": ["established", "related"]}}, {"accept": null}'
)
REJECT = '{"reject": {"type": "icmpx", "expr": "port-unreachable"}}'
LOG = '{"log": {"prefix": "in: "}}'


# ---------------------------------------------------------------------- where the rule goes


def test_nftables_before_the_final_reject_and_the_log_of_it() -> None:
    change = only(planned(nft(drops("inet", "f", "input", ESTABLISHED, LOG, REJECT, policy="accept"))))
    (line,) = lines(change)
    assert re.fullmatch(
        f"nft insert rule inet f input position 8 ip saddr {PEER} tcp dport 60000-60031 accept "
        'comment "envtune:[0-9a-f]{12}"',
        line,
    )
    assert change.target == "nftables inet f input" and change.view == "live"
    assert change.after.splitlines()[1:] == change.before.splitlines()
    (operation,) = change.operations
    mark = operation["argv"][-1].strip('"')
    assert operation["undo"]["argv"][-2:] == ["handle", "{handle}"]
    listing = f'\t\ttcp dport 1 accept comment "other" # handle 3\n\t\taccept comment "{mark}" # handle 42\n'
    found = re.search(operation["undo"]["find"]["pattern"], listing)
    assert found is not None and found["handle"] == "42"


def test_nftables_at_the_end_of_a_chain_that_drops_by_policy() -> None:
    (line,) = lines(only(planned(nft(drops("inet", "f", "input", ESTABLISHED)))))
    assert line.startswith("nft add rule inet f input ip saddr")


def test_nftables_two_base_chains_get_a_rule_each() -> None:
    tables = (
        drops("inet", "f", "input", ESTABLISHED),
        drops("inet", "g", "late", ESTABLISHED, REJECT, policy="accept", prio=10),
    )
    plan = planned(nft(*tables))
    assert [change.target for change in plan.changes] == ["nftables inet f input", "nftables inet g late"]


def test_nftables_as_text_without_the_numbers_of_rules_goes_to_the_head() -> None:
    text = "table inet f {\n\tchain input {\n\t\ttype filter hook input priority filter; policy accept;\n\t\tct state established accept\n\t\treject\n\t}\n}\n"  # noqa: E501
    plan = planned({JSON: {"rc": 1, "stderr": "Error: JSON support not compiled-in\n"}, TEXT: text, SAVE: ""})
    (line,) = lines(only(plan))
    assert line.startswith("nft insert rule inet f input ip saddr")


def test_the_ports_of_the_master_and_of_hccl_in_one_rule() -> None:
    (line,) = lines(only(planned(nft(drops("inet", "f", "input", ESTABLISHED)), environ={"MASTER_PORT": "29688"})))
    assert "tcp dport { 29688, 60000-60031 } accept" in line


def test_a_port_that_is_open_already_is_not_opened_again() -> None:
    accept = '{"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": 29688}}, {"accept": null}'  # noqa: E501
    plan = planned(nft(drops("inet", "f", "input", ESTABLISHED, accept)), environ={"MASTER_PORT": "29688"})
    (line,) = lines(only(plan))
    assert "29688" not in line and "60000-60031" in line


def test_iptables_before_the_reject_of_centos() -> None:
    saved = (
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n"
        "-A INPUT -m state --state RELATED,ESTABLISHED -j ACCEPT\n-A INPUT -i lo -j ACCEPT\n"
        "-A INPUT -j REJECT --reject-with icmp-host-prohibited\nCOMMIT\n"
    )
    files = {
        "/proc/modules": "ip_tables 27126 1 iptable_filter, Live 0x0000000000000000\n",
        "/proc/net/ip_tables_names": "filter\n",
        "/etc/sysconfig/iptables": saved,
    }
    change = only(planned({**NO_NFT, SAVE: saved}, files=files))
    (line,) = lines(change)
    assert re.fullmatch(
        f"iptables -w -I INPUT 3 -p tcp -s {PEER} -m multiport --dports 60000:60031 "
        "-m comment --comment envtune:[0-9a-f]{12} -j ACCEPT",
        line,
    )
    (operation,) = change.operations
    assert " ".join(operation["undo"]["argv"]) == line.replace("-I INPUT 3", "-D INPUT")
    assert " ".join(operation["check"]["argv"]) == line.replace("-I INPUT 3", "-C INPUT")
    assert change.note is not None and "/etc/sysconfig/iptables" in change.note.en
    assert "/etc/sysconfig/iptables" in change.rivals[0].en


def test_a_chain_that_iptables_made_on_nftables_is_opened_by_iptables() -> None:
    """A set of nft in it would make iptables call its own table incompatible."""
    table = drops("ip", "filter", "INPUT", ESTABLISHED)
    for version, program in (
        ({"iptables-nft -V": "iptables v1.8.9 (nf_tables)\n"}, "iptables-nft"),
        ({"iptables-nft -V": {"error": "missing"}, "iptables -V": "iptables v1.8.4 (nf_tables)\n"}, "iptables"),
    ):
        (line,) = lines(only(planned({**nft(table), **version})))
        assert line.startswith(f"{program} -w -A INPUT -p tcp -s {PEER} ")
    told = {"iptables-nft -V": {"error": "missing"}, "iptables -V": "iptables v1.8.4 (legacy)\n"}
    assert "is not installed now" in reason(planned({**nft(table), **told}))


def test_iptables_that_is_the_legacy_one_tells_its_rules_once() -> None:
    """Debian lets an administrator point `iptables` at iptables-legacy: both commands then list the same tables."""
    rules = "*filter\n:INPUT DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n-A INPUT -i lo -j ACCEPT\nCOMMIT\n"
    files = {"/proc/net/ip_tables_names": "filter\n"}
    same = "# Generated by iptables-save v1.8.9 on Thu Jan  2 03:04:05 2025\n" + rules
    plan = planned({**NO_NFT, SAVE: same, LEGACY: same}, files=files)
    assert [change.target for change in plan.changes] == ["iptables-legacy filter INPUT"]
    other = same.replace("v1.8.9", "v1.8.9 (nf_tables)")
    plan = planned({**NO_NFT, SAVE: other, LEGACY: same}, files=files)
    assert [change.target for change in plan.changes] == ["iptables filter INPUT", "iptables-legacy filter INPUT"]


def test_chains_that_ufw_left_behind_hold_nothing_up() -> None:
    saved = (
        "*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:ufw-user-input - [0:0]\n"
        "-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT\n-A INPUT -j REJECT\nCOMMIT\n"
    )
    (line,) = lines(only(planned({**NO_NFT, SAVE: saved}, files={"/proc/net/ip_tables_names": "filter\n"})))
    assert line.startswith(f"iptables -w -I INPUT 2 -p tcp -s {PEER} ")


def test_nftables_and_iptables_legacy_both() -> None:
    legacy = "*filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT\nCOMMIT\n"  # noqa: E501
    files = {"/proc/net/ip_tables_names": "filter\n"}
    plan = planned({**nft(drops("inet", "f", "input", ESTABLISHED)), LEGACY: legacy}, files=files)
    assert [change.target for change in plan.changes] == ["nftables inet f input", "iptables-legacy filter INPUT"]


@pytest.mark.parametrize(
    "commands",
    [
        {JSON: recorded("firewalld-public.json")},
        {TEXT: recorded("firewalld-rich.nft"), JSON: {"error": "missing"}, SAVE: ""},
        {**NO_NFT, SAVE: recorded("firewalld-rich.iptables-save")},
    ],
    ids=["nftables", "text", "iptables"],
)
def test_firewalld_gets_the_rule_in_both_views_of_the_zone_of_the_peers(commands: Mapping[str, Any]) -> None:
    files = {"/proc/net/ip_tables_names": "filter\n"} if SAVE in commands else {}
    plan = planned({**commands, "firewall-cmd --state": "running\n"}, files=files)
    assert not plan.skipped, plan.skipped
    now, later = plan.changes
    assert (now.view, later.view) == ("live", "boot")
    rule = f'rule family="ipv4" source address="{PEER}" port port="60000-60031" protocol="tcp" accept'
    assert lines(now) == [f"firewall-cmd --zone=public --add-rich-rule={rule}"]
    assert lines(later) == [f"firewall-cmd --permanent --zone=public --add-rich-rule={rule}"]
    for change in plan.changes:
        (operation,) = change.operations
        assert operation["undo"]["argv"][-1] == f"--remove-rich-rule={rule}"
        assert operation["check"]["argv"][-1] == f"--query-rich-rule={rule}"


def test_firewalld_whose_last_reject_is_not_in_a_zone() -> None:
    """Before firewalld 1.0 the zones' chains only return; the zone is the one whose opening helps."""
    listing = json.loads(recorded("firewalld-public.json"))
    old = [
        item
        for item in listing["nftables"]
        if not ("rule" in item and item["rule"]["chain"] == "filter_IN_public" and "reject" in item["rule"]["expr"][-1])
    ]
    assert len(old) == len(listing["nftables"]) - 1
    plan = planned({JSON: json.dumps({"nftables": old}), "firewall-cmd --state": "running\n"})
    assert [change.target for change in plan.changes] == [
        "firewalld zone public (runtime)",
        "firewalld zone public (permanent)",
    ]
    assert "filter_INPUT" not in "".join(line for change in plan.changes for line in lines(change))


def test_firewalld_that_stopped_and_left_its_rules() -> None:
    state = {"rc": 252, "stderr": "not running\n"}
    plan = planned({JSON: recorded("firewalld-public.json"), "firewall-cmd --state": state})
    assert "does not run now: not running" in reason(plan)


@pytest.mark.parametrize("name", ["ufw-drop.iptables-save", "ufw-peer.iptables-save"])
def test_ufw(name: str) -> None:
    change = only(planned({**NO_NFT, SAVE: recorded(name)}, files={"/proc/net/ip_tables_names": "filter\n"}))
    (operation,) = change.operations
    line = f"ufw allow proto tcp from {PEER} to any port 60000:60031"
    listed = f"ufw allow from {PEER} to any port 60000:60031 proto tcp"
    mark = operation["argv"][-1]
    assert lines(change) == [f"{line} comment {mark}"]
    assert " ".join(operation["undo"]["argv"]) == line.replace("allow", "delete allow")
    assert operation["check"] == {"argv": ["ufw", "show", "added"], "contains": f"{listed} comment '{mark}'"}


def test_ipv6_peers_beside_others() -> None:
    """An inet chain that drops is opened for each kind of address; the finding says which is which."""
    plan = planned(nft(drops("inet", "f", "input", ESTABLISHED)), peers=(PEER, "2001:db8::7"))
    assert not plan.skipped, plan.skipped
    four, six = (lines(change)[0] for change in plan.changes)
    assert f" ip saddr {PEER} " in four and " ip6 saddr 2001:db8::7 " in six


COMMENT = r'( -m comment --comment| comment) "?envtune:[0-9a-f]+"?'
UFW = {**NO_NFT, SAVE: recorded("ufw-drop.iptables-save")}
CENTOS = "*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A INPUT -i lo -j ACCEPT\n-A INPUT -j REJECT\nCOMMIT\n"


@pytest.mark.parametrize(
    ("commands", "start"),
    [
        (nft(drops("inet", "f", "input", ESTABLISHED)), "saddr"),
        ({**NO_NFT, SAVE: CENTOS}, "-p"),
        (UFW, "allow"),
        ({JSON: recorded("firewalld-public.json"), "firewall-cmd --state": "running\n"}, "firewall-cmd"),
    ],
    ids=["nftables", "iptables", "ufw", "firewalld"],
)
def test_people_type_the_rule_that_a_fix_runs(commands: Mapping[str, Any], start: str) -> None:
    """But for the comment by which envtune finds its rule again."""
    files = {"/proc/net/ip_tables_names": "filter\n"} if SAVE in commands else {}
    findings, _ = closed(commands, files=files, environ={"MASTER_ADDR": PEER, "NNODES": "2", "NODE_RANK": "1"})
    plan = planned(commands, files=files)
    typed = [" ".join(shlex.split(line)) for finding in findings for line in finding.commands]
    run = [re.sub(COMMENT, "", line) for change in plan.changes for line in lines(change)]
    assert all(line.startswith("sudo ") for line in typed)
    assert [line[line.index(start) :] for line in typed] == [line[line.index(start) :] for line in run]


# ---------------------------------------------------------------------- for whom


def test_without_peers_nothing_is_opened() -> None:
    assert "give --peer ADDRESS" in reason(planned(nft(drops("inet", "f", "input", ESTABLISHED)), peers=()))


def test_the_peers_that_the_job_itself_names_are_enough() -> None:
    environ = {"NNODES": "2", "MASTER_ADDR": PEER, "NODE_RANK": "1"}
    change = only(planned(nft(drops("inet", "f", "input", ESTABLISHED)), peers=(), environ=environ))
    assert f"ip saddr {PEER} " in lines(change)[0]


def test_neighbours_become_the_fewest_networks_and_this_host_is_none_of_them() -> None:
    peers = [f"192.0.2.{last}" for last in (8, 9, 10, 11)]  # 192.0.2.10 is this host
    (line,) = lines(only(planned(nft(drops("inet", "f", "input", ESTABLISHED)), peers=peers)))
    assert "ip saddr { 192.0.2.8/31, 192.0.2.11 } tcp" in line


@pytest.mark.parametrize("peers", [("0.0.0.0/1", "128.0.0.0/1"), ("0.0.0.0/0",), ("128.0.0.0/2", PEER)])
def test_nearly_everybody_is_refused(peers: tuple[str, ...]) -> None:
    assert "nearly everybody" in reason(planned(nft(drops("inet", "f", "input", ESTABLISHED)), peers=peers))


def test_after_the_rule_the_same_check_passes_for_these_peers_and_for_no_others() -> None:
    source, port = ({"payload": {"protocol": of, "field": name}} for of, name in (("ip", "saddr"), ("tcp", "dport")))
    asked = ((source, PEER), (port, {"range": [60000, 60031]}))
    rule = json.dumps(
        [*({"match": {"op": "==", "left": left, "right": right}} for left, right in asked), {"accept": None}]
    )[1:-1]
    commands = nft(drops("inet", "f", "input", ESTABLISHED, rule))
    host = SnapshotHost(example_data({"like": "net", "commands": commands}, shared_host))

    def outcome(*peers: str) -> Outcome:
        return examine(CHECK, open_context(host, TargetOptions(peers=peers)))[0].outcome

    assert outcome() is Outcome.UNKNOWN
    assert outcome(PEER) is Outcome.PASS
    assert outcome(PEER, "198.51.100.8") is Outcome.FAIL
    assert outcome("192.0.2.10") is Outcome.NOTAPPLICABLE, "this host itself"


# ---------------------------------------------------------------------- what is left to others


def test_the_rule_in_the_way_is_named() -> None:
    out = drops("inet", "o", "out", hook="output")
    assert "`policy drop` (inet o out)" in reason(planned(nft(drops("inet", "f", "input", ESTABLISHED), out)))


def test_an_explicit_denial_of_ufw_is_its_owner_s() -> None:
    saved = recorded("ufw-drop.iptables-save").replace(
        "-A ufw-skip-to-policy-input", f"-A ufw-user-input -s {PEER}/32 -j DROP\n-A ufw-skip-to-policy-input", 1
    )
    plan = planned({**NO_NFT, SAVE: saved}, files={"/proc/net/ip_tables_names": "filter\n"})
    assert f"-A ufw-user-input -s {PEER}/32 -j DROP" in reason(plan)


def test_a_ban_of_fail2ban_is_lifted_there() -> None:
    saved = (
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:f2b-all - [0:0]\n"
        f"-A INPUT -p tcp -j f2b-all\n-A f2b-all -s {PEER}/32 -j REJECT --reject-with icmp-port-unreachable\n"
        "-A f2b-all -j RETURN\nCOMMIT\n"
    )
    plan = planned({**NO_NFT, SAVE: saved}, files={"/proc/net/ip_tables_names": "filter\n"})
    assert "which is fail2ban's" in reason(plan)


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
