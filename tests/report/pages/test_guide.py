"""What the catalog cites is shown as a title and sections, never as the number of a line."""

from __future__ import annotations

import re

import pytest
from helpers.examples import ROOT

from envtune.catalog import load
from envtune.report.pages.entry import sections
from envtune.report.pages.guide import cited, documents

LINE_REFERENCE = re.compile(r"\b00[0-4]:[0-9]+")
READ = [ROOT / name for name in ("README.md", "README.zh.md", "CHANGELOG.md") if (ROOT / name).exists()]
READ += [path for path in sorted((ROOT / "docs").rglob("*.md")) if "adr" not in path.parts]


@pytest.mark.parametrize(
    ("seed", "en", "zh"),
    [
        (
            "003:1349-1403",
            ["The host > Performance mode of the CPU (host侧性能优化 > 将CPU设置为performance模式)"],
            ["host侧性能优化 > 将CPU设置为performance模式"],
        ),
        ("003:1583, 1582", ["AOE"], ["AOE"]),  # one section, once
        (
            "003:3400; 002:22",
            ["load state_dict error.", "Finding the bottleneck"],
            ["load state_dict", "瓶颈识别"],
        ),
        ("001:1", ["Accuracy of DB_ResNet"], ["DB_ResNet的精度坑"]),  # before the first section
    ],
)
def test_a_citation_names_document_and_sections(seed: str, en: list[str], zh: list[str]) -> None:
    for lang, wanted in (("en", en), ("zh", zh)):
        lines = [line.to(lang) for line in cited(seed)]
        assert len(lines) == len(wanted)
        assert all(words in line for words, line in zip(wanted, lines))
        assert len(re.findall("; |；", lines[0])) == 0


def test_every_document_that_is_cited_is_known() -> None:
    catalogue = load()
    for entry in (*catalogue.checks, *catalogue.faq, *catalogue.playbooks):
        assert set(re.findall("([0-9]{3}):", entry.seed)) <= set(documents()), entry.id
        assert bool(entry.seed) == bool(list(cited(entry.seed)))


def test_no_entry_shows_the_number_of_a_line() -> None:
    catalogue = load()
    for entry in (*catalogue.checks, *catalogue.faq, *catalogue.playbooks):
        for section in sections(entry, catalogue):
            if section.kind != "code":
                assert not [line for line in section.lines if LINE_REFERENCE.search(line.to("en"))], entry.id


def test_no_page_shows_the_number_of_a_line() -> None:
    for path in READ:
        text = path.read_text("utf-8")
        if path.name == "catalog.md":  # says how an entry cites
            text = "\n".join(line for line in text.splitlines() if "`seed`" not in line)
        assert LINE_REFERENCE.findall(text) == [], path
