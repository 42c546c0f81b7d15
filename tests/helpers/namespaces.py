"""Two network namespaces joined by a veth pair: a server with a packet filter, and the peers that try to reach it.

`Pair` needs root and iproute2. What the evaluator says is compared with what the kernel does, so a connection counts as
open only when a byte from the server has arrived: the first packet alone proves nothing.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from typing import Any, Iterable, Mapping, Sequence

import pytest

from envtune import intervals
from envtune.firewall import Connections, Table, reachability
from envtune.resources.firewall.listings import RuleSets, remove_dormant, rule_sets
from envtune.snapshot.host import SnapshotHost

SERVER, PEERS = "10.77.0.2", ("10.77.0.1", "10.77.0.3")
PORTS = (22, 29688, 60000, 60015, 60031, 60032)
COMMANDS = ("nft -j list ruleset", "nft list ruleset", "iptables-save", "iptables-legacy-save")
_names = itertools.count()

_LISTEN = """
import selectors, socket, sys
sel = selectors.DefaultSelector()
for port in sys.argv[1:]:
    sel.register(socket.create_server(("", int(port))), selectors.EVENT_READ)
print("ready", flush=True)
while True:
    for key, _ in sel.select():
        try:
            one, _ = key.fileobj.accept()
            one.sendall(b"k")
            one.close()
        except OSError:
            pass
"""

_TRY = """
import json, selectors, socket, sys, time
for line in sys.stdin:
    sel, end, told = selectors.DefaultSelector(), time.monotonic() + 0.35, {}
    for number, (source, address, port) in enumerate(json.loads(line)):
        one = socket.socket()
        one.setblocking(False)
        one.bind((source, 0))
        told[number] = False
        try:
            one.connect_ex((address, port))
            sel.register(one, selectors.EVENT_READ, number)
        except OSError:
            one.close()
    while sel.get_map() and time.monotonic() < end:
        for key, _ in sel.select(end - time.monotonic()):
            try:
                told[key.data] = key.fileobj.recv(1) == b"k"
            except OSError:
                pass
            sel.unregister(key.fileobj)
            key.fileobj.close()
    for key in list(sel.get_map().values()):
        key.fileobj.close()
    print(json.dumps([told[number] for number in sorted(told)]), flush=True)
"""


def needs(*commands: str) -> None:
    """Skip the test where root or one of the commands is missing."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    for command in ("ip", *commands):
        if shutil.which(command, path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
            pytest.skip(f"{command} is not installed")


class Pair:
    """The namespaces `<name>a` (the peers) and `<name>b` (the server); ends what it started."""

    def __init__(self) -> None:
        self.name = f"et{os.getpid() % 100000}x{next(_names)}"
        self.interface = f"{self.name}v"[-15:]
        self._children: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Pair:
        peer, server = f"{self.name}a", f"{self.name}b"
        subprocess.run(["ip", "netns", "add", peer], check=True)
        subprocess.run(["ip", "netns", "add", server], check=True)
        add = ["ip", "link", "add", "peer0", "netns", peer, "type", "veth", "peer", "name", "eth0", "netns", server]
        subprocess.run(add, check=True)
        for space, device, addresses in ((peer, "peer0", PEERS), (server, "eth0", (SERVER,))):
            self._ip(space, "link", "set", "lo", "up")
            for address in addresses:
                self._ip(space, "addr", "add", f"{address}/24", "dev", device)
            self._ip(space, "link", "set", device, "up")
        listener = self._child(server, _LISTEN, [str(port) for port in PORTS])
        assert listener.stdout is not None and listener.stdout.readline() == "ready\n"
        self._tries = self._child(peer, _TRY, [])
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()
        for side in "ab":
            subprocess.run(["ip", "netns", "del", self.name + side], check=False)

    def _ip(self, space: str, *words: str) -> None:
        subprocess.run(["ip", "-n", space, *words], check=True)

    def _child(self, space: str, code: str, words: Sequence[str]) -> subprocess.Popen[str]:
        argv = ["ip", "netns", "exec", space, sys.executable, "-c", code, *words]
        child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._children.append(child)
        return child

    def run(self, argv: Sequence[str], text: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        """A command on the server."""
        line = ["ip", "netns", "exec", f"{self.name}b", *argv]
        return subprocess.run(line, input=text, capture_output=True, text=True, check=check)

    def nft(self, text: str) -> None:
        """Replace nftables' rules."""
        assert self.takes(text), text

    def takes(self, text: str) -> bool:
        """Replace nftables' rules; False when nft refuses them (two protocols in one rule)."""
        return self.run(["nft", "-f", "-"], "flush ruleset\n" + text, check=False).returncode == 0

    def reach(self) -> dict[tuple[str, int], bool]:
        """Which of PORTS each peer reaches, by trying."""
        wanted = [(peer, SERVER, port) for peer in PEERS for port in PORTS]
        assert self._tries.stdin is not None and self._tries.stdout is not None
        self._tries.stdin.write(json.dumps(wanted) + "\n")
        self._tries.stdin.flush()
        told = json.loads(self._tries.stdout.readline())
        return {(peer, port): open_ for (peer, _, port), open_ in zip(wanted, told)}

    def recorded(self, commands: Iterable[str] = COMMANDS) -> SnapshotHost:
        """The server as a recorded host: its rule sets and nothing else."""
        rows: dict[str, Any] = {}
        for line in commands:
            done = self.run(line.split(), check=False)
            rows[line] = {"rc": done.returncode, "stdout": done.stdout, "stderr": done.stderr}
        names = self.run(["cat", "/proc/net/ip_tables_names"], check=False)
        files = {"/proc/net/ip_tables_names": names.stdout} if names.returncode == 0 else {}
        interfaces = [{"name": "lo", "addresses": ["127.0.0.1"]}, {"name": "eth0", "addresses": [SERVER]}]
        return SnapshotHost({"commands": rows, "files": files, "interfaces": interfaces, "euid": 0})


def verdicts(tables: Sequence[Table], peers: Sequence[str] = PEERS) -> dict[tuple[str, int], str]:
    """open, closed or unknown for each peer and port, by the evaluator, in one walk."""
    addresses = intervals.union((intervals.address_number(peer, 4),) * 2 for peer in peers)
    own = ((intervals.address_number(SERVER, 4),) * 2,)
    ports = intervals.union((port, port) for port in PORTS)
    found: dict[tuple[str, int], str] = {}
    for one in reachability(tables, Connections(ports, addresses, 4, "eth0", own)):
        for low, high, inside in one.part:
            for peer, port in itertools.product(peers, PORTS):
                number = intervals.address_number(peer, 4)
                if low <= port <= high and any(first <= number <= last for first, last in inside):
                    assert (peer, port) not in found, "every connection has one outcome"
                    found[peer, port] = one.verdict
    assert len(found) == len(peers) * len(PORTS), "no connection is left out"
    return found


def agree(said: Mapping[tuple[str, int], str], done: Mapping[tuple[str, int], bool], doubt: bool = False) -> str:
    """Where the evaluator and the kernel differ, empty when nowhere; `doubt` allows unknown."""
    wrong = [
        f"{peer}:{port}: said {said[peer, port]}, the kernel says {'open' if open_ else 'closed'}"
        for (peer, port), open_ in done.items()
        if said[peer, port] != ("open" if open_ else "closed") and not (doubt and said[peer, port] == "unknown")
    ]
    return "\n".join(wrong)


def disagreement(pair: Pair, said: Mapping[tuple[str, int], str], doubt: bool = False) -> str:
    """As `agree`, with what the kernel does now.

    It is asked again where they differ: a connection under the rules before may have left its state in the kernel,
    which then takes the next one from the same port for a part of it, and a busy machine may answer late.
    """
    for _ in range(3):
        wrong = agree(said, pair.reach(), doubt)
        if not wrong:
            break
    return wrong


def told(pair: Pair) -> RuleSets:
    """The server's rule sets, as the evaluator reads them."""
    host = pair.recorded()
    found = rule_sets(host, 4)
    remove_dormant(host, found)
    return found
