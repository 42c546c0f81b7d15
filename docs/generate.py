"""Writes the pages that come from the catalog: docs/rules, docs/faq, docs/playbooks, docs/codes and docs/schema.

And those about what a catalog is written with: docs/probes.md and docs/playbook-steps.md.

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
from envtune.catalog.reference import Reference, references
from envtune.catalog.schema import SITE_TABLES, TABLES, TITLES
from envtune.fix import document as plan
from envtune.messages import Bilingual, Text
from envtune.model import Check, FaqEntry
from envtune.policy import forms as policy
from envtune.report import check_json, npu
from envtune.report.comparison import difference_json
from envtune.report.comparison import json as comparison
from envtune.report.comparison.schema import COMPARISON, DIFFERENCE
from envtune.report.diagnosis import json as diagnosis
from envtune.report.fleet import data as fleet
from envtune.report.fleet.schema import FLEET
from envtune.report.pages import reference
from envtune.report.pages.entry import Entry, Section, head, label, sections
from envtune.report.profile import json as profile
from envtune.report.profile import measured, observed
from envtune.report.profile.schema import PROFILE
from envtune.report.scan import data as scan
from envtune.report.schema import DIAGNOSIS_1, DIAGNOSIS_2, NPUS, POLICY_CHECK, REPORT_1, REPORT_2
from envtune.report.words import SEVERITIES
from envtune.schema import json_schema
from envtune.schema.types import Record
from envtune.snapshot import schema as snapshot

ROOT = Path(__file__).resolve().parents[1]
GENERATED = ("rules", "faq", "playbooks", "codes", "schema")
SINGLE = ("probes.md", "probes.zh.md", "playbook-steps.md", "playbook-steps.zh.md")
_SPECIAL = re.compile(r"([\\`*_<>#|\[\]])")
_HEADINGS: Mapping[str, Text] = {
    "rules": Bilingual("Checks", "检查项"),
    "faq": Bilingual("Known errors", "已知错误"),
    "playbooks": Bilingual("Playbooks", "修复方案"),
    "codes": Bilingual("Error codes", "错误码"),
}
_NOTE = Bilingual(
    "This page is generated from the catalog by `docs/generate.py`; change the YAML, not the page.",
    "本页由 `docs/generate.py` 根据检查目录生成；请修改 YAML，而不是本页。",
)
_OTHER = Bilingual("中文", "English")
ASKED = Bilingual(
    "Experimental checks run only when `--select` names them: `envtune check --select CTR009`.",
    "试验性检查项只在 `--select` 指定时运行：`envtune check --select CTR009`。",
)
_STATUS: Mapping[str, Text] = {
    "experimental": Bilingual("experimental", "试验性"),
    "deprecated": Bilingual("deprecated", "已弃用"),
}
_COLUMNS = Bilingual(
    "| code | meaning | what to do | known error | source |", "| 错误码 | 含义 | 处理方法 | 已知错误 | 出处 |"
)
# file below docs/schema -> its title and what it publishes
_DOCUMENTS: Mapping[str, tuple[str, Record]] = {
    "check": (TITLES["checks"], TABLES["checks"]),
    "faq": (TITLES["faq"], TABLES["faq"]),
    "playbook": (TITLES["playbooks"], TABLES["playbooks"]),
    "codes": ("envtune error codes (checks/codes/*.yaml)", CODES),
    **{
        f"site-{name}": (f"{TITLES[kind]} of a site", SITE_TABLES[kind])
        for name, kind in (("check", "checks"), ("faq", "faq"), ("playbook", "playbooks"))
    },
    "snapshot": (snapshot.SCHEMA, snapshot.SNAPSHOT),
    "plan": (plan.SCHEMA, plan.PLAN),
    "policy": (policy.SCHEMA, policy.policy_form()),
    "policy-check": ("envtune.policy-check/1", POLICY_CHECK),
    "report": (check_json.SCHEMAS[1], REPORT_1),
    "report-2": (check_json.SCHEMAS[2], REPORT_2),
    "npu": (npu.SCHEMA, NPUS),
    "profile": (profile.SCHEMA, PROFILE),
    "observation": (observed.SCHEMA, observed.OBSERVATION),
    "scan": (scan.SCHEMA, scan.SCAN),
    "bench": (measured.SCHEMA, measured.BENCH),
    "comparison": (comparison.SCHEMA, COMPARISON),
    "difference": (difference_json.SCHEMA, DIFFERENCE),
    "fleet": (fleet.SCHEMA, FLEET),
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
        made[_top("probes", lang)] = _page("probes", _PROBES, _probes(catalogue, lang), lang)
        made[_top("playbook-steps", lang)] = _page("playbook-steps", _STEPS, _steps(catalogue, lang), lang)
    for name, (title, table) in _DOCUMENTS.items():
        text = json.dumps(json_schema.document(title, table), ensure_ascii=False, indent=2)
        made[f"schema/{name}.json"] = text + "\n"
    return made


def _folders(catalogue: Catalogue) -> dict[str, tuple[Entry, ...]]:
    return {"rules": catalogue.checks, "faq": catalogue.faq, "playbooks": catalogue.playbooks}


def shipped() -> Catalogue:
    """The catalog of this checkout, without this machine's overlay and without a cache."""
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
    if any(isinstance(entry, Check) for entry in entries):
        yield from (ASKED.to(lang), "")
    for entry in entries:
        mark = ""
        if isinstance(entry, Check):
            words = [SEVERITIES[entry.severity].to(lang), *status_marks(entry, lang)]
            mark = f" ({', '.join(words)})" if lang == "en" else f"（{'，'.join(words)}）"
        yield f"- [{entry.id}]({_target(entry, lang)}) {_escape(entry.title.to(lang))}{mark}"
    yield ""


def status_marks(check: Check, lang: str) -> tuple[str, ...]:
    """What is said in a list of a check that runs only when it is named."""
    return () if check.status == "stable" else (_STATUS[check.status].to(lang),)


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


_PROBES = Bilingual("Probes and facts", "探针与主机信息")
_STEPS = Bilingual("Steps of a playbook", "修复步骤")
_ABOUT_PROBES = Bilingual(
    "A probe is what a check reads: `probe: {NAME: {argument: value}}`. The same on a terminal: `envtune list probes`, "
    '`envtune explain NAME`. Values that are texts in a file compare as what they look like: `eq: 1` and `eq: "1"` '
    "both hold for `1`, `ge: 65536` for `131072` and for `unlimited`; what does not exist has the value `missing`. "
    "How a check is written: [site-checks.md](site-checks.md).",
    "探针说明检查项读取什么：`probe: {名称: {参数: 取值}}`。在终端上可用 `envtune list probes` 和 `envtune explai"
    "n 名称` "
    '查看同样的内容。从文件中读到的文本按其形式比较：对于 `1`，`eq: 1` 与 `eq: "1"` 都成立；对于 `131072` 和 '
    "`unlimited`，`ge: 65536` 都成立；不存在的内容取值为 `missing`。如何编写检查项见 [site-checks.zh.md](site-che"
    "cks.zh.md)。",
)
_ABOUT_STEPS = Bilingual(
    "A playbook lists its steps: `steps: [{NAME: {argument: value}}]`. The same on a terminal: `envtune list steps`, "
    "`envtune explain NAME`. No step runs a shell. Whatever a step proposes is shown as a diff first; envtune refuses "
    "files that the system would run (cron, shell profiles, udev rules) and accounts. How a playbook is written: "
    "[site-checks.md](site-checks.md).",
    "修复方案列出各个步骤：`steps: [{名称: {参数: 取值}}]`。在终端上可用 `envtune list steps` 和 `envtune explain"
    " 名称` "
    "查看同样的内容。任何步骤都不会运行 shell。步骤要做的修改总是先以 diff 形式显示；会被系统执行的文件（cron、sh"
    "ell 配置、"
    "udev 规则）以及账户文件，envtune 拒绝写入。如何编写修复方案见 [site-checks.zh.md](site-checks.zh.md)。",
)
_FACTS = Bilingual("Facts", "主机信息")
_ABOUT_FACTS = Bilingual(
    "A fact says what kind of host this is; `applies: {container: false, npu: [910A, 910B]}` refers to it.",
    "主机信息说明这是怎样的主机，供 `applies: {container: false, npu: [910A, 910B]}` 引用。",
)
_REFERENCE_COLUMNS = Bilingual("| name | what |", "| 名称 | 说明 |")
_ARGUMENT_COLUMNS = Bilingual("| argument | type | default | what |", "| 参数 | 类型 | 默认值 | 说明 |")
_REQUIRED = Bilingual("required", "必填")


def _top(name: str, lang: str) -> str:
    return f"{name}.md" if lang == "en" else f"{name}.zh.md"


def _probes(catalogue: Catalogue, lang: str) -> Iterator[str]:
    """The probes, and the facts behind them."""
    yield from (_ABOUT_PROBES.to(lang), "", *_references(references("probes"), catalogue, lang))
    yield from (f"## {_FACTS.to(lang)}", "", _ABOUT_FACTS.to(lang), "", _REFERENCE_COLUMNS.to(lang), "|---|---|")
    yield from (f"| `{row.id}` | {_cell(row.summary.to(lang))} |" for row in references("facts"))
    yield ""


def _steps(catalogue: Catalogue, lang: str) -> Iterator[str]:
    yield from (_ABOUT_STEPS.to(lang), "", *_references(references("steps"), catalogue, lang))


def _references(rows: Sequence[Reference], catalogue: Catalogue, lang: str) -> Iterator[str]:
    """A table of all of them, then each with its arguments, an example, and who uses it."""
    yield from (_REFERENCE_COLUMNS.to(lang), "|---|---|")
    yield from (f"| [{row.id}](#{_anchor(row)}) | {_cell(row.summary.to(lang))} |" for row in rows)
    for row in rows:
        yield from ("", f'<a id="{_anchor(row)}"></a>', "", f"## {row.id}", "", _cell(row.summary.to(lang)))
        if row.arguments:
            yield from ("", _ARGUMENT_COLUMNS.to(lang), "|---|---|---|---|")
        for argument in row.arguments:
            data = reference.argument_data(argument, lang)
            default = _REQUIRED.to(lang) if data["required"] else f"`{data['default'] or '-'}`"
            yield f"| `{argument.name}` | {_cell(data['type'])} | {default} | {_cell(data['summary'])} |"
        for section in reference.sections(row, catalogue)[1 if row.arguments else 0 :]:
            yield from ("", f"**{section.heading.to(lang)}**", "")
            links = {id_: target.removeprefix("../") for id_, target in _links(catalogue, "", lang).items()}
            lines = list(_section(section, links, lang))
            yield from (["```yaml", *lines[1:]] if section.kind == "code" else lines)
    yield ""


def _anchor(row: Reference) -> str:
    return row.id.replace(".", "-").replace("_", "-")


def _cell(text: str) -> str:
    """A text of a table: code between back quotes stays as it is."""
    parts = text.split("`")
    return "`".join(part if number % 2 else _escape(part) for number, part in enumerate(parts))


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
    there |= {name for name in SINGLE if (docs / name).exists()}
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
