"""Render an overview of many hosts as one HTML file: both languages, no network, the matrix drawn on a canvas.

Everything that was read on a host goes through Jinja2's escaping; the matrix is packed (zlib, base64) and only ever
drawn or set as text.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any, Iterable, Mapping, Optional, Sequence

from envtune.compare.comparison import Group
from envtune.compare.facts import FactRow
from envtune.compare.folding import fold
from envtune.errors import require_package
from envtune.fleet.collected import WORDS as COLLECTION
from envtune.fleet.questions import CODES, CheckSummary, Overview, fact_title
from envtune.fleet.record import Both
from envtune.messages import Bilingual, Message, Text, in_context, plural
from envtune.model import Severity
from envtune.report.comparison.values import value_text
from envtune.report.fleet.entries import Entries
from envtune.report.fleet.text import change_texts, group_text, headline, outcome_word, times_text
from envtune.report.formats.html import render_page
from envtune.report.layout import printable
from envtune.report.words import SEVERITIES
from envtune.trust.characters import json_text
from envtune.version import __version__

MAX_NODES = 3000  # characters of folded names in one place
FEW_NODES = 120
BUDGET = 1_000_000  # characters of folded names in a page with full lists
MAX_GROUPS = 30  # of hosts that differ, the largest
MAX_VALUES = 40  # rows of one check or fact
MAX_CHANGES = 500
MAX_ROWS = 300  # facts of one group
MAX_LABEL = 80  # characters of a row of the matrix
PACKED = 4  # zlib's level: 6 takes four times as long and makes the page of 10,000 hosts 4 % smaller
Rows = list[tuple[Both, str]]


class _Page:
    """The language in which a page is shown first, as `render_page` wants it."""

    def __init__(self, lang: str) -> None:
        self.lang = lang


def render_fleet(found: Overview, entries: Entries, lang: str) -> str:
    """Return the overview as a page."""
    require_package("jinja2")
    nodes = _Nodes()
    differing = [group for group in found.groups if group.differences]
    view = {
        "headline": both(headline(found)),
        "times": both(times_text(found)),
        "search": both(Message("Search hosts, checks and text")),
        "titles": {name: both(text) for name, text in _TITLES.items()},
        "outcomes": [(name, both(text)) for name, text in _OUTCOMES],
        "severities": [(severity.value, both(SEVERITIES[severity])) for severity in reversed(Severity)],
        "drift": [_group(group, nodes) for group in differing[:MAX_GROUPS]],
        "checks": {
            "fail": [_check(row, entries, nodes) for row in found.failing],
            "unknown": [_check(row, entries, nodes) for row in found.checks if row.outcome == "unknown"],
            "waived": [_check(row, entries, nodes) for row in found.checks if row.outcome == "waived"],
        },
        "legend": [(code, both(outcome_word(word))) for word, code in CODES.items()],
        "data": _matrix(found),
        "changes": [(both(text), nodes(hosts)) for text, hosts in change_texts(found.changes)[:MAX_CHANGES]],
        "missing": [
            (both(COLLECTION[cause]), nodes(host.name for host in hosts), printable(hosts[0].detail))
            for cause, hosts in found.missing.items()
        ],
        "version": __version__,
    }
    title = f"envtune: {both(headline(found))[lang == 'zh']}"
    return render_page("fleet.html", [_Page(lang)], title, further="fleet", view=view)


_TITLES: Mapping[str, Text] = {
    "drift": Message("Differences"),
    "problems": Message("Problems"),
    "unknown": in_context("heading", "Unknown"),
    "waived": Message("Waived"),
    "matrix": Message("Hosts and checks"),
    "legend": Message("Hosts with the same results share a row. Arrow keys move between cells."),
    "changes": Message("Changed since the previous run"),
    "missing": Message("Not collected"),
    "fix": Message("fix on each of these hosts:"),
}
_OUTCOMES: Sequence[tuple[str, Text]] = (
    ("drift", Message("Differences")),
    ("fail", Message("Problems")),
    ("unknown", in_context("heading", "Unknown")),
    ("waived", Message("Waived")),
)


def both(text: Text) -> Both:
    """Return a text in both languages, safe to show."""
    return printable(text.en), printable(text.zh)


class _Nodes:
    """Folds names of hosts; when BUDGET is used up, long lists are cut short."""

    def __init__(self) -> None:
        self._left = BUDGET

    def __call__(self, hosts: Iterable[str]) -> str:
        names = list(hosts)
        limit = MAX_NODES if self._left > 0 else FEW_NODES
        text = _beginning(fold(names, limit + FEW_NODES), limit)
        self._left -= min(len(text), limit)
        more = "" if len(text) <= limit else ",..."
        return f"({len(names)}) {text[:limit]}{more}"


def _beginning(text: str, limit: int) -> str:
    """Return a text safe to show, or of a long one what is needed to cut it after `limit` characters."""
    return printable(text[: limit + FEW_NODES])


def _said(text: Optional[Both]) -> Both:
    return ("-", "-") if text is None else both(Bilingual(*text))


def _check(row: CheckSummary, entries: Entries, nodes: _Nodes) -> dict[str, Any]:
    count = plural("{title} ({count} host)", "{title} ({count} hosts)", len(row.hosts), title=entries[row.id].title)
    return {
        "id": printable(row.id),
        "severity": row.severity.value,
        "word": both(SEVERITIES[row.severity]),
        "title": both(count),
        "found": [(_said(said.text), nodes(said.hosts)) for said in row.said[:MAX_VALUES]],
        "fix": entries[row.id].fix,
    }


def _group(group: Group, nodes: _Nodes) -> dict[str, Any]:
    count = plural("{kind} ({count} host)", "{kind} ({count} hosts)", len(group.hosts), kind=group_text(group))
    return {"title": both(count), "rows": [_difference(row, nodes) for row in group.differences[:MAX_ROWS]]}


def _difference(row: FactRow, nodes: _Nodes) -> dict[str, Any]:
    title: Text = Message("{fact}: no majority", fact=fact_title(row.name))
    if row.majority:
        total = sum(len(shared.hosts) for shared in row.values)
        value, count = value_text(row.name, row.values[0].value), len(row.values[0].hosts)
        fact = fact_title(row.name)
        title = Message("{fact}: {count} of {total} have {value}", fact=fact, count=count, total=total, value=value)
    values = [(both(value_text(row.name, shared.value)), nodes(shared.hosts)) for shared in row.values[:MAX_VALUES]]
    values += [
        (both(Message("unknown ({reason})", reason=reason)), nodes(hosts)) for reason, hosts in row.unknown[:MAX_VALUES]
    ]
    return {
        "severity": row.severity.value,
        "word": both(SEVERITIES[row.severity]),
        "title": both(title),
        "found": values,
    }


def _matrix(found: Overview) -> str:
    """Return the outcomes of all hosts, hosts with the same ones in one row, packed."""
    names = [host.name for host in found.collected]
    shown = list(map(printable, names))
    number = {name: place for place, name in enumerate(names)}
    rows = []
    for codes, hosts in found.matrix.rows:
        label = shown[number[hosts[0]]] if len(hosts) == 1 else _beginning(fold(hosts, MAX_LABEL), MAX_LABEL)
        rows.append({"hosts": [number[name] for name in hosts], "label": label[:MAX_LABEL], "codes": codes})
    words = {code: both(outcome_word(word)) for word, code in CODES.items()}
    data = {
        "hosts": shown,
        "checks": [printable(check) for check in found.matrix.checks],
        "rows": rows,
        "words": words,
    }
    return base64.b64encode(zlib.compress(json_text(data).encode("utf-8"), PACKED)).decode("ascii")
