"""Render a comparison of several hosts: the verdict, a table of the hosts, differences, what is wrong and unknown.

With `verbose` it says in addition what each host has, and why something is unknown.
"""

from __future__ import annotations

from collections import Counter
from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence

from envtune.audit.subjects import subject_text
from envtune.audit.verdict import Verdict, count_checks
from envtune.compare.comparison import CheckRow, Comparison, Group, HostRow, Variant
from envtune.compare.facts import FactRow, is_package, title
from envtune.compare.folding import fold
from envtune.compare.hosts import without_own
from envtune.messages import Literal, Message, Text, clauses, enumerated, in_context, plural
from envtune.model import Finding, Severity
from envtune.report.comparison.values import contrast, value_text
from envtune.report.layout import Paint, clip, display_width, indent, pad, printable
from envtune.report.problems import Statement, merged, problems
from envtune.report.words import SEVERITIES, also_text, some

WORDS: Mapping[Verdict, Text] = {
    Verdict.NOT_READY: in_context("hosts", "not ready"),
    Verdict.NOT_SURE: in_context("hosts", "not sure"),
    Verdict.NOTHING_CHECKED: in_context("hosts", "nothing checked"),
    Verdict.NO_NPU: in_context("hosts", "no NPU"),
    Verdict.ADVICE: in_context("hosts", "ready, with advice"),
    Verdict.READY: in_context("hosts", "ready"),
}
_FIRST: Mapping[Verdict, Text] = {
    Verdict.NOT_READY: Message("NOT READY"),
    Verdict.NOT_SURE: Message("NOT SURE"),
    Verdict.NOTHING_CHECKED: in_context("hosts", "NOTHING CHECKED"),
    Verdict.NO_NPU: Message("NO NPU"),
    Verdict.ADVICE: Message("READY, with advice"),
    Verdict.READY: Message("READY"),
}
_COLOUR = {Verdict.NOT_READY: "red", Verdict.READY: "green"}
MAX_VARIANTS = 3  # of one check that are shown without --verbose
MAX_NAMES = 8  # of what is unknown, without --verbose
HOST_COLUMNS = 24  # of folded names beside what is said about them; longer ones get a line of their own
NARROW_COLUMNS = 14  # the same on less than 80 columns
MIN_TITLE = 24  # columns in which a title begins to say something
_WORST = Message("worst problem")  # no message in an f-string: what collects messages does not see it
_GAP = "  "  # between the columns of the table
_COLUMNS: Mapping[Severity, Text] = {
    Severity.CRITICAL: in_context("column", "crit"),
    Severity.HIGH: in_context("column", "high"),
    Severity.MEDIUM: in_context("column", "med"),
    Severity.LOW: in_context("column", "low"),
    Severity.INFO: in_context("column", "info"),
}


class _Line(NamedTuple):
    """What the table says of a host: how many checks failed by severity, and which problem is the worst."""

    verdict: Verdict
    counts: Mapping[Severity, int]
    worst: str  # id of a check; empty without problems

    @property
    def key(self) -> tuple[object, ...]:
        """All of it, the same for hosts that share a line."""
        return self.verdict, self.worst, *self.counts.values()


def render(comparison: Comparison, lang: str, *, width: int = 100, colour: bool = False, verbose: bool = False) -> str:
    """Return the whole comparison in `lang`, at most `width` columns wide where words allow it."""
    renderer = _Renderer(lang, max(width, 60), Paint(colour), verbose)
    return "\n".join(line.rstrip(" ") for line in renderer.lines(comparison))


class _Renderer:
    """The parts of the text; each yields its lines."""

    def __init__(self, lang: str, width: int, paint: Paint, verbose: bool) -> None:
        self.lang, self.width, self.paint, self.verbose = lang, width, paint, verbose

    def _to(self, text: Text) -> str:
        return printable(text.to(self.lang))

    def _heading(self, text: Text) -> str:
        return self.paint(self._to(text), "bold")

    def lines(self, comparison: Comparison) -> Iterator[str]:
        """Yield every line."""
        yield from self._verdict(comparison)
        yield ""
        yield from self._table(comparison.hosts)
        for group in comparison.groups if self.verbose else ():
            if group.kind is not None:
                yield ""
                yield from self._kind(group, comparison)
        yield from self._differences(comparison.groups)
        yield from self._problems(*uncovered(comparison))
        yield from self._unknown(comparison)
        yield ""
        last = Message("One host: envtune check --snapshot FILE. Two hosts: envtune diff FILE FILE.")
        yield from indent(self._to(last), self.width, "", "")

    def _verdict(self, comparison: Comparison) -> Iterator[str]:
        reached = comparison.verdict
        text = Message("{verdict}  {counts}", verdict=_FIRST[reached], counts=counts_text(comparison))
        for line in indent(self._to(text), self.width, "", ""):
            yield self.paint(line, "bold", _COLOUR.get(reached, "yellow"))
        apart = [row.host.label for row in comparison.hosts if row.facts or row.few]
        if apart:
            words = plural(
                "{count} host differs from most hosts of its kind: {hosts}",
                "{count} hosts differ from most hosts of their kind: {hosts}",
                len(apart),
                hosts=fold(apart),
            )
            yield from indent(self._to(words), self.width, "", "")

    # ------------------------------------------------------------------ the hosts

    def _table(self, hosts: Sequence[HostRow]) -> Iterator[str]:
        """Yield a line for each host, the worst first; hosts of which the same is said share one."""
        titles: dict[str, Text] = {}
        alike: dict[tuple[object, ...], tuple[_Line, list[str]]] = {}
        for row in hosts:
            line = _line(row, titles)
            alike.setdefault(line.key, (line, []))[1].append(row.host.label)
        rows = [(printable(fold(labels)), line) for line, labels in alike.values()]
        rows.sort(key=lambda row: [*(-count for count in row[1].counts.values()), [*WORDS].index(row[1].verdict)])
        lines = [line for _, line in rows]
        columns = self._columns(rows)
        widths = self._count_widths(lines)
        heads = [_right(self._to(_COLUMNS[severity]), width) for severity, width in widths.items()]
        head = _GAP.join([" " * columns[0], " " * columns[1], *heads])
        left = self.width - display_width(head) - len(_GAP)
        said = f"{head}{_GAP}{self._to(_WORST)}"
        yield self.paint(said if display_width(said) <= self.width else head, "dim")
        for name, line in rows:
            if len(name) > columns[0]:
                yield from indent(name, self.width, "", "")
                name = ""
            word = pad(self._to(WORDS[line.verdict]), columns[1])
            cells = [pad(name, columns[0]), self.paint(word, _COLOUR.get(line.verdict, "yellow"))]
            cells += [_right(str(line.counts[severity] or "-"), width) for severity, width in widths.items()]
            yield _GAP.join([*cells, *self._worst(line.worst, titles, left)])

    def _columns(self, rows: Sequence[tuple[str, _Line]]) -> tuple[int, int]:
        """Return how wide names and verdicts are."""
        most = HOST_COLUMNS if self.width >= 80 else NARROW_COLUMNS
        names = max((len(name) for name, _ in rows if len(name) <= most), default=0)
        return names, max(display_width(self._to(WORDS[line.verdict])) for _, line in rows)

    def _count_widths(self, lines: Iterable[_Line]) -> Mapping[Severity, int]:
        """Return how wide the columns of the counts are; there is none for `info` where it is not needed."""
        counts = [line.counts for line in lines]
        kept = [
            one for one in _COLUMNS if one is not Severity.INFO or (self.width >= 80 and any(c[one] for c in counts))
        ]
        return {
            severity: max(display_width(self._to(_COLUMNS[severity])), *(len(str(count[severity])) for count in counts))
            for severity in kept
        }

    def _worst(self, id_: str, titles: Mapping[str, Text], width: int) -> list[str]:
        """Return the cell about the worst problem: its id and, where there is room, as much of the title as fits."""
        if not id_ or width < display_width(id_):
            return []
        return clip(f"{pad(id_, 7)}  {self._to(titles[id_])}", width, 1) if width >= MIN_TITLE else [id_]

    def _kind(self, group: Group, comparison: Comparison) -> Iterator[str]:
        """Yield the hosts of a kind, those together about which the same is said."""
        count = plural("{count} host", "{count} hosts", len(group.hosts))
        text = Message("{kind} ({count})", kind=kind_text(group), count=count)
        yield from (self.paint(line, "bold") for line in indent(self._to(text), self.width, "", ""))
        own = {host.label for host in group.hosts}
        rows: dict[tuple[object, ...], list[HostRow]] = {}
        for row in comparison.hosts:
            if row.host.label in own:
                rows.setdefault((row.verdict, row.failed, row.facts), []).append(row)
        ordered = sorted(rows.values(), key=lambda alike: -len(alike))
        names = [fold(row.host.label for row in alike) for alike in ordered]
        column = max((len(name) for name in names if len(name) <= HOST_COLUMNS), default=0)
        verdicts = max(display_width(self._to(WORDS[alike[0].verdict])) for alike in ordered)
        usual = ordered[0][0]
        for name, alike in zip(names, ordered):
            yield from self._host(name, alike[0], usual, column, verdicts)

    def _host(self, name: str, row: HostRow, usual: HostRow, column: int, verdicts: int) -> Iterator[str]:
        word = pad(self._to(WORDS[row.verdict]), verdicts)
        first = f"  {pad(printable(name), column)}  "
        if len(name) > column:
            yield from indent(printable(name), self.width, "  ", "  ")
            first = " " * (column + 4)
        start = first + self.paint(word, _COLOUR.get(row.verdict, "yellow")) + "  "
        blank = " " * (column + 6 + verdicts)
        lines = indent(self._to(_about(row, usual)), self.width, blank, blank)
        yield start + lines[0][len(blank) :]
        yield from lines[1:]

    # ------------------------------------------------------------------ where they differ

    def _differences(self, groups: Sequence[Group]) -> Iterator[str]:
        shown = [group for group in groups if group.differences]
        if not shown:
            return
        yield ""
        yield self._heading(Message("Differences"))
        for group in shown:
            if len(groups) > 1:
                yield from indent(self._to(kind_text(group)), self.width, "  ", "  ")
            packages: dict[tuple[object, ...], list[FactRow]] = {}
            for row in group.differences:
                if is_package(row.name) and not self.verbose:
                    packages.setdefault((row.majority, *(shared.hosts for shared in row.values)), []).append(row)
                else:
                    yield from self._difference(row.severity, difference_texts(row))
            for rows in packages.values():
                yield from self._difference(rows[0].severity, package_texts(rows))

    def _difference(self, severity: Severity, texts: Sequence[Text]) -> Iterator[str]:
        start = f"  {pad(self._to(SEVERITIES[severity]), 9)} "
        blank = " " * display_width(start)
        yield from indent(self._to(texts[0]), self.width, start, blank)
        for text in texts[1:]:
            yield from indent(self._to(text), self.width, f"{blank}  ", f"{blank}  ")

    # ------------------------------------------------------------------ what is wrong, what is unknown

    def _problems(self, rows: Sequence[CheckRow], covered: Mapping[str, Sequence[str]]) -> Iterator[str]:
        if rows:
            yield ""
            yield self._heading(Message("Problems"))
        minor: dict[Severity, list[str]] = {}
        for row in rows:
            if row.severity.rank > Severity.LOW.rank or row.few or self.verbose:
                yield from self._problem(row, also_text(covered.get(row.check.id, ())))
            else:
                minor.setdefault(row.severity, []).extend([row.check.id, *covered.get(row.check.id, ())])
        for severity, ids in minor.items():
            text = Message("{checks} (-v shows them)", checks=enumerated(ids))
            start = f"  {pad(self._to(SEVERITIES[severity]), 9)} "
            yield from indent(self._to(text), self.width, start, " " * display_width(start))

    def _problem(self, row: CheckRow, also: Text) -> Iterator[str]:
        """Yield what is wrong and on which hosts; what was found there where few of a kind have it, or with -v."""
        start = f"  {pad(self._to(SEVERITIES[row.severity]), 9)} {pad(row.check.id, 8)} "
        blank = " " * display_width(start)
        title = self._to(row.check.title) + self._to(also)
        if not row.few and not self.verbose:
            named = self._to(Message("{title}: {hosts}", title=title, hosts=fold(row.hosts)))
            yield from indent(named, self.width, start, blank)
            return
        yield from indent(title, self.width, start, blank)
        for text in self._variants(row):
            yield from indent(text, self.width, blank + "  ", blank + "    ")

    def _variants(self, row: CheckRow) -> Iterator[str]:
        """Yield who has the problem and what was found there, hosts of which few of a kind have it first."""
        alike: dict[tuple[str, ...], list[Statement]] = {}
        for variant in sorted(row.variants, key=lambda one: not any(host.label in row.few for host in one.hosts)):
            alike.setdefault(tuple(host.label for host in variant.hosts), []).append(self._statement(variant))
        ordered = [(hosts, said) for hosts, rows in alike.items() for said in merged(rows)]
        shown = ordered if self.verbose else ordered[:MAX_VARIANTS]
        for hosts, said in shown:
            yield self._to(Message("{hosts}: {value}", hosts=printable(fold(hosts)), value=self._said(said)))
        left = dict.fromkeys(label for hosts, _ in ordered[len(shown) :] for label in hosts)
        if left:
            yield self._to(Message("and on {hosts} (-v shows all)", hosts=fold(left)))

    def _statement(self, variant: Variant) -> Statement:
        text = "" if variant.text is None else variant.text.to(self.lang)
        return Statement(variant.subject, without_own(variant.hosts[0], text) if len(variant.hosts) > 1 else text, "")

    def _said(self, said: Statement) -> str:
        if not said.subject or not said.actual:
            return printable(said.actual or self._to(subject_text(said.subject)))
        if said.beginning is not None:
            return printable(said.beginning + said.actual)
        return printable(self._to(Message("{subject}: {text}", subject=subject_text(said.subject), text=said.actual)))

    def _unknown(self, comparison: Comparison) -> Iterator[str]:
        """Yield what is unknown: snapshots, facts that others have, and checks; with -v the reasons."""
        lines = [*self._unread(comparison)]
        if self.verbose:
            lines += [*self._unknown_facts(comparison.groups), *self._unknown_checks(comparison.unknown)]
        else:
            lines += self._unknown_names(comparison)
        if lines:
            yield ""
            yield self._heading(in_context("heading", "Unknown"))
            yield from lines

    def _unknown_names(self, comparison: Comparison) -> Iterator[str]:
        """Yield which facts and checks are unknown on some hosts."""
        facts = dict.fromkeys(row.name for group in comparison.groups for row in group.rows if row.unknown)
        names = [*(self._to(title(name)) for name in facts), *(row.check.id for row in comparison.unknown)]
        if names:
            text = Message("{checks} (-v shows why)", checks=some(names, MAX_NAMES))
            yield from indent(self._to(text), self.width, "  ", "  ")

    def _unread(self, comparison: Comparison) -> Iterator[str]:
        """Yield the snapshots that could not be read; those for the same reason together."""
        alike: dict[str, list[str]] = {}
        for unread in comparison.unread:
            alike.setdefault(self._to(unread.reason), []).append(printable(unread.source))
        for reason, sources in alike.items():
            names = some(sources, len(sources) if self.verbose else MAX_VARIANTS)
            text = Message("{subject}: {found}", subject=names, found=reason)
            yield from indent(self._to(text), self.width, "  ", "    ")

    def _unknown_facts(self, groups: Iterable[Group]) -> Iterator[str]:
        reasons: dict[tuple[str, tuple[str, ...]], tuple[Text, list[str]]] = {}
        for group in groups:
            for row in group.rows:
                for reason, hosts in row.unknown:
                    reasons.setdefault((reason.en, hosts), (reason, []))[1].append(row.name)
        for (_, hosts), (reason, names) in reasons.items():
            facts = enumerated(title(name) for name in names[:MAX_VARIANTS])
            more = len(names) - MAX_VARIANTS
            if more > 0:
                facts = enumerated([facts, Message("{count} more", count=more)])
            text = Message("{facts} of {hosts}: {reason}", facts=facts, hosts=fold(hosts), reason=reason)
            yield from indent(self._to(text), self.width, "  ", "    ")

    def _unknown_checks(self, rows: Iterable[CheckRow]) -> Iterator[str]:
        """Yield why checks are unknown, and on which hosts; those that are for one reason together."""
        reasons: dict[str, list[str]] = {}
        for row in rows:
            for text in self._variants(row):
                reasons.setdefault(text, []).append(row.check.id)
        for text, identifiers in reasons.items():
            names = self._to(enumerated(identifiers))
            yield from indent(f"{pad(names, 8)} {text}", self.width, "  ", " " * 11)


def _line(row: HostRow, titles: dict[str, Text]) -> _Line:
    """Return what the table says of a host; the title of its worst problem is put into `titles`."""
    findings = row.host.report.findings
    worst = next(iter(problems(findings)), None)
    if worst is not None:
        titles[worst.check.id] = worst.check.title
    return _Line(row.verdict, count_checks(findings).severities, "" if worst is None else worst.check.id)


def _right(text: str, width: int) -> str:
    return " " * max(0, width - display_width(text)) + text


def uncovered(comparison: Comparison) -> tuple[list[CheckRow], dict[str, list[str]]]:
    """Return the failures without those that another check covers on a host, and by check what it covers."""
    covered: dict[str, list[str]] = {}
    causes = {host.host.label: _causes(host.host.report.findings) for host in comparison.hosts}
    rows = []
    for row in comparison.failures:
        alone = [label for label in row.hosts if row.check.id not in causes[label]]
        for cause in dict.fromkeys(causes[label][row.check.id] for label in row.hosts if label not in alone):
            covered.setdefault(cause, []).append(row.check.id)
        if alone:
            rows.append(_on_hosts(row, frozenset(alone)))
    alike = [one for row in rows for one in _by_severity(row)]
    return sorted(alike, key=lambda row: -row.severity.rank), covered


def _by_severity(row: CheckRow) -> Iterator[CheckRow]:
    """Yield a row for the hosts of each severity: it may depend on the host."""
    for severity in reversed(Severity):
        labels = frozenset(label for label in row.hosts if row.severities[label] is severity)
        if labels:
            yield _on_hosts(row, labels)._replace(severity=severity)


def _causes(findings: Sequence[Finding]) -> dict[str, str]:
    """Return by check the one that covers it."""
    return {one.check.id: problem.check.id for problem in problems(findings) for one in problem.covered}


def _on_hosts(row: CheckRow, labels: frozenset[str]) -> CheckRow:
    """Return what the check says on these hosts only."""
    variants = (one._replace(hosts=tuple(h for h in one.hosts if h.label in labels)) for one in row.variants)
    return row._replace(
        hosts=tuple(label for label in row.hosts if label in labels),
        variants=tuple(one for one in variants if one.hosts),
        few=row.few & labels,
    )


def _about(row: HostRow, usual: HostRow) -> Text:
    """Return what is said about a host: what only few of its kind have, then what fails there as on the usual one."""
    apart: list[Text] = []
    if row.facts:
        apart.append(Message("differs in {facts}", facts=_fact_titles(row.facts)))
    if row.few:
        apart.append(Message("fails, unlike most hosts: {checks}", checks=enumerated(row.few)))
    others = [identifier for identifier in row.failed if identifier not in row.few]
    if others and row is not usual and others == [*usual.failed]:
        apart.append(Message("other failures as on most hosts"))
    elif others:
        apart.append(Message("fails: {checks}", checks=enumerated(others)))
    return clauses(apart) if apart else Literal("-")


def _fact_titles(names: Sequence[str]) -> Text:
    """Return what facts are called; of packages how many there are."""
    titles = [title(name) for name in names if not is_package(name)]
    packages = len(names) - len(titles)
    count = [plural("{count} Python package", "{count} Python packages", packages)] if packages else []
    return enumerated([*titles, *count])


def counts_text(comparison: Comparison) -> Text:
    """Return how many hosts there are of each verdict, and how many are unknown."""
    found = Counter(row.verdict for row in comparison.hosts)
    hosts = plural("{count} host", "{count} hosts", len(comparison.hosts))
    parts: list[Text] = [
        Message("{count} {verdict}", count=found[word], verdict=WORDS[word]) for word in WORDS if found[word]
    ]
    if comparison.differences:
        facts = len({row.name for row in comparison.differences})
        parts.append(plural("{count} fact differs", "{count} facts differ", facts))
    if comparison.unread:
        parts.append(plural("{count} snapshot not read", "{count} snapshots not read", len(comparison.unread)))
    return Message("{hosts}: {counts}", hosts=hosts, counts=clauses(parts)) if parts else hosts


def kind_text(group: Group) -> Text:
    """Return what the hosts of a group have in common."""
    if group.job is not None:
        return Message("job with MASTER_ADDR {master}", master=printable(group.job.master))
    traits = group.kind.traits if group.kind is not None else ()
    if all(trait is None for trait in traits):
        return Message("hosts that are all different")
    words = [
        value_text(name, trait) if trait is not None else in_context("value", "unknown")
        for name, trait in zip(("npu", "arch", "os"), traits)
    ]
    if traits[0] == "none":
        words[0] = Message("no NPU")
    places = zip((Message("container"), Message("virtual machine")), traits[3:])
    return enumerated([*words, *(place for place, inside in places if inside == "true")])


def difference_texts(row: FactRow) -> list[Text]:
    """Return the row in words: what most have, then who has something else."""
    total = sum(len(shared.hosts) for shared in row.values)
    first = row.values[0]
    most = Message(
        "{fact}: {count} of {total} have {value}",
        fact=title(row.name),
        count=len(first.hosts),
        total=total,
        value=value_text(row.name, first.value),
    )
    lines: list[Text] = [most if row.majority else Message("{fact}: no majority", fact=title(row.name))]
    for shared in row.minority if row.majority else row.values:
        words = contrast(row.name, shared.value, first.value) if row.majority else value_text(row.name, shared.value)
        lines.append(Message("{hosts}: {value}", hosts=fold(shared.hosts), value=words))
    for reason, hosts in row.unknown:
        lines.append(Message("{hosts}: unknown ({reason})", hosts=fold(hosts), reason=reason))
    return lines


def package_texts(rows: Sequence[FactRow]) -> list[Text]:
    """Return in words packages in which the same hosts differ from the same others: how many, then some of them."""
    if len(rows) == 1 or len(rows[0].values) > 2:
        return [text for row in rows for text in difference_texts(row)]
    second = rows[0].values[1]
    hosts = fold(second.hosts)
    parts: list[Text] = [
        Message(
            "{package} {value} (others: {other})",
            package=title(row.name),
            value=value_text(row.name, row.values[1].value),
            other=value_text(row.name, row.values[0].value),
        )
        for row in rows[:MAX_VARIANTS]
    ]
    if len(rows) > MAX_VARIANTS:
        parts.append(Message("{count} more (-v shows all)", count=len(rows) - MAX_VARIANTS))
    count = Message("{count} Python packages", count=len(rows))
    return [count, Message("{hosts}: {value}", hosts=hosts, value=enumerated(parts))]
