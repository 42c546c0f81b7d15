"""Render what a store knows of one host."""

from __future__ import annotations

from typing import Any, Iterator

from envtune.audit.settings import PACKAGES
from envtune.audit.verdict import Verdict
from envtune.fleet.collected import WORDS as COLLECTION
from envtune.fleet.one_host import OneHost
from envtune.fleet.questions import CheckSummary, Said, fact_title
from envtune.fleet.store.read import NOT_FINE
from envtune.messages import Bilingual, Literal, Message, Text, in_context
from envtune.model import Severity
from envtune.report.comparison.text import WORDS
from envtune.report.fleet.data import change_data, check_data, head, host_data, in_language, run_time
from envtune.report.fleet.entries import Entries
from envtune.report.fleet.text import Settings, change_lines, outcome_word, when
from envtune.report.layout import display_width, pad, printable
from envtune.report.words import SEVERITIES

MAX_ATTEMPTS = 30


def host_page_lines(found: OneHost, entries: Entries, settings: Settings) -> Iterator[str]:
    """Yield what is known of the host."""
    host, runs = found.host, found.runs
    verdict = WORDS[Verdict(host.verdict)] if host.verdict else in_context("value", "unknown")
    if host.is_current:
        text: Text = Message(
            "{host}: {verdict} (collected {when})", host=host.name, verdict=verdict, when=when(runs.get(host.seen or 0))
        )
    elif host.seen is not None:
        text = Message(
            "{host}: not collected ({cause}); results of {when}",
            host=host.name,
            cause=COLLECTION[host.collection],
            when=when(runs.get(host.seen)),
        )
    else:
        text = Message("{host}: never collected ({cause})", host=host.name, cause=COLLECTION[host.collection])
    yield from settings.lines(text)
    if host.detail:
        yield from settings.lines(Literal(host.detail), "  ", "  ")
    yield from _facts(found, settings)
    yield from _checks(found, entries, settings)
    if found.changes:
        yield ""
        yield settings.heading(Message("Changes"))
        yield from change_lines(found.changes, runs, settings)
    yield ""
    yield settings.heading(Message("Collections"))
    for run, collection, word in found.attempts[:MAX_ATTEMPTS]:
        about: Text = WORDS[Verdict(word)] if word else COLLECTION[collection]
        yield from settings.lines(about, f"  {when(runs.get(run))}  ", "    ")


def _facts(found: OneHost, settings: Settings) -> Iterator[str]:
    if found.facts:
        yield ""
        yield settings.heading(Message("Facts"))
    for row in found.facts:
        if row.name != PACKAGES:
            value: Text = Literal(row.value) if row.value is not None else Bilingual(*(row.reason or ("?", "?")))
            start = f"  {pad(settings.to(fact_title(row.name)), 20)} "
            yield from settings.lines(value, start, " " * display_width(start))


def _checks(found: OneHost, entries: Entries, settings: Settings) -> Iterator[str]:
    rows = [row for row in found.outcomes if row.outcome in NOT_FINE]
    if rows:
        yield ""
        yield settings.heading(Message("Checks that did not pass"))
    for row in sorted(rows, key=lambda row: (NOT_FINE.index(row.outcome), -Severity(row.severity).rank)):
        word = settings.to(outcome_word(row.outcome))
        start = f"  {pad(settings.to(SEVERITIES[Severity(row.severity)]), 9)} {pad(printable(row.check), 8)} "
        blank = " " * display_width(start)
        since = when(found.runs.get(row.first))
        title = Message("{title} ({outcome} since {when})", title=entries[row.check].title, outcome=word, when=since)
        yield from settings.lines(title, start, blank)
        if row.said is not None:
            yield from settings.lines(Bilingual(*row.said), f"{blank}  ", f"{blank}  ")
        if row.outcome == "fail" and entries[row.check].fix:
            yield from settings.lines(
                Message("fix: {command}", command=entries[row.check].fix), f"{blank}  ", f"{blank}  "
            )


def host_page_data(found: OneHost, entries: Entries, lang: str) -> dict[str, Any]:
    """Return what is known of the host as JSON data."""
    name = found.host.name
    checks = [
        CheckSummary(row.check, row.outcome, Severity(row.severity), (name,), (Said(row.said, (name,)),), row.first)
        for row in found.outcomes
    ]
    return {
        **head("host"),
        "hosts": [host_data(found.host, found.runs)],
        "facts": {row.name: row.value for row in found.facts},
        "unknown_facts": {row.name: in_language(row.reason, lang) for row in found.facts if row.value is None},
        "checks": [check_data(check, found.runs, entries, lang) for check in checks],
        "changes": [change_data(change, found.runs) for change in found.changes],
        "collections": [
            {"run": run_time(found.runs.get(run)), "collection": collection.value, "verdict": word or None}
            for run, collection, word in found.attempts
        ],
    }
