"""The executor's `swap`: trees replaced by commands, kept whole before, compared with the wheels afterwards."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from envtune.executor.files import digest
from envtune.executor.history import RecordedRun
from envtune.executor.plan import plan_fault
from envtune.executor.recover import undo_run
from envtune.executor.run import apply_plan

SITE = "lib/site-packages"


def wheel(path: Path, **members: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/").replace("_py", ".py"), text)
    return path


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    root = tmp_path / "prefix"
    (root / SITE / "tool").mkdir(parents=True)
    (root / SITE / "tool/__init__.py").write_text("old")
    (root / SITE / "tool-1.0.dist-info").mkdir()
    (root / SITE / "tool-1.0.dist-info/RECORD").write_text("tool/__init__.py,,\n")
    (root / SITE / "other.py").write_text("not ours")
    return root


def swap(prefix: Path, **fields: Any) -> dict[str, Any]:
    touches = [SITE + "/tool", SITE + "/tool-*.dist-info"]
    return {"op": "swap", "root": str(prefix), "touches": touches, "steps": [], "verify": [], **fields}


def apply(state: Path, operation: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    plan = {"changes": [{"id": "C01", "target": "tool", "operations": [operation]}]}
    assert plan_fault(plan) is None
    name, results = apply_plan(plan, str(state))
    return name, results[0]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def unpack(prefix: Path, archive: str) -> list[list[str]]:
    """What an installer does: the old tree away, the new one out of the wheel."""
    site = str(prefix / SITE)
    return [
        ["rm", "-r", site + "/tool", site + "/tool-1.0.dist-info"],
        ["python3", "-m", "zipfile", "-e", archive, site],
    ]


def test_names_by_pattern_are_kept_and_come_back(prefix: Path, tmp_path: Path) -> None:
    before = tree(prefix)
    new = wheel(tmp_path / "tool-2.0.whl", **{"tool___init___py": "new", "tool-2.0.dist-info__METADATA": "Name: tool"})
    run, result = apply(tmp_path / "s", swap(prefix, steps=unpack(prefix, str(new)), wheels=[str(new)], site=SITE))
    assert result["status"] == "done", result
    assert (prefix / SITE / "tool-2.0.dist-info/METADATA").exists()
    assert not (prefix / SITE / "tool-1.0.dist-info").exists()
    assert undo_run(str(tmp_path / "s"), run)[0]["status"] == "undone"
    assert tree(prefix) == before


def test_what_is_installed_must_be_what_the_wheel_holds(prefix: Path, tmp_path: Path) -> None:
    before = tree(prefix)
    new = wheel(tmp_path / "tool-2.0.whl", tool___init___py="new")
    other = wheel(tmp_path / "else.whl", tool___init___py="something else")
    steps = unpack(prefix, str(other))
    _, result = apply(tmp_path / "s", swap(prefix, steps=steps, wheels=[str(new)], site=SITE))
    assert result["status"] == "failed"
    assert "differs from" in result["error"]
    assert tree(prefix) == before


def test_a_wheel_that_writes_beside_what_is_kept_is_refused(prefix: Path, tmp_path: Path) -> None:
    before = tree(prefix)
    for member in ("other_py", "tool-2.0.data__scripts__tool", "tool-2.0.data__headers__tool.h"):
        new = wheel(tmp_path / "tool-2.0.whl", **{member: "new"})
        _, result = apply(tmp_path / "s", swap(prefix, steps=[["false"]], wheels=[str(new)], site=SITE))
        assert result["status"] == "refused", result
    assert tree(prefix) == before


def test_preparing_fails_and_nothing_has_begun(prefix: Path, tmp_path: Path) -> None:
    before = tree(prefix)
    steps = [["touch", str(prefix / SITE / "tool/reached")]]
    run, result = apply(tmp_path / "s", swap(prefix, prepare=[["sh", "-c", "echo no compiler; exit 3"]], steps=steps))
    assert result["status"] == "failed"
    assert "no compiler" in result["error"]
    assert tree(prefix) == before
    assert not any(r["type"] == "intent" for r in RecordedRun(str(tmp_path / "s"), run).records)


def test_the_work_directory_is_ours_and_gone_afterwards(prefix: Path, tmp_path: Path) -> None:
    made = ["sh", "-c", "echo new > {work}/made && test -w $TMPDIR"]
    used = ["cp", "{work}/made", str(prefix / SITE / "tool/__init__.py")]
    operation = swap(prefix, prepare=[made], steps=[used], env={"TMPDIR": "{work}/tmp"})
    run, result = apply(tmp_path / "s", operation)
    assert result["status"] == "done", result
    assert (prefix / SITE / "tool/__init__.py").read_text() == "new\n"
    assert not (tmp_path / "s/runs" / run / "work").exists()


def test_a_file_the_plan_rests_on_was_changed(prefix: Path, tmp_path: Path) -> None:
    record = SITE + "/tool-1.0.dist-info/RECORD"
    held = digest((prefix / record).read_bytes())
    operation = swap(prefix, steps=[["false"]], holds={record: held, SITE + "/tool-2.0": "absent"})
    (prefix / record).write_text("another build")
    result = apply(tmp_path / "s", operation)[1]
    assert result["status"] == "refused" and "is not what the plan expected" in result["error"]


def test_files_for_others_whatever_the_umask(prefix: Path, tmp_path: Path) -> None:
    import os

    before = os.umask(0o077)
    try:
        _, result = apply(tmp_path / "s", swap(prefix, steps=[["touch", str(prefix / SITE / "tool/new.py")]]))
    finally:
        os.umask(before)
    assert result["status"] == "done", result
    assert (prefix / SITE / "tool/new.py").stat().st_mode & 0o044 == 0o044


def test_the_way_back_names_what_the_command_added_and_nothing_else(tmp_path: Path) -> None:
    """What a package manager installs beside what it was asked for goes as well; what others installed since stays."""
    pool = tmp_path / "pool"
    pool.mkdir()
    (pool / "base").touch()
    operation = {
        "op": "run",
        "argv": ["touch", f"{pool}/wanted", f"{pool}/needed"],
        "check": {"argv": ["test", "-e", f"{pool}/wanted"]},
        "census": {"argv": ["ls", str(pool)], "pattern": r"(?m)^(\S+)$"},
        "undo": {"argv": ["sh", "-c", f'cd {pool} && rm "$@"', "remove", "{new}"]},
    }
    run, result = apply(tmp_path / "s", operation)
    assert result["status"] == "done", result
    (pool / "theirs").touch()
    (pool / "wanted").unlink()  # somebody removed one part of it already
    assert undo_run(str(tmp_path / "s"), run)[0]["status"] == "undone"
    assert sorted(p.name for p in pool.iterdir()) == ["base", "theirs"]


def test_a_command_that_stops_half_way_is_taken_back(tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    pool.mkdir()
    operation = {
        "op": "run",
        "argv": ["sh", "-c", f"touch {pool}/needed; exit 1"],
        "check": {"argv": ["test", "-e", f"{pool}/wanted"]},
        "census": {"argv": ["ls", str(pool)], "pattern": r"(?m)^(\S+)$"},
        "undo": {"argv": ["sh", "-c", f'cd {pool} && rm "$@"', "remove", "{new}"]},
    }
    _, result = apply(tmp_path / "s", operation)
    assert result["status"] == "failed"
    assert list(pool.iterdir()) == []
