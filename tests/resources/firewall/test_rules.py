"""One rule in the words of every tool; and real tools take the lines of a finding: they open exactly what they say.

firewalld and ufw run in a network namespace with a mount namespace of their own, so that the machine's settings stay
untouched.
"""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Iterator, Sequence

import pytest
from helpers.front_ends import Run, enabled_ufw, running_firewalld
from helpers.namespaces import PEERS, Pair, agree, disagreement, needs, told, verdicts
from hypothesis import given
from hypothesis import strategies as st

from envtune import intervals
from envtune.audit import examine
from envtune.catalog import load
from envtune.context.open import open_context
from envtune.firewall.iptables.save import parse_save
from envtune.job.target import TargetOptions
from envtune.model import Finding, Outcome
from envtune.resources.firewall.rules import AcceptRule, lines_to_type, nft_rule, port_groups, zone_of
from envtune.snapshot.host import SnapshotHost

PORTS = ((29688, 29688), (60000, 60031))
SAVED = "*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT %s [0:0]\n%sCOMMIT\n"


def typed(saved: str, rule: AcceptRule, front_end: str = "") -> tuple[str, ...]:
    """The lines for the rule, where the last rule of these tables closes the ports."""
    (table,) = parse_save(saved, 4)
    table.source = "iptables-save"
    closing = next(rule for chain in table.chains.values() for rule in chain.rules)
    return tuple(str(command.line) for command in lines_to_type([table], closing, front_end, rule))


def test_several_peers_and_many_ports() -> None:
    saved = SAVED % ("ACCEPT", "-A INPUT -j REJECT\n")
    many = intervals.union((port, port) for port in range(1000, 1040, 2))
    first, second = typed(saved, AcceptRule(many, ("192.0.2.1", "192.0.2.8/31"), 4))
    assert first.startswith("sudo iptables -I INPUT -p tcp -s 192.0.2.1,192.0.2.8/31 -m multiport --dports 1000,")
    assert first.count(",") == 15 and second.count(",") == 5, "15 ports a rule, and the comma between the peers"
    many_peers = [f"192.0.2.{n}" for n in range(1, 20, 2)]
    assert typed(saved, AcceptRule(PORTS, many_peers, 4)) == (), "more peers than anybody would paste"
    assert typed(saved, AcceptRule(PORTS, (), 4)) == (), "nobody to let in"
    assert len(typed(saved, AcceptRule(PORTS, ("192.0.2.1", "192.0.2.3"), 4), "ufw")) == 2


def test_a_rule_on_the_way_out_is_not_undone_by_one_on_the_way_in() -> None:
    assert typed(SAVED % ("ACCEPT", "-A OUTPUT -j DROP\n"), AcceptRule(PORTS, ("192.0.2.1",), 4)) == ()
    assert lines_to_type([], None, "", AcceptRule(PORTS, ("192.0.2.1",), 4)) == ()


def test_the_words_for_the_shell() -> None:
    saved = SAVED % ("ACCEPT", "-A INPUT -j REJECT\n")
    lines = typed(saved, AcceptRule(((22, 22),), ("192.0.2.1",), 4), "firewalld")
    rule = 'rule family="ipv4" source address="192.0.2.1" port port="22" protocol="tcp" accept'
    assert lines == tuple(f"sudo firewall-cmd {mode}--add-rich-rule='{rule}'" for mode in ("", "--permanent "))
    assert " ".join(nft_rule(AcceptRule(PORTS, ("2001:db8::7",), 6, "envtune:1"))) == (
        'ip6 saddr 2001:db8::7 tcp dport { 29688, 60000-60031 } accept comment "envtune:1"'
    )


@pytest.mark.parametrize(
    ("chain", "zone"),
    [
        ("filter_IN_public", "public"),
        ("filter_IN_my_zone_allow", "my_zone"),
        ("IN_drop_deny", "drop"),
        ("filter_IN_policy_allow-host-ipv6_allow", ""),
        ("filter_INPUT", ""),
    ],
)
def test_the_zone_of_a_chain(chain: str, zone: str) -> None:
    assert zone_of(chain) == zone


@given(st.lists(st.tuples(st.integers(1, 65535), st.integers(0, 3)), min_size=1, max_size=60))
def test_a_multiport_names_at_most_fifteen(pairs: list[tuple[int, int]]) -> None:
    ports = intervals.union((low, min(low + more, 65535)) for low, more in pairs)
    groups = list(port_groups(ports))
    assert tuple(pair for group in groups for pair in group) == ports
    assert all(sum(1 if low == high else 2 for low, high in group) <= 15 for group in groups)


# ---------------------------------------------------------------------- real tools


def with_real_tools(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.firewall(pytest.mark.root(pytest.mark.slow(test)))


@pytest.fixture
def pair() -> Iterator[Pair]:
    needs("nft", "iptables", "iptables-legacy", "unshare", "nsenter")
    with Pair() as both:
        yield both


@pytest.fixture(params=["nftables", "iptables"])
def firewalld(pair: Pair, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Run]:
    with running_firewalld(pair, tmp_path, request.param) as run:
        yield run


@pytest.fixture
def ufw(pair: Pair, tmp_path: Path) -> Iterator[Run]:
    with enabled_ufw(pair, tmp_path) as run:
        yield run


def findings(pair: Pair) -> tuple[Finding, ...]:
    host = SnapshotHost({**pair.recorded().data, "environ": {"MASTER_PORT": "29688"}})
    context = open_context(host, TargetOptions(peers=(PEERS[0],)))
    return examine(next(check for check in load().checks if check.id == "NET004"), context)


def mend(pair: Pair, run: Run, owner: str) -> list[str]:
    """Closed, then open for the peer after typing what the findings say; the lines typed."""
    assert disagreement(pair, verdicts(told(pair).tables)) == ""
    assert not any(pair.reach().values())
    found = findings(pair)
    assert [(one.outcome, one.subject) for one in found] == [
        (Outcome.FAIL, "MASTER_PORT 29688"),
        (Outcome.FAIL, "HCCL 60000-60031"),
    ]
    assert all(one.expected is not None and owner in one.expected.en for one in found)
    lines = [str(command.line).replace("sudo ", "") for one in found for command in one.commands]
    for line in lines:
        run(line)
    reached = pair.reach()
    assert {key for key, open_ in reached.items() if open_} == {
        (PEERS[0], port) for port in (29688, 60000, 60015, 60031)
    }
    assert agree(verdicts(told(pair).tables), reached) == ""
    return lines


def undo(pair: Pair, run: Run, lines: Sequence[str]) -> None:
    for line in lines:
        run(line.replace("--add-rich-rule", "--remove-rich-rule").replace("ufw allow", "ufw delete allow"))
    assert not any(pair.reach().values())


@with_real_tools
def test_firewalld(pair: Pair, firewalld: Run) -> None:
    lines = mend(pair, firewalld, "firewalld")
    assert len(lines) == 4, "two rules, each to runtime and to permanent"
    assert all(line.startswith("firewall-cmd") and "--zone=drop" in line and "--reload" not in line for line in lines)
    permanent = firewalld("firewall-cmd --permanent --zone=drop --list-rich-rules").stdout
    assert 'port="60000-60031"' in permanent and 'port="29688"' in permanent
    undo(pair, firewalld, lines)


@with_real_tools
def test_ufw(pair: Pair, ufw: Run) -> None:
    lines = mend(pair, ufw, "ufw")
    assert len(lines) == 2
    undo(pair, ufw, lines)


@with_real_tools
@pytest.mark.parametrize("command", ["nft", "iptables", "iptables-legacy"])
def test_the_commands_of_a_finding_open_the_ports_and_no_others(pair: Pair, command: str) -> None:
    """What `check` tells the user to type does what it says: for the peer that is put in, and for nobody else."""
    if command == "nft":
        pair.nft(
            "table inet f {\n chain late {\n tcp dport 60000-60040 reject\n accept\n }\n chain input {\n"
            " type filter hook input priority 0; policy drop;\n ct state established accept\n jump late\n }\n}\n"
        )
    else:
        pair.run([command, "-A", "INPUT", "-m", "conntrack", "--ctstate", "ESTABLISHED", "-j", "ACCEPT"])
        pair.run([command, "-P", "INPUT", "DROP"])
    before = pair.reach()
    assert not any(before[peer, 60000] for peer in PEERS)
    host = SnapshotHost({**pair.recorded().data, "environ": {}})
    context = open_context(host, TargetOptions(peers=(PEERS[0],)))
    (found,) = examine(next(one for one in load().checks if one.id == "NET004"), context)
    assert (found.outcome, found.subject) == (Outcome.FAIL, "HCCL 60000-60031")
    (typed_line,) = found.commands
    line = str(typed_line.line)
    assert typed_line.kind == "fix" and line.startswith(f"sudo {command} ")
    pair.run(["sh", "-c", line.replace("sudo ", "")])
    opened = {PEERS[0]: {60000, 60015, 60031}}
    after = pair.reach()
    assert after == {key: was or key[1] in opened.get(key[0], ()) for key, was in before.items()}
