"""Every requirement of the guide is answered by something that there is, or says why nothing answers it."""

from __future__ import annotations

import csv
import re

from helpers.examples import ROOT

from envtune.catalog import load
from envtune.cli.app import VERBS

KNOWN = re.compile(r"(?:[A-Z]{2,4}-\d\d|[FX]\d\d|tool: \S.*)")
# How many the guide has of each kind; none may get lost.
COUNTS = {"SYS": 11, "CPU": 8, "IMG": 7, "PY": 10, "CANN": 16, "ENV": 17, "NET": 8, "PROC": 3, "BLD": 5, "LOG": 3,
          "CFG": 3, "F": 25, "X": 12, "TL": 8, "TP": 12}  # fmt: skip


def rows() -> list[dict[str, str]]:
    with (ROOT / "docs/coverage.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_requirement_is_named_once() -> None:
    ids = [row["id"] for row in rows()]
    assert len(ids) == len(set(ids))
    assert [one for one in ids if not KNOWN.fullmatch(one)] == []
    for prefix, count in COUNTS.items():
        assert sum(bool(re.fullmatch(rf"{prefix}-?\d\d", one)) for one in ids) == count, prefix


def test_what_answers_a_requirement_is_there() -> None:
    catalogue = load()
    entries = {entry.id for entry in (*catalogue.checks, *catalogue.faq, *catalogue.playbooks)}
    commands = {f"command:{verb}" for verb in VERBS}
    for row in rows():
        names = set(row["held_by"].split())
        assert names <= entries | commands, row["id"]
        assert names or row["en"], f"{row['id']}: neither an answer nor a reason"
        assert bool(row["en"]) == bool(row["zh"]), row["id"]


def test_a_check_of_the_guide_answers_its_own_requirement() -> None:
    """CPU001 is requirement CPU-01: where there is such a check, the table names it."""
    answers = {row["id"]: row["held_by"].split() for row in rows()}
    families = {id_.partition("-")[0] for id_ in answers}  # of the guide
    for check in load().checks:
        if int(check.id[-3:]) <= 100 and check.family in families:
            assert check.id in answers[f"{check.family}-{check.id[-2:]}"], check.id
