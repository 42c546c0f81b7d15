"""Render an overview of many hosts as text: verdicts, differences, failing checks, changes, and who is missing."""

from __future__ import annotations

import math
import time
from typing import Iterable, Iterator, Mapping, Optional, Sequence

from envtune.audit.verdict import Verdict
from envtune.compare.comparison import Group
from envtune.compare.facts import FactRow, is_package
from envtune.compare.folding import fold
from envtune.fleet.collected import WORDS as COLLECTION
from envtune.fleet.questions import CheckSummary, Overview, fact_title
from envtune.fleet.record import Both
from envtune.fleet.store.read import Change, HostRow, Run
from envtune.messages import Bilingual, Literal, Message, Text, clauses, enumerated, in_context, plural
from envtune.model import Outcome
from envtune.report.comparison.text import WORDS, difference_texts, kind_text, package_texts
from envtune.report.comparison.values import contrast, value_text
from envtune.report.fleet.entries import Entries
from envtune.report.layout import Paint, display_width, indent, pad, printable
from envtune.report.words import NOTE, OUTCOMES, SEVERITIES

MAX_SAID = 3  # texts of one check that are shown without -v
MAX_CHANGES = 20
MAX_REASONS = 30  # why checks are unknown
MAX_GROUPS = 12  # of hosts that differ, the largest
MAX_ROWS = 6  # values of one fact, and groups of packages
MAX_NODES = 160  # characters of folded names that are shown without -v


class Settings:
    """How the text is laid out: language, columns, colors, and whether everything is shown."""

    def __init__(self, lang: str, width: int = 100, colour: bool = False, verbose: bool = False) -> None:
        self.lang, self.width, self.paint, self.verbose = lang, max(width, 60), Paint(colour), verbose

    def to(self, text: Text) -> str:
        """Return the text in the reader's language, safe for a terminal."""
        return printable(text.to(self.lang))

    def lines(self, text: Text, first: str = "", blank: str = "") -> Iterator[str]:
        """Yield the text in lines."""
        yield from indent(self.to(text), self.width, first, blank)

    def heading(self, text: Text) -> str:
        """Return a heading."""
        return self.paint(self.to(text), "bold")


def short(hosts: Iterable[str], settings: Settings) -> str:
    """Return the folded names of hosts; of very many the first, and how many there are."""
    names = list(hosts)
    text = fold(names, math.inf if settings.verbose else MAX_NODES + 1)
    if len(text) <= MAX_NODES or settings.verbose:
        return printable(text)
    return (
        printable(text[:MAX_NODES].rpartition(",")[0])
        + ",... "
        + settings.to(plural("({count} host)", "({count} hosts)", len(names)))
    )


def when(run: Optional[Run]) -> str:
    """Return when a run began, in local time."""
    return "" if run is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started))


def outcome_word(word: str) -> Text:
    """Return what an outcome of a store is called."""
    return OUTCOMES[Outcome(word)] if word in {one.value for one in Outcome} else NOTE


def render(found: Overview, entries: Entries, settings: Settings) -> str:
    """Return the whole overview."""
    lines = [
        *verdict_lines(found, settings),
        *drift_lines(found.groups, settings),
        *check_lines(found.failing, found.runs, entries, settings),
        *_reason_lines(found, "unknown", in_context("heading", "Unknown"), settings),
        *_reason_lines(found, "waived", Message("Waived"), settings),
        *_change_section(found, settings),
        *missing_lines(found, settings),
    ]
    return "\n".join(line.rstrip(" ") for line in lines) + "\n"


def headline(found: Overview) -> Text:
    """Return the first line: how many hosts were collected, and what they amount to."""
    total, good = len(found.hosts), len(found.collected)
    parts: list[Text] = [
        Message("{count} {verdict}", count=count, verdict=WORDS[Verdict(word)])
        for word, count in found.verdicts.items()
        if word
    ]
    failing = len(found.failing)
    if failing:
        parts.append(plural("{count} check fails", "{count} checks fail", failing))
    differing = len({row.name for group in found.groups for row in group.differences})
    if differing:
        parts.append(plural("{count} fact differs", "{count} facts differ", differing))
    text = plural("{good} of {count} host collected", "{good} of {count} hosts collected", total, good=good)
    return Message("{hosts}: {counts}", hosts=text, counts=clauses(parts)) if parts else text


def verdict_lines(found: Overview, settings: Settings) -> Iterator[str]:
    """Yield the verdict line, and when the hosts were collected."""
    for line in settings.lines(headline(found)):
        yield settings.paint(line, "bold")
    if found.collected:
        yield from settings.lines(times_text(found))


def times_text(found: Overview) -> Text:
    """Return when the hosts were collected."""
    runs = sorted({host.seen for host in found.collected if host.seen is not None})
    if not runs:
        return Message("no host was collected")
    first, last = when(found.runs[runs[0]]), when(found.runs[runs[-1]])
    if len(runs) == 1:
        return Message("collected {when}", when=last)
    return Message("collected {first} to {last}, in {count} runs", first=first, last=last, count=len(runs))


# ---------------------------------------------------------------------------------------------- drift


def drift_lines(groups: Sequence[Group], settings: Settings) -> Iterator[str]:
    """Yield in which facts hosts of a group differ."""
    differing = [group for group in groups if group.differences]
    shown = differing if settings.verbose else differing[:MAX_GROUPS]
    if shown:
        yield ""
        yield settings.heading(Message("Differences"))
    for group in shown:
        if len(groups) > 1:
            count = plural("{count} host", "{count} hosts", len(group.hosts))
            yield from settings.lines(Message("{kind} ({count})", kind=group_text(group), count=count), "  ", "  ")
        yield from _group_lines(group, settings)
    if len(differing) > len(shown):
        yield from settings.lines(
            Message("{count} more (-v shows all)", count=len(differing) - len(shown)), "  ", "    "
        )


def _group_lines(group: Group, settings: Settings) -> Iterator[str]:
    packages: dict[tuple[object, ...], list[FactRow]] = {}
    for row in group.differences:
        if is_package(row.name) and not settings.verbose:
            packages.setdefault((row.majority, *(shared.hosts for shared in row.values)), []).append(row)
        else:
            yield from _difference(row, _difference_texts(row, settings), settings)
    for rows in list(packages.values())[:MAX_ROWS]:
        yield from _difference(rows[0], package_texts(rows), settings)
    if len(packages) > MAX_ROWS:
        yield from settings.lines(Message("{count} more (-v shows all)", count=len(packages) - MAX_ROWS), "  ", "    ")


def _difference_texts(row: FactRow, settings: Settings) -> list[Text]:
    """Return the row in words; without -v the first of many values, and of many hosts."""
    if settings.verbose:
        return difference_texts(row)
    left = len(row.values) - MAX_ROWS
    lean = row._replace(values=row.values[:MAX_ROWS], unknown=row.unknown[:MAX_SAID])
    total = sum(len(shared.hosts) for shared in row.values)
    first = row.values[0]
    texts: list[Text] = [Message("{fact}: no majority", fact=fact_title(row.name))]
    if row.majority:
        value = value_text(row.name, first.value)
        count = len(first.hosts)
        fact = fact_title(row.name)
        texts = [Message("{fact}: {count} of {total} have {value}", fact=fact, count=count, total=total, value=value)]
    for shared in lean.minority if row.majority else lean.values:
        value = value_text(row.name, shared.value)
        value = contrast(row.name, shared.value, first.value) if row.majority else value
        texts.append(Message("{hosts}: {value}", hosts=short(shared.hosts, settings), value=value))
    for reason, hosts in lean.unknown:
        texts.append(Message("{hosts}: unknown ({reason})", hosts=short(hosts, settings), reason=reason))
    return [*texts, Message("{count} more (-v shows all)", count=left)] if left > 0 else texts


def group_text(group: Group) -> Text:
    """Return what the hosts of a group have in common; the hosts themselves for one that was named."""
    if group.kind is None and group.job is None:
        return Literal(fold(host.label for host in group.hosts))
    return kind_text(group)


def _difference(row: FactRow, texts: Sequence[Text], settings: Settings) -> Iterator[str]:
    start = f"  {pad(settings.to(SEVERITIES[row.severity]), 9)} "
    blank = " " * display_width(start)
    yield from settings.lines(texts[0], start, blank)
    for text in texts[1:]:
        yield from settings.lines(text, f"{blank}  ", f"{blank}    ")


# ---------------------------------------------------------------------------------------------- checks


def check_lines(
    checks: Iterable[CheckSummary], runs: Mapping[int, Run], entries: Entries, settings: Settings
) -> Iterator[str]:
    """Yield the failing checks: where, since when, what was found there, and how to fix it."""
    rows = list(checks)
    if rows:
        yield ""
        yield settings.heading(Message("Problems"))
    for row in rows:
        start = f"  {pad(settings.to(SEVERITIES[row.severity]), 9)} {pad(printable(row.id), 8)} "
        blank = " " * display_width(start)
        count = plural("{count} host", "{count} hosts", len(row.hosts))
        since = when(runs.get(row.since))
        title = Message("{title} ({count}, since {when})", title=entries[row.id].title, count=count, when=since)
        yield from settings.lines(title, start, blank)
        yield from _said_lines(row, settings, blank)
        if entries[row.id].fix:
            yield from settings.lines(Message("fix on each host: {command}", command=entries[row.id].fix), blank, blank)


def _said_lines(row: CheckSummary, settings: Settings, blank: str) -> Iterator[str]:
    shown = row.said if settings.verbose else row.said[:MAX_SAID]
    for said in shown:
        hosts = short(said.hosts, settings)
        text: Text = Literal(hosts)
        if said.text is not None:
            text = Message("{hosts}: {value}", hosts=hosts, value=Bilingual(*said.text))
        yield from settings.lines(text, blank + "  ", blank + "    ")
    left = [host for said in row.said[len(shown) :] for host in said.hosts]
    if left:
        yield from settings.lines(
            Message("and on {hosts} (-v shows all)", hosts=short(left, settings)), blank + "  ", blank + "    "
        )


def _reason_lines(found: Overview, outcome: str, heading: Text, settings: Settings) -> Iterator[str]:
    """Yield why checks have an outcome, those for the same reason on the same hosts together."""
    reasons: dict[tuple[Optional[Both], tuple[str, ...]], list[str]] = {}
    for row in found.checks:
        if row.outcome == outcome:
            for said in row.said:
                reasons.setdefault((said.text, said.hosts), []).append(row.id)
    if not reasons:
        return
    yield ""
    yield settings.heading(heading)
    ordered = sorted(reasons.items(), key=lambda item: -len(item[0][1]))
    for (text, hosts), checks in ordered if settings.verbose else ordered[:MAX_REASONS]:
        reason = Literal("-") if text is None else Bilingual(*text)
        named = enumerated(map(printable, checks))
        line = Message("{hosts}: {checks}: {reason}", hosts=short(hosts, settings), checks=named, reason=reason)
        yield from settings.lines(line, "  ", "    ")
    if len(ordered) > MAX_REASONS and not settings.verbose:
        yield from settings.lines(
            Message("{count} more (-v shows all)", count=len(ordered) - MAX_REASONS), "  ", "    "
        )


# ---------------------------------------------------------------------------------------------- changes, missing


def _change_section(found: Overview, settings: Settings) -> Iterator[str]:
    if not found.changes:
        return
    yield ""
    yield settings.heading(Message("Changed since the previous run"))
    yield from change_lines(found.changes, {}, settings)


def change_lines(changes: Iterable[Change], runs: Mapping[int, Run], settings: Settings) -> Iterator[str]:
    """Yield what changed, hosts with the same change together; `runs` adds when."""
    by_run: dict[int, list[Change]] = {}
    for change in changes:
        by_run.setdefault(change.run if runs else 0, []).append(change)
    rows = [(run, text, hosts) for run, some in by_run.items() for text, hosts in change_texts(some)]
    shown = rows if settings.verbose else rows[:MAX_CHANGES]
    for run, text, hosts in shown:
        line = Message("{hosts}: {value}", hosts=short(hosts, settings), value=text)
        yield from settings.lines(line, f"  {when(runs.get(run))}  " if runs else "  ", "    ")
    if len(rows) > len(shown):
        yield from settings.lines(Message("{count} more (-v shows all)", count=len(rows) - len(shown)), "  ", "    ")


def change_texts(changes: Iterable[Change]) -> list[tuple[Text, tuple[str, ...]]]:
    """Return what changed, with the hosts on which it is the same change."""
    alike: dict[tuple[str, str, Optional[str], Optional[str]], list[str]] = {}
    for change in changes:
        alike.setdefault((change.kind, change.name, change.before, change.after), []).append(change.host)
    found: list[tuple[Text, tuple[str, ...]]] = []
    for (kind, name, before, after), hosts in alike.items():
        text = Message(
            "{what}: {before} -> {after}",
            what=Literal(name) if kind == "check" else fact_title(name),
            before=_side(kind, before),
            after=_side(kind, after),
        )
        found.append((text, tuple(hosts)))
    return found


def _side(kind: str, value: object) -> Text:
    if value is None:
        return in_context("value", "unknown") if kind == "fact" else Message("not checked")
    return outcome_word(str(value)) if kind == "check" else Literal(str(value))


def missing_lines(found: Overview, settings: Settings) -> Iterator[str]:
    """Yield which hosts were not collected, by cause, and when they were last."""
    if found.missing:
        yield ""
        yield settings.heading(Message("Not collected"))
    for cause, hosts in found.missing.items():
        names = short((host.name for host in hosts), settings)
        text = Message("{cause} ({count}): {hosts}", cause=COLLECTION[cause], count=len(hosts), hosts=names)
        yield from settings.lines(text, "  ", "    ")
        yield from _details(hosts, settings)
        earlier = sorted((host for host in hosts if host.seen is not None), key=lambda host: host.seen or 0)
        if earlier:
            names = short((host.name for host in earlier), settings)
            last = when(found.runs[earlier[0].seen or 0])
            text = Message("last collected at or after {when}: {hosts}", when=last, hosts=names)
            yield from settings.lines(text, "      ", "        ")


def _details(hosts: Sequence[HostRow], settings: Settings) -> Iterator[str]:
    """Yield what was printed on hosts that were not collected."""
    details: dict[str, list[str]] = {}
    for host in hosts:
        if host.detail:
            details.setdefault(host.detail, []).append(host.name)
    for detail, names in list(details.items())[: None if settings.verbose else MAX_SAID]:
        text = Message("{hosts}: {value}", hosts=short(names, settings), value=detail)
        yield from settings.lines(text, "      ", "        ")
