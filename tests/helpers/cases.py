"""Cases of actions: a host, the findings on it, and the changes that are to be proposed for them.

`tests/cases/<family>/<action>/<case>.yaml` holds

    host        a host in the form of the catalog's examples (docs/catalog.md); `like` finds tests/cases/hosts/,
                too, and an output of `{recorded: NAME}` is a file of tests/firewall/rulesets/
    checks      the checks that are run on the host; their failures are the findings
    findings    findings that are given instead, `{check: CPU001, subject: cpu0}`
    options     the options of `envtune fix`: peers, wheels, env_file, pid, owner
    expect      what a site's policy expects of checks instead, by id
    arguments   the step's arguments; without them the step is the one of the shipped playbook
    changes     the changes in the form of `envtune.plan/1`, only the members that matter; a file operation also has
                `text`, its content. A change without `rivals` must have none
    still_failing  the checks that fail when the files are as proposed, none by default; of changes that run commands
                nothing is known
    lang        the language of the texts that are expected; en by default
    skipped     the reason why there is no change; a list of `{finding, reason}` where only some findings are skipped

A text or a list that is expected may be given as `{contains: ...}`, `{lacks: ...}`, `{matches: REGEX}`.
"""

from __future__ import annotations

import base64
import json
import pickle
import re
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence
from unittest import mock

from envtune.audit import examine
from envtune.catalog import Catalogue, load
from envtune.catalog.examples import example_host
from envtune.context import Context
from envtune.context.open import open_context, recorded_options
from envtune.errors import Missing, Skipped
from envtune.executor.files import digest, normalized
from envtune.fix.document import load_plan, plan_data
from envtune.fix.plan import Plan, make_plan
from envtune.host import Host
from envtune.messages import Literal, Text
from envtune.model import Check, Evidence, Finding, FixOptions, Outcome, Playbook, Step
from helpers.examples import ROOT, shared_host
from helpers.rule_walks import recorded
from helpers.shipped import parsed
from helpers.yaml_text import load_yaml

CASES = ROOT / "tests" / "cases"
MEMBERS = {
    "host",
    "checks",
    "findings",
    "options",
    "arguments",
    "changes",
    "still_failing",
    "skipped",
    "lang",
    "expect",
}
MATCHERS = {"contains", "lacks", "matches"}


class Case(NamedTuple):
    """One file; `action` is the name that the action is registered under."""

    path: Path
    action: str

    @property
    def name(self) -> str:
        """`cpu/set_governor/one-policy-left`."""
        return str(self.path.relative_to(CASES).with_suffix(""))


def all_cases() -> Iterator[Case]:
    for path in sorted(CASES.glob("*/*/*.yaml")):
        yield Case(path, ".".join(path.parent.relative_to(CASES).parts))


def the_case(name: str) -> Case:
    """The case of that name: `cpu/set_governor/one-policy-left`."""
    return next(case for case in all_cases() if case.name == name)


class Planned(NamedTuple):
    """What the action proposes in a case; `refusals` are the places (file, line) that made a `Skipped` meanwhile."""

    plan: Plan
    host: Host
    findings: Sequence[Finding]
    refusals: frozenset[tuple[str, int]]


@cache
def _document(path: Path) -> bytes:
    return pickle.dumps(load_yaml(path.read_text("utf-8")))


def _data(case: Case) -> dict[str, Any]:
    """What the file holds; every caller gets a copy of its own."""
    data: dict[str, Any] = pickle.loads(_document(case.path))
    unknown = set(data) - MEMBERS
    assert not unknown, f"{case.name}: unknown members {unknown}"
    return data


@cache
def planned(case: Case) -> Planned:
    """Plan the case; once per test process."""
    host, context, findings, options, playbooks = _read(case)
    with _noted_refusals() as refusals:
        plan = make_plan(findings, playbooks, context, options)
    return Planned(plan, host, findings, frozenset(refusals))


@contextmanager
def _noted_refusals() -> Iterator[set[tuple[str, int]]]:
    found: set[tuple[str, int]] = set()
    made = Skipped.__init__

    def noted(self: Skipped, reason: Text) -> None:
        caller = sys._getframe(1)
        found.add((caller.f_code.co_filename, caller.f_lineno))
        made(self, reason)

    with mock.patch.object(Skipped, "__init__", noted):
        yield found


def _read(case: Case) -> tuple[Host, Context, list[Finding], FixOptions, Sequence[Playbook]]:
    data = _data(case)
    options = _options(data)
    context = _context(data, options)
    findings = _findings(context, data)
    playbooks = _playbooks(case, data.get("arguments"), {finding.id for finding in findings})
    return context.host, context, findings, options, playbooks


def _options(data: Mapping[str, Any]) -> FixOptions:
    options = data.get("options") or {}
    env_file = options.get("env_file") or (data["host"].get("target") or {}).get("env_file")
    return FixOptions(**{**options, "peers": tuple(options.get("peers", ())), "env_file": env_file})


def _context(data: Mapping[str, Any], options: FixOptions, files: Mapping[str, Any] = {}, **target: Any) -> Context:
    """The host with other `files`, and the job that `target` names; its peers are those of the options."""
    example = dict(data["host"])
    example["commands"] = dict(_commands(example.get("commands") or {}))
    example["files"] = {**(example.get("files") or {}), **files}
    named = {**(example.get("target") or {}), **target, **({"peers": options.peers} if options.peers else {})}
    host = example_host({**example, "target": named or None}, _shared_host)
    return open_context(host, recorded_options(named), _under_policy(data).expectations)


def _shared_host(name: str) -> Mapping[str, Any]:
    path = CASES / "hosts" / f"{name}.yaml"
    return parsed(path) if path.exists() else shared_host(name)  # type: ignore[no-any-return]


def _commands(commands: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for line, output in commands.items():
        yield line, recorded(output["recorded"]) if isinstance(output, dict) and "recorded" in output else output


@cache
def _catalogue() -> Catalogue:
    return load()


def _under_policy(data: Mapping[str, Any]) -> Catalogue:
    wanted = data.get("expect") or {}
    if not wanted:
        return _catalogue()
    checks = (check._replace(expect=wanted.get(check.id, check.expect)) for check in _catalogue().checks)
    return _catalogue().with_checks(list(checks))


@cache
def _checks() -> Mapping[str, Check]:
    return {check.id: check for check in _catalogue().checks}


def _findings(context: Context, data: Mapping[str, Any]) -> list[Finding]:
    checks = {check.id: check for check in _under_policy(data).checks}
    found = [finding for id_ in data.get("checks", ()) for finding in examine(checks[id_], context)]
    failed = [finding for finding in found if finding.outcome is Outcome.FAIL]
    assert failed or not found, f"no check fails on this host: {[(f.id, f.outcome.value, f.reason) for f in found]}"
    stated = [_stated(**row) for row in data.get("findings", ())]
    assert failed or stated, "a case needs findings"
    return [*failed, *stated]


def _stated(check: str, subject: str) -> Finding:
    entry = _checks()[check]
    text = Literal("as the case says")
    return Finding(entry, Outcome.FAIL, entry.severity, subject, text, text, None, Evidence("the case"))


def _playbooks(case: Case, arguments: Optional[Mapping[str, Any]], ids: set[str]) -> Sequence[Playbook]:
    if arguments is not None:
        title = Literal("the case")
        return [Playbook("case", title, tuple(ids), "safe", "none", (Step(case.action, arguments),))]
    books = [book for book in _catalogue().playbooks if ids & {*book.fixes}]
    found = [book for book in books if case.action in {step.kind for step in book.steps}]
    assert found, f"no shipped playbook has a step {case.action} for {sorted(ids)}"
    return found


# ---------------------------------------------------------------------- what is expected


def differences(case: Case) -> list[str]:
    """Return what is not as the case expects it, a line each."""
    data = _data(case)
    plan, host, *_ = planned(case)
    shown = plan_data(plan, data.get("lang", "en"))
    expected = [{"rivals": [], **row} for row in data.get("changes", ())]
    changes = [_readable(change) for change in shown["changes"]]
    return [
        *_broken_rules(plan, host),
        *_compare_skipped(data.get("skipped"), shown["skipped"]),
        *_compare(expected, changes, "changes"),
        *_compare(data.get("still_failing", []), _still_failing(data, plan), "still_failing"),
    ]


def _still_failing(data: Mapping[str, Any], plan: Plan) -> list[str]:
    """The checks that the changes claim to cure and that fail on the host with the files as they would be."""
    operations = [operation for change in plan.changes for operation in change.operations]
    if "checks" not in data or any(operation["op"] != "file" for operation in operations):
        return []
    files = {
        row["path"]: None if row["content"] is None else {"base64": row["content"]} for row in map(dict, operations)
    }
    verify = {name: value for change in plan.changes for name, value in change.verify.items()}
    context = _context(data, _options(data), files, **verify)
    ids = sorted({id_ for change in plan.changes for id_ in (change.finding, *change.fixes)})
    return [id_ for id_ in ids if any(f.outcome is Outcome.FAIL for f in examine(_checks()[id_], context))]


def _broken_rules(plan: Plan, host: Host) -> Iterator[str]:
    """What holds for every plan, whatever it proposes."""
    text = json.dumps(plan_data(plan, "en"))
    if json.dumps(plan_data(load_plan(text), "en")) != text:  # which also asks the executor and the policy
        yield "the plan does not survive being a file"
    texts = [text for change in plan.changes for text in (change.note, *change.other_owners) if text is not None]
    for text in (*texts, *(skipped.reason for skipped in plan.skipped)):
        if text.zh == text.en:
            yield f"not translated: {text.en}"
        if text.en.startswith("envtune itself failed"):
            yield text.en
    for operation in (operation for change in plan.changes for operation in change.operations):
        if operation["op"] == "file" and operation["expect"] != _digest(host, operation["path"]):
            yield f"{operation['path']}: the digest is not that of what the host holds"


def _digest(host: Host, path: str) -> str:
    try:
        return digest(normalized(path, host.read_bytes(path)))
    except Missing:
        return digest(None)


def _readable(change: Mapping[str, Any]) -> dict[str, Any]:
    def shown(operation: Mapping[str, Any]) -> dict[str, Any]:
        if operation["op"] != "file" or operation["content"] is None:
            return dict(operation)
        text = base64.b64decode(operation["content"]).decode("utf-8", "surrogateescape")
        return {**operation, "text": text}

    return {**change, "operations": [shown(operation) for operation in change["operations"]]}


def _compare_skipped(expected: Any, actual: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if isinstance(expected, list):
        yield from _compare(expected, actual, "skipped")
    elif expected is None or not actual:
        yield from _compare(expected or [], list(actual), "skipped")
    else:  # one reason, for each of the findings
        for row in actual:
            yield from _compare(expected, row["reason"], f"skipped.{row['finding']}")


def _compare(expected: Any, actual: Any, where: str) -> Iterator[str]:
    """Where `actual` is not what is expected: mappings by the members that are named, all else exactly."""
    if isinstance(expected, dict) and not isinstance(actual, dict) and expected and set(expected) <= MATCHERS:
        yield from (f"{where}: {key} {word!r}: {actual!r}" for key, word in _unmatched(expected, actual))
    elif isinstance(expected, dict) and isinstance(actual, dict):
        for key, value in expected.items():
            yield from _compare(value, actual.get(key), f"{where}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for number, (one, other) in enumerate(zip(expected, actual)):
            yield from _compare(one, other, f"{where}[{number}]")
    elif expected != actual:
        yield f"{where}:\n  expected {expected!r}\n  proposed {actual!r:.1500}"


def _unmatched(expected: Mapping[str, Any], actual: Any) -> Iterator[tuple[str, Any]]:
    for key, words in expected.items():
        for word in words if isinstance(words, list) else [words]:
            if isinstance(actual, list) and not isinstance(word, str):
                inside = any(not list(_compare(word, one, "")) for one in actual)
            else:
                inside = actual is not None and word in actual
            holds = {"contains": inside, "lacks": not inside}
            if not (re.fullmatch(word, actual or "", re.S) if key == "matches" else holds[key]):
                yield key, word
