"""firewalld and ufw as they run: the verdict is the kernel's, and the commands of a finding mend it, undone they unmend it.

Each runs in a network namespace with a mount namespace of its own, so that the machine's own settings stay untouched.
"""

# ruff: noqa: E501  (command lines)

from __future__ import annotations

from pathlib import Path
from typing import Iterator, Sequence

import pytest
from helpers.front_ends import Run, enabled_ufw, running_firewalld
from helpers.namespaces import PEERS, Pair, agree, needs, told, verdicts

from envtune.audit import examine
from envtune.catalog import load
from envtune.context.open import open_context
from envtune.model import Finding, Outcome
from envtune.snapshot.host import SnapshotHost

pytestmark = [pytest.mark.firewall, pytest.mark.root, pytest.mark.slow]


@pytest.fixture
def pair() -> Iterator[Pair]:
    needs("nft", "iptables", "unshare", "nsenter")
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
    return examine(next(check for check in load().checks if check.id == "NET004"), open_context(host))


def mend(pair: Pair, run: Run, owner: str) -> list[str]:
    """Closed, then open for the peer after typing what the findings say; the lines typed."""
    assert agree(verdicts(told(pair).tables), pair.reach()) == ""
    assert not any(pair.reach().values())
    found = findings(pair)
    assert [(one.outcome, one.subject) for one in found] == [
        (Outcome.FAIL, "MASTER_PORT 29688"),
        (Outcome.FAIL, "HCCL 60000-60031"),
    ]
    assert all(one.expected is not None and owner in one.expected.en for one in found)
    lines = [line.replace("sudo ", "").replace("<peer>", PEERS[0]) for one in found for line in one.commands]
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


def test_firewalld(pair: Pair, firewalld: Run) -> None:
    lines = mend(pair, firewalld, "firewalld")
    assert len(lines) == 4, "two rules, each to runtime and to permanent"
    assert all(line.startswith("firewall-cmd") and "--zone=drop" in line and "--reload" not in line for line in lines)
    permanent = firewalld("firewall-cmd --permanent --zone=drop --list-rich-rules").stdout
    assert 'port="60000-60031"' in permanent and 'port="29688"' in permanent
    undo(pair, firewalld, lines)


def test_ufw(pair: Pair, ufw: Run) -> None:
    lines = mend(pair, ufw, "ufw")
    assert len(lines) == 2
    undo(pair, ufw, lines)
