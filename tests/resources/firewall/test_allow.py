"""`envtune fix NET004 --peer` on real packet filters: exactly the ports, for exactly the peer, and back.

A default-drop firewall of each kind stands between two network namespaces. The command line runs on the server, as a
user would type it; what is open is tried by connecting.
"""

# ruff: noqa: E501  (a rule set is a line of a table)

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Collection, Iterator, Sequence

import pytest
from helpers.front_ends import Run, beside_firewalld, enabled_ufw, running_firewalld
from helpers.namespaces import PEERS, Pair, needs

pytestmark = [pytest.mark.firewall, pytest.mark.root, pytest.mark.slow]

OURS = {(PEERS[0], port) for port in (29688, 60000, 60015, 60031)}
MARK = re.compile("envtune:[0-9a-f]{12}")


@pytest.fixture
def pair() -> Iterator[Pair]:
    needs("nft", "iptables", "iptables-legacy", "unshare", "nsenter")
    with Pair() as both:
        yield both


class Server:
    """envtune on the server, with a journal of its own."""

    def __init__(self, pair: Pair, state: Path, run: Run, master_port: str = "MASTER_PORT=29688") -> None:
        self.pair, self.run, self.state = pair, run, state
        env = f"env ENVTUNE_STATE={state} ENVTUNE_HOST_LOCK={state}.lock {master_port} LC_ALL=C.UTF-8"
        self._command = f"{env} {sys.executable} -m envtune"

    def envtune(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.run(f"{self._command} {' '.join(map(shlex.quote, words))}", check=False)

    def plan(self, *peers: str) -> dict[str, Any]:
        named = [word for peer in peers for word in ("--peer", peer)]
        plan: dict[str, Any] = json.loads(self.envtune("fix", "NET004", *named, "--format", "json").stdout)
        return plan

    def apply(self, *peers: str) -> None:
        named = [word for peer in peers for word in ("--peer", peer)]
        done = self.envtune("fix", "NET004", *named, "--apply", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "fixed       NET004" in done.stdout

    def undo(self) -> None:
        done = self.envtune("undo")
        assert done.returncode == 0, done.stdout + done.stderr

    def open(self) -> set[tuple[str, int]]:
        return {key for key, reached in self.pair.reach().items() if reached}


@pytest.fixture
def server(pair: Pair, tmp_path: Path) -> Server:
    def run(line: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return pair.run(["sh", "-c", line], check=check)

    return Server(pair, tmp_path / "state", run)


def story(
    server: Server,
    rules: Callable[[], str],
    was_open: Sequence[tuple[str, int]] = (),
    ours: Collection[tuple[str, int]] = OURS,
) -> list[dict[str, Any]]:
    """Closed; planned, and nothing changed; opened for the peer alone; taken back to the very same rules."""
    before = rules()
    assert server.open() == set(was_open)
    plan = server.plan(PEERS[0])
    changes: list[dict[str, Any]] = plan["changes"]
    assert changes, plan["skipped"]
    assert rules() == before
    server.apply(PEERS[0])
    assert server.open() == set(ours) | set(was_open)
    after = rules()
    added = [line for line in after.splitlines() if line not in before.splitlines()]
    assert added
    assert [line for line in after.splitlines() if line not in added] == before.splitlines(), "no other rule changed"
    server.undo()
    assert server.open() == set(was_open)
    assert rules() == before
    return changes


def nft_rules(pair: Pair) -> Callable[[], str]:
    def rules() -> str:
        return re.sub(r"counter packets \d+ bytes \d+", "counter", pair.run(["nft", "list", "ruleset"]).stdout)

    return rules


def iptables_rules(pair: Pair, *programs: str) -> Callable[[], str]:
    def rules() -> str:
        text = "".join(pair.run([f"{program}-save"]).stdout for program in programs)
        return re.sub(r"^#.*\n|\[\d+:\d+\]", "", text, flags=re.MULTILINE)

    return rules


def chain(name: str, priority: int, policy: str, *rules: str) -> str:
    inside = "\n".join(f"  {rule}" for rule in rules)
    return f"table inet {name} {{\n chain input {{\n  type filter hook input priority {priority}; policy {policy};\n{inside}\n }}\n}}\n"


NFT = {
    "policy drop": chain("f", 0, "drop", "ct state established accept", "iif lo accept"),
    "final reject": chain("f", 0, "accept", "ct state established accept", "iif lo accept", 'log prefix "in: "', "reject"),
    "two base chains": chain("f", 0, "drop", "ct state established accept", "iif lo accept")
    + chain("g", 10, "accept", "ct state established accept", "tcp dport >= 1024 reject with tcp reset"),
    "a chain that others use, too": "table inet f {\n chain deny {\n  tcp dport 60000-60040 counter packets 0 bytes 0 reject\n  drop\n }\n"
    " chain forward {\n  type filter hook forward priority 0; policy accept;\n  jump deny\n }\n"
    " chain input {\n  type filter hook input priority 0; policy accept;\n  ct state vmap { established : accept, invalid : drop }\n  iif lo accept\n  goto deny\n }\n}\n",
    "verdict map before the drop": chain("f", 0, "accept", "ct state established accept", "tcp dport vmap { 23 : drop, 29688 : drop }", "ip saddr 10.77.0.0/24 drop"),
    "before connection tracking": "table inet f {\n chain early {\n  type filter hook prerouting priority -300; policy accept;\n  tcp dport { 22, 29688, 60000-60040 } drop\n }\n}\n",
}  # fmt: skip


@pytest.mark.parametrize("name", NFT)
def test_nftables(server: Server, pair: Pair, name: str) -> None:
    pair.nft(NFT[name])

    changes = story(server, nft_rules(pair))
    assert {change["view"] for change in changes} == {"live"}
    assert len(changes) == (2 if name == "two base chains" else 1)
    assert all("next boot" in change["note"] for change in changes)
    for change in changes:
        assert " forward" not in change["target"] and " deny" not in change["target"], "what is forwarded stays closed"


@pytest.mark.parametrize(
    "last", ["-P INPUT DROP", "-A INPUT -j REJECT --reject-with icmp-host-prohibited", "-A INPUT -j deny"]
)
@pytest.mark.parametrize("program", ["iptables", "iptables-legacy"])
def test_iptables(server: Server, pair: Pair, program: str, last: str) -> None:
    for line in (
        "-N deny",
        "-A deny -p tcp --dport 23 -j RETURN",
        "-A deny -j DROP",
        "-A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
        "-A INPUT -i lo -j ACCEPT",
        "-A INPUT -p tcp --dport 23 -j DROP",
        "-A INPUT -m limit --limit 3/min -j LOG",
        last,
    ):
        pair.run([program, *line.split()])
    (change,) = story(server, iptables_rules(pair, "iptables", "iptables-legacy"))
    assert change["target"] in (f"{program} filter INPUT", f"{program}-nft filter INPUT")


def test_nftables_together_with_iptables_legacy(server: Server, pair: Pair) -> None:
    """Both drop: both are opened, each by its own program."""
    pair.nft(NFT["policy drop"])
    pair.run(["iptables-legacy", "-A", "INPUT", "-m", "conntrack", "--ctstate", "ESTABLISHED", "-j", "ACCEPT"])
    pair.run(["iptables-legacy", "-P", "INPUT", "DROP"])
    first, second = nft_rules(pair), iptables_rules(pair, "iptables-legacy")
    changes = story(server, lambda: first() + second())
    assert [change["target"] for change in changes] == ["nftables inet f input", "iptables-legacy filter INPUT"]


def test_both_kinds_of_iptables(server: Server, pair: Pair) -> None:
    for program in ("iptables-nft", "iptables-legacy"):
        pair.run([program, "-A", "INPUT", "-m", "conntrack", "--ctstate", "ESTABLISHED", "-j", "ACCEPT"])
        pair.run([program, "-A", "INPUT", "-m", "comment", "--comment", "the last", "-j", "DROP"])
    changes = story(server, iptables_rules(pair, "iptables-nft", "iptables-legacy"))
    assert len(changes) == 2


@pytest.mark.parametrize("program", ["nft", "ip6tables", "ip6tables-legacy"])
def test_ipv6_and_ipv4_peers(server: Server, pair: Pair, program: str) -> None:
    """The tools take the rules for addresses of IPv6, and give them back."""
    for name in ("iptables", "ip6tables"):
        if program == "nft":
            pair.nft(NFT["policy drop"])
        else:
            one = program.replace("ip6tables", name)
            pair.run([one, "-A", "INPUT", "-m", "conntrack", "--ctstate", "ESTABLISHED", "-j", "ACCEPT"])
            pair.run([one, "-A", "INPUT", "-p", "tcp", "-j", "DROP"])
    nft, others = nft_rules(pair), iptables_rules(pair, "ip6tables-legacy", "iptables-legacy")
    before = nft() + others()
    server.apply(PEERS[0], "2001:db8::7", "2001:db8:1::/48")
    assert server.open() == OURS
    after = nft() + others()
    assert "2001:db8::7" in after and "2001:db8:1::/48" in after and PEERS[0] in after
    server.undo()
    assert nft() + others() == before


SKIPPED = {
    "the answer is dropped": (chain("f", 0, "drop", "ct state established accept") + "table inet o {\n chain out {\n type filter hook output priority 0; policy drop;\n }\n}\n", "policy drop` (inet o out)"),
    "a rate": (chain("f", 0, "drop", "ct state established accept", "tcp flags syn limit rate over 5/second drop"), "limit rate"),
    "an agent's chain": ("table ip filter {\n chain cali-INPUT {\n  ip saddr 10.77.0.0/24 drop\n }\n chain INPUT {\n  type filter hook input priority 0; policy accept;\n  jump cali-INPUT\n }\n}\n", "Calico"),
}  # fmt: skip


@pytest.mark.parametrize("name", SKIPPED)
def test_a_rule_that_an_opening_does_not_get_past_is_named(server: Server, pair: Pair, name: str) -> None:
    text, words = SKIPPED[name]
    pair.nft(text)
    plan = server.plan(PEERS[0])
    assert plan["changes"] == []
    (skipped,) = plan["skipped"]
    assert words in skipped["reason"]


def test_two_peers_and_a_network(server: Server, pair: Pair) -> None:
    pair.nft(NFT["final reject"])
    server.apply(*PEERS, "198.51.100.0/24")
    assert server.open() == {(peer, port) for peer in PEERS for _, port in OURS}
    assert len(MARK.findall(nft_rules(pair)())) == 1
    assert server.plan(*PEERS, "198.51.100.0/24")["changes"] == [], "done once, it is done"
    server.undo()
    assert server.open() == set()


def test_an_operator_s_own_rule_for_the_same_peer_stays(server: Server, pair: Pair) -> None:
    """Undo takes out what was added and not what looks like it."""
    pair.nft(chain("f", 0, "drop", "ct state established accept", f"ip saddr {PEERS[0]} tcp dport 29688 accept"))
    story(server, nft_rules(pair), [(PEERS[0], 29688)])


def test_a_saved_plan_is_applied_for_the_peers_it_was_made_for(server: Server, pair: Pair, tmp_path: Path) -> None:
    pair.nft(NFT["policy drop"])
    saved = tmp_path / "plan.json"
    saved.write_text(server.envtune("fix", "NET004", "--peer", PEERS[0], "--format", "json").stdout)
    done = server.envtune("fix", "--plan", str(saved), "--apply", "--yes", "--yes-confirm")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fixed" in done.stdout
    assert server.open() == OURS


CENTOS = ("-A INPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT", "-A INPUT -i lo -j ACCEPT", "-A INPUT -j REJECT")


@pytest.mark.parametrize("program", ["nft", "iptables", "iptables-legacy"])
def test_a_saved_plan_is_refused_when_the_rules_are_others_now(
    server: Server, pair: Pair, tmp_path: Path, program: str
) -> None:
    """The rule has its place among others: where they moved, it could come behind the one that drops."""
    if program == "nft":
        pair.nft(NFT["final reject"].replace("log prefix", "counter log prefix"))
        first, rules = "nft insert rule inet f input tcp dport 1 drop", nft_rules(pair)
    else:
        for rule in CENTOS:
            pair.run([program, *rule.split()])
        first, rules = f"{program} -I INPUT -p tcp --dport 1 -j DROP", iptables_rules(pair, program)
    saved = tmp_path / "plan.json"
    saved.write_text(server.envtune("fix", "NET004", "--peer", PEERS[0], "--format", "json").stdout)
    apply = ("fix", "--plan", str(saved), "--apply", "--yes", "--yes-confirm")
    pair.run(first.split())
    before = rules()
    done = server.envtune(*apply)
    assert done.returncode == 2 and "operations[0].given.digest (C01): " in done.stderr, done.stderr
    assert rules() == before and server.open() == set()
    pair.run(re.sub("-I INPUT", "-D INPUT", first).split() if program != "nft" else delete_first(pair))
    assert server.open() == set()  # packets were counted since
    done = server.envtune(*apply)
    assert done.returncode == 0, done.stdout + done.stderr
    assert server.open() == OURS


def delete_first(pair: Pair) -> list[str]:
    listing = pair.run(["nft", "-a", "list", "chain", "inet", "f", "input"]).stdout
    found = re.search("tcp dport 1 drop # handle ([0-9]+)", listing)
    assert found is not None
    return f"nft delete rule inet f input handle {found[1]}".split()


@pytest.mark.parametrize("program", ["nft", "iptables", "iptables-legacy"])
def test_a_plan_from_a_recording_fits_the_host_it_was_taken_from(
    server: Server, pair: Pair, tmp_path: Path, program: str
) -> None:
    if program == "nft":
        pair.nft(NFT["final reject"])
    for rule in CENTOS if program != "nft" else ():
        pair.run([program, *rule.split()])
    recording, saved = tmp_path / "host.tar.gz", tmp_path / "plan.json"
    done = server.envtune("snapshot", "-o", str(recording))
    assert done.returncode == 0, done.stderr
    words = ("--snapshot", str(recording), "--format", "json")
    saved.write_text(server.envtune("fix", "NET004", "--peer", PEERS[0], *words).stdout)
    done = server.envtune("fix", "--plan", str(saved), "--apply", "--yes", "--yes-confirm")
    assert done.returncode == 0, done.stdout + done.stderr
    assert server.open() == OURS
    server.undo()
    assert server.open() == set()


@pytest.mark.parametrize("backend", ["nftables", "iptables"])
def test_firewalld(pair: Pair, tmp_path: Path, backend: str) -> None:
    """Both views get the rule, nothing is reloaded, what others added at run time stays."""
    with running_firewalld(pair, tmp_path, backend) as run:
        run('firewall-cmd --zone=drop --add-rich-rule=\'rule family="ipv4" source address="192.0.2.9" accept\'')
        server = Server(pair, tmp_path / "state", beside_firewalld(pair, tmp_path), master_port="")

        def rules() -> str:
            views = ("", "--permanent ")
            told = "; ".join(f"firewall-cmd {view}--list-all-zones" for view in views)
            return run(f"{told}; firewall-cmd --direct --get-all-rules; firewall-cmd --list-all-policies").stdout

        changes = story(server, rules, ours=[key for key in OURS if key[1] >= 60000])
        assert [(change["view"], change["target"]) for change in changes] == [
            ("live", "firewalld zone drop (runtime)"),
            ("boot", "firewalld zone drop (permanent)"),
        ]
        words = {word for change in changes for one in change["operations"] for word in one["argv"]}
        assert not any("reload" in word or "runtime-to-permanent" in word for word in words)


def test_firewalld_loads_the_permanent_rules_too(pair: Pair, tmp_path: Path) -> None:
    """After somebody's reload the ports are open still."""
    with running_firewalld(pair, tmp_path, "nftables") as run:
        Server(pair, tmp_path / "state", beside_firewalld(pair, tmp_path)).apply(PEERS[0])
        run("firewall-cmd --reload")
        assert {key for key, reached in pair.reach().items() if reached} == OURS


def test_ufw(pair: Pair, tmp_path: Path) -> None:
    with enabled_ufw(pair, tmp_path) as run:
        run("ufw allow 22/tcp")
        server = Server(pair, tmp_path / "state", run)
        saved = tmp_path / "etc" / "user.rules"

        def rules() -> str:
            kernel = iptables_rules(pair, "iptables")()
            return kernel + "\n".join(line for line in saved.read_text().splitlines() if line)

        changes = story(server, rules, [(peer, 22) for peer in PEERS])
        assert [change["target"] for change in changes] == ["ufw"]


def test_ufw_with_an_explicit_denial_is_left_to_its_owner(pair: Pair, tmp_path: Path) -> None:
    with enabled_ufw(pair, tmp_path) as run:
        run(f"ufw deny from {PEERS[0]}")
        plan = Server(pair, tmp_path / "state", run).plan(PEERS[0])
        assert plan["changes"] == []
        assert f"-A ufw-user-input -s {PEERS[0]}/32 -j DROP" in plan["skipped"][0]["reason"]


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_firewalld_s_directory_is_as_it_was(pair: Pair, tmp_path: Path) -> None:
    """`drop` is a file of the administrator, `block` is the vendor's: no copy of it stays, no `.old`, no other text."""
    with running_firewalld(pair, tmp_path, "nftables") as run:
        server = Server(pair, tmp_path / "state", beside_firewalld(pair, tmp_path))
        for zone in ("drop", "block"):
            if zone == "block":
                (tmp_path / "etc" / "zones" / "drop.xml").unlink()
                run("firewall-cmd --reload && firewall-cmd --zone=block --change-interface=eth0")
            before = files_below(tmp_path / "etc")
            server.apply(*PEERS)
            assert files_below(tmp_path / "etc") != before
            server.undo()
            assert files_below(tmp_path / "etc") == before
            listed = f"firewall-cmd --zone={zone} --list-rich-rules; firewall-cmd --permanent --list-all-zones"
            assert PEERS[0] not in run(listed).stdout


def executor(server: Server, plan: dict[str, Any], *words: str) -> dict[str, Any]:
    """The executor by itself: what lies between its own look and its own write."""
    plan_file = Path(server.state) / "plan.json"
    plan_file.parent.mkdir(exist_ok=True)
    rows = [{"id": change["id"], "operations": change["operations"]} for change in plan["changes"]]
    plan_file.write_text(json.dumps({"changes": rows}))
    named = words or ("apply", str(plan_file))
    env = f"ENVTUNE_STATE={server.state}/own ENVTUNE_HOST_LOCK={server.state}.lock"
    line = f"env {env} {sys.executable} -m envtune.executor {' '.join(named)}"
    done: dict[str, Any] = json.loads(server.run(line, check=False).stdout)
    return done


def test_an_administrator_s_rule_that_came_after_the_plan_is_his(pair: Pair, tmp_path: Path) -> None:
    """firewalld has one rule for both: what was there when the plan is applied is not ours to take out."""
    with running_firewalld(pair, tmp_path, "nftables") as run:
        server = Server(pair, tmp_path / "state", beside_firewalld(pair, tmp_path), master_port="")
        plan = server.plan(PEERS[0])
        for change in plan["changes"]:
            for operation in change["operations"]:
                run(shlex.join(operation["argv"]))
        listing = "firewall-cmd --list-all-zones; firewall-cmd --permanent --list-all-zones"
        before, files = run(listing).stdout, files_below(tmp_path / "etc")
        name = executor(server, plan)["run"]
        assert run(listing).stdout == before
        executor(server, plan, "undo", name)
        assert run(listing).stdout == before and files_below(tmp_path / "etc") == files


def test_ufw_takes_over_no_rule_of_the_administrator_s(pair: Pair, tmp_path: Path) -> None:
    with enabled_ufw(pair, tmp_path) as run:
        server = Server(pair, tmp_path / "state", run)
        plan = server.plan(PEERS[0])
        rules = [operation["argv"][2:-2] for change in plan["changes"] for operation in change["operations"]]

        def state() -> str:
            return run("ufw show added").stdout + (tmp_path / "etc" / "user.rules").read_text()

        for comment in ("", " comment 'the cluster'"):  # he came first
            for words in rules:
                run(f"ufw allow {shlex.join(words)}{comment}")
            before = state()
            name = executor(server, plan)["run"]
            assert state() == before
            executor(server, plan, "undo", name)
            assert state() == before
        for words in rules:
            run(f"ufw delete allow {shlex.join(words)}")
        before = state()
        name = executor(server, plan)["run"]  # he took ours over
        for words in rules:
            run(f"ufw allow {shlex.join(words)} comment 'the cluster'")
        taken = state()
        assert "envtune:" not in taken
        executor(server, plan, "undo", name)
        assert state() == taken
        for words in rules:
            run(f"ufw delete allow {shlex.join(words)}")
            run(f"ufw limit {shlex.join(words)}")  # another verdict for the same
        before = state()
        (result,) = executor(server, plan)["results"]
        assert result["status"] == "refused" and state() == before


def test_nobody_named_and_everybody_named_change_nothing(server: Server, pair: Pair, tmp_path: Path) -> None:
    pair.nft(NFT["policy drop"])
    (tmp_path / "job.env").write_text("A=1\n")  # a job: nothing of Ascend is on this machine
    words = ("fix", "NET004", "--env-file", str(tmp_path / "job.env"), "--format", "json")
    plan = json.loads(server.envtune(*words).stdout)
    assert plan["changes"] == [] and "--peer" in plan["skipped"][0]["reason"]
    assert server.envtune("fix", "NET004", "--peer", "0.0.0.0/0").returncode == 2
    nearly = server.plan("0.0.0.0/1", "128.0.0.0/1")
    assert nearly["changes"] == []
