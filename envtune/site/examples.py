"""Run the examples of a directory's checks and FAQ entries, and report where the results differ from the expected ones.

An example that lacks what the check reads is unknown; the reason names the path that is missing from it.
"""

from __future__ import annotations

import os
import pkgutil
import re
from base64 import b64decode
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Sequence

from envtune.audit import examine
from envtune.catalog import Catalogue, layers
from envtune.catalog.compile import entry_of
from envtune.catalog.examples import example_host
from envtune.catalog.forms import EXAMPLE_HOST
from envtune.catalog.yaml import Diagnostics, Node, read_yaml
from envtune.context import Context
from envtune.context.open import UNNAMED, open_context, recorded_options
from envtune.errors import CatalogError, EnvtuneError, UsageError
from envtune.messages import Joined, Literal, Message, Text, clauses, enumerated
from envtune.model import Change, Check, FaqEntry, Finding, Outcome
from envtune.records import NamedTuple
from envtune.schema.validate import Validator
from envtune.snapshot.host import SnapshotHost

OUTCOMES = ("pass", "fail", "notapplicable", "unknown")
EXPECTED = ("subject", "actual", "severity", "reason")  # what an example's `expect` may say about a finding


class Problem(NamedTuple):
    """What is wrong; `place` is file:line:column."""

    place: str
    text: Text


class Tested(NamedTuple):
    """What was run: `examples` by the id of the entry, `entries` by kind. `notes` are not failures."""

    examples: Mapping[str, int]
    entries: Mapping[str, int]
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...] = ()


def run_examples(directory: Path, catalogue: Catalogue) -> Tested:
    """Run the examples of every check and FAQ entry below `directory`, which `catalogue` contains.

    Raises UsageError for a directory that does not exist, CatalogError if the files are wrong.
    """
    named = os.path.abspath(directory)
    layer = next(layer for layer in layers.overlays([directory]) if layer.directory == named)
    runner = _Runner(layer, catalogue)
    counts: dict[str, int] = {}
    entries = dict.fromkeys(("checks", "faq", "playbooks"), 0)
    sources = [source for source in layers.sources(layer) if source.kind in entries]
    for source in sources:
        entries[source.kind] += 1
        if source.kind == "playbooks":
            runner.read_playbook(source)
    for source in sources:
        if source.kind != "playbooks":
            id_, count = runner.run(source)
            counts[id_] = count
    return Tested(counts, entries, tuple(runner.problems), tuple(runner.notes))


class _Runner:
    """Runs the examples of one directory, and collects what differs."""

    def __init__(self, layer: layers.Layer, catalogue: Catalogue) -> None:
        self.problems: list[Problem] = []
        self.notes: list[Problem] = []
        self._catalogue = catalogue
        self._steps: dict[str, str] = {}  # of each playbook here: file:line:column
        self._checks = {check.id: check for check in catalogue.checks}
        self._faq = {entry.id: entry for entry in catalogue.faq}
        folder = Path(layer.directory) if layer.flat else Path(layer.directory, "checks")
        self._shared = _SharedHosts(folder / "examples")

    def read_playbook(self, source: layers.Source) -> None:
        """Note where the steps of a playbook are written."""
        node = read_yaml(layers.content(source), Diagnostics(source.shown))
        if node is not None:
            id_, steps = node.get("id"), node.get("steps") or node
            self._steps["" if id_ is None else str(id_.plain())] = f"{source.shown}:{steps.line}:{steps.column}"

    def run(self, source: layers.Source) -> tuple[str, int]:
        """Run the examples of one file; return the entry's id and how many there are."""
        diagnostics = Diagnostics(source.shown)
        node = read_yaml(layers.content(source), diagnostics)
        data = {} if node is None else entry_of(node, source.kind, diagnostics, False)
        examples = None if node is None else node.get("examples")
        id_ = str(data.get("id", ""))
        if examples is None:
            self.notes.append(Problem(f"{source.shown}:1:1", Message("{id} has no examples", id=id_)))
            return id_, 0
        of_kind = self._run_check if source.kind == "checks" else self._run_faq
        return id_, of_kind(source, id_, examples, data["examples"])

    def _report(self, source: layers.Source, node: Node, name: str, text: Text) -> None:
        place = f"{source.shown}:{node.line}:{node.column}"
        self.problems.append(Problem(place, Message("{example}: {problem}", example=name, problem=text)))

    # ------------------------------------------------------------------ checks

    def _run_check(self, source: layers.Source, id_: str, examples: Node, data: Mapping[str, Any]) -> int:
        check, count = self._checks[id_], 0
        for outcome in OUTCOMES:
            nodes = (examples.get(outcome) or examples).items()
            for number, (node, example) in enumerate(zip(nodes, data.get(outcome, ()))):
                count += 1
                name = f"{id_} {outcome}[{number}]"
                try:
                    context = self._context(example)
                    findings = examine(check, context)
                except EnvtuneError as error:
                    self._report(source, node, name, error.message)
                    continue
                problem = difference(outcome, example.get("expect") or {}, findings)
                if problem is not None:
                    self._report(source, node, name, problem)
                elif outcome == "fail":
                    self._try_playbooks(source, node, name, findings, context)
        absent = [outcome for outcome in ("pass", "fail") if not data.get(outcome)]
        if absent:
            text = Message("{id} has no example of {outcomes}", id=id_, outcomes=enumerated(absent))
            self.notes.append(Problem(f"{source.shown}:{examples.line}:{examples.column}", text))
        return count

    def _try_playbooks(
        self, source: layers.Source, node: Node, name: str, findings: Sequence[Finding], context: Context
    ) -> None:
        """Report a playbook after which the check still fails; note why one changes nothing."""
        from envtune.fix.plan import make_plan

        playbooks = [p for p in self._catalogue.playbooks if findings[0].id in p.fixes and p.safety != "manual"]
        if not playbooks:
            return
        plan = make_plan(findings, playbooks, context)
        place = f"{source.shown}:{node.line}:{node.column}"
        for reason in () if plan.changes else dict.fromkeys(skipped.reason for skipped in plan.skipped):
            text = Message("{example}: no playbook changes anything: {reason}", example=name, reason=reason)
            self.notes.append(Problem(place, text))
        for playbook, finding in still_failed(findings[0].check, plan.changes, context):
            text = Message(
                "after playbook {playbook} it still fails: {finding}", playbook=playbook, finding=_described(finding)
            )
            self.problems.append(
                Problem(self._steps.get(playbook, place), Message("{example}: {problem}", example=name, problem=text))
            )

    def _context(self, example: Mapping[str, Any]) -> Context:
        host = example_host(example, self._shared)
        target = host.data.get("target") or {}
        options = recorded_options(target) if target else UNNAMED
        return open_context(host, options, self._catalogue.expectations)

    # ------------------------------------------------------------------ FAQ entries

    def _run_faq(self, source: layers.Source, id_: str, examples: Node, data: Mapping[str, Any]) -> int:
        entry, count = self._faq[id_], 0
        for kind, wanted in (("match", True), ("near_miss", False)):
            nodes = (examples.get(kind) or examples).items()
            for number, (node, text) in enumerate(zip(nodes, data.get(kind, ()))):
                count += 1
                if is_recognised(entry, text) is not wanted:
                    problem = Message("no signature matches") if wanted else Message("a signature matches")
                    self._report(source, node, f"{id_} {kind}[{number}]", problem)
        return count


def still_failed(check: Check, changes: Sequence[Change], context: Context) -> Iterator[tuple[str, Finding]]:
    """Yield what the check still finds wrong in the files that changes would write, with the playbook of each."""
    written = {path: (text, change.playbook) for change in changes for path, text in _written(change)}
    host = context.host
    if not written or not isinstance(host, SnapshotHost):
        return
    files = {**host.data.get("files", {}), **{path: text for path, (text, _) in written.items()}}
    changed = Context(SnapshotHost({**host.data, "files": files}), context.target, context.known, context.expectations)
    for finding in examine(check, changed):
        source = finding.evidence.source
        if finding.outcome is Outcome.FAIL and isinstance(source, str) and source in written:
            yield written[source][1], finding


def _written(change: Change) -> Iterator[tuple[str, str]]:
    """Yield path and text of the files that a change writes completely."""
    for operation in change.operations:
        if operation["op"] == "file" and isinstance(operation.get("content"), str):
            yield operation["path"], b64decode(operation["content"]).decode("utf-8", "replace")


def is_recognised(entry: FaqEntry, text: str) -> bool:
    """Return whether a scan of a log with this text finds the entry."""
    from envtune.diagnose.logs.files import LogFile
    from envtune.diagnose.patterns import Matcher, patterns_of, select_prefilter
    from envtune.diagnose.scan import scan

    matcher = Matcher(patterns_of((entry,)))
    log = LogFile("log", content=(text + "\n").encode("utf-8"))
    return bool(scan([log], matcher, select_prefilter(matcher.patterns, [])).hits)


def difference(outcome: str, wanted: Mapping[str, str], findings: Sequence[Finding]) -> Optional[Text]:
    """Return how the findings differ from the example; None if they agree."""
    fitting = [finding for finding in findings if finding.outcome.value == outcome]
    others = [finding for finding in findings if finding.outcome.value != outcome]
    if not fitting or (others and outcome in ("pass", "notapplicable")):
        return Message(
            "expected {outcome}, got {findings}", outcome=outcome, findings=clauses(map(_described, others or findings))
        )
    rows = [_row(finding) for finding in fitting]
    if any(not _misses(wanted, row) for row in rows):
        return None
    nearest = min(rows, key=lambda row: len(_misses(wanted, row)))
    return clauses(
        Message("expected {key} {wanted!r}, got {got!r}", key=key, wanted=str(wanted[key]), got=nearest[key])
        for key in _misses(wanted, nearest)
    )


def _misses(wanted: Mapping[str, str], row: Mapping[str, str]) -> list[str]:
    """Return the keys of `wanted` whose words the finding does not contain."""
    return [key for key, words in wanted.items() if str(words) not in row[key]]


def _row(finding: Finding) -> Mapping[str, str]:
    return {
        "subject": finding.subject,
        "actual": finding.actual.en if finding.actual is not None else "",
        "severity": finding.severity.value,
        "reason": finding.reason.en if finding.reason is not None else "",
    }


def _described(finding: Finding) -> Text:
    subject = f" [{finding.subject}]" if finding.subject else ""
    said = finding.reason
    if finding.outcome in (Outcome.PASS, Outcome.FAIL):
        said = Message("found {actual}; expected {expected}", actual=finding.actual, expected=finding.expected)
    words: list[Text] = [Literal(finding.outcome.value + subject)]
    return Joined([*words, *([said] if said is not None else [])], Literal(": "))


class _SharedHosts:
    """What `like: NAME` refers to: the directory's own file, else a shipped one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Mapping[str, Any]] = {}

    def __call__(self, name: str) -> Mapping[str, Any]:
        """Return the host; raises UsageError if there is none of that name, CatalogError for a wrong file."""
        if name not in self._read:
            self._read[name] = self._host(name)
        return self._read[name]

    def _host(self, name: str) -> Mapping[str, Any]:
        if not re.fullmatch(r"[\w.-]+", name):
            raise UsageError(Message("like: {name} is not the name of a host", name=name))
        own = self._folder / f"{name}.yaml"
        content = own.read_bytes() if own.is_file() else shipped_host(name)
        if content is None:
            raise UsageError(Message("like: {name}: {path} is missing", name=name, path=own))
        diagnostics = Diagnostics(str(own))
        node = read_yaml(content, diagnostics)
        data = None if node is None else Validator(diagnostics.report).judge(node, EXAMPLE_HOST)
        if diagnostics.found or not isinstance(data, dict):
            raise CatalogError([diagnostic.message() for diagnostic in diagnostics.found])
        return data


def shipped_host(name: str) -> Optional[bytes]:
    """Return a shipped file of checks/examples; None if there is none of that name."""
    try:
        return pkgutil.get_data("envtune", f"_data/checks/examples/{name}.yaml")
    except OSError:
        pass
    try:
        return Path(layers.data_root(), "checks", "examples", f"{name}.yaml").read_bytes()
    except OSError:
        return None


def checks_of(directory: Path, catalogue: Catalogue) -> tuple[Check, ...]:
    """Return the checks of the catalog whose files are below `directory`."""
    top = str(directory.absolute()).rstrip("/") + "/"
    files = catalogue.files("checks")
    return tuple(check for check in catalogue.checks if files[check.id].startswith(top))
