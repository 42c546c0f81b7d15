"""A file with several names: the plan says that only one of them will name the new content."""

from __future__ import annotations

import os
from pathlib import Path

from helpers.fixing import local_context

from envtune.fix.hard_links import with_other_names
from envtune.messages import Literal
from envtune.model import Change


def change(path: Path, note: str = "") -> Change:
    return Change(
        finding="SYS001",
        subject="s",
        playbook="p",
        action="a",
        target=str(path),
        before="",
        after="",
        scope="job",
        operations=({"op": "file", "path": str(path), "content": ""},),
        note=Literal(note) if note else None,
    )


def test_other_names_are_counted_in_the_note(tmp_path: Path) -> None:
    host, path = local_context().host, tmp_path / "functional.py"
    path.write_text("import PIL")
    assert with_other_names(change(path), host) == change(path)
    assert with_other_names(change(tmp_path / "absent"), host).note is None
    os.link(path, tmp_path / "cache")
    noted = with_other_names(change(path, "lost when reinstalled"), local_context().host).note
    assert noted is not None and noted.en.startswith("lost when reinstalled; ") and "has one more name" in noted.en
    os.link(path, tmp_path / "other")
    noted = with_other_names(change(path), local_context().host).note
    assert noted is not None and "has 2 more names (hard links), which keep the old content" in noted.en
    assert "硬链接" in noted.zh
