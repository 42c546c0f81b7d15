"""The content of a diagnosis report, without its layout: shared by the text for a terminal and the Markdown."""

from __future__ import annotations

import re
from typing import Iterable, Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.audit.subjects import subject_text
from envtune.commandline import WithheldError, checked, line, with_catalogs
from envtune.diagnose.codes import FoundCode
from envtune.diagnose.diagnosis import Diagnosis, DiagnosisReport
from envtune.diagnose.proof import LIKELY, NOT_HERE, PROVED, RULED_OUT, UNCHECKED, Ground
from envtune.diagnose.rank import Candidate
from envtune.diagnose.scan import CONTEXT, Hit
from envtune.messages import Joined, Literal, Message, Text, clauses, enumerated, in_context, listed, plural
from envtune.model import FaqEntry, Finding, Outcome
from envtune.report.diagnosis.placeholders import fill
from envtune.report.diagnosis.settings import exports
from envtune.report.layout import printable
from envtune.report.words import OUTCOMES

MAX_LINE = 420  # characters of a log line that are shown
MAX_OTHERS = 12  # numbers of further lines that are shown
MAX_CODES = 8  # error codes that are shown
MAX_MENTIONS = 8  # mentions that are shown
MAX_FINDINGS = 6  # findings of one diagnosis that are shown one by one

_SNAPSHOT = "envtune snapshot -o host.tar.gz"
HEADINGS: Mapping[str, Text] = {
    "log": Message("log"),
    "says": Message("values"),
    "where": in_context("text", "where"),
    "cause": Message("cause"),
    "here": Message("host"),
    "waited": Message("Only waited for another rank, not the cause:"),
    "consequences": Message("Followed from it, not the cause:"),
    "harmless": Message("Harmless, nothing to do:"),
    "hints": Message("Weak signs only; possibly relevant:"),
    "states": Message("From the npu-smi tables in these logs:"),
    "mentions": Message("Found, but not counted as an error:"),
}
MENTIONS: Mapping[str, Text] = {
    "code": Message("a line of source code"),
    "search": Message("the result of a search through files"),
    "table": Message("a row of a table in a document"),
    "history": Message("the history of a repository"),
    "help": Message("a help text"),
    "test": Message("the name of a test"),
    "setting": Message("a setting, or a warning of what may come"),
    "report": Message("a report of envtune"),
    "document": Message("a document that explains errors"),
    "chat": Message("talk about errors in a chat"),
    "catalogue": Message("a page that quotes several known errors"),
    "steps": Message("the run continued: steps follow"),
    "recovered": Message("the run continued: a retry succeeded"),
    "caught": Message("the run continued: the error was caught"),
    "succeeded": Message("the run ended successfully afterwards"),
    "other": Message("the line reports no failure, and another line of the log does"),
}
LOW_CONFIDENCE = Message("low confidence: only weak signs support it, and nothing else explains it")
UNDECIDED_ORDER = Message(
    "The first two occurred on different hosts, and the logs do not show the offset between their clocks: check both."
)
ALL_WAITED = Message(
    "All ranks in these logs only waited: the log of the rank that failed or hung is missing or shows no error."
)
NO_ERROR_LINE = Message("No line looks like an error, either.")
FIRST_ERROR = Message("The first line that looks like an error")


def to_send(report: DiagnosisReport) -> tuple[Text, str]:
    """Return what to send to get help, and the command that writes it; none where the host has been recorded."""
    if report.recording:
        return Message("To get help, send the complete log and {file}.", file=printable(report.recording)), ""
    return Message("To get help, send the complete log and the file that this command writes:"), _SNAPSHOT


def _to_attach(report: DiagnosisReport) -> tuple[Text, str]:
    if report.recording:
        text = Message(
            "Attach the complete logs of all ranks, the plog of that run ($HOME/ascend/log) and {file}.",
            file=printable(report.recording),
        )
        return text, ""
    text = Message(
        "Attach the complete logs of all ranks, the plog of that run ($HOME/ascend/log) "
        "and the file written by this command:"
    )
    return text, _SNAPSHOT


def next_step(report: DiagnosisReport) -> tuple[Text, str]:
    """Return which logs to add where no known error was found, and the command; empty where they cannot be named."""
    plog = any("ascend/log" in name or "plog" in name for name in report.inputs)
    if plog or report.looked:
        return Message("Other logs may show more: add those of the other ranks and hosts."), ""
    words = ["envtune", "diagnose", *(name for name in report.inputs if name != "-")]
    try:
        command = f"{line(words)} ~/ascend/log"
    except WithheldError:
        command = "envtune diagnose ~/ascend/log"
    add = Message("Other logs may show more. Add those of the other ranks and the plog of that run:")
    return add, with_catalogs(command, report.catalogs)


def nothing_known(report: DiagnosisReport) -> Text:
    """Return the sentence for a report without a diagnosis."""
    names: Text = enumerated(
        Message("standard input") if name == "-" else Literal(printable(name)) for name in report.inputs[:3]
    )
    if len(report.inputs) > 3:
        names = Joined([names, " …"], "")
    if not report.size and report.unreadable:
        return Message("Nothing could be read in {names}.", names=names)
    if not report.size:
        return Message("Nothing to read in {names}: it is empty.", names=names)
    lines = plural("{count:,} line", "{count:,} lines", report.lines)
    size = lines if report.lines else Literal(_size(report.size))
    return Message("No known error in {names} ({size}).", names=names, size=size)


def _size(count: int) -> str:
    """Return a number of bytes in the unit in which it has one to three digits before the point."""
    value, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{value:.0f} {units[0]}" if units[0] == "B" or value >= 9.95 else f"{value:.1f} {units[0]}"


def codes(report: DiagnosisReport) -> tuple[FoundCode, ...]:
    """Return the error codes that the answer does not tell itself, those with a meaning of their own first."""
    stated = {diagnosis.candidate.entry.id for diagnosis in report.diagnoses[:1]}
    shown = [found for found in report.codes if found.code.code not in stated]
    return tuple(sorted(shown, key=lambda found: found.code.generic)[:MAX_CODES])


def code_line(found: FoundCode) -> Text:
    """Return a code, what it means, the entry that says more, and where it first stands."""
    code, first = found.code, found.hits[0]
    more = Message(" ({id})", id=code.faq) if code.faq else ""
    place = file_line(first.file.path, first.line.number)
    return Joined([code.code, "  ", code.meaning, more, "  [", place, "]"], "")


def states(report: DiagnosisReport) -> tuple[Text, ...]:
    """Return what checks find in the tables of the logs, a line each."""
    return tuple(
        Joined([finding_text(one.finding), "  [", file_line(one.table.file.path, one.table.line), "]"], "")
        for one in report.states[:MAX_MENTIONS]
    )


def mentions(report: DiagnosisReport) -> tuple[tuple[str, Text, Text, Text], ...]:
    """Return the first mentions: id, title, place and why they are no events."""
    return tuple(
        (one.entry.id, one.entry.title, file_line(one.hit.file.path, one.hit.line.number), MENTIONS[one.why])
        for one in report.mentions[:MAX_MENTIONS]
    )


def labelled(label: Text, text: Text) -> Text:
    """Return `label: text`."""
    return Message("{label}: {text}", label=label, text=text)


def split_consequences(report: DiagnosisReport) -> tuple[list[Diagnosis], list[Diagnosis]]:
    """Return the consequences that only waited for another rank, and the others."""
    waiting = [diagnosis for diagnosis in report.consequences if who_waited(diagnosis.candidate) is not None]
    return waiting, [diagnosis for diagnosis in report.consequences if diagnosis not in waiting]


# ---------------------------------------------------------------------- the log


class Proof(NamedTuple):
    """The line that proves a diagnosis, cut around what matched, with its neighbors."""

    place: Text
    before: tuple[str, ...]
    line: str
    after: tuple[str, ...]


def proof(candidate: Candidate) -> Proof:
    """Return the best hit as it is shown."""
    hit = candidate.first
    at = _position(hit)
    before, after = hit.context[max(0, at - 2) : at], hit.context[at + 1 : at + 2]
    return Proof(_place(candidate), _shown(before), printable(_cut(hit)), _shown(after))


def _position(hit: Hit) -> int:
    """Return the position of the line in its context: after at most CONTEXT lines before it."""
    places = [n for n, text in enumerate(hit.context[: CONTEXT + 1]) if text == hit.line.text]
    return places[-1] if places else len(hit.context)


def _shown(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(printable(line[:MAX_LINE]) for line in lines if line.strip())


def _cut(hit: Hit) -> str:
    """Return the line, or what is around the match in a long one."""
    text = hit.line.text
    if len(text) <= MAX_LINE:
        return text
    match = re.search(hit.pattern.regex, text)
    start = max(0, min(match.start() if match else 0, len(text)) - MAX_LINE // 3)
    piece = text[start : start + MAX_LINE]
    return ("… " if start else "") + piece + (" …" if start + MAX_LINE < len(text) else "")


def file_line(path: str, number: int) -> Text:
    """Return file:line; for standard input in words."""
    if path == "-":
        return Message("standard input, line {number}", number=number)
    return Literal(printable(f"{path}:{number}"))


def _place(candidate: Candidate) -> Text:
    """Return where, how often, and in which other lines of that file."""
    hit, count = candidate.first, candidate.count
    place = file_line(hit.file.path, hit.line.number)
    if count == 1:
        return place
    others = sorted({h.line.number for h in candidate.hits if h.file.path == hit.file.path} - {hit.line.number})
    if not others:
        return Message("{place}, {count} times", place=place, count=count)
    return plural(
        "{place}, {times} times (also line {lines})",
        "{place}, {times} times (also lines {lines})",
        len(others),
        place=place,
        times=count,
        lines=enumerated([*map(str, others[:MAX_OTHERS]), *(["…"] if len(others) > MAX_OTHERS else [])]),
    )


# ---------------------------------------------------------------------- ranks and hosts


def where(candidate: Candidate) -> Optional[Text]:
    """Return which rank on which host, and which other ranks say the same; None where the inputs do not say."""
    rank, host = candidate.rank, printable(candidate.host)
    if rank is None and not host:
        return None
    place: Text = Message("host {host}", host=host) if rank is None else Literal(f"rank {rank}")
    if rank is not None and host:
        place = Message("rank {rank} on {host}", rank=rank, host=host)
    others = [number for number in candidate.ranks if number != rank]
    if others and candidate.entry.role == "cause":
        return Message("{place} first; then rank {ranks}", place=place, ranks=ranges(others))
    return place


def who_waited(candidate: Candidate) -> Optional[Text]:
    """Return who waited, by host, for an entry that says another rank did not come; None for others or if unknown."""
    by_host: dict[str, set[int]] = {}
    for host, rank in zip(candidate.hosts, candidate.printed):
        if rank is not None:
            by_host.setdefault(host, set()).add(rank)
    if candidate.entry.role != "waiting" or not by_host:
        return None
    return listed(
        Message("rank {ranks} on {host}", ranks=ranges(ranks), host=printable(host))
        if host
        else Message("rank {ranks}", ranks=ranges(ranks))
        for host, ranks in by_host.items()
    )


def ranges(numbers: Iterable[int]) -> Text:
    """Return 0, 1, 2, 5 as `0-2, 5`."""
    groups: list[list[int]] = []
    for number in sorted(set(numbers)):
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return enumerated(str(g[0]) if len(g) == 1 else f"{g[0]}-{g[-1]}" for g in groups)


# ---------------------------------------------------------------------- the host


def here(diagnosis: Diagnosis) -> Text:
    """Return what the host says to it, in one sentence that begins with the verdict."""
    fix = diagnosis.past_fix
    if diagnosis.history == "fixed" and fix is not None:
        return Message("was the case, fixed now: run {run} of envtune fix ({time})", run=fix.run, time=fix.time)
    if diagnosis.history == "before" and fix is not None:
        return Message("already fixed when this was logged (run {run}): there must be another cause", run=fix.run)
    if diagnosis.verdict == PROVED and diagnosis.history == "again":
        return Message("confirmed again on the checked host")
    if diagnosis.verdict == UNCHECKED:
        return _unchecked(diagnosis)
    return _VERDICTS[diagnosis.verdict]


_VERDICTS: Mapping[str, Text] = {
    PROVED: Message("confirmed on the checked host"),
    LIKELY: Message("likely: the host supports it, but does not prove it"),
    RULED_OUT: Message(
        "ruled out: this is not the case now; the log is from another host or job, or it has been fixed since"
    ),
    NOT_HERE: Message("not confirmed: no check on this host supports this cause"),
}


def says_something(diagnosis: Diagnosis) -> bool:
    """Return whether `here` is worth a line: a host was asked, or it is the host's side and no host can be asked."""
    asked = bool(diagnosis.findings or diagnosis.grounds)
    return asked or (diagnosis.candidate.entry.side == "host" and not can_be_checked(diagnosis.candidate.entry))


def can_be_checked(entry: FaqEntry) -> bool:
    """Return whether anything on a host speaks for or against it."""
    return bool(entry.proves or entry.favours or entry.rules_out)


def _unchecked(diagnosis: Diagnosis) -> Text:
    entry = diagnosis.candidate.entry
    if not can_be_checked(entry):
        return Message("unknown: no check on a host can prove it")
    if not diagnosis.findings:
        return Message("unknown: no host was checked")
    return Message("unknown: the required data could not be read")


def why_not_checked(diagnosis: Diagnosis) -> Optional[Text]:
    """Return why the checks were not run: the failure was on another host. None otherwise."""
    if not diagnosis.elsewhere:
        return None
    host, ids = printable(diagnosis.candidate.host), ",".join(diagnosis.candidate.entry.checks)
    return Message(
        "not checked here: it failed on {host}, and this is {elsewhere}. "
        "On that host, run: envtune check --select {ids}",
        host=host,
        elsewhere=diagnosis.elsewhere,
        ids=ids,
    )


def statements(diagnosis: Diagnosis) -> tuple[Text, ...]:
    """Return what the verdict rests on, a line each: what decides it, else what was looked at in vain."""
    fixed = tuple(f for f in diagnosis.findings if f.outcome is Outcome.FIXED) if diagnosis.past_fix else ()
    if diagnosis.grounds:
        decided = (ground_text(ground) for ground in diagnosis.grounds if ground.finding not in fixed)
        return (*map(finding_text, fixed), *decided)[:MAX_FINDINGS]
    undecided = [f for f in diagnosis.findings if f.outcome in (Outcome.UNKNOWN, Outcome.ERROR, Outcome.WAIVED)]
    shown = undecided or [f for f in diagnosis.findings if f.outcome is not Outcome.NOTAPPLICABLE and f not in fixed]
    shown = shown or ([] if fixed else list(diagnosis.findings))
    return _findings_text((*fixed, *shown))[:MAX_FINDINGS]


def _findings_text(findings: Iterable[Finding]) -> tuple[Text, ...]:
    """Return findings in one line each; those of several checks that say the same share it."""
    names: dict[Text, dict[Text, None]] = {}
    for finding in findings:
        names.setdefault(_said(finding), {})[_name(finding)] = None
    return tuple(labelled(enumerated(those), said) for said, those in names.items())


def ground_text(ground: Ground) -> Text:
    """Return what one finding says; the facts where there is none."""
    if ground.finding is not None:
        found = ground.finding
        if ground.effect == "rules_out" and found.outcome is Outcome.FAIL and found.actual is not None:
            return labelled(_name(found), found.actual)  # "failed" would read as if it supported the cause
        return finding_text(found)
    facts = (Message("{fact} is {value}", fact=fact.name, value=fact.value or "-") for fact in ground.facts)
    return clauses(facts)


def finding_text(finding: Finding) -> Text:
    """Return a finding in one line."""
    return labelled(_name(finding), _said(finding))


def _name(finding: Finding) -> Text:
    return Joined((finding.id, subject_text(finding.subject)), " ") if finding.subject else Literal(finding.id)


def _said(finding: Finding) -> Text:
    return clauses(text for text in (OUTCOMES[finding.outcome], finding.actual, finding.reason) if text is not None)


# ---------------------------------------------------------------------- what to do


class Todo(NamedTuple):
    """Who acts (`label`), what they do (`text`), and the one command, which `explanation` is about; or why none."""

    label: Text
    text: Text
    command: str = ""
    explanation: Optional[Text] = None


_LABELS: Mapping[str, Text] = {
    "host": in_context("diagnosis", "fix"),
    "code": in_context("diagnosis", "edit"),
    "escalate": Message("help"),
    "ignore": in_context("diagnosis", "fix"),
    "look": in_context("text", "look"),
}
_RUN_ONCE = Message("Runs the job once with other settings, for this run only; no file is changed:")


_EXPORT = Message("In the shell that starts the job, or in its launch script, on every host:")
_SHOW_HERE = Message("Shows the fix; --apply applies it, envtune undo undoes it:")
_SHOW_THERE = Message("On the host where it failed, this shows the fix; --apply applies it, envtune undo undoes it:")


def todo(diagnosis: Diagnosis, report: DiagnosisReport) -> Todo:
    """Return what to do about one of the diagnoses of a report."""
    entry = diagnosis.candidate.entry
    remedy = fill(entry.remedy, diagnosis.candidate.groups)
    if diagnosis.history == "fixed" and diagnosis.past_fix is not None:
        explanation = Message("Nothing left to do here. To undo the fix:")
        return Todo(_LABELS["host"], remedy, f"envtune undo {diagnosis.past_fix.run}", explanation)
    if entry.side == "escalate":
        attach, snapshot = _to_attach(report)
        return Todo(_LABELS["escalate"], remedy, snapshot, attach)
    if entry.run and diagnosis.verdict != RULED_OUT:
        label = _LABELS["look" if entry.side == "host" else entry.side]
        return Todo(label, remedy, f"{entry.run} CMD", _RUN_ONCE)
    setting = exports(diagnosis.candidate)
    if setting:
        return Todo(_LABELS[entry.side], remedy, setting, _EXPORT)
    if entry.side == "host" and entry.checks and diagnosis.verdict != RULED_OUT and diagnosis.fixable is not False:
        command = checked(" ".join(word for word in ("envtune fix --faq", entry.id, report.target) if word))
        if isinstance(command, Text):
            return Todo(_LABELS["host"], remedy, "", command)
        here_too = diagnosis.verdict in (PROVED, LIKELY)
        return Todo(_LABELS["host"], remedy, command, _SHOW_HERE if here_too else _SHOW_THERE)
    return Todo(_LABELS[entry.side], remedy)


def heading_of(key: str, report: DiagnosisReport) -> Text:
    """Return the heading of a list; it names the command that explains what is in it."""
    if key == "codes":
        return Message("Error codes in these lines (details: {command}):", command=_explain("CODE", report))
    if key == "also":
        return Message("Also found (details: {command}):", command=_explain("ID", report))
    return HEADINGS[key]


def _explain(word: str, report: DiagnosisReport) -> str:
    return printable(with_catalogs(f"envtune explain {word}", report.catalogs))


def others(diagnoses: Sequence[Diagnosis]) -> Iterator[tuple[str, Text, Text]]:
    """Yield the diagnoses after the first: id, title, and the place with what the checks say."""
    for diagnosis in diagnoses:
        candidate = diagnosis.candidate
        rank, place = where(candidate), _place(candidate)
        verdict = here(diagnosis) if diagnosis.findings or diagnosis.grounds else None
        parts = [part for part in (rank, place, verdict) if part is not None]
        yield candidate.entry.id, candidate.entry.title, clauses(parts)
