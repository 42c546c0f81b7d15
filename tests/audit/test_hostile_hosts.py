"""Hosts whose files lie, are cut off, or cannot be read: no traceback, no hang, no pass from unreadable data."""

from __future__ import annotations

import random
from typing import Any

import pytest
from helpers.recorded import host_data, host_names, judge
from helpers.rows import sampled

from envtune.model import Outcome

# Per host and kind of damage; a table's rows and a check's own files are damaged in other tests of the same kind.
ROUNDS = pytest.mark.parametrize("rounds", [1, pytest.param(12, marks=pytest.mark.slow)])

HOSTS = pytest.mark.parametrize("name", sampled(host_names(), 2))


def _texts(data: dict[str, Any]) -> list[str]:
    return sorted(path for path, entry in data["files"].items() if isinstance(entry, (str, bytes)))


def _garble(chance: random.Random, text: str) -> Any:
    """One way in which a file can be broken."""
    ways = [
        lambda: text[: chance.randrange(len(text) + 1)],
        lambda: bytes(chance.randrange(256) for _ in range(chance.randrange(200))),
        lambda: "".join(chance.sample(text, len(text))),
        lambda: text.replace("=", chance.choice([":", "==", ""])),
        lambda: text.upper(),
        lambda: text + "\x00",
        lambda: text.replace("\n", "\r\n"),
        lambda: "9" * 5000,
        lambda: "[" * 3000,
        lambda: text + "\n" + chr(0x202E) + "\u4e2d" * 50,
    ]
    return chance.choice(ways)()


@ROUNDS
@HOSTS
def test_garbled_files(name: str, rounds: int) -> None:
    chance = random.Random(name)
    for _ in range(rounds):
        data = host_data(name)
        path = chance.choice(_texts(data))
        entry = data["files"][path]
        data["files"][path] = _garble(chance, entry if isinstance(entry, str) else "")
        faults = [(f.id, f.reason) for f in judge(data) if f.outcome is Outcome.ERROR]
        assert faults == [], (path, data["files"][path])


@ROUNDS
@HOSTS
def test_unreadable_files_never_pass(name: str, rounds: int) -> None:
    chance = random.Random(name)
    for _ in range(rounds):
        error = chance.choice(["EIO", "EACCES", "ETIMEDOUT", "ELOOP"])
        data = host_data(name)
        path = chance.choice(_texts(data))
        data["files"][path] = {"error": error}
        for finding in judge(data):
            assert finding.outcome is not Outcome.ERROR, (finding.id, path, finding.reason)
            if finding.evidence.source == path:
                assert finding.outcome is not Outcome.PASS, (finding.id, path)


@ROUNDS
@HOSTS
def test_garbled_commands(name: str, rounds: int) -> None:
    chance = random.Random(name + "commands")
    for _ in range(rounds):
        data = host_data(name)
        rows = [line for line, row in data.get("commands", {}).items() if isinstance(row, str) or "stdout" in row]
        if not rows:
            return
        line = chance.choice(rows)
        row = data["commands"][line]
        text = row if isinstance(row, str) else row["stdout"]
        damaged = _garble(chance, text)
        words = damaged if isinstance(damaged, str) else damaged.decode("latin-1")
        data["commands"][line] = {"rc": chance.choice([0, 0, 1, 139]), "stdout": words, "stderr": ""}
        faults = [(f.id, f.reason) for f in judge(data) if f.outcome is Outcome.ERROR]
        assert faults == [], (line, words[:200])
