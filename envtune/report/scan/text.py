"""Render what was found in launch files: findings with their lines, what is unknown and why, and how much it is."""

from __future__ import annotations

from typing import Iterable, Iterator, Optional, Sequence

from envtune.messages import Literal, Message, Text, enumerated, in_context, listed, plural
from envtune.model import Outcome, Severity
from envtune.report.layout import Paint, indent, printable, shown
from envtune.report.words import SEVERITIES
from envtune.scan.model import Found, Problem, ScanReport

_COLOURS = {Severity.CRITICAL: "red", Severity.HIGH: "red", Severity.MEDIUM: "yellow"}


def render(
    report: ScanReport,
    lang: str,
    *,
    width: int = 100,
    colour: bool = False,
    fixable: int = 0,
    command: str = "envtune scan --fix",
) -> str:
    """Return the report in `lang`; `fixable` is the number of findings that a diff can fix, shown by `command`."""
    paint = Paint(colour)
    counting = [one for one in report.found if one.counts]
    failed = [one for one in counting if one.finding.outcome is Outcome.FAIL]
    parts = [
        [line for one in failed if not one.covered_by for line in _finding(one, failed, lang, width, paint)],
        list(_problems(report.all_problems, lang, width, paint)),
        list(_unknown([one for one in counting if one not in failed], lang, width, paint)),
        list(_unused(report, lang, width)),
        list(_end(report, failed, lang, width, paint, fixable, command)),
    ]
    return "\n\n".join("\n".join(line.rstrip() for line in lines) for lines in parts if lines) + "\n"


def place_of(path: str, line: int) -> str:
    """Return file:line, as editors take it."""
    return printable(f"{path}:{line}" if line else path)


def _finding(found: Found, failed: Sequence[Found], lang: str, width: int, paint: Paint) -> Iterator[str]:
    finding = found.finding
    same = [one.finding.id for one in failed if one.covered_by == finding.id and _at(one) == _at(found)]
    ids = enumerated([finding.id, *dict.fromkeys(same)]).to(lang)
    word = paint(SEVERITIES[finding.severity].to(lang), _COLOURS.get(finding.severity, "dim"))
    yield f"{paint(place_of(found.path, found.line), 'bold')}: {word} {ids} {printable(finding.check.title.to(lang))}"
    yield from indent(shown(_said(found), lang), width, "    ", "    ")
    for command in [one for one in finding.commands if one.kind == "fix"][:1]:
        yield "    $ " + printable(command.line if isinstance(command.line, str) else command.line.to(lang))


def _at(found: Found) -> tuple[str, int]:
    return found.path, found.line


def _said(found: Found) -> Text:
    finding = found.finding
    text: Text = Literal("-") if finding.actual is None else finding.actual
    if finding.subject:
        text = Message("{subject}: {text}", subject=printable(finding.subject), text=text)
    if finding.expected is not None:
        text = Message("{actual} (expected {expected})", actual=text, expected=finding.expected)
    return Message("{text} [{job}]", text=text, job=printable(found.job)) if found.job else text


def _problems(problems: Iterable[Problem], lang: str, width: int, paint: Paint) -> Iterator[str]:
    for one in problems:
        word = paint(Message("error").to(lang), "red")
        yield f"{paint(place_of(one.path, one.line), 'bold')}: {word} {shown(one.reason, lang)}"


def _unknown(unknown: Sequence[Found], lang: str, width: int, paint: Paint) -> Iterator[str]:
    """Yield what is unknown, by line and reason."""
    groups: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
    for one in unknown:
        reason = "" if one.finding.reason is None else shown(one.finding.reason, lang)
        ids = groups.setdefault((place_of(one.path, one.line), reason), {})
        ids.setdefault(one.finding.id, {})[one.finding.subject] = None
    if groups:
        yield paint(in_context("heading", "Unknown").to(lang), "bold")
    for (place, reason), by_id in groups.items():
        names = dict.fromkeys(name for subjects in by_id.values() for name in subjects if name)
        about: Text = enumerated(map(printable, by_id))
        if names:
            about = Message("{checks} ({names})", checks=about, names=enumerated(map(printable, names)))
        said = Message("{subject}: {found}", subject=about, found=reason)
        yield from indent(f"{place}: {said.to(lang)}", width, "  ", "    ")


def _unused(report: ScanReport, lang: str, width: int) -> Iterator[str]:
    for file in report.files:
        for one in file.unused:
            text = Message("nothing to ignore here: {ids}", ids=enumerated(one.ids))
            yield f"{place_of(one.path, one.line)}: {shown(text, lang)}"


def _end(
    report: ScanReport, failed: Sequence[Found], lang: str, width: int, paint: Paint, fixable: int, command: str
) -> Iterator[str]:
    need_host = sorted({id_ for file in report.files for id_ in file.need_host})
    if need_host:
        text = Message(
            "Unknown without the job's host: {checks}; there: envtune check --script FILE",
            checks=enumerated(need_host),
        )
        yield from indent(shown(text, lang), width, "", "")
    yield from indent(
        paint(shown(summary(report, len([one for one in failed if not one.covered_by])), lang), "bold"), width, "", ""
    )
    if fixable:
        text = plural(
            "{count} of them can be fixed; see the changes: {command}",
            "{count} of them can be fixed; see the changes: {command}",
            fixable,
            command=printable(command),
        )
        yield shown(text, lang)


def summary(report: ScanReport, failed: int) -> Text:
    """Return what was scanned, and how much was found."""
    if not report.files:
        return Message("no launch files found")
    unknown = {
        (one.path, one.line, "" if one.finding.reason is None else one.finding.reason.en)
        for one in report.found
        if one.counts and one.finding.outcome is not Outcome.FAIL
    }
    accepted = [one for one in report.found if not one.counts and not one.covered_by]
    parts: list[Optional[Text]] = [
        plural("{count} launch file", "{count} launch files", len(report.files)),
        plural("{count} problem", "{count} problems", failed),
        plural("{count} unknown", "{count} unknown", len(unknown)) if unknown else None,
        plural("{count} ignored or waived", "{count} ignored or waived", len(accepted)) if accepted else None,
        plural("{count} error", "{count} errors", len(report.all_problems)) if report.all_problems else None,
    ]
    return listed([part for part in parts if part is not None])
