"""What the entries of a site may leave out, and what holds then."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest
from helpers.examples import example_context
from helpers.rows import sampled

from envtune.audit import examine
from envtune.catalog import Catalogue, layers, load
from envtune.catalog.families import family_title
from envtune.errors import CatalogError
from envtune.fix.plan import make_plan

CHECK = """\
id: SITE101
name: socket-interface
title: {title}
severity: high
probe: {{environment.variable: {{name: HCCL_SOCKET_IFNAME}}}}
expect: {expect}
commands: [{{fix: 'sudo envtune fix {{id}} --apply'}}, {{look: ip link}}]
"""
PLAYBOOK = """\
id: set-it
title: Set it
fixes: [SITE101]
safety: safe
disruption: job
steps: [{step}]
"""
FAQ = """\
id: S01
name: odd
title: {en: Odd}
signatures: [{regex: odd error}, {regex: old, strength: weak, origin: outside}]
cause: 网卡不对
remedy: Ask.
"""


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "SITE", str(tmp_path / "etc"))


def loaded(
    tmp_path: Path, title: str = "Wrong", expect: str = "{eq: bond0}", step: str = "instructions: [Do it.]"
) -> Catalogue:
    for path, text in (
        ("checks/site/SITE101-socket-interface.yaml", CHECK.format(title=title, expect=expect)),
        ("checks/site/family.yaml", "id: SITE\ntitle: Our site\n"),
        ("checks/faq/S01-odd.yaml", FAQ),
        ("playbooks/site/set-it.yaml", PLAYBOOK.replace("{step}", "{" + step + "}")),
    ):
        file = tmp_path / "more" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return load([tmp_path / "more"])


@pytest.mark.parametrize(
    ("title", "en", "zh"),
    [
        ("Wrong", "Wrong", "Wrong"),
        ("{en: Wrong}", "Wrong", "Wrong"),
        ("{zh: 不对}", "不对", "不对"),
        ("{en: Wrong, zh: 不对}", "Wrong", "不对"),
    ],
)
def test_one_language_is_enough(title: str, en: str, zh: str, tmp_path: Path) -> None:
    (check,) = [check for check in loaded(tmp_path, title).checks if check.id == "SITE101"]
    assert (check.title.en, check.title.zh, check.rationale.en) == (en, zh, en)


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    catalogue = loaded(tmp_path)
    (check,) = [check for check in catalogue.checks if check.id == "SITE101"]
    (entry,) = [entry for entry in catalogue.faq if entry.id == "S01"]
    assert (check.status, check.origin, check.tags, check.references) == ("stable", "site", (), ())
    assert [(row.strength, row.origin) for row in entry.signatures] == [("strong", "site"), ("weak", "outside")]
    assert (entry.side, entry.title.zh, entry.cause.en) == ("host", "Odd", "网卡不对")


@pytest.mark.parametrize("lines", ["[Do it., Check it.]", "{en: [Do it., Check it.]}"])
def test_instructions_in_one_language(lines: str, tmp_path: Path) -> None:
    (playbook,) = [p for p in loaded(tmp_path, step=f"instructions: {lines}").playbooks if p.id == "set-it"]
    assert [(line.en, line.zh) for line in playbook.steps[0].lines] == [("Do it.",) * 2, ("Check it.",) * 2]


def test_a_family_has_a_title(tmp_path: Path) -> None:
    loaded(tmp_path)
    title = family_title("SITE")
    assert title is not None and title.zh == "Our site"
    load()
    assert family_title("SITE") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("title: ''", "3:8: empty; write text"),
        ("title: {}", "empty"),
        ("title: {de: x}", "de is not a known key"),
        ("title: [x]", "this is a list"),
    ],
)
def test_no_language_is_not_enough(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as caught:
        loaded(tmp_path, text.partition(": ")[2])
    assert words in str(caught.value)


def test_the_family_must_be_that_of_its_folder(tmp_path: Path) -> None:
    loaded(tmp_path)
    (tmp_path / "more/checks/site/family.yaml").write_text("id: CPU\ntitle: x\n", "utf-8")
    with pytest.raises(CatalogError, match="CPU belongs in the directory cpu/"):
        load([tmp_path / "more"])


@pytest.mark.parametrize(
    "expect", sampled(["{eq: bond0}", "{in: [bond0]}", "{all: {eq: bond0}}", "{any: {in: [bond0]}}"], 3)
)
@pytest.mark.parametrize("current", ["eth0", None])
def test_a_variable_is_exported_with_the_one_value_that_is_expected(
    expect: str, current: Optional[str], tmp_path: Path
) -> None:
    catalogue = loaded(tmp_path, expect=expect, step="environment.export: {}")
    context = example_context({"environ": {"HCCL_SOCKET_IFNAME": current} if current else {}})
    context.expectations = catalogue.expectations
    (check,) = [check for check in catalogue.checks if check.id == "SITE101"]
    findings = examine(check, context)
    assert findings[0].expected is not None
    assert findings[0].expected.en in ("bond0", "at least one: bond0")
    plan = make_plan(findings, catalogue.playbooks, context)
    assert [change.finding for change in plan.changes] == ["SITE101"]
    assert "export HCCL_SOCKET_IFNAME=bond0" in plan.changes[0].after


def test_lines_to_paste_name_the_directory(tmp_path: Path) -> None:
    catalogue = loaded(tmp_path)
    lines = {check.id: [str(command.line) for command in check.commands] for check in catalogue.checks}
    assert lines["SITE101"] == [f"sudo envtune fix {{id}} --apply --catalog {tmp_path}/more", "ip link"]
    assert lines["CPU001"] == ["sudo envtune fix {id} --apply"]
