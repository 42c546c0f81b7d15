"""The page of what the porting guide asks for: which check, known error or command answers it, or why none does.

The ids are those of docs/coverage.csv: of the guide's facts about a host (SYS-01), its FAQ (F01), symptoms (X01), the
tools it names (`tool: npu-smi`), and its rules on logs, profiles and debugging (TL, TP, TS).
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Iterable, Iterator, Mapping, NamedTuple

from envtune.catalog.families import folders_of
from envtune.messages import Bilingual, Text

TITLE = Bilingual("The porting guide, requirement by requirement", "移植指南逐条对照")
DATA = Path(__file__).resolve().parent / "coverage.csv"
COMMAND = "command:"
_ABOUT = Bilingual(
    "What the guide requires of a host, its known errors, its tools and its rules on logs and profiles, and the part "
    "of envtune that covers each. The data is in `docs/coverage.csv`.",
    "指南中关于主机的要求、已知错误、所用工具以及日志和性能数据的规则，及 envtune 中与之对应的内容。数据来自 "
    "`docs/coverage.csv`。",
)
_COLUMNS = Bilingual("| id | covered by | remark |", "| 编号 | 对应内容 | 说明 |")
_SECTIONS: Mapping[str, Text] = {
    "hosts": Bilingual("Hosts", "主机"),
    "errors": Bilingual("Known errors and symptoms", "已知错误与现象"),
    "tools": Bilingual("Tools", "工具"),
    "rules": Bilingual("Logs, profiles and debugging settings", "日志、性能数据与调试设置"),
}
_REQUEST = Bilingual(" (on request)", "（按需）")


class Row(NamedTuple):
    """One requirement: its id, what answers it, and a remark, which is the reason where nothing does."""

    id: str
    held_by: tuple[str, ...]
    remark: Bilingual

    @property
    def section(self) -> str:
        """Return the key of its heading."""
        if self.id.startswith("tool: "):
            return "tools"
        if self.id.startswith(("TL-", "TP-", "TS-")):
            return "rules"
        return "hosts" if "-" in self.id else "errors"


def rows() -> tuple[Row, ...]:
    """Return the table in its order."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return tuple(
            Row(r["id"], tuple(r["held_by"].split()), Bilingual(r["en"], r["zh"])) for r in csv.DictReader(file)
        )


def body(catalogue: Any, lang: str) -> Iterator[str]:
    """Yield the lines of the page."""
    titles, links = _entries(catalogue), _links(catalogue, lang)
    yield from (_ABOUT.to(lang), "")
    for key, heading in _SECTIONS.items():
        yield from (f"## {heading.to(lang)}", "", _COLUMNS.to(lang), "|---|---|---|")
        for row in rows():
            if row.section == key:
                answers = "<br>".join(_answer(name, titles, links, lang) for name in row.held_by)
                yield f"| {row.id.replace('tool: ', '')} | {answers} | {_cell(row.remark.to(lang))} |"
        yield ""


def _entries(catalogue: Any) -> Mapping[str, Any]:
    every: Iterable[Any] = (*catalogue.checks, *catalogue.faq, *catalogue.playbooks)
    return {entry.id: entry for entry in every}


def _links(catalogue: Any, lang: str) -> Mapping[str, str]:
    suffix = "" if lang == "en" else ".zh"
    links = {c.id: f"rules/{folders_of(c.family)[0]}{suffix}.md#{c.id.lower()}" for c in catalogue.checks}
    return {
        **links,
        **{entry.id: f"faq/{entry.id[0].lower()}{suffix}.md#{entry.id.lower()}" for entry in catalogue.faq},
    }


def _answer(name: str, entries: Mapping[str, Any], links: Mapping[str, str], lang: str) -> str:
    if name.startswith(COMMAND):
        return f"`envtune {name[len(COMMAND) :]}`"
    title = _cell(entries[name].title.to(lang))
    asked = _REQUEST.to(lang) if getattr(entries[name], "status", "stable") != "stable" else ""
    shown = f"[{name}]({links[name]})" if name in links else f"`{name}`"
    return f"{shown} {title}{asked}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
