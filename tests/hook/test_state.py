"""What is kept between hooks: only what nobody else could have written counts."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from envtune.hook.records import Drain, Outcome, Verdict
from envtune.hook.state import State, StateError, boot_id

VERDICT = Verdict({"NET003": Outcome("fail", "high")}, True, fail_on="critical", npu=False)
DRAIN = Drain("node1", "envtune: NET003", ("NET003",), "root@2026-11-23T03:00:00")


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    state = State(str(tmp_path / "a" / "b"))
    assert state.verdict() is None and state.drain() is None
    state.keep_verdict(VERDICT)
    state.keep_drain(DRAIN)
    found = state.verdict()
    assert found is not None and found.boot == boot_id() and found.written > 0
    assert found._replace(written=0.0, boot="") == VERDICT
    assert state.drain() == DRAIN
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    with state.locked():
        state.forget_drain()
        state.forget_drain()
    assert state.drain() is None
    assert sorted(os.listdir(state.path)) == ["lock", "verdict.json"]


@pytest.mark.parametrize("part", ["the file", "the directory", "above it"])
def test_what_others_can_write_does_not_count(tmp_path: Path, part: str) -> None:
    state = State(str(tmp_path / "a" / "state"))
    state.keep_verdict(VERDICT)
    place = {"the file": tmp_path / "a/state/verdict.json", "the directory": tmp_path / "a/state"}.get(part)
    place = place or tmp_path / "a"
    place.chmod(0o777)
    with pytest.raises(StateError, match="can be changed by others at "):
        state.verdict()
    if part != "the file":
        with pytest.raises(StateError, match=r"can be changed by others|can be written"):
            state.keep_drain(DRAIN)


@pytest.mark.root
def test_root_takes_nothing_from_another_user(tmp_path: Path) -> None:
    state = State(str(tmp_path / "state"))
    state.keep_verdict(VERDICT)
    os.chown(tmp_path / "state" / "verdict.json", 1234, 1234)
    with pytest.raises(StateError, match="can be changed by others"):
        state.verdict()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        "null",
        "{}",
        '{"schema": "envtune.verdict/1"}',
        json.dumps({"schema": "envtune.verdict/1", "outcomes": {"A": ["fail", "worst"]}, "complete": True}),
        "\x00" * 100,
        "9" * 5000,
    ],
)
def test_a_damaged_file(tmp_path: Path, text: str) -> None:
    state = State(str(tmp_path / "state"))
    state.keep_verdict(VERDICT)
    for name, read in (("verdict.json", state.verdict), ("drain.json", state.drain)):
        (tmp_path / "state" / name).write_text(text)
        with pytest.raises(StateError, match="is damaged"):
            read()


def test_what_is_no_file(tmp_path: Path) -> None:
    state = State(str(tmp_path / "state"))
    (tmp_path / "state").mkdir(mode=0o700)
    os.mkfifo(tmp_path / "state" / "verdict.json", 0o600)
    with pytest.raises(StateError):
        state.verdict()
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "state" / "drain.json").symlink_to(tmp_path / "other.json")
    with pytest.raises(StateError):
        state.drain()
