"""What `envtune fleet` answers where hosts, groups, files and names are not what one would expect."""

from __future__ import annotations

import copy
import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from helpers import fleet
from helpers.command_line import run

from envtune.fleet.store.schema import open_store
from envtune.host import input as host_input

ODD = ("nod\u00e9 1", "a/b", "-rf", "x\ny", "=cmd", "\u4e3b\u673a", "%s", "..", "o'k", "a" * 300, "node1,node2", "n[1]")
POLICY = "schema: envtune.policy/1\nfacts: {driver: 25.0.rc1.1}\n"


def ask(store: Path, *words: str) -> Any:
    return run("fleet", *words, "--store", str(store), "--lang", "en")


def hosts(store: Path, *words: str) -> dict[str, str]:
    found = json.loads(ask(store, "report", *words, "--format", "json").stdout)
    return {row["host"]: row["collection"] for row in found["hosts"]}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    (folder / "in").mkdir()
    fleet.write(folder / "in", {name: host for name, host in fleet.fleet().items() if name.startswith("node")})
    assert ask(folder / "fleet.db", "ingest", str(folder / "in")).exit_code in (1, 3)
    return folder / "fleet.db"


def test_ingest_takes_the_severity_of_the_policy(tmp_path: Path) -> None:
    policy = tmp_path / "site.yaml"
    (tmp_path / "in").mkdir()
    fleet.write(tmp_path / "in", {"node7": fleet.fleet()["node7"]})
    codes = []
    for fail_on in ("high", "none"):
        policy.write_text(f"schema: envtune.policy/1\nfail_on: {fail_on}\n")
        words = ("ingest", str(tmp_path / "in"), "--policy", str(policy))
        codes.append(ask(tmp_path / f"{fail_on}.db", *words).exit_code)
    assert codes == [3, 0]  # something is unknown; `none` asks for no status


def test_hosts_that_are_not_in_the_store_are_never_said_to_be_alike(store: Path, tmp_path: Path) -> None:
    policy = tmp_path / "site.yaml"
    policy.write_text(POLICY)
    golden = ("golden", "--policy", str(policy))
    named = [("report",), ("drift",), ("since", "2026-01-01"), golden]
    for words in (*((*words, "-w", "nosuch") for words in named), ("drift", "--group", "nosuch[1-3]")):
        done = ask(store, *words)
        assert done.exit_code == 2 and "none of these hosts is in the store" in done.stderr, words
    open_store(tmp_path / "empty.db").close()
    for words in named:
        done = ask(tmp_path / "empty.db", *words)
        assert done.exit_code == 2 and "the store has no hosts" in done.stderr, words


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("node[1-9]!node[2-8]", ["node1", "node9"]),
        ("node[1-9]&node[3-4]", ["node3", "node4"]),
        ("node[1-3/2]", ["node1", "node3"]),
        ("node2,nosuch", ["node2"]),
    ],
)
def test_node_sets(store: Path, pattern: str, names: list[str]) -> None:
    assert list(hosts(store, "-w", pattern)) == names


def test_files_that_are_no_snapshots_cost_their_own_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_input, "SILENCE", 0.1)
    folder = tmp_path / "in"
    folder.mkdir()
    fleet.write(folder, {"node1": fleet.fleet()["node1"]})
    (folder / "empty.json").write_bytes(b"")
    (folder / "folder.json").mkdir()
    (folder / "gone.tar.gz").symlink_to("/nonexistent")
    (folder / "text.tar.gz").write_bytes(b"\xff" * 2000)
    (folder / "other.json").write_text('{"schema": "other/9"}')
    (folder / "list.json").write_text("[]")
    (folder / "none.frame").write_bytes(b"no frame")
    os.mkfifo(folder / "pipe.json")
    done = ask(tmp_path / "fleet.db", "ingest", str(folder))
    assert done.exit_code in (1, 3) and "Traceback" not in done.stderr
    bad = ("empty", "folder", "gone", "text", "other", "list", "none", "pipe")
    assert hosts(tmp_path / "fleet.db") == {"node1": "ok", **dict.fromkeys(bad, "corrupt")}


def test_names_with_any_character(tmp_path: Path) -> None:
    folder, store = tmp_path / "in", tmp_path / "fleet.db"
    folder.mkdir()
    for number, name in enumerate(ODD):
        host = copy.deepcopy(fleet.fleet()["node1"])
        host["host"] = name
        (folder / f"{number}.json").write_text(json.dumps({"schema": "envtune.snapshot/1", **host}), "utf-8")
    ask(store, "ingest", str(folder))
    names = list(hosts(store))
    assert len(names) == len(ODD) and not any("\n" in name or len(name) > 255 for name in names)
    done = [run("fleet", "host", "--store", str(store), "--", name).exit_code for name in names]
    assert done == [0] * len(names)
    rows = list(csv.DictReader(io.StringIO(ask(store, "report", "--format", "csv").stdout)))
    assert len({row["host"] for row in rows}) == len(ODD)
    assert not any(row["host"].startswith(("=", "-")) for row in rows)
