"""Writes the pages that come from the catalogue: docs/rules, docs/faq, docs/playbooks, docs/codes and docs/schema.

    python docs/generate.py            write them
    python docs/generate.py --check    end with 1 when what is there is not what would be written

A test compares them, so that a check cannot change without its page.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Iterable, Iterator, Mapping, Sequence

from envtune.catalog import Catalogue
from envtune.catalog.code_files import CODES
from envtune.catalog.families import FAMILIES, folders_of
from envtune.catalog.layers import Layer, content, sources
from envtune.catalog.schema import TABLES, TITLES
from envtune.fix import document as plan
from envtune.messages import Bilingual, Text
from envtune.model import Check, FaqEntry
from envtune.policy import forms as policy
from envtune.report import check_json, npu
from envtune.report.comparison import difference_json
from envtune.report.comparison import json as comparison
from envtune.report.comparison.schema import COMPARISON, DIFFERENCE
from envtune.report.diagnosis import json as diagnosis
from envtune.report.entry import Entry, Section, head, label, sections
from envtune.report.schema import DIAGNOSIS_1, DIAGNOSIS_2, NPUS, POLICY_CHECK, REPORT_1, REPORT_2
from envtune.report.words import SEVERITIES
from envtune.schema import json_schema
from envtune.schema.types import Record
from envtune.snapshot import schema as snapshot

ROOT = Path(__file__).resolve().parents[1]
GENERATED = ("rules", "faq", "playbooks", "codes", "schema")
_SPECIAL = re.compile(r"([\\`*_<>#|\[\]])")
_HEADINGS: Mapping[str, Text] = {
    "rules": Bilingual("Checks", "检查项"),
    "faq": Bilingual("Known errors", "已知错误"),
    "playbooks": Bilingual("Playbooks", "修复方案"),
    "codes": Bilingual("Error codes", "错误码"),
}
_NOTE = Bilingual(
    "This page is generated from the catalogue by `docs/generate.py`; change the YAML, not the page.",
    "本页由 `docs/generate.py` 根据检查目录生成；请修改 YAML，而不是本页。",
)
_OTHER = Bilingual("中文", "English")
_COLUMNS = Bilingual(
    "| code | meaning | what to do | known error | source |", "| 错误码 | 含义 | 处理方法 | 已知错误 | 出处 |"
)
# file below docs/schema -> its title and what it publishes
_DOCUMENTS: Mapping[str, tuple[str, Record]] = {
    "check": (TITLES["checks"], TABLES["checks"]),
    "faq": (TITLES["faq"], TABLES["faq"]),
    "playbook": (TITLES["playbooks"], TABLES["playbooks"]),
    "codes": ("envtune error codes (checks/codes/*.yaml)", CODES),
    "snapshot": (snapshot.SCHEMA, snapshot.SNAPSHOT),
    "plan": (plan.SCHEMA, plan.PLAN),
    "policy": (policy.SCHEMA, policy.policy_form()),
    "policy-check": ("envtune.policy-check/1", POLICY_CHECK),
    "report": (check_json.SCHEMAS[1], REPORT_1),
    "report-2": (check_json.SCHEMAS[2], REPORT_2),
    "npu": (npu.SCHEMA, NPUS),
    "comparison": (comparison.SCHEMA, COMPARISON),
    "difference": (difference_json.SCHEMA, DIFFERENCE),
    "diagnosis": (diagnosis.SCHEMAS[1], DIAGNOSIS_1),
    "diagnosis-2": (diagnosis.SCHEMAS[2], DIAGNOSIS_2),
}


def pages() -> dict[str, str]:
    """Every generated file below docs/, by its path there."""
    catalogue = shipped()
    made: dict[str, str] = {}
    for lang in ("en", "zh"):
        for folder, entries in _folders(catalogue).items():
            made.update(_grouped(folder, entries, catalogue, lang))
        made[_path("codes", "README", lang)] = _page("README", _HEADINGS["codes"], _codes(catalogue, lang), lang)
    for name, (title, table) in _DOCUMENTS.items():
        text = json.dumps(json_schema.document(title, table), ensure_ascii=False, indent=2)
        made[f"schema/{name}.json"] = text + "\n"
    return made


def _folders(catalogue: Catalogue) -> dict[str, tuple[Entry, ...]]:
    return {"rules": catalogue.checks, "faq": catalogue.faq, "playbooks": catalogue.playbooks}


def shipped() -> Catalogue:
    """The catalogue of this checkout, without this machine's overlay and without a cache."""
    from envtune.catalog.compile import compile_rows
    from envtune.catalog.store import Compiled, dump

    files = sources(Layer(str(ROOT), own=True))
    return Catalogue(Compiled(dump(compile_rows([(file, content(file)) for file in files], {}))))


# ---------------------------------------------------------------------- Markdown


def _path(folder: str, name: str, lang: str) -> str:
    return f"{folder}/{name}.md" if lang == "en" else f"{folder}/{name}.zh.md"


def _grouped(folder: str, entries: Sequence[Entry], catalogue: Catalogue, lang: str) -> Iterator[tuple[str, str]]:
    """An index, and a page per group of entries."""
    yield _path(folder, "README", lang), _page("README", _HEADINGS[folder], _index(entries, lang), lang)
    for group in dict.fromkeys(_group(entry) for entry in entries):
        members = [entry for entry in entries if _group(entry) == group]
        body = [line for entry in members for line in _entry(entry, catalogue, folder, lang)]
        yield _path(folder, group, lang), _page(group, _group_title(folder, group), body, lang)


def _group(entry: Entry) -> str:
    """The page an entry is on: its family, the letter of an FAQ id, a playbook's own."""
    if isinstance(entry, Check):
        return folders_of(entry.family)[0]
    return entry.id[0].lower() if isinstance(entry, FaqEntry) else entry.id


def _group_title(folder: str, group: str) -> Text:
    family = next((one.title for one in FAMILIES.values() if one.folder == group), None) if folder == "rules" else None
    title = _HEADINGS[folder]
    if family is not None or folder == "playbooks":
        return family or title
    return Bilingual(f"{title.en}: {group.upper()}", f"{title.zh}：{group.upper()}")


def _page(name: str, title: Text, body: Iterable[str], lang: str) -> str:
    other = f"{name}.zh.md" if lang == "en" else f"{name}.md"
    lines = [f"# {_escape(title.to(lang))}", "", f"[{_OTHER.to(lang)}]({other})", "", *body, "---", "", _NOTE.to(lang)]
    return "\n".join(lines) + "\n"


def _index(entries: Sequence[Entry], lang: str) -> Iterator[str]:
    for entry in entries:
        mark = f" ({SEVERITIES[entry.severity].to(lang)})" if isinstance(entry, Check) else ""
        yield f"- [{entry.id}]({_target(entry, lang)}) {_escape(entry.title.to(lang))}{mark}"
    yield ""


def _codes(catalogue: Catalogue, lang: str) -> Iterator[str]:
    """A table of the error codes; codes that mean the same share a row."""
    links = _links(catalogue, "codes", lang)
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    for code in catalogue.codes:
        row = code.meaning.to(lang), code.action.to(lang), code.faq, code.source
        rows.setdefault(row, []).append(code.code)
    yield from (_COLUMNS.to(lang), "|---|---|---|---|---|")
    sources = sorted({source for _, _, _, source in rows})
    for (meaning, action, faq, source), codes in rows.items():
        known = f"[{faq}]({links[faq]})" if faq else ""
        cells = ", ".join(codes), _escape(meaning), _escape(action), known, str(sources.index(source) + 1)
        yield f"| {' | '.join(cells)} |"
    yield from ("", *(f"{number}. {source}" for number, source in enumerate(sources, 1)), "")


def _target(entry: Entry, lang: str) -> str:
    """The place of an entry in its own folder."""
    return f"{_path('', _group(entry), lang)[1:]}#{entry.id.lower()}"


def _entry(entry: Entry, catalogue: Catalogue, folder: str, lang: str) -> Iterator[str]:
    yield from (f'<a id="{entry.id.lower()}"></a>', "", f"## {_escape(label(entry))}", "")
    yield from (f"**{_escape(entry.title.to(lang))}**", "")
    yield from (_escape(head(entry).to(lang)), "")
    links = _links(catalogue, folder, lang)
    for section in sections(entry, catalogue):
        yield from (f"### {section.heading.to(lang)}", "", *_section(section, links, lang), "")


def _section(section: Section, links: Mapping[str, str], lang: str) -> Iterator[str]:
    if section.kind == "code":
        yield from ("```text", *(line.to(lang) for line in section.lines), "```")
        return
    for number, line in enumerate(section.lines, 1):
        mark = {"text": "", "list": "- ", "steps": f"{number}. "}[section.kind]
        yield mark + _linked(line.to(lang), links)


def _linked(line: str, links: Mapping[str, str]) -> str:
    found = re.match("([A-Za-z0-9-]+)(?=[:：])", line)
    if line.startswith("https://"):
        return f"<{line}>"
    if found is None or found[1] not in links:
        return _escape(line)
    return f"[{found[1]}]({links[found[1]]}){_escape(line[found.end() :])}"


def _links(catalogue: Catalogue, folder: str, lang: str) -> dict[str, str]:
    """Id -> the way there from a page in `folder`."""
    return {
        entry.id: _target(entry, lang) if kind == folder else f"../{kind}/{_target(entry, lang)}"
        for kind, entries in _folders(catalogue).items()
        for entry in entries
    }


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


# ---------------------------------------------------------------------- files


def stale(made: Mapping[str, str]) -> list[str]:
    """The paths below docs/ that are missing, differ, or should not be there."""
    docs = ROOT / "docs"
    there = {str(path.relative_to(docs)) for name in GENERATED for path in (docs / name).rglob("*") if path.is_file()}
    wrong = [p for p, text in made.items() if p not in there or (docs / p).read_text("utf-8") != text]
    return sorted([*wrong, *(there - set(made))])


def main(arguments: Sequence[str]) -> int:
    """Write the files, or with `--check` name those that are stale."""
    made = pages()
    wrong = stale(made)
    if "--check" in arguments:
        sys.stderr.write("".join(f"docs/{path} is stale; run python docs/generate.py\n" for path in wrong))
        return 1 if wrong else 0
    for path in wrong:
        file = ROOT / "docs" / path
        if path not in made:
            file.unlink()
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(made[path], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
