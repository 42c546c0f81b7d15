"""Snapshots of many hosts checked in processes: good ones, damaged ones, and hosts that mean harm."""

from __future__ import annotations

import io
import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from helpers import fleet

from envtune.catalog import load, select
from envtune.collector.frame import framed
from envtune.collector.snapshot import pack
from envtune.fleet.collected import Collection
from envtune.fleet.ingest import ingest
from envtune.fleet.judge import Question, Snapshot, judge_all
from envtune.fleet.questions import overview
from envtune.fleet.record import MAX_FACTS, HostRecord
from envtune.fleet.store.read import Store
from envtune.fleet.store.write import Writer
from envtune.model import Severity
from envtune.report.fleet.data import overview_csv, overview_data
from envtune.report.fleet.entries import Entries
from envtune.report.fleet.html import render_fleet
from envtune.report.fleet.text import Settings, render
from tests.helpers.stores import open_store

MANY = 50_000  # of each kind in one snapshot; a million takes minutes
EVIL = "<script>alert(1)</script>\x1b[31m\u202e\x00"


@cache
def question() -> Question:
    catalogue = load()
    return Question(select(catalogue.checks, ["SYS", "CPU", "CANN0"], (), (), Severity.INFO), catalogue.expectations)


def packed(data: dict[str, Any]) -> bytes:
    return pack({"schema": "envtune.snapshot/1", **data})


def hostile_tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        member = tarfile.TarInfo("../../etc/passwd")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"x\n\n"))
    return out.getvalue()


def evil_host() -> dict[str, Any]:
    host = fleet.fleet()["node1"]
    host["uname"]["release"] = EVIL * 50
    host["environ"] = {f"HCCL_{n}{EVIL}": EVIL for n in range(2000)}
    host["files"]["/etc/os-release"] = f'ID="{EVIL}"\nVERSION_ID="{EVIL}"\n'
    host["files"] = {**host["files"], **{f"/{EVIL.strip(chr(0))}/{n}": {"dir": None} for n in range(3)}}
    return host


def host_with(**files: str) -> dict[str, Any]:
    host = fleet.fleet()["node1"]
    return {**host, "files": {**host["files"], **files}}


BAD = {
    "nothing": b"",
    "text": b"hello",
    "deep": b'{"a":' * 100_000,
    "paths": hostile_tar(),
    "bomb": pack({"schema": "envtune.snapshot/1", "now": 0, "files": {"/x": "0" * (40 << 20)}}),
    "other": packed({"now": 0, "files": 7}),
}


def test_a_hostile_host_costs_its_own_verdict_only() -> None:
    hosts = fleet.fleet()
    good = [Snapshot(name, packed(hosts[name]), True) for name in ("node1", "node2", "c76-1")]
    bad = [Snapshot(name, data, True) for name, data in BAD.items()]
    found = {record.host: record for record in judge_all([good[0], *bad, *good[1:]], question(), 2)}
    assert {name: found[name].collection for name in BAD} == dict.fromkeys(BAD, Collection.CORRUPT)
    assert all(found[name].detail for name in BAD)
    assert [found[name].collection for name in ("node1", "node2", "c76-1")] == [Collection.OK] * 3
    assert found["node1"].checks == found["node2"].checks


OUTSIDE = ("/../../etc/passwd", "/etc/../../root/x", "../x", "/a/" + "../" * 5000 + "b")


def test_paths_that_lead_outside_are_those_of_the_host_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read as names in a table: nothing is written, and no file of this machine is read for them."""
    monkeypatch.chdir(tmp_path)
    good = fleet.fleet()["node1"]
    bad = [Snapshot(f"bad{n}", packed(host_with(**{path: "x"})), True) for n, path in enumerate(OUTSIDE)]
    found = {record.host: record for record in judge_all([*bad, Snapshot("good", packed(good), True)], question(), 2)}
    assert found["good"].collection is Collection.OK and list(tmp_path.iterdir()) == []
    for snapshot in bad:
        record = found[snapshot.host]
        assert record.collection is Collection.CORRUPT or record.checks == found["good"].checks


@pytest.mark.slow
def test_a_host_with_very_many_facts_costs_its_own_verdict_only() -> None:
    many = {
        "environ": {"environ": {f"HCCL_{number}": "1" for number in range(MANY)}},
        "files": {"files": {f"/x/{number}": "1" for number in range(MANY)}},
        "processes": {"processes": [{"pid": number} for number in range(MANY)]},
    }
    good = fleet.fleet()["node1"]
    hosts = [Snapshot(name, packed({**good, **part}), True) for name, part in many.items()]
    found = {record.host: record for record in judge_all([*hosts, Snapshot("good", packed(good), True)], question(), 2)}
    assert sorted(found) == sorted([*many, "good"])
    assert found["good"].collection is Collection.OK
    assert all(len(record.facts) <= MAX_FACTS for record in found.values())


def stored(tmp_path: Path, records: list[HostRecord]) -> Store:
    store = open_store(tmp_path / "fleet.db")
    writer = Writer(store, "ssh")
    for record in records:
        writer.add(record)
    writer.finish()
    return Store(store)


def test_what_a_host_says_rules_no_terminal_and_no_page(tmp_path: Path) -> None:
    records = list(
        judge_all(
            [Snapshot("node1", packed(fleet.fleet()["node1"]), True), Snapshot("evil", packed(evil_host()), True)],
            question(),
        )
    )
    records.append(HostRecord("lost", Collection.AUTH, "<img src=x onerror=alert(1)>"))
    assert {record.host: record.collection.value for record in records} == {"node1": "ok", "evil": "ok", "lost": "auth"}
    assert max(len(record.facts) for record in records) <= MAX_FACTS
    found = overview(stored(tmp_path, records), with_matrix=True)
    entries = Entries(load())
    texts = [render(found, entries, Settings(lang)) for lang in ("en", "zh")]
    texts += [json.dumps(overview_data(found, entries, "en")), overview_csv(found, "en")]
    for text in texts:
        assert "\x1b" not in text and "\u202e" not in text and "\x00" not in text
    page = render_fleet(found, entries, "en")
    assert "<script>alert" not in page and "<img src=x" not in page and "\x1b" not in page
    assert "&lt;img src=x" in page


@pytest.mark.parametrize("cell", ["=cmd|' /C calc'!A0", "+1", "-1", "@x"])
def test_a_cell_is_no_formula(tmp_path: Path, cell: str) -> None:
    found = overview(stored(tmp_path, [HostRecord("node1", Collection.AUTH, cell)]))
    assert f"'{cell}" in overview_csv(found, "en")


def test_over_ssh_there_is_no_job(tmp_path: Path) -> None:
    host = fleet.fleet()["node1"]
    host["target"] = {}
    catalogue = load()
    asked = Question(select(catalogue.checks, ["ENV001", "PY001"], (), (), Severity.INFO), catalogue.expectations)
    by_ssh, as_recorded = judge_all([Snapshot("a", packed(host), True), Snapshot("b", packed(host), False)], asked, 1)
    assert {check.outcome for check in by_ssh.checks.values()} == {"unknown"}
    assert all("--python, --env-file or --job" in check.said[0] for check in by_ssh.checks.values() if check.said)
    assert "unknown" not in {check.outcome for check in as_recorded.checks.values()}


def test_snapshots_that_came_another_way(tmp_path: Path) -> None:
    hosts = fleet.fleet()
    (tmp_path / "a.tar.gz").write_bytes(packed(hosts["node1"]))
    (tmp_path / "b.json").write_text(json.dumps({"schema": "envtune.snapshot/1", **hosts["c76-1"]}))
    (tmp_path / "c.frame").write_bytes(
        framed(packed(hosts["node2"])) + framed(packed(hosts["node3"])) + b"@@ENVTUNE/1 9 0123456789abcdef\nx"
    )
    (tmp_path / "d.tar.gz").write_bytes(b"no archive")
    (tmp_path / "notes.txt").write_text("not looked at")
    found = {record.host: record.collection.value for record in ingest(str(tmp_path), io.BytesIO(), question())}
    assert found == {"node1": "ok", "c76-1": "ok", "node2": "ok", "node3": "ok", "c:3": "corrupt", "d": "corrupt"}
    stream = io.BytesIO(framed(packed(hosts["node4"])))
    assert [record.host for record in ingest("-", stream, question())] == ["node4"]
