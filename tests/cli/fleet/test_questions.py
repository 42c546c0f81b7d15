"""`envtune fleet` from snapshots of a directory to every answer, through the command line."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from helpers import fleet
from helpers.command_line import run
from helpers.examples import ROOT
from helpers.json_schema import conforms

from envtune.fleet.store.read import Change
from envtune.report.fleet import data as fleet_data
from envtune.trust.characters import json_text

SCHEMA = json.loads((ROOT / "docs/schema/fleet.json").read_text("utf-8"))

POLICY = """\
schema: envtune.policy/1
facts:
  driver: 25.0.rc1.1
waivers:
  - {check: POL001, subject: driver, hosts: "node7", reason: testing, owner: ops, expires: 2099-01-01}
"""


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten nodes on two nights; on the second one has another driver, and one file is damaged."""
    folder = tmp_path_factory.mktemp("fleet")
    kept = {name: host for name, host in fleet.fleet().items() if name.startswith("node")}
    later = {name: host for name, host in fleet.deviating().items() if name.startswith("node")}
    for night, hosts in (("first", kept), ("second", later)):
        (folder / night).mkdir()
        fleet.write(folder / night, hosts)
    (folder / "second" / "node3.json").write_text("{")
    for night in ("first", "second"):
        done = run("fleet", "ingest", str(folder / night), "--store", str(folder / "fleet.db"), "--lang", "en")
        assert done.exit_code in (1, 3), done.output
    # the two nights lie a day apart
    database = sqlite3.connect(folder / "fleet.db")
    database.execute("UPDATE run SET started = 1790000000 + 86400 * id")
    database.commit()
    database.close()
    return folder / "fleet.db"


def ask(store: Path, *words: str) -> Any:
    return run("fleet", *words, "--store", str(store), "--lang", "en")


def data(store: Path, *words: str) -> Any:
    found = json.loads(ask(store, *words, "--format", "json").stdout)
    assert conforms(found, SCHEMA) == []
    assert found["question"] == words[0]
    return found


def test_the_report(store: Path) -> None:
    done = ask(store, "report")
    assert done.exit_code == 1
    assert "9 of 10 hosts collected" in done.stdout
    assert "driver: 8 of 9 have 25.0.rc1.1" in done.stdout and "node7: 25.0.rc1" in done.stdout
    assert "Not collected" in done.stdout and "damaged snapshot (1): node3" in done.stdout


def test_the_report_as_data(store: Path) -> None:
    found = data(store, "report")
    assert found["schema"] == "envtune.fleet/1" and found["collected"] == 9
    assert found["not_collected"] == {"corrupt": ["node3"]}
    drivers = [row for group in found["groups"] for row in group["differences"] if row["fact"] == "driver"]
    assert drivers[0]["values"][1] == {"value": "25.0.rc1", "hosts": ["node7"], "folded": "node7"}
    failing = {row["id"]: row["hosts"] for row in found["checks"] if row["outcome"] == "fail"}
    assert failing["ENV001"] == ["node7"]
    rows = list(csv.DictReader(io.StringIO(ask(store, "report", "--format", "csv").stdout)))
    assert {row["host"] for row in rows if row["name"] == "ENV001" and row["outcome"] == "fail"} == {"node7"}


def test_one_page_for_all(store: Path, tmp_path: Path) -> None:
    page = tmp_path / "fleet.html"
    done = ask(store, "report", "--format", f"html={page}", "--fail-on", "none")
    assert done.exit_code == 0, done.output
    text = page.read_text("utf-8")
    assert 'lang="zh"' in text and "node7" in text and "https:" not in text and "http:" not in text


def test_who_differs(store: Path) -> None:
    done = ask(store, "drift")
    assert done.exit_code == 1 and "node7: 25.0.rc1" in done.stdout
    alike = ask(store, "drift", "--group", "node[1-2,4-6]")
    assert alike.exit_code == 0 and "no differences" in alike.stdout
    (drivers,) = [row for row in data(store, "drift")["groups"][0]["differences"] if row["fact"] == "driver"]
    assert drivers["majority"] and [value["folded"] for value in drivers["values"]] == ["node[1-2,4-6,8-10]", "node7"]


def test_one_host(store: Path) -> None:
    done = ask(store, "host", "node7")
    assert done.exit_code == 0
    assert "ENV001: passed -> failed" in done.stdout and "driver: 25.0.rc1.1 -> 25.0.rc1" in done.stdout
    page = data(store, "host", "node7")
    assert page["facts"]["driver"] == "25.0.rc1" and page["hosts"][0]["collection"] == "ok"
    assert {check["folded"] for check in page["checks"]} == {"node7"}
    lost = data(store, "host", "node3")
    assert (lost["hosts"][0]["collection"], lost["hosts"][0]["verdict"]) == ("corrupt", None)
    wrong = ask(store, "host", "node77")
    assert wrong.exit_code == 2 and "did you mean node7" in wrong.stderr


@pytest.mark.parametrize(("count", "at_once"), [(0, 2), (1, 2), (2, 2), (5, 2), (5, 2000)])
def test_changes_are_written_in_parts_as_one_document(
    count: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_data, "AT_ONCE", at_once)
    changes = [Change(1, f"node{n}", "check", "CPU001", None, "\u202e") for n in range(count)]
    rows = [fleet_data.change_data(change, {}) for change in changes]
    whole = json_text({**fleet_data.head("since"), "changes": rows}, 1) + "\n"
    assert "".join(fleet_data.since_document(iter(changes), {})) == whole


def test_what_changed_since(store: Path) -> None:
    done = ask(store, "since", "2026-01-01")
    assert done.exit_code == 1 and "node7: ENV001: passed -> failed" in done.stdout
    assert {change["host"] for change in data(store, "since", "2026-01-01")["changes"]} == {"node7"}
    assert ask(store, "since", "2099-01-01").exit_code == 0
    assert ask(store, "since", "yesterday").exit_code == 2


def test_who_differs_from_the_policy(store: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace("node7", "node8"))
    done = ask(store, "golden", "--policy", str(policy))
    assert done.exit_code == 1 and "node7 (1): failed: 25.0.rc1" in done.stdout
    policy.write_text(POLICY)
    done = ask(store, "golden", "--policy", str(policy))
    assert done.exit_code == 0 and "node7 (1): waived: 25.0.rc1" in done.stdout
    (row,) = data(store, "golden", "--policy", str(policy))["golden"]
    assert (row["fact"], row["outcome"], row["hosts"]) == ("driver", "waived", ["node7"])
    assert ask(store, "golden", "--policy", "none").exit_code == 2


def test_without_a_store(tmp_path: Path) -> None:
    done = ask(tmp_path / "none.db", "report")
    assert done.exit_code == 2 and "run envtune fleet audit first" in done.stderr


def test_hosts_that_are_none(tmp_path: Path) -> None:
    for words in (["audit"], ["audit", "-w", "node[1-"], ["ingest", str(tmp_path)], ["report", "-w", "x"]):
        done = ask(tmp_path / "none.db", *words)
        assert done.exit_code == 2 and "Traceback" not in done.stderr, words
