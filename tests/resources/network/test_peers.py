"""`check --probe`: what the job's other hosts answer, and what is said without asking them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Sequence

import pytest
from helpers.examples import example_context
from helpers.namespaces import SERVER, Pair, needs

from envtune.audit import examine
from envtune.catalog import load
from envtune.model import Evidence, Finding, Outcome

MASTER = {"MASTER_ADDR": "192.0.2.11", "MASTER_PORT": "29500"}
TWO = {**MASTER, "NNODES": "2", "NODE_RANK": "1"}


def findings(
    monkeypatch: pytest.MonkeyPatch,
    check: str,
    environ: Mapping[str, str],
    answers: Mapping[str, str],
    peers: Sequence[str] = (),
) -> tuple[Finding, ...]:
    """What the check says where these addresses answer so; every connection that is tried must be among them."""
    context = example_context({"like": "net", "environ": environ})
    options = context.target.options._replace(probe=True, peers=tuple(peers))
    context.target = context.target._replace(options=options)
    context.host.live = True
    monkeypatch.setattr("envtune.host.connections.connect_to", lambda places: {one: answers[one[0]] for one in places})
    return examine(next(one for one in load().checks if one.id == check), context)


@pytest.mark.parametrize(
    ("environ", "answer", "outcome", "words"),
    [
        (TWO, "accepted", Outcome.PASS, "192.0.2.11 port 29500: accepts connections"),
        (TWO, "refused", Outcome.PASS, "the host is reachable, but nothing listens there yet"),
        (TWO, "rejected", Outcome.FAIL, "rejected by a firewall"),
        (TWO, "timeout", Outcome.FAIL, "no response in 2 s"),
        (TWO, "no-route", Outcome.FAIL, "no route to the host"),
        (TWO, "forbidden", Outcome.FAIL, "this host's own firewall"),
        (TWO, "Too many open files", Outcome.UNKNOWN, "Too many open files"),
        (TWO, "not-tried", Outcome.UNKNOWN, "not tried"),
        (MASTER, "accepted", Outcome.PASS, "accepts connections"),
        (
            MASTER,
            "refused",
            Outcome.UNKNOWN,
            "NNODES and NODE_RANK, which would show this",
        ),  # it may be a job on a single node
        (MASTER, "timeout", Outcome.FAIL, "no response"),
        ({**TWO, "MASTER_PORT": "x"}, "accepted", Outcome.UNKNOWN, "MASTER_PORT names no port to try"),
        ({**TWO, "NNODES": "1"}, "accepted", Outcome.FAIL, "not an address of this single node"),
        ({**TWO, "MASTER_ADDR": "192.0.2.11\r"}, "accepted", Outcome.FAIL, "does not resolve"),
    ],
)
def test_the_master_is_what_answers(
    monkeypatch: pytest.MonkeyPatch, environ: Mapping[str, str], answer: str, outcome: Outcome, words: str
) -> None:
    (found,) = findings(monkeypatch, "NET001", environ, {"192.0.2.11": answer})
    text = found.actual if found.reason is None else found.reason
    assert (found.outcome, text is not None and words in text.en) == (outcome, True), text


def test_a_master_that_is_named_as_a_peer_is_another_node(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = findings(monkeypatch, "NET001", MASTER, {"192.0.2.11": "refused"}, ["192.0.2.11"])
    assert found.outcome is Outcome.PASS


def test_one_address_of_the_master_that_answers_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "envtune.resources.network.names.resolve_name", lambda *_: (("192.0.2.11", "192.0.2.12"), Evidence("getent"))
    )
    environ = {**TWO, "MASTER_ADDR": "node2"}
    (found,) = findings(monkeypatch, "NET001", environ, {"192.0.2.11": "timeout", "192.0.2.12": "refused"})
    assert found.outcome is Outcome.PASS
    assert found.actual is not None and "192.0.2.12" in found.actual.en


def test_peers_that_answer_and_one_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """This host itself is not asked, though hostfiles name it."""
    told = {"192.0.2.11": "refused", "192.0.2.12": "accepted", "192.0.2.13": "timeout"}
    found = findings(monkeypatch, "NET102", {}, told, ["192.0.2.10", *told])
    assert [(one.outcome, one.subject) for one in found] == [(Outcome.FAIL, "192.0.2.13")]
    assert str(found[0].actual) == "port 60000: no response in 2 s: a firewall drops it, or the host is down"
    passed = findings(monkeypatch, "NET102", {}, {"192.0.2.11": "refused"}, ["192.0.2.11"])
    assert [one.outcome for one in passed] == [Outcome.PASS]


def test_the_port_is_the_job_s(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"HCCL_IF_BASE_PORT": "20000"}
    (found,) = findings(monkeypatch, "NET102", environ, {"192.0.2.11": "timeout"}, ["192.0.2.11"])
    assert "port 20000" in str(found.actual)


def test_only_ports_of_the_job_are_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    context = example_context({"like": "net", "environ": {**TWO, "HCCL_IF_BASE_PORT": "20000"}})
    options = context.target.options._replace(probe=True, peers=("192.0.2.10", "192.0.2.12", "192.0.2.0/24"))
    context.target = context.target._replace(options=options)
    context.host.live = True

    def connect_to(places: Any) -> Mapping[Any, str]:
        asked.extend(places)
        return dict.fromkeys(places, "refused")

    monkeypatch.setattr("envtune.host.connections.connect_to", connect_to)
    for check in load().checks:
        if check.family == "NET":
            examine(check, context)
    assert sorted(asked) == [("192.0.2.11", 29500), ("192.0.2.12", 20000)]


def test_without_probe_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Any) -> Mapping[Any, str]:
        raise AssertionError("connected")

    monkeypatch.setattr("envtune.host.connections.connect_to", refuse)
    context = example_context({"like": "net", "environ": TWO})
    context.target = context.target._replace(options=context.target.options._replace(peers=("192.0.2.11",)))
    context.host.live = True
    for check, words in (
        ("NET001", "envtune check --probe --peer 192.0.2.11 connects"),
        ("NET102", "--peer 192.0.2.11 connects"),
    ):
        (found,) = examine(next(one for one in load().checks if one.id == check), context)
        assert found.outcome is Outcome.UNKNOWN
        assert found.reason is not None and "is unknown on this host" in found.reason.en and words in found.reason.en


# ---------------------------------------------------------------------- real hosts


@pytest.fixture
def pair() -> Iterator[Pair]:
    needs("iptables")
    with Pair() as one:
        yield one


def probed(pair: Pair, master: str, port: int, peers: Optional[str] = None) -> dict[str, tuple[str, str]]:
    """Outcome and words of NET001 and NET102, from the command line in the peers' namespace."""
    words = ["--peer", peers] if peers else []
    environ = {"MASTER_ADDR": master, "MASTER_PORT": str(port), "NNODES": "2", "NODE_RANK": "1"}
    argv = ["ip", "netns", "exec", f"{pair.name}a", sys.executable, "-m", "envtune", "check", "--probe"]
    argv += ["--select", "NET001,NET102", "--format", "json", *words]
    root = str(Path(__file__).resolve().parents[3])
    done = subprocess.run(argv, capture_output=True, env={**os.environ, "PYTHONPATH": root, **environ}, check=False)
    rows = json.loads(done.stdout)["findings"]
    return {row["id"]: (row["outcome"], row["actual"] or row["reason"]) for row in rows}


@pytest.mark.root
@pytest.mark.firewall
def test_real_hosts(pair: Pair) -> None:
    """A listener, a free port, every way of a packet filter to refuse, an address that nobody has."""
    for port, how in ((29688, "DROP"), (60015, "REJECT"), (60031, "REJECT --reject-with tcp-reset")):
        pair.run(["iptables", "-A", "INPUT", "-p", "tcp", "--dport", str(port), "-j", *how.split()])
    listening = probed(pair, SERVER, 22, SERVER)
    assert listening["NET001"] == ("pass", f"{SERVER}: {SERVER} port 22: accepts connections")
    assert listening["NET102"] == ("pass", "port 60000: accepts connections")
    assert probed(pair, SERVER, 4711)["NET001"][0] == "pass"  # refused by the host itself
    assert "no response in 2 s" in probed(pair, SERVER, 29688)["NET001"][1]
    assert probed(pair, SERVER, 60015)["NET001"][0] == "fail"
    assert probed(pair, SERVER, 60031)["NET001"][0] == "pass"  # no different from a host where nobody listens
    gone = probed(pair, "10.77.0.99", 4711, "10.77.0.99")
    assert [gone[one][0] for one in ("NET001", "NET102")] == ["fail", "fail"]
    assert probed(pair, "198.51.100.7", 4711)["NET001"] == (
        "fail",
        "198.51.100.7: 198.51.100.7 port 4711: no route to the host: it is down, not in a network of this "
        "host, or rejected by a firewall",
    )
