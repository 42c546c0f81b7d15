"""What a store of many hosts answers, as JSON (`envtune.fleet/1`) and as CSV."""

from __future__ import annotations

import csv
import io
import time
from functools import lru_cache
from itertools import islice
from typing import Any, Iterable, Iterator, Mapping, Optional, Sequence

from envtune.compare.comparison import Group
from envtune.compare.folding import fold
from envtune.fleet.questions import CheckSummary, Overview
from envtune.fleet.record import Both
from envtune.fleet.store.read import Change, HostRow, Run
from envtune.report.fleet.entries import Entries
from envtune.report.fleet.text import group_text
from envtune.version import __version__

SCHEMA = "envtune.fleet/1"
COLUMNS = ("host", "collection", "verdict", "collected", "kind", "name", "severity", "outcome", "found")
AT_ONCE = 2000  # changes that are turned into text
_END_OF_ROW = "\r\n"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def head(question: str) -> dict[str, Any]:
    """Return what every document begins with: its form, and the question that it answers."""
    return {"schema": SCHEMA, "envtune": __version__, "question": question}


def drift_data(groups: Iterable[Group], lang: str) -> dict[str, Any]:
    """Return the facts in which hosts differ as JSON data."""
    return {**head("drift"), "groups": [group_data(group, lang) for group in groups]}


def since_document(changes: Iterable[Change], runs: Mapping[int, Run]) -> Iterator[str]:
    """Yield the parts of the JSON document on what changed since a date: hundreds of thousands of changes, at most."""
    from envtune.trust.characters import json_text

    empty = json_text({**head("since"), "changes": []}, 1)
    start, before, after = empty[: -len("]\n}")] + "\n", '{\n "changes": [\n', "\n ]\n}"
    rest, separator, end = iter(changes), start, empty
    while some := [change_data(change, runs) for change in islice(rest, AT_ONCE)]:
        yield separator + json_text({"changes": some}, 1)[len(before) : -len(after)]
        separator, end = ",\n", after
    yield end + "\n"


def overview_data(found: Overview, entries: Entries, lang: str) -> dict[str, Any]:
    """Return the overview as JSON data."""
    return {
        **head("report"),
        "hosts": [host_data(host, found.runs) for host in found.hosts],
        "collected": len(found.collected),
        "verdicts": dict(found.verdicts),
        "not_collected": {cause.value: [host.name for host in hosts] for cause, hosts in found.missing.items()},
        "checks": [check_data(row, found.runs, entries, lang) for row in found.checks],
        "groups": [group_data(group, lang) for group in found.groups],
        "changes": [change_data(change, found.runs) for change in found.changes],
    }


def host_data(host: HostRow, runs: Mapping[int, Run]) -> dict[str, Any]:
    """Return a host: how its last attempt ended, and what is known of it since when."""
    return {
        "host": host.name,
        "collection": host.collection.value,
        "detail": host.detail,
        "seconds": round(host.seconds, 3),
        "attempted": run_time(runs.get(host.attempt)),
        "collected": run_time(runs.get(host.seen or 0)),
        "verdict": host.verdict if host.is_current else None,
    }


def check_data(row: CheckSummary, runs: Mapping[int, Run], entries: Entries, lang: str) -> dict[str, Any]:
    """Return a check with the hosts that it says this about."""
    entry = entries[row.id]
    return {
        "id": row.id,
        "title": entry.title.to(lang),
        "outcome": row.outcome,
        "severity": row.severity.value,
        "hosts": list(row.hosts),
        "folded": fold(row.hosts),
        "since": run_time(runs.get(row.since)),
        "found": [{"text": in_language(said.text, lang), "hosts": list(said.hosts)} for said in row.said],
        "fix": entry.fix or None,
    }


def group_data(group: Group, lang: str) -> dict[str, Any]:
    """Return the facts in which the hosts of a group differ."""
    return {
        "group": group_text(group).to(lang),
        "hosts": [host.label for host in group.hosts],
        "differences": [
            {
                "fact": row.name,
                "severity": row.severity.value,
                "majority": row.majority,
                "values": [
                    {"value": shared.value, "hosts": list(shared.hosts), "folded": fold(shared.hosts)}
                    for shared in row.values
                ],
                "unknown": [
                    {"reason": reason.to(lang), "hosts": list(hosts), "folded": fold(hosts)}
                    for reason, hosts in row.unknown
                ],
            }
            for row in group.differences
        ],
    }


def change_data(change: Change, runs: Mapping[int, Run]) -> dict[str, Any]:
    """Return a change with the time of the run that found it."""
    return {
        "when": run_time(runs.get(change.run)),
        "host": change.host,
        "kind": change.kind,
        "name": change.name,
        "before": change.before,
        "after": change.after,
    }


def in_language(text: Optional[Both], lang: str) -> Optional[str]:
    """Return a text of a store in one language."""
    return None if text is None else text[1 if lang == "zh" else 0]


def overview_csv(found: Overview, lang: str) -> str:
    """Return a row for each host that was not collected, and for each check that did not pass on a host."""
    starts = {host.name: _cells(_start(host, found.runs)) for host in found.hosts}
    parts = [_cells(COLUMNS) + _END_OF_ROW]
    for host in found.hosts:
        parts.append(f"{starts[host.name]},{_cells(('host', '', '', '', host.detail))}{_END_OF_ROW}")
    for check in found.checks:
        for said in check.said:  # the same cells behind every host, of which there may be thousands
            text = in_language(said.text, lang) or ""
            end = f",{_cells(('check', check.id, check.severity.value, check.outcome, text))}{_END_OF_ROW}"
            parts += (end.join(map(starts.__getitem__, said.hosts)), end)
    return "".join(parts)


def _start(host: HostRow, runs: Mapping[int, Run]) -> Sequence[str]:
    """Return the cells with which the rows of a host begin."""
    verdict = host.verdict if host.is_current else ""
    return host.name, host.collection.value, verdict, run_time(runs.get(host.seen or 0)) or ""


def _cells(cells: Iterable[str]) -> str:
    """Return cells of CSV (RFC 4180). What a spreadsheet would take for a formula begins with an apostrophe."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells)
    return out.getvalue()


@lru_cache  # every host and every change has one of few runs
def run_time(run: Optional[Run]) -> Optional[str]:
    """Return when a run began, in UTC."""
    return None if run is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(run.started))
