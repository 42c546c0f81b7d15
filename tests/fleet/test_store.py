"""What a store says after nights of audits: spans, missed nights, two audits at once, older versions."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Optional, Sequence

import pytest

from envtune.errors import UsageError
from envtune.fleet.collected import Collection
from envtune.fleet.one_host import one_host
from envtune.fleet.questions import matrix, overview
from envtune.fleet.record import NOTE, CheckRecord, FactRecord, HostRecord
from envtune.fleet.store import schema
from envtune.fleet.store.read import NOT_FINE, Store
from envtune.fleet.store.schema import VERSION
from envtune.fleet.store.write import Writer
from envtune.model import Outcome, Severity
from tests.helpers.stores import open_store

DUMP = Path(__file__).with_name("store-2.sql")  # written by the last version of envtune whose stores have version 2
SAID = ("powersave", "powersave（中文）")


def host(name: str, governor: str = "pass", driver: Optional[str] = "25.0", **more: str) -> HostRecord:
    checks = {"CPU001": CheckRecord(governor, "medium", SAID if governor == "fail" else None)}
    checks.update({check: CheckRecord(outcome, "low") for check, outcome in more.items()})
    reason = None if driver is not None else ("no driver", "无驱动")
    facts = {"driver": FactRecord(driver, driver, reason), "npu": FactRecord("910b", "910b")}
    return HostRecord(name, Collection.OK, verdict="ready", facts=facts, checks=checks)


def lost(name: str) -> HostRecord:
    return HostRecord(name, Collection.TIMEOUT, "ssh: connect timed out")


def night(path: Path, records: Sequence[HostRecord], number: int) -> int:
    with closing(schema.open_store(path)) as store:
        writer = Writer(store, "ssh", started=1_790_000_000.0 + 86400 * number)
        for record in records:
            writer.add(record)
        writer.finish()
    assert writer.run is not None
    return writer.run


def reading(path: Path) -> Store:
    return Store(open_store(path, create=False))


def test_a_span_goes_on_while_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    for number in range(5):
        night(path, [host("node1", governor="fail" if number > 2 else "pass")], number)
    with closing(sqlite3.connect(path)) as store:
        rows = store.execute("SELECT first, last, state FROM outcome ORDER BY first").fetchall()
    spans = [(first, last, *schema.STATES[state]) for first, last, state in rows]
    assert spans == [(1, 3, "pass", "medium"), (4, None, "fail", "medium")]
    changes = list(reading(path).changes(1))
    assert [(change.run, change.name, change.before, change.after) for change in changes] == [
        (4, "CPU001", "pass", "fail")
    ]


def test_a_missed_night_never_reads_as_still_passing(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    runs = [
        night(path, [record, host("node2")], n)
        for n, record in enumerate((host("node1"), lost("node1"), host("node1")))
    ]
    store = reading(path)
    assert [("node1", "CPU001", "pass") in set(store.outcomes_in(run)) for run in runs] == [True, False, True]
    night(path, [lost("node1"), host("node2")], 3)
    found = overview(reading(path))
    assert [row.name for row in found.collected] == ["node2"]
    assert {cause.value: [row.name for row in rows] for cause, rows in found.missing.items()} == {"timeout": ["node1"]}
    assert found.exit_code(None) == 0
    page = one_host(reading(path), "node1")
    assert [collection.value for _, collection, _ in page.attempts] == ["timeout", "ok", "timeout", "ok"]


def test_a_host_that_is_lost_says_nothing_about_its_checks(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    night(path, [host("node1", governor="fail"), host("node2")], 0)
    night(path, [lost("node1"), host("node2")], 1)
    assert overview(reading(path)).failing == ()


def test_a_check_that_is_no_longer_made_ends(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    night(path, [host("node1", NET005="fail")], 0)
    night(path, [host("node1")], 1)
    assert [row.check for row in reading(path).outcomes(1)] == ["CPU001"]


def test_what_was_found_is_kept_up_to_date_without_a_new_span(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    for number in range(3):
        record = host("node1", governor="fail")
        said = (f"{number} CPUs", f"{number} 个 CPU")
        night(path, [record._replace(checks={"CPU001": CheckRecord("fail", "medium", said)})], number)
    (row,) = reading(path).outcomes(1)
    assert (row.first, row.said) == (1, ("2 CPUs", "2 个 CPU"))
    with closing(sqlite3.connect(path)) as store:
        assert store.execute("SELECT count(*) FROM text WHERE en LIKE '%CPUs'").fetchone() == (1,)


def test_facts_that_differ_and_facts_that_are_unknown(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    drivers = ["25.0"] * 5 + ["24.1", None]
    night(path, [host(f"node{n}", driver=driver) for n, driver in enumerate(drivers, 1)], 0)
    (group,) = overview(reading(path)).groups
    (row,) = group.differences
    assert (row.name, row.majority, row.values[0].value) == ("driver", True, "25.0")
    assert [(shared.value, shared.hosts) for shared in row.minority] == [("24.1", ("node6",))]
    assert [(reason.zh, hosts) for reason, hosts in row.unknown] == [("无驱动", ("node7",))]


def test_hosts_of_a_named_group_are_compared_with_each_other(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    night(path, [host(f"node{n}", driver="25.0" if n < 3 else "24.1") for n in range(1, 5)], 0)
    groups = overview(reading(path), groups=[["node1", "node2"], ["node3", "node4"]]).groups
    assert [group.differences for group in groups] == [(), ()]


def test_two_audits_at_once(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"

    def audit(first: int) -> None:
        night(path, [host(f"node{n}") for n in range(first, first + 700)], first)

    threads = [threading.Thread(target=audit, args=(first,)) for first in (1, 350)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = overview(reading(path))
    assert len(found.hosts) == 1049 and len(found.runs) == 2
    broken = "SELECT count(*) FROM outcome WHERE last IS NULL GROUP BY host, name HAVING count(*) > 1"
    with closing(sqlite3.connect(path)) as store:
        assert store.execute(broken).fetchall() == []


def test_a_new_store_that_another_audit_writes_to_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite does not wait by itself where the journal mode changes."""
    path = tmp_path / "fleet.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(schema.time, "sleep", lambda seconds: other.execute("COMMIT"))
        schema.open_store(path).close()
        other.execute("BEGIN IMMEDIATE")  # now a log: what opens the store need not wait
        schema.open_store(path).close()


def test_a_new_store_that_stays_locked_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "fleet.db"
    monkeypatch.setattr(schema, "BUSY", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UsageError, match="database is locked"):
            schema.open_store(path)


def test_an_older_run_that_ends_later_does_not_overwrite(tmp_path: Path) -> None:
    store = open_store(tmp_path / "fleet.db")
    older, newer = Writer(store, "ssh"), Writer(store, "ssh")
    newer.add(host("node1", governor="fail"))
    newer.finish()
    older.add(host("node1"))
    older.finish()
    assert [row.outcome for row in Store(store).outcomes(1)] == ["fail"]


def test_a_store_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    open_store(path).execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(UsageError, match="version"):
        open_store(path)


EVERY = [(outcome, severity) for outcome in (*(row.value for row in Outcome), NOTE) for severity in Severity]


def nights() -> list[list[HostRecord]]:
    """What the store in DUMP was written from: all that a check can say, texts, absences, a night without node2."""
    said = [None, ("powersave", "powersave（中文）"), ("16.4", "16.4")]
    first = {
        f"T{n:02}": CheckRecord(outcome, severity.value, said[n % 3]) for n, (outcome, severity) in enumerate(EVERY)
    }
    later = {
        check: row if n % 4 else CheckRecord(*EVERY[-n][:1], EVERY[-n][1].value, said[n % 2])
        for n, (check, row) in enumerate(first.items())
        if check != "T07"
    }
    facts = {
        "npu": FactRecord("910b", "910b"),
        "driver": FactRecord(None, None, ("no driver", "无驱动")),
        "variable:HCCL_IF_IP": FactRecord("10.0.0.1", "<address>"),
    }
    one = HostRecord("node1", Collection.OK, "", 1.5, "ready", facts=facts, checks=first)
    new = one._replace(facts={**facts, "driver": FactRecord("25.0", "25.0")}, checks={**later, "T99": first["T00"]})
    return [
        [one, one._replace(host="node2")],
        [new, lost("node2")],
        [new, one._replace(host="node2", verdict="not_ready", checks=later), lost("node3")],
    ]


def answers(path: Path) -> list[object]:
    """Return all that a store says."""
    store = reading(path)
    runs = store.runs()
    return [
        *(row._replace(ended=None, version="") for row in runs.values()),
        overview(store, with_matrix=True)._replace(runs={}),
        *(one_host(store, name)._replace(runs={}) for name in ("node1", "node2", "node3")),
        *(sorted(store.outcomes_in(run)) for run in runs),
        list(store.changes(1)),
        store.last_changes(),
    ]


def test_a_store_of_the_version_before_says_the_same(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "older.db")) as older:
        older.executescript(DUMP.read_text("utf-8"))
    for number, records in enumerate(nights()):
        night(tmp_path / "new.db", records, number)
    assert answers(tmp_path / "older.db") == answers(tmp_path / "new.db")
    for name in ("older.db", "new.db"):  # and goes on in the same way
        night(tmp_path / name, [*nights()[0], *nights()[2][2:]], 3)
    assert answers(tmp_path / "older.db") == answers(tmp_path / "new.db")


def test_all_that_a_check_can_say_has_a_number() -> None:
    assert sorted(EVERY) == sorted(schema.STATES.values())
    assert all(10 <= state < 100 for state in schema.STATES)
    assert {schema.STATES[state][0] for state in schema.STATES if state >= 40} == set(NOT_FINE)


def test_an_older_store_gets_the_indexes_that_questions_use(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    with closing(sqlite3.connect(path)) as older:
        older.executescript(";".join((*schema.MIGRATIONS[0], "PRAGMA user_version = 1")))
    night(path, [host("node1")], 0)
    store = open_store(path)
    asked: list[str] = []
    store.set_trace_callback(asked.append)
    for rows, plan in (
        (Store(store).outcome_rows(), "SCAN outcome USING COVERING INDEX outcome_not_fine"),
        (Store(store).value_rows(bool), "SCAN fact USING COVERING INDEX fact_now"),
    ):
        list(rows)
        assert [row[3] for row in store.execute(f"EXPLAIN QUERY PLAN {asked[-1]}").fetchall()] == [plan]


def test_the_matrix_says_what_each_check_says_on_each_host(tmp_path: Path) -> None:
    store = open_store(tmp_path / "fleet.db")
    writer = Writer(store, "ssh")
    writer.add(host("node1", b="pass", a="fail"))
    writer.add(host("node2", a="fail", b="pass"))
    writer.add(host("node3", c="notapplicable", a="unknown"))
    writer.add(host("node4"))
    writer.finish()
    found = matrix(Store(store), {1: "node1", 2: "node2", 3: "node3", 4: "node4"})
    rows = {host: dict(zip(found.checks, codes)) for codes, hosts in found.rows for host in hosts}
    assert rows["node1"] == rows["node2"] and (rows["node1"]["a"], rows["node1"]["b"]) == ("f", "p")
    assert rows["node3"]["a"] == "u" and rows["node3"]["b"] == rows["node3"]["c"] == "-"
    assert all(len(codes) == len(found.checks) for codes, _ in found.rows)


def test_a_store_is_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "state" / "fleet.db"
    open_store(path)
    assert path.stat().st_mode & 0o077 == 0 and path.parent.stat().st_mode & 0o077 == 0


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    with pytest.raises(UsageError, match="does not exist"):
        open_store(path, create=False)
    path.write_text("not a store" * 100)
    with pytest.raises(UsageError):
        open_store(path)
