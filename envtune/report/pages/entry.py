"""Describe an entry of the catalog in sections: `explain` prints them on a terminal, docs/generate.py as Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable, Iterator, Mapping, Optional, Union

from envtune.audit.conditions import condition_texts
from envtune.catalog import Catalogue
from envtune.commandline import commented
from envtune.expect import describe, in_unit, value_text
from envtune.messages import Joined, Literal, Message, Text, clauses, in_context, listed
from envtune.model import Check, Criterion, FaqEntry, Outcome, Playbook, SeverityRow
from envtune.report.diagnosis.placeholders import fill
from envtune.report.layout import Paint, indent, printable, wrap
from envtune.report.pages.guide import cited
from envtune.report.words import OUTCOMES, SEVERITIES
from envtune.trust.characters import visible

Entry = Union[Check, FaqEntry, Playbook]

STATUS: Mapping[str, Text] = {
    "experimental": Message("experimental (runs only when --select names it)"),
    "stable": Message("stable"),
    "deprecated": Message("deprecated (runs only when --select names it)"),
}
SIDES: Mapping[str, Text] = {
    "host": Message("the host's administrator (envtune can check it)"),
    "code": Message("the author of the training script"),
    "escalate": Message("the vendor's support (send the logs)"),
    "ignore": Message("nobody (harmless)"),
}
_ASK = Message("if what is below does not help, send the logs to the vendor's support")
_BY_HAND = Message("the host's administrator (no envtune check covers it)")
SAFETY: Mapping[str, Text] = {
    "safe": Message("safe: running jobs are not affected"),
    "confirm": Message("asks before it changes anything"),
    "manual": Message("by hand: envtune only shows the steps"),
}
DISRUPTION: Mapping[str, Text] = {
    "none": Message("interrupts nothing"),
    "job": Message("the job must be restarted"),
    "service": Message("a service is restarted"),
    "reboot": Message("the server restarts"),
}
_FIELD = re.compile(r"\{[a-z_]+\}")
_NOT_YET = Message("not yet described")


@dataclass(frozen=True)
class Section:
    """A heading and what is below it; `kind` is text, list, steps or code."""

    heading: Text
    kind: str
    lines: tuple[Text, ...]


def head(entry: Entry) -> Text:
    """Return the line below the title: how much it matters and what it is for."""
    if isinstance(entry, Check):
        severity, status = SEVERITIES[entry.severity], STATUS[entry.status]
        tags = ", ".join(entry.tags)
        parts = [severity, status, *([Literal(tags)] if tags else [])]
    elif isinstance(entry, FaqEntry) and _is_code(entry):
        parts = [Message("error code"), _ASK if entry.side == "escalate" else _fixed_by(entry)]
    elif isinstance(entry, FaqEntry):
        parts = [_fixed_by(entry)]
    else:
        parts = [SAFETY[entry.safety], DISRUPTION[entry.disruption]]
        parts += [in_context("entry", "needs root")] if entry.root else []
    return Joined(parts, " · ")


def _is_code(entry: Entry) -> bool:
    """Return whether the entry is about an error code of the dictionary; an FAQ entry says how it looks in a log."""
    return isinstance(entry, FaqEntry) and not entry.signatures


def _fixed_by(entry: FaqEntry) -> Text:
    unchecked = entry.side == "host" and not entry.checks
    return Message("to be fixed by {who}", who=_BY_HAND if unchecked else SIDES[entry.side])


def label(entry: Entry) -> str:
    """Return the id, and the name where there is one."""
    return entry.id if isinstance(entry, Playbook) or _is_code(entry) else f"{entry.id}  {entry.name}"


def sections(entry: Entry, catalogue: Catalogue) -> tuple[Section, ...]:
    """Return everything the catalog says about an entry, without empty sections."""
    if isinstance(entry, Check):
        own = _check(entry, catalogue)
    elif isinstance(entry, FaqEntry):
        own = _faq(entry, catalogue)
    else:
        own = _playbook(entry, catalogue)
    return tuple(section for section in (*own, *_sources(entry)) if section.lines)


def terminal_page(entry: Entry, catalogue: Catalogue, lang: str, *, width: int, colour: bool) -> str:
    """Return the entry for a terminal of `width` columns."""
    parts = sections(entry, catalogue)
    return page(
        label(entry), entry.title, head(entry), parts, lang, width=width, colour=colour, site=_is_site(entry, catalogue)
    )


def page(
    name: str,
    title: Text,
    below: Text,
    parts: Iterable[Section],
    lang: str,
    *,
    width: int,
    colour: bool,
    site: bool,
) -> str:
    """Return a page for a terminal: name, title, the line below it, and its sections; `site` if it is not envtune's."""
    paint = Paint(colour)
    summary = (paint(line, "dim") for line in wrap(below.to(lang), width))
    lines = [paint(name, "bold"), *wrap(_shown(title.to(lang), site), width), *summary]
    for section in parts:
        lines += ["", paint(section.heading.to(lang), "bold"), *_terminal(section, lang, width, site)]
    return "\n".join(line.rstrip() for line in lines)


def _is_site(entry: Entry, catalogue: Catalogue) -> bool:
    """Return whether a text of the entry may be a site's.

    It may where its file is not envtune's (paths of a site's files are absolute), or a policy says what is expected.
    """
    kind = "checks" if isinstance(entry, Check) else "faq" if isinstance(entry, FaqEntry) else "playbooks"
    of_policy = isinstance(entry, Check) and entry.by_policy
    return of_policy or catalogue.files(kind).get(entry.id, "/").startswith("/")


def _shown(text: str, site: bool) -> str:
    """Return a line of a page; a site's text may hold a secret, envtune's own ones (`key: name`) only look like it."""
    return printable(text) if site else visible(text.replace("\t", " "))


def _terminal(section: Section, lang: str, width: int, site: bool) -> Iterator[str]:
    for number, line in enumerate(section.lines, 1):
        text = _shown(line.to(lang), site)
        if section.kind == "code":
            yield f"    {text}"
            continue
        mark = {"text": "", "list": "- ", "steps": f"{number}. "}[section.kind]
        yield from indent(text, width, "  " + mark, "  " + " " * len(mark))


def _check(check: Check, catalogue: Catalogue) -> Iterator[Section]:
    yield Section(Message("Why it matters"), "text", (check.why,) if check.why else ())
    yield Section(Message("What is read"), "text", _probe(check))
    yield Section(Message("Expected"), "text", (_expected(check),))
    yield Section(Message("Applies where"), "list", tuple(condition_texts(check.applies)))
    rows = (
        Message("{severity} if {facts}", severity=SEVERITIES[row.severity], facts=listed(_conditions(row)))
        for row in check.severity_by
    )
    yield Section(Message("Severity in other cases"), "list", tuple(rows))
    yield Section(Message("Only a note where"), "list", tuple(condition_texts(check.note_when)))
    yield Section(Message("How to fix it"), "text", (check.remedy,) if check.remedy else ())
    lines = [*check.commands, *(command for _, commands in check.commands_by for command in commands)]
    for kind, heading in (("fix", Message("Commands that fix it")), ("look", Message("Commands that show more"))):
        shown = dict.fromkeys(without_host(check, str(command.line)) for command in lines if command.kind == kind)
        yield Section(heading, "code", tuple(commented(line) for line in shown if line))
    playbooks = [p for p in catalogue.playbooks if check.id in p.fixes]
    yield Section(Message("Playbooks"), "list", tuple(_link(p.id, p.title) for p in playbooks))
    yield Section(Message("When to ignore a failure"), "list", check.falsepositives)
    titles = {id_: entry.title for entry in catalogue.faq for id_ in (entry.id, *entry.aliases)} if check.faq else {}
    yield Section(Message("Known errors"), "list", tuple(_link(i, titles.get(i)) for i in check.faq))


def _expected(check: Check) -> Text:
    """Return what is expected in words: those of the check, those for values of its variable, or generated ones."""
    from envtune.context.registry import probe_unit
    from envtune.resources.environment.training_values import value_words

    name = str(check.arguments.get("name", "")) if check.family == "ENV" else ""
    generated = describe(check.expect, in_unit(probe_unit(check.probe)))
    return check.expected or (value_words(name, check.expect) if name else None) or generated


def without_host(check: Check, line: str) -> str:
    """Return a line of a check's commands as it is on any host, empty where it depends on what is found."""
    for field, value in (("{id}", check.id), ("{python}", "python3"), ("{pip}", "python3"), ("{sudo}", "sudo ")):
        line = line.replace(field, value)
    return "" if _FIELD.search(line) else line


def _probe(check: Check) -> tuple[Text, ...]:
    from envtune.catalog.reference import summary_of
    from envtune.context.registry import find_probe

    arguments = ", ".join(f"{name}: {value_text(value)}" for name, value in check.arguments.items())
    call = f"{check.probe} ({arguments})" if arguments else check.probe
    return (Message("{call}: {summary}", call=call, summary=Message(summary_of(find_probe(check.probe)))),)


def _conditions(row: SeverityRow) -> Iterator[Text]:
    yield from condition_texts(row.when)
    if row.value is not None:
        yield Message("the value read is {value}", value=value_text(row.value))


def _link(id_: str, title: Optional[Text]) -> Text:
    title = title or _NOT_YET
    return Message("{id}: {title}", id=id_, title=title)


def _faq(entry: FaqEntry, catalogue: Catalogue) -> Iterator[Section]:
    yield Section(Message("Cause"), "text", () if entry.cause == entry.title else (fill(entry.cause, {}),))
    yield Section(Message("What to do"), "text", (fill(entry.remedy, {}),))
    yield Section(Message("Known error"), "list", _known(entry, catalogue))
    titles = {check.id: check.title for check in catalogue.checks} if entry.checks else {}
    for heading, criteria in (
        (Message("What proves it on the host"), entry.proves),
        (Message("What makes it more likely, but does not prove it"), entry.favours),
        (Message("What rules it out"), entry.rules_out),
    ):
        yield Section(heading, "list", tuple(_criterion(criterion, titles) for criterion in criteria))
    run = (Literal(f"{entry.run} CMD"),) if entry.run else ()
    yield Section(Message("What to run instead of a fix"), "code", run)
    repairable = entry.side == "host" and not entry.run and not catalogue.fixable_checks.isdisjoint(entry.checks)
    command = f"envtune fix --faq {entry.id} {catalogue.options_for('faq', entry.id)}".rstrip()
    repair = (Literal(command),) if repairable else ()
    yield Section(Message("What can be fixed, on the host"), "code", repair)
    regexes = tuple(Literal(signature.regex) for signature in entry.signatures if not signature.tokens)
    yield Section(Message("How it looks in a log (regular expressions)"), "code", regexes)
    words = tuple(Literal(" + ".join(signature.tokens)) for signature in entry.signatures if signature.tokens)
    yield Section(Message("Words in one log message, in any order and spelling"), "list", words)
    versions = tuple(Literal(f"{name} {wanted}") for name, wanted in entry.versions.items())
    yield Section(Message("Versions"), "list", versions)
    yield Section(Message("Also known as"), "list", tuple(Literal(alias) for alias in entry.aliases))


def _known(entry: FaqEntry, catalogue: Catalogue) -> tuple[Text, ...]:
    """Return the FAQ entry that an error code belongs to; none for an FAQ entry."""
    code = catalogue.codes.find(entry.id) if _is_code(entry) else None
    return tuple(_link(faq.id, faq.title) for faq in catalogue.faq if code is not None and faq.id == code.faq)


def _criterion(criterion: Criterion, titles: Mapping[str, Text]) -> Text:
    """Return one thing that decides: the check with its outcome, its subject and the facts it needs."""
    parts: list[Text] = []
    if criterion.check:
        check = _link(criterion.check, titles.get(criterion.check))
        parts.append(Message("{check} ({outcome})", check=check, outcome=OUTCOMES[Outcome(criterion.outcome)]))
    if criterion.subject:
        parts.append(Message("about {subject}", subject=fill(Literal(criterion.subject), {})))
    if criterion.found is not None:
        parts.append(Message("found: {words}", words=fill(criterion.found, {})))
    return clauses([*parts, *condition_texts(criterion.when)])


def _playbook(playbook: Playbook, catalogue: Catalogue) -> Iterator[Section]:
    titles = {check.id: check.title for check in catalogue.checks}
    fixes = tuple(_link(id_, titles.get(id_)) for id_ in playbook.fixes)
    yield Section(Message("Fixes"), "list", fixes)
    yield Section(Message("Steps"), "steps", tuple(_steps(playbook)))


def _steps(playbook: Playbook) -> Iterator[Text]:
    for step in playbook.steps:
        if step.lines:
            yield from step.lines
        else:
            arguments = ", ".join(f"{name}: {value_text(value)}" for name, value in step.arguments.items())
            yield Literal(f"{step.kind} {arguments}".rstrip())


def _sources(entry: Entry) -> Iterable[Section]:
    lines = (*cited(entry.seed), *(Literal(reference) for reference in entry.references))
    return (Section(Message("Sources"), "list", lines),)
