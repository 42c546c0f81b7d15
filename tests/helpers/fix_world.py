"""A small catalog of two defects in files, as `envtune fix`, `undo` and `history` meet it."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

import pytest
from typer.testing import CliRunner

from envtune.catalog import layers, store
from envtune.cli.app import app
from envtune.context import Context
from envtune.context import registry as resources
from envtune.host import exists
from envtune.model import Change, Evidence, Finding, Reading
from helpers.killed_runs import write

CHECK = """\
id: {id}
name: {name}
title: {{en: "{name} is bad", zh: "{name} 有问题"}}
status: stable
severity: {severity}
origin: outside
rationale: {{en: It matters., zh: 有影响。}}
applies: {{system: Linux}}
probe: {{fixture.content: {{path: "{path}"}}}}
expect: {{eq: good}}
remedy: {{en: Write good., zh: 写入 good。}}
faq: [X90]
"""
FAQ = """\
id: X90
name: odd-error
title: {en: An odd error, zh: 异常报错}
signatures:
  - {regex: odd error, strength: strong, origin: outside}
cause: {en: Something is odd., zh: 出现异常。}
remedy: {en: Ask., zh: 请咨询。}
confirm: [SYS901]
side: host
"""
PLAYBOOK = """\
id: {id}
title: {{en: Write good, zh: 写入 good}}
fixes: [{check}]
safety: {safety}
disruption: none
steps:
  - file.dropin: {{which: {check}}}
"""


def content(context: Context, *, path: str) -> Iterator[Reading]:
    """What a file holds."""
    text = context.host.read(path).strip() if exists(context.host, path) else "missing"
    yield Reading(os.path.basename(path), text, Evidence(path, text))


# Click 8.1, the last for Python 3.9, mixes stderr into stdout unless told not to; later ones know no other way.
SEPARATE = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner.__init__).parameters else {}
RUNNER = CliRunner(**SEPARATE)


class World:
    """Two files, the checks that want `good` in them, and the playbooks that write it."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.one, self.two = tmp_path / "one", tmp_path / "two"
        self.one.write_text("bad\n")
        self.two.write_text("bad\n")
        self.state, self.catalogue = tmp_path / "state", tmp_path / "catalogue"
        self.operations: dict[str, Callable[[Path], Sequence[dict[str, Any]]]] = {}
        self.more: dict[str, Any] = {"root": False}
        self.own: dict[str, dict[str, Any]] = {}
        monkeypatch.setenv("ENVTUNE_STATE", str(self.state))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("LC_ALL", "C.UTF-8")
        monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
        monkeypatch.setattr(layers, "SITE", str(tmp_path / "etc"))
        monkeypatch.setattr(store, "shipped_catalogue", lambda: None)
        monkeypatch.setattr(store, "_checkout", lambda: layers.Layer(str(self.catalogue), own=True))
        resources.find_action("file.dropin")  # imported now: an import later would replace what is put in its place
        monkeypatch.setitem(resources._functions["probes"], "fixture.content", content)
        monkeypatch.setitem(resources._functions["actions"], "file.dropin", self.propose)
        self.write("checks/sys/SYS901-one.yaml", CHECK, id="SYS901", name="one", path=self.one, severity="high")
        self.write("checks/sys/SYS902-two.yaml", CHECK, id="SYS902", name="two", path=self.two, severity="medium")
        self.write("playbooks/sys/write-one.yaml", PLAYBOOK, id="write-one", check="SYS901", safety="safe")
        self.ask("safe")
        path = self.catalogue / "checks/faq/X90-odd-error.yaml"
        path.parent.mkdir()
        path.write_text(FAQ, "utf-8")

    def write(self, place: str, form: str, **words: Any) -> None:
        file = self.catalogue / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(form.format(**words), "utf-8")

    def ask(self, safety: str) -> None:
        """The second playbook's safety."""
        self.write("playbooks/sys/write-two.yaml", PLAYBOOK, id="write-two", check="SYS902", safety=safety)

    def propose(self, context: Context, findings: Sequence[Finding], *, which: str) -> Iterator[Change]:
        """The action of both playbooks; a test may put other operations or properties in."""
        path = self.one if which == "SYS901" else self.two
        before = path.read_bytes() if path.exists() else None
        made = self.operations.get(which, lambda path: [write(path, before, b"good\n")])(path)
        text, more = (before or b"").decode(), {**self.more, **self.own.get(which, {})}
        more = {"scope": "live", "operations": tuple(made), **more}
        yield Change(which, path.name, "", "", str(path), text, "good\n", **more)

    def run(self, *words: str, input: str = "") -> Any:
        """`envtune WORDS` on this world's catalog."""
        return RUNNER.invoke(app, words, input=input)

    def contents(self) -> tuple[str, str]:
        return self.one.read_text().strip(), self.two.read_text().strip()
