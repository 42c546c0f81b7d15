"""Every file of the catalog keeps the rules that readers and reviewers rely on."""

from __future__ import annotations

import re
from typing import Any, Iterator

from helpers.entries import entries
from helpers.examples import ROOT
from helpers.shipped import ASK_OTHER_HOSTS

from envtune.catalog import load, schema
from envtune.catalog.compile import compile_rows
from envtune.catalog.entries import faq_from
from envtune.catalog.layers import Layer, content, sources

KNOWN_TAGS = {"preflight", "fleet", "troubleshoot"}
CHINESE = re.compile("[\u3001-\u9fff\uff01-\uff5e]")  # punctuation, too: some remedies are code


def all_texts(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every bilingual text of an entry, with where it stands; the examples are hosts, not prose."""
    if isinstance(value, dict) and set(value) == {"en", "zh"}:
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key != "examples":
                yield from all_texts(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from all_texts(inner, f"{path}[{number}]")


def shipped(*kinds: str) -> Iterator[tuple[str, Any]]:
    """The entries of these kinds by id."""
    return ((path.stem, data) for kind in kinds for path, data in (p.values for p in entries(kind)))


def test_the_shipped_catalogue_has_no_complaint() -> None:
    files = sources(Layer(str(ROOT), own=True))
    rows = compile_rows([(file, content(file)) for file in files], {})
    for kind in schema.KINDS:
        assert sorted(row["file"] for row in rows[kind]) == sorted(f.shown for f in files if f.kind == kind)


def test_every_reference_leads_to_an_entry() -> None:
    catalogue = load()
    checks = {check.id for check in catalogue.checks}
    assert {id_ for entry in catalogue.faq for id_ in entry.checks} <= checks
    assert {id_ for playbook in catalogue.playbooks for id_ in playbook.fixes} <= checks
    assert {id_ for check in catalogue.checks for id_ in check.faq} <= {entry.id for entry in catalogue.faq}


def test_load_gives_every_entry_sorted_by_id() -> None:
    catalogue = load()
    for kind, found in (("checks", catalogue.checks), ("faq", catalogue.faq), ("playbooks", catalogue.playbooks)):
        ids = [entry.id for entry in found]
        assert ids == sorted(data["id"] for _, data in (p.values for p in entries(kind)))


def test_texts_are_in_both_languages() -> None:
    for id_, data in shipped("checks", "faq", "playbooks"):
        found = list(all_texts(data))
        assert found, id_
        for where, text in found:
            lines = zip(text["en"], text["zh"]) if isinstance(text["en"], list) else [(text["en"], text["zh"])]
            for en, zh in lines:
                if where == ".title" and "signatures" in data and en == zh:
                    continue  # the error message itself
                if where.endswith(".instructions") and en == zh:
                    continue  # a line of code or of a patch
                assert not CHINESE.search(en), f"{id_}{where}: the English text holds Chinese"
                assert CHINESE.search(zh), f"{id_}{where}: the Chinese text holds no Chinese"


def test_keys_stand_in_the_order_of_the_tables() -> None:
    for id_, data in shipped("checks", "faq", "playbooks"):
        kind = "playbooks" if "steps" in data else "faq" if "signatures" in data else "checks"
        order = [field.name for field in schema.TABLES[kind].fields]
        assert list(data) == [name for name in order if name in data], id_


def test_a_check_says_where_it_comes_from() -> None:
    for id_, data in shipped("checks"):
        assert data.get("seed") or data.get("references"), f"{id_}: a fact without a source is not shipped"
        if data["origin"] == "seed":
            assert data["seed"].startswith(("000:", "001:", "002:", "003:", "004:")), id_


def test_a_check_ships_with_its_examples_and_a_remedy() -> None:
    """A stable one has two independent sources; an experimental one, which runs only when it is named, has one."""
    for id_, data in shipped("checks"):
        assert data["status"] in ("stable", "experimental"), f"{id_}: what is not finished is not shipped"
        wanted = {"notapplicable"} if data["id"] in ASK_OTHER_HOSTS else {"pass", "fail", "notapplicable"}
        assert wanted <= set(data["examples"]), id_
        assert set(data["tags"]) <= KNOWN_TAGS, id_
        assert data.get("remedy"), f"{id_}: a failure comes with what to do"


def hits(data: Any, text: str) -> bool:
    """Whether a signature is in the text, and its frame where it has one."""
    flags = re.MULTILINE | re.DOTALL
    return any(
        re.search(s.regex, text, flags) and (not s.frame or re.search(s.frame, text)) for s in faq_from(data).signatures
    )


def test_the_signatures_of_an_faq_entry_hit_and_miss() -> None:
    for id_, data in shipped("faq"):
        assert data["examples"]["match"] and data["examples"]["near_miss"], id_
        assert [text for text in data["examples"]["match"] if not hits(data, text)] == [], id_
        assert [text for text in data["examples"]["near_miss"] if hits(data, text)] == [], id_


def test_the_bios_playbook_tells_the_menus_of_both_architectures() -> None:
    (playbook,) = [p for p in load().playbooks if p.id == "set-bios-power-policy"]
    words = " ".join(line.en for step in playbook.steps for line in step.lines)
    assert "Advanced > Socket Configuration > Advanced Power Mgmt. Configuration" in words
    assert "Advanced > Performance Config" in words
    assert (playbook.safety, playbook.disruption) == ("manual", "reboot")
