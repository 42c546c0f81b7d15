"""Render how hosts differ from the golden values of a policy."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Sequence

from envtune.compare.folding import fold
from envtune.fleet.golden import GoldenRow, by_fact
from envtune.messages import Message
from envtune.report.fleet.data import head
from envtune.report.fleet.text import Settings, outcome_word


def golden_lines(rows: Sequence[GoldenRow], settings: Settings) -> Iterator[str]:
    """Yield for each fact what the policy says, and the hosts that have something else."""
    if not rows:
        yield from settings.lines(Message("all collected hosts match the policy"))
    for fact, found in by_fact(rows).items():
        yield from settings.lines(
            Message("{fact}: the policy requires {expected}", fact=fact, expected=found[0].expected)
        )
        for row in found:
            text = Message(
                "{hosts} ({count}): {outcome}: {value}",
                hosts=fold(row.hosts),
                count=len(row.hosts),
                outcome=outcome_word(row.outcome.value),
                value=row.found,
            )
            yield from settings.lines(text, "  ", "    ")


def golden_data(rows: Iterable[GoldenRow], lang: str) -> dict[str, Any]:
    """Return the rows as JSON data."""
    found = [
        {
            "fact": row.fact,
            "expected": row.expected.to(lang),
            "outcome": row.outcome.value,
            "found": row.found.to(lang),
            "hosts": list(row.hosts),
            "folded": fold(row.hosts),
        }
        for row in rows
    ]
    return {**head("golden"), "golden": found}
