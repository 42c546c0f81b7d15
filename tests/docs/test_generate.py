"""What is written about the catalog is what the catalog says."""

from __future__ import annotations

import importlib.util
import json
import posixpath
import re
from pathlib import Path
from types import ModuleType

import pytest
from helpers.catalogue_files import GOOD_FAQ, GOOD_PLAYBOOK
from helpers.entries import entries
from helpers.examples import ROOT, example_context
from helpers.json_schema import conforms
from helpers.rows import sampled
from helpers.yaml_text import load_yaml

from envtune.audit import audit
from envtune.catalog import load
from envtune.catalog.families import folders_of
from envtune.context.open import describe_target
from envtune.model import Report
from envtune.report.check_json import report_data
from envtune.snapshot.open import open_snapshot

DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(generate: ModuleType) -> dict[str, str]:
    pages: dict[str, str] = generate.pages()
    return pages


@pytest.mark.slow  # `make docs-check` does the same
def test_what_is_committed_is_what_is_generated(generate: ModuleType, made: dict[str, str]) -> None:
    assert generate.stale(made) == [], "run: python docs/generate.py"


def test_every_entry_has_its_page_in_both_languages(made: dict[str, str]) -> None:
    catalogue = load()
    for check in catalogue.checks:
        for lang, suffix in (("en", ""), ("zh", ".zh")):
            assert f'<a id="{check.id.lower()}"></a>' in made[f"rules/{folders_of(check.family)[0]}{suffix}.md"], lang
    for entry in catalogue.faq:
        assert f'<a id="{entry.id.lower()}"></a>' in made[f"faq/{entry.id[0].lower()}.zh.md"]


def test_every_link_leads_somewhere(made: dict[str, str]) -> None:
    for path, text in made.items():
        prose = re.sub("```.*?```", "", text, flags=re.DOTALL) if path.endswith(".md") else ""
        for target in re.findall(r"\]\(([^)]+)\)", prose):
            file, _, anchor = target.partition("#")
            where = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
            assert where in made or (DOCS / where).is_file(), f"{path}: {target}"
            assert not anchor or f'<a id="{anchor}"></a>' in made[where], f"{path}: {target}"


# ---------------------------------------------------------------------- the schemas


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), sampled([("playbook", "playbooks"), ("check", "checks"), ("faq", "faq")], 3))
def test_every_shipped_file_keeps_the_published_schema(name: str, kind: str, made: dict[str, str]) -> None:
    schema = json.loads(made[f"schema/{name}.json"])
    for path, data in (p.values for p in entries(kind)):
        assert conforms(data, schema) == [], path.name


@pytest.mark.parametrize(("schema", "folder"), [("site-check", "probes"), ("site-playbook", "steps"), ("site-faq", "")])
def test_the_examples_keep_the_published_schema_of_a_site(schema: str, folder: str, made: dict[str, str]) -> None:

    published = json.loads(made[f"schema/{schema}.json"])
    paths = sorted((ROOT / "envtune" / "data" / "examples" / folder).glob("*.yaml"))
    assert paths
    for path in paths:
        assert conforms(load_yaml(path.read_text("utf-8")), published) == [], path.name


def test_the_schema_refuses_what_the_loader_refuses(made: dict[str, str]) -> None:
    schema = json.loads(made["schema/check.json"])
    (good,) = [data for path, data in (p.values for p in entries("checks")) if data["id"] == "CPU001"]
    for broken in (
        {**good, "severty": "low"},
        {**good, "severity": "grave"},
        {**good, "title": {"en": "only"}},
        {**good, "expect": {}},
        {**good, "expect": {"equals": 1}},
        {**good, "probe": {"no.such": {}}},
        {**good, "applies": {"contaner": False}},
        {key: value for key, value in good.items() if key != "rationale"},
    ):
        assert conforms(broken, schema) != []


def test_a_report_keeps_the_published_schema(made: dict[str, str]) -> None:
    schemas = {1: json.loads(made["schema/report.json"]), 2: json.loads(made["schema/report-2.json"])}
    context = example_context({"like": "bare"})
    findings = audit(load().checks, context)
    facts = tuple(context.facts[name] for name in context.facts.names())
    report = Report("bare", "2026-11-21T00:00:00Z", 0.1, describe_target(context.target), facts, findings)
    for lang in ("en", "zh"):
        for version, schema in schemas.items():
            assert conforms(report_data(report, lang, version), schema) == []


CONTRACTS = sorted((ROOT / "tests" / "contracts").glob("*.tar.gz"))


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: path.name)
def test_a_recorded_snapshot_keeps_the_published_schema(path: Path, made: dict[str, str]) -> None:
    recorded = json.loads(json.dumps(open_snapshot(path).data))
    assert conforms(recorded, json.loads(made["schema/snapshot.json"])) == []


def test_the_schema_of_a_snapshot_refuses_what_opening_it_refuses(made: dict[str, str]) -> None:
    schema, named = json.loads(made["schema/snapshot.json"]), {"schema": "envtune.snapshot/1"}
    assert conforms({**named, "files": {"/x": "text"}, "environ": {"RANK": 0}, "processes": None}, schema) == []
    for broken in (
        {},
        {"schema": "envtune.snapshot/2"},
        {**named, "files": {"/x": {"contents": "a"}}},
        {**named, "files": {"x": "a"}},
        {**named, "files": {"/x": {"mode": "0999"}}},
        {**named, "commands": [{"rc": 0}]},
        {**named, "processes": [{"name": "init"}]},
        {**named, "euid": "0"},
    ):
        assert conforms(broken, schema) != [], broken


def test_faq_and_playbook_forms_of_the_tests_are_of_the_published_form(made: dict[str, str]) -> None:

    for text, name in ((GOOD_FAQ, "faq"), (GOOD_PLAYBOOK, "playbook")):
        assert conforms(load_yaml(text), json.loads(made[f"schema/{name}.json"])) == []
