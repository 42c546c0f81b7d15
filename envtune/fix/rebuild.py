"""Build a saved plan again on this host and compare; what is carried out is the plan that was built here.

A plan file names checks, playbooks, actions, their subjects and what was found there. Whoever could write the file
could write anything, and the host may have changed since: so the same checks are run, the same actions propose again,
and every member of every change has to equal the file's, or all of it is refused.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import AbstractSet, Any, Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.catalog import Catalogue
from envtune.context.open import open_context, resolve_target
from envtune.errors import PlanError
from envtune.fix.document import change_data
from envtune.fix.plan import Plan, SkippedFinding, fixed_checks, machine_digest, named_options
from envtune.fix.prepare import PreparedFix, prepare
from envtune.fix.selection import checks_of
from envtune.host import Host
from envtune.messages import Joined, Literal, Message, Text, clauses
from envtune.model import Change, Finding, Outcome

# Members of a change that may differ: its number in a plan, and notes, which are shown as generated here.
_FREE = ("id", "note")
_SHOWN = 60  # characters of a value in a difference
_MOST_SHOWN = 20  # differences
_ABSENT = object()


class _Difference(NamedTuple):
    change: str  # its id in the file
    member: str  # changes[1].operations[0].argv[2]
    file: Any
    here: Any


def prepare_saved(
    host: Host, saved: Plan, catalogue: Catalogue, named: Optional[Mapping[str, Any]] = None
) -> PreparedFix:
    """Build a saved plan again on `host`; `named` replaces what was named when it was made (see `named_options`).

    The changes keep the ids they have in the file. Raises PlanError if the plan was made on another host or turns out
    different, UsageError if its job does not exist.
    """
    _require_same_host(saved, host)
    checks = checks_of(saved, catalogue)
    target, options = named_options(host, {**_recorded_options(saved), **(named or {})})
    target = resolve_target(host, target)
    python = saved.target.get("python")
    if target.python is None and target.pid is None and python is not None:
        found = open_context(host, target, catalogue.expectations).target.python
        if found is None or found.path != python:  # another PATH, as under sudo
            target = target._replace(python=python)
    fixed = {check for change in saved.changes for check in fixed_checks(change)}
    if not fixed:
        return PreparedFix(saved._replace(skipped=()), (), (), target, catalogue.expectations)
    made = prepare(host, target, checks, catalogue, options)
    left_out: tuple[SkippedFinding, ...] = ()
    findings = tuple(finding for finding in made.findings if finding.id in fixed)
    if all(finding.outcome is Outcome.PASS for finding in findings):
        changes: tuple[Change, ...] = ()  # already the case
    else:
        changes = _same_changes(saved.changes, made.plan, findings)
        left_out = tuple(_left_out(saved, made.plan, fixed))
    plan = made.plan._replace(changes=changes, skipped=left_out)
    return replace(made, plan=plan, checks=tuple(check for check in checks if check.id in fixed), findings=findings)


def _recorded_options(saved: Plan) -> Mapping[str, Any]:
    """Return what was named for the plan; one of an earlier version only names the job."""
    if saved.options or saved.checks:
        return saved.options
    return {name: value for name, value in saved.target.items() if name != "python"}


def _require_same_host(saved: Plan, host: Host) -> None:
    """Raise PlanError for a plan of another host; a recording or an earlier version may lack the machine id."""
    if saved.host != host.name:
        message = Message("the plan was made on {other}, this is {own}", other=saved.host, own=host.name)
        raise PlanError("host", message)
    if saved.machine is not None and saved.machine != machine_digest(host):
        message = Message("the plan was made on another machine called {name}: its machine id differs", name=host.name)
        raise PlanError("machine", message)


# ---------------------------------------------------------------------- the same changes


def _same_changes(saved: Sequence[Change], here: Plan, findings: Sequence[Finding]) -> tuple[Change, ...]:
    """Return the changes of `here` that are in the file, in this host's order; raises PlanError for any difference."""
    recorded = [_data(change) for change in saved]
    own = [_data(change) for change in here.changes]
    pairs = _matched(recorded, own)
    different: list[_Difference] = []
    reasons: list[Text] = []
    for number, row in enumerate(recorded):
        place = pairs.get(number)
        if place is None:
            place_in_file = f"  changes[{number}] ({row['id']}, {row['finding']})"
            reasons.append(Joined((place_in_file, _not_proposed(row, here, findings)), ": "))
        else:
            different += _differences(f"changes[{number}]", row, own[place], here.changes[place])
    if different or reasons:
        raise PlanError("", _refusal([*map(_line, different), *reasons]))
    ids = {place: recorded[number]["id"] for number, place in pairs.items()}
    return tuple(change._replace(id=ids[place]) for place, change in enumerate(here.changes) if place in ids)


def _data(change: Change) -> dict[str, Any]:
    """Return a change in the form of a file."""
    data: dict[str, Any] = json.loads(json.dumps(change_data(change, "en")))
    return data


def _matched(recorded: Sequence[Mapping[str, Any]], own: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Match the changes of the file with those here: an identical one, else the same thing, else the closest."""
    pairs: dict[int, int] = {}
    for members in ((), ("finding", "playbook", "action", "target", "view"), ("finding", "playbook", "action")):
        free: dict[str, list[int]] = {}
        for place, row in enumerate(own):
            if place not in pairs.values():
                free.setdefault(_key(row, members), []).append(place)
        for number, row in enumerate(recorded):
            places = free.get(_key(row, members))
            if number not in pairs and places:
                pairs[number] = places.pop(0)
    return pairs


def _key(row: Mapping[str, Any], members: Sequence[str]) -> str:
    names = members or [name for name in row if name not in (*_FREE, "rivals")]
    return json.dumps([row[name] for name in names], sort_keys=True)


def _differences(where: str, file: Mapping[str, Any], here: Mapping[str, Any], change: Change) -> Iterator[_Difference]:
    for name in file:
        if name == "rivals" and file[name] == change_data(change, "zh")[name]:
            continue
        if name not in _FREE:
            for member, in_file, own in _unlike(f"{where}.{name}", file[name], here[name]):
                yield _Difference(file["id"], member, in_file, own)


def _unlike(member: str, file: Any, here: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the members in which two values differ: (member, in the file, here)."""
    if isinstance(file, dict) and isinstance(here, dict):
        for key in [*here, *(key for key in file if key not in here)]:
            own = here.get(key, _ABSENT)
            if _is_only_less_known(member, file.get(key), own):
                continue
            name = key if key.isidentifier() else _cut(key, "")
            yield from _unlike(f"{member}.{name}", file.get(key, _ABSENT), own)
    elif isinstance(file, list) and isinstance(here, list):
        for number in range(max(len(file), len(here))):
            in_file, own = (side[number] if number < len(side) else _ABSENT for side in (file, here))
            yield from _unlike(f"{member}[{number}]", in_file, own)
    elif type(file) is not type(here) or file != here:
        yield member, file, here


def _is_only_less_known(member: str, file: Any, here: Any) -> bool:
    """Return whether a file in `holds` is only known to exist: a recording keeps parts of such files."""
    return member.endswith("].holds") and file == "present" and isinstance(here, str) and here != "absent"


def _left_out(saved: Plan, here: Plan, fixed: AbstractSet[str]) -> Iterator[SkippedFinding]:
    """Yield what else this host needs for the same checks: left out of the file, or unknown when it was made."""
    pairs = _matched([_data(change) for change in saved.changes], [_data(change) for change in here.changes])
    for place, change in enumerate(here.changes):
        if place not in pairs.values() and fixed & {*fixed_checks(change)}:
            reason = Message("{target}: proposed here, but not in the plan file", target=change.target)
            yield SkippedFinding(change.finding, change.subject, reason)


# ---------------------------------------------------------------------- the message


def _not_proposed(row: Mapping[str, Any], here: Plan, findings: Sequence[Finding]) -> Text:
    """Return why nothing like a change of the file is proposed here."""
    skipped = next((one.reason for one in here.skipped if one.finding == row["finding"]), None)
    if skipped is not None:
        return skipped
    outcomes = {finding.outcome for finding in findings if finding.id == row["finding"]}
    if outcomes == {Outcome.PASS}:
        return Message("nothing left to do: the check passes now")
    if Outcome.FAIL not in outcomes:
        return Message("the check does not fail on this host")
    shown = _cut(row["target"], "")
    reason = Message("no such change is proposed here: {action} for {target}", action=row["action"], target=shown)
    notes = [one.note for one in here.changes if one.finding == row["finding"] and one.note is not None]
    return clauses([reason, *dict.fromkeys(notes)])  # such as the file that would override ours


def _refusal(rows: Sequence[Text]) -> Text:
    more = len(rows) - _MOST_SHOWN
    shown = [*rows[:_MOST_SHOWN], *([Message("  and {count} more", count=more)] if more > 0 else [])]
    return Message(
        "the plan differs from a new one for this host: the host or the file has changed. Nothing was "
        "changed; make a new plan (without --plan)\n"
        "{rows}",
        rows=Joined(shown, "\n"),
    )


def _line(difference: _Difference) -> Text:
    file, here = (_readable(difference.member, side) for side in (difference.file, difference.here))
    place = f"  {difference.member} ({difference.change})"
    in_file, own = _value(file, here), _value(here, file)
    return Message("{place}: {in_file} in the file, {own} on this host", place=place, in_file=in_file, own=own)


def _readable(member: str, value: Any) -> Any:
    """Return the text a file would contain."""
    if member.endswith("].content") and isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True).decode("utf-8", "backslashreplace")
        except ValueError:
            pass
    return value


def _value(value: Any, other: Any) -> Text:
    if value is _ABSENT:
        return Message("nothing")
    if isinstance(value, str):
        return Literal(_cut(value, other if isinstance(other, str) else ""))
    text = _quoted(value)
    return Literal(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _cut(text: str, other: str) -> str:
    """Return a quoted text, cut around the point where it begins to differ from another one."""
    same = next((n for n, (one, two) in enumerate(zip(text, other)) if one != two), min(len(text), len(other)))
    start = same - _SHOWN // 3 if len(text) > _SHOWN and same > _SHOWN // 3 else 0
    end = start + _SHOWN
    shown = _quoted(text[start:end])
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}"


def _quoted(value: Any) -> str:
    """Return a value as JSON with terminal control characters escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
