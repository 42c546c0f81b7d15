"""What the documents of every format are made from: a report in one language, as plain text that is safe to show.

Secrets are taken out and everything is visible (no control characters, no marks of direction). A format only brings it
into its own syntax, and escapes what that syntax reserves.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Mapping, Optional, Sequence

from envtune.audit.subjects import subject_text
from envtune.audit.verdict import Counts, count_checks, exit_code, verdict
from envtune.catalog.families import family_title
from envtune.commandline import commented
from envtune.messages import Message, Text, clauses, enumerated, listed
from envtune.model import Command, Finding, Outcome, Report, Severity, Source
from envtune.records import NamedTuple
from envtune.report.formats.labels import LABELS
from envtune.report.host_texts import header_texts, host_texts
from envtune.report.layout import printable
from envtune.report.problems import Problem, Statement, fixable, problems, statements
from envtune.report.redaction import redacted
from envtune.report.words import NOTE, OUTCOMES, SEVERITIES, VERDICTS, verdict_line
from envtune.trust.characters import visible_lines
from envtune.version import __version__

NOTE_OUTCOME = "note"  # a check that failed and is no problem
WRONG = ("fail", "error")  # the outcomes of a problem
ORDER = ("fail", "error", NOTE_OUTCOME, "unknown", "waived", "fixed", "pass", "notapplicable")
MAX_LOOKS = 3  # lines of one check that only show more
MAX_EVIDENCE = 3  # raw texts of one check that are shown
MAX_EVIDENCE_LENGTH = 1000  # characters of one of them
_HEADER = ("host", "npu", "cann", "python", "job")


class Settings(NamedTuple):
    """What decides the exit status: `--fail-on` and `--strict`."""

    fail_on: Optional[Severity] = Severity.MEDIUM
    strict: bool = False


class Row(NamedTuple):
    """What was found about one subject, or several that differ in a number only."""

    subject: str
    found: str
    expected: str
    key: str = ""  # of the subject: the same in every language


class CommandLine(NamedTuple):
    """A line to paste; where none can be shown it is empty, and `reason` says why."""

    kind: str  # fix | look
    line: str
    reason: str


class Evidence(NamedTuple):
    """Where something was read, and the raw text found there."""

    source: str
    text: str


class CheckView(NamedTuple):
    """One check: what it says about this host, and what to do."""

    id: str
    name: str
    family: str
    title: str
    outcome: str  # one of ORDER: that of the finding that says most
    outcome_word: str
    severity: str
    severity_word: str
    status: int  # 1 or 3 where it alone would make that the exit status, else 0
    rows: tuple[Row, ...]
    waiver: str  # what is waived and why, and since when it is no longer
    waived: tuple[tuple[Row, str], ...]  # what is waived of a check that says something else, each with the reason
    why: str
    remedy: str
    commands: tuple[CommandLine, ...]
    sources: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    faq: tuple[str, ...]
    tags: tuple[str, ...]
    fixable: bool
    covers: tuple[str, ...]  # problems with the same cause that it tells, too
    covered_by: str

    @property
    def is_problem(self) -> bool:
        """Whether something is wrong, or envtune itself failed."""
        return self.outcome in WRONG


class FamilyView(NamedTuple):
    """The checks of one family."""

    name: str
    title: str
    checks: tuple[CheckView, ...]


class ReportView(NamedTuple):
    """One run of `check` over one host, in one language."""

    lang: str
    version: str
    host: str
    started: str  # UTC, as in JSON
    seconds: float
    verdict: str
    verdict_word: str
    colour: str
    headline: str
    host_line: str
    header: tuple[tuple[str, str], ...]
    checks: tuple[CheckView, ...]  # the worst first
    counts: Counts
    exit_status: int

    @property
    def labels(self) -> Mapping[str, str]:
        """The headings and labels of the documents."""
        return {name: _to(text, self.lang) for name, text in LABELS.items()}

    @property
    def severity_words(self) -> Mapping[str, str]:
        """The severities by their names in JSON."""
        return {severity.value: _to(text, self.lang) for severity, text in SEVERITIES.items()}

    @property
    def outcome_words(self) -> Mapping[str, str]:
        """The outcomes by their names in JSON, problems and notes beside them."""
        words = {outcome.value: _to(text, self.lang) for outcome, text in OUTCOMES.items()}
        return {**words, "problem": self.labels["problems"], NOTE_OUTCOME: self.labels["notes"]}

    @property
    def problems(self) -> tuple[CheckView, ...]:
        """What is wrong, each cause once."""
        return tuple(check for check in self.checks if check.is_problem and not check.covered_by)

    @property
    def families(self) -> tuple[FamilyView, ...]:
        """The checks by family, in the order of their ids."""
        names = sorted({check.family for check in self.checks})
        rows = {name: sorted((c for c in self.checks if c.family == name), key=lambda c: c.id) for name in names}
        return tuple(FamilyView(name, _to(family_title(name), self.lang), tuple(rows[name])) for name in names)

    def by_outcome(self, *outcomes: str) -> tuple[CheckView, ...]:
        """Return the checks with one of these outcomes."""
        return tuple(check for check in self.checks if check.outcome in outcomes)


def view(report: Report, lang: str, settings: Settings) -> ReportView:
    """Return a report as the formats show it."""
    reached = verdict(report.findings, report.facts)
    headline, colour = verdict_line(report)
    texts = header_texts(report)
    return ReportView(
        lang=lang,
        version=__version__,
        host=printable(report.host),
        started=report.started,
        seconds=round(report.seconds, 3),
        verdict=reached.value,
        verdict_word=_to(VERDICTS[reached][0], lang),
        colour=colour,
        headline=_to(headline, lang),
        host_line=_to(listed(host_texts(report)), lang),
        header=tuple((_to(LABELS[key], lang), _to(texts[key], lang)) for key in _HEADER),
        checks=_checks(report, lang, settings),
        counts=count_checks(report.findings),
        exit_status=exit_code(report.findings, settings.fail_on, settings.strict, report.facts),
    )


def _checks(report: Report, lang: str, settings: Settings) -> tuple[CheckView, ...]:
    """Return the checks: problems in the order of every report, then the others by outcome and id."""
    groups: dict[str, list[Finding]] = {}
    for finding in report.findings:
        groups.setdefault(finding.id, []).append(finding)
    found = problems(report.findings)
    causes = {problem.check.id: problem for problem in found}
    covered = {id_: problem.check.id for problem in found for id_ in problem.ids[1:]}
    made = {id_: _check(group, lang, settings, report, causes.get(id_)) for id_, group in groups.items()}
    ranks = {id_: rank for rank, id_ in enumerate(id_ for problem in found for id_ in problem.ids)}
    rows = (check._replace(covered_by=covered.get(check.id, "")) for check in made.values())
    return tuple(sorted(rows, key=lambda row: (ranks.get(row.id, len(ranks)), ORDER.index(row.outcome), row.id)))


def _check(
    group: Sequence[Finding], lang: str, settings: Settings, report: Report, problem: Optional[Problem]
) -> CheckView:
    check, counts = group[0].check, count_checks(group)
    outcome = Outcome.FAIL if counts.notes else next(one for one, count in counts.outcomes.items() if count)
    deciding = [finding for finding in group if finding.outcome is outcome]
    worst = max(deciding, key=lambda finding: finding.severity.rank)
    wrong = outcome in (Outcome.FAIL, Outcome.ERROR) and not counts.notes
    severity = problem.severity if problem is not None else worst.severity
    commands = problem.commands if problem is not None else _own_commands(deciding) if wrong else ()
    return CheckView(
        id=check.id,
        name=check.name,
        family=check.family,
        title=_to(check.title, lang),
        outcome=NOTE_OUTCOME if counts.notes else outcome.value,
        outcome_word=_to(NOTE if counts.notes else OUTCOMES[outcome], lang),
        severity=severity.value,
        severity_word=_to(SEVERITIES[severity], lang),
        status=_status(group, settings),
        rows=_rows(deciding, outcome, lang),
        waiver=_waiver(group, lang),
        waived=() if outcome is Outcome.WAIVED else tuple(_waived(group, lang)),
        why=_to(check.why, lang) if wrong or counts.notes else "",
        remedy=_to(check.remedy, lang) if wrong else "",
        commands=_commands(commands, lang),
        sources=tuple(dict.fromkeys(filter(None, (_source(f.evidence.source, lang) for f in deciding)))),
        evidence=_evidence(deciding, lang) if wrong or outcome is Outcome.UNKNOWN else (),
        faq=tuple(check.faq) if wrong else (),
        tags=tuple(check.tags),
        fixable=problem is not None and fixable(problem, report),
        covers=() if problem is None else problem.ids[1:],
        covered_by="",
    )


def _waiver(group: Sequence[Finding], lang: str) -> str:
    """Return what is waived and why, and which waivers have expired; subjects only where others count."""
    about: dict[str, list[str]] = {}
    for finding in group:
        if finding.outcome is Outcome.WAIVED or finding.waiver is not None:
            about.setdefault(_to(finding.reason, lang), []).append(printable(subject_text(finding.subject).to(lang)))
    whole = len(about) == 1 and sum(map(len, about.values())) == len(group)
    named = {reason: enumerated(filter(None, subjects)) for reason, subjects in about.items()}
    said = (
        Message("{subject}: {found}", subject=named[reason], found=reason)
        if named[reason].parts and not whole
        else reason
        for reason in about
    )
    return clauses(said).to(lang)


def _waived(group: Sequence[Finding], lang: str) -> Iterator[tuple[Row, str]]:
    """Yield what is waived, by reason."""
    reasons: dict[str, list[Finding]] = {}
    for finding in group:
        if finding.outcome is Outcome.WAIVED:
            reasons.setdefault(_to(finding.reason, lang), []).append(finding)
    for reason, findings in reasons.items():
        yield from ((row, reason) for row in _rows(findings, Outcome.WAIVED, lang))


def _status(group: Sequence[Finding], settings: Settings) -> int:
    """Return what the exit status would be if nothing but this check said anything against the host."""
    passed = group[0]._replace(outcome=Outcome.PASS)  # else a check that does not apply would be "nothing is known"
    return exit_code([*group, passed], settings.fail_on, settings.strict)


def _rows(deciding: Sequence[Finding], outcome: Outcome, lang: str) -> tuple[Row, ...]:
    """Return what was found or, where nothing was, why; equal reasons once."""
    if outcome not in (Outcome.UNKNOWN, Outcome.NOTAPPLICABLE):
        return tuple(_row(row, lang) for row in statements(deciding, lang))
    reasons: dict[str, list[str]] = {}
    for finding in deciding:
        reasons.setdefault(_to(finding.reason, lang), []).append(finding.subject)
    return tuple(_row(Statement(", ".join(filter(None, names)), reason, ""), lang) for reason, names in reasons.items())


def _row(row: Statement, lang: str) -> Row:
    key = printable(row.subject)
    return Row(printable(subject_text(key).to(lang)), printable(row.actual), printable(row.expected), key)


def _own_commands(deciding: Iterable[Finding]) -> tuple[Command, ...]:
    return tuple(dict.fromkeys(command for finding in deciding for command in finding.commands))


def _commands(commands: Iterable[Command], lang: str) -> tuple[CommandLine, ...]:
    """Return what fixes it, then the first lines that show more."""
    made = dict.fromkeys(_command(command, lang) for command in commands)
    looks = [line for line in made if line.kind == "look"]
    return (*(line for line in made if line.kind == "fix"), *looks[:MAX_LOOKS])


def _command(command: Command, lang: str) -> CommandLine:
    if isinstance(command.line, str):
        return CommandLine(command.kind, printable(commented(command.line).to(lang)), "")
    return CommandLine(command.kind, "", _to(command.line, lang))


def _evidence(deciding: Iterable[Finding], lang: str) -> tuple[Evidence, ...]:
    """Return the raw texts, each once; those without any say nothing more than the sources."""
    found: dict[tuple[str, str], None] = {}
    for finding in deciding:
        text = visible_lines(redacted(finding.evidence.text).expandtabs()).strip("\n")
        if text:
            found[_source(finding.evidence.source, lang), text[:MAX_EVIDENCE_LENGTH]] = None
    return tuple(Evidence(source, text) for source, text in list(found)[:MAX_EVIDENCE])


def _source(source: Source, lang: str) -> str:
    return printable(source) if isinstance(source, str) else _to(source, lang)


def _to(text: Optional[Text], lang: str) -> str:
    return "" if text is None else printable(text.to(lang))
