"""findings -> ordered changes. Pure: it reads a context and says what would be written; the executor writes.

A failed finding is fixed by the playbooks that name its check in `fixes`. Every typed step of such a playbook becomes
changes through the action of its kind (envtune/resources). What cannot become a change is listed as skipped, with the
reason or with the steps for a person to do.
"""

from __future__ import annotations

import os
import posixpath
from types import MappingProxyType
from typing import Any, Iterable, Mapping, Optional, Sequence

from envtune.audit import examine
from envtune.audit.remedies import devices
from envtune.audit.subjects import subject_text
from envtune.commandline import commented
from envtune.context import Context
from envtune.context.registry import find_action, plan_arguments
from envtune.errors import (
    Denied,
    HostError,
    NotRecorded,
    Skipped,
    Verdict,
    host_error_text,
    internal_error_text,
    long_number_text,
)
from envtune.fix.conflicts import Ownership
from envtune.fix.hard_links import with_other_names
from envtune.fix.policy import refusal
from envtune.host import Host, exists
from envtune.job.target import TargetOptions
from envtune.messages import N_, Bilingual, Joined, Literal, Message, Text
from envtune.model import Change, Finding, FixOptions, Outcome, Playbook, Step
from envtune.ranges import NumberTooLongError, join_subjects
from envtune.records import NamedTuple

SAFETY = ("safe", "confirm", "manual")
DISRUPTION = ("none", "job", "service", "reboot")
# what others may depend on comes first: system packages before Python packages, both before everything else
_FIRST = (("packages.install",), ("images.install_pillow", "images.install_opencv", "cann.install_te"))


LOOK = N_("look: {line}")  # a step that changes nothing
UNKNOWN = N_("unknown: {reason}")
BY_HAND = Message("no automatic fix; by hand:")
NO_OPTIONS = FixOptions()


class SkippedFinding(NamedTuple):
    """A finding that the plan does not fix; `steps` are what a person can do about it.

    `elsewhere` says where the same fix may be possible: `host` if this is a recording of one, `root` if run as root.
    `subject` is the first of `subjects`, which reports name. A note is no problem, and reports leave it out. `instead`
    are lines that repair it, of the check itself, where the action that was asked has nothing to propose.
    """

    finding: str
    subject: str
    reason: Text
    steps: tuple[Text, ...] = ()
    elsewhere: str = ""
    subjects: str = ""
    is_note: bool = False
    instead: tuple[Text, ...] = ()


class Plan(NamedTuple):
    """What a fix would do on one host; `target` has the fields of TargetOptions it was made for.

    `checks` and `options` are needed to build the same plan again: the checks that were run, and what the user named
    (see `named_options`). `machine` is a digest of the host's machine id, None if that is unknown.
    """

    host: str
    changes: tuple[Change, ...]
    skipped: tuple[SkippedFinding, ...]
    target: Mapping[str, Any] = MappingProxyType({})
    options: Mapping[str, Any] = MappingProxyType({})
    checks: tuple[str, ...] = ()
    machine: Optional[str] = None

    @property
    def not_fixed(self) -> tuple[SkippedFinding, ...]:
        """What is wrong and stays so."""
        return tuple(skipped for skipped in self.skipped if not skipped.is_note)


def make_plan(
    findings: Iterable[Finding],
    playbooks: Iterable[Playbook],
    context: Context,
    options: FixOptions = NO_OPTIONS,
    is_saved: bool = True,
) -> Plan:
    """Return the plan that would fix the failed findings, in the order in which it would be carried out.

    What cannot be planned is listed as skipped: nothing on the host makes this raise. A plan that is not saved does not
    identify its machine.
    """
    every = tuple(findings)
    failed = [finding for finding in every if finding.outcome is Outcome.FAIL]
    draft = _Draft(context, options)
    for playbook in sorted(playbooks, key=_rank):
        concerned = [finding for finding in failed if finding.id in playbook.fixes]
        if concerned:
            draft.add(playbook, concerned)
    draft.leave(failed)
    for finding in every:
        if finding.outcome in (Outcome.UNKNOWN, Outcome.ERROR):
            draft.skip([finding], _unknown(finding))
        elif finding.outcome is Outcome.WAIVED and finding.reason is not None:
            draft.skip([finding], finding.reason)
    return Plan(
        context.host.name,
        tuple(draft.changes),
        tuple(draft.skipped),
        _target(context),
        _options(context, options),
        tuple(dict.fromkeys(finding.id for finding in every)),
        machine_digest(context.host) if is_saved else None,
    )


def _rank(playbook: Playbook) -> tuple[int, str]:
    kinds = [step.kind for step in playbook.steps]
    return min((n for n, group in enumerate(_FIRST) if {*group} & {*kinds}), default=len(_FIRST)), playbook.id


def _target(context: Context) -> dict[str, Any]:
    """Return the job the plan is about, so that it is the same when the plan is applied later, or under sudo."""
    options = context.target.options
    named: dict[str, Any] = {"python": options.python, "pid": options.pid, "script": options.script}
    named.update(env_file=options.env_file, peers=options.peers or None)
    if context.target.python is not None and options.pid is None:
        named["python"] = context.target.python.path
    return {name: value for name, value in named.items() if value is not None}


def _options(context: Context, options: FixOptions) -> dict[str, Any]:
    """Return what the user named, in the form `named_options` takes."""
    target = context.target.options
    python = target.python
    if python is not None and "/" in python:
        python = posixpath.join(context.host.cwd, python)
    named: dict[str, Any] = {"python": python, "script": target.script, "wheels": options.wheels}
    named.update(owner=options.owner, pid=target.pid if options.pid is None else options.pid)
    named.update(env_file=options.env_file or target.env_file, peers=options.peers or target.peers or None)
    named.update(lang=target.lang)
    return {name: value for name, value in named.items() if value is not None}


def named_options(host: Host, named: Mapping[str, Any]) -> tuple[TargetOptions, FixOptions]:
    """Return the job to fix and what the fix may use, from what was named: python, pid, script, env_file, peers, ...

    An env file that does not exist yet is only a file to write: no job reads it.
    With `owner`, `pid` is not the job's: it is the process to end, which must not be spared as part of the job.
    """
    pid, owner, env_file = named.get("pid"), named.get("owner"), named.get("env_file")
    peers = tuple(named.get("peers", ()))
    read = env_file if env_file is not None and _may_exist(host, env_file) else None
    job = named.get("python"), None if owner else pid, named.get("script"), read, peers
    target = TargetOptions(*job, lang=named.get("lang"))
    return target, FixOptions(peers, named.get("wheels"), env_file, pid, owner)


def _may_exist(host: Host, path: str) -> bool:
    try:
        return exists(host, path) if host.live else os.path.lexists(path)  # of this machine, as in `resolve_target`
    except HostError:
        return True  # whoever reads it reports why it cannot be read


def machine_digest(host: Host) -> Optional[str]:
    """Return a digest of the host's machine id, which itself must be kept private (machine-id(5)).

    None if there is none (as in many containers) or a recording does not contain it.
    """
    try:
        machine = host.read("/etc/machine-id").strip()
    except HostError:
        return None
    import hashlib

    known = len(machine) == 32 and not set(machine) - set("0123456789abcdef")
    return hashlib.sha256(b"envtune.plan/1:" + machine.encode()).hexdigest() if known else None


def _unknown(finding: Finding) -> Text:
    reason = finding.reason or Literal("?")
    return Message(UNKNOWN, reason=reason)


def is_unknown(skipped: SkippedFinding) -> bool:
    """Return whether it is left out because it is unknown."""
    return isinstance(skipped.reason, Message) and skipped.reason.template == UNKNOWN


def _by_hand(finding: Finding) -> tuple[Text, tuple[Text, ...]]:
    """Return that a person has to do it, with the steps: the remedy and the repair lines, else those that only look."""
    check = finding.check
    lines = [
        (command.kind, command.line if isinstance(command.line, Text) else commented(command.line))
        for command in finding.commands
    ]
    repairs = [line for kind, line in lines if kind == "fix"] or [Message(LOOK, line=line) for _, line in lines]
    steps = (*([] if check.remedy is None else [check.remedy]), *repairs)
    return BY_HAND, steps


def own_lines(finding: Finding) -> tuple[Text, ...]:
    """Return the lines of the check that repair what it found without `envtune fix`."""
    lines = (command.line for command in finding.commands if command.kind == "fix")
    own = (line for line in lines if "envtune fix " not in (line.en if isinstance(line, Text) else line))
    return tuple(line if isinstance(line, Text) else commented(line) for line in own)


def _is_in_use(subject: str) -> bool:
    """Return whether the subject is a port that a program listens on, which no change takes from it."""
    return subject.startswith("port ")


def _in_use(finding: Finding) -> Text:
    found = finding.actual or Literal("?")
    said = Message("{subject}: {found}", subject=subject_text(finding.subject), found=found)
    return Message("by hand: stop what listens there, or choose other ports ({held})", held=said)


def only_looks(step: Text) -> bool:
    """Return whether a step changes nothing and only shows more."""
    return isinstance(step, Message) and step.template == LOOK


def without_label(step: Text) -> Text:
    """Return a step as it would be typed."""
    return step.fields["line"] if isinstance(step, Message) and only_looks(step) else step


class _Draft:
    """A plan under construction."""

    def __init__(self, context: Context, options: FixOptions) -> None:
        self.context, self.options = context, options
        self.changes: list[Change] = []
        self.skipped: list[SkippedFinding] = []
        self._ownership = Ownership()

    def mentions(self, check: str) -> bool:
        """Return whether the plan already says something about the findings of that check."""
        return self.changes_for(check) or any(s.finding == check for s in self.skipped)

    def leave(self, failed: Iterable[Finding]) -> None:
        """Say what a person has to do about the findings that no change fixes."""
        for finding in failed:
            if _is_in_use(finding.subject) and self.changes_for(finding.id):
                self.skip([finding], _in_use(finding))
            if not self.mentions(finding.id):
                self.skip([finding], *_by_hand(finding))

    def changes_for(self, check: str) -> bool:
        """Return whether a change fixes findings of that check."""
        return any(check in fixed_checks(change) for change in self.changes)

    def skip(
        self,
        findings: Sequence[Finding],
        reason: Text,
        steps: tuple[Text, ...] = (),
        elsewhere: str = "",
        is_refused: bool = False,
    ) -> None:
        subjects: dict[str, list[str]] = {}
        for id_ in dict.fromkeys(finding.id for finding in reversed(findings)):
            subjects[id_] = [finding.subject for finding in findings if finding.id == id_]
        for id_, names in subjects.items():
            own = [finding for finding in findings if finding.id == id_]
            lines = own_lines(own[0]) if is_refused else ()
            is_note = own[0].check.note
            skipped = SkippedFinding(id_, names[0], reason, steps, elsewhere, join_subjects(names), is_note, lines)
            if skipped not in self.skipped:
                self.skipped.append(skipped)

    def add(self, playbook: Playbook, findings: Sequence[Finding]) -> None:
        for step in playbook.steps:
            if step.kind == "instructions":
                reason = Message("by hand: {title}", title=playbook.title)
                self.skip(findings, reason, lines_for(step.lines, findings))
                continue
            try:
                proposed = self._propose(step, findings)
            except (Skipped, Verdict, HostError) as error:
                self.skip(findings, _reason(error), elsewhere=_elsewhere(error), is_refused=True)
                continue
            except NumberTooLongError as error:
                self.skip(findings, long_number_text(error))
                continue
            except Exception as error:  # a bug in envtune: report it and continue with the other playbooks
                self.skip(findings, internal_error_text(error))
                continue
            for change in proposed:
                self._admit(_raised(change, playbook, step.kind), findings)

    def _propose(self, step: Step, findings: Sequence[Finding]) -> tuple[Change, ...]:
        try:
            action = find_action(step.kind)
        except KeyError:
            raise Skipped(Message("this version has no action {kind}", kind=step.kind)) from None
        available = {"options": self.options, "judge": examine}
        more = {name: available[name] for name in plan_arguments(action)}
        return tuple(action(self.context, findings, **step.arguments, **more))

    def _admit(self, change: Change, findings: Sequence[Finding]) -> None:
        named = [f for f in findings if f.id == change.finding] or list(findings[:1])
        for operation in change.operations:
            never = refusal(operation)
            if never is not None:
                self.skip(named, never)
                return
        owner = self._ownership.conflict(change)
        if owner:
            reason = Message("{owner} of this plan changes the same thing: {target}", owner=owner, target=change.target)
            self.skip(named, reason)
            return
        numbered = with_other_names(change, self.context.host)._replace(id=f"C{len(self.changes) + 1:02d}")
        self._ownership.claim(numbered)
        self.changes.append(numbered)


def lines_for(lines: Iterable[Text], findings: Iterable[Finding]) -> tuple[Text, ...]:
    """Return the steps with `{device}` as the first NPU that the findings name, or 0 if they name none."""
    device = next((found for finding in findings for found in devices(finding.subject)), "0")
    return tuple(
        Bilingual(*(said.replace("{device}", device) for said in (line.en, line.zh))) if "{device}" in line.en else line
        for line in lines
    )


def _raised(change: Change, playbook: Playbook, kind: str) -> Change:
    """Return the change, at least as dangerous as its playbook says."""
    safety = max(change.safety, playbook.safety, key=SAFETY.index)
    disruption = max(change.disruption, playbook.disruption, key=DISRUPTION.index)
    return change._replace(playbook=playbook.id, action=kind, safety=safety, disruption=disruption)


def _elsewhere(error: Exception) -> str:
    return "host" if isinstance(error, NotRecorded) else "root" if isinstance(error, Denied) else ""


def _reason(error: Exception) -> Text:
    if isinstance(error, (Skipped, Verdict)):
        return error.reason
    assert isinstance(error, HostError)
    reason = host_error_text(error)
    return Joined((reason, Message(" (as root?)")), "") if isinstance(error, Denied) else reason


def fixed_checks(change: Change) -> tuple[str, ...]:
    """Return the ids of the checks whose findings the change fixes."""
    return (change.finding, *(check for check in change.fixes if check != change.finding))


def executable(changes: Iterable[Change]) -> dict[str, Any]:
    """Return the changes in the executor's form."""
    return {"changes": [_executable(change) for change in changes]}


def _executable(change: Change) -> dict[str, Any]:
    """Return what the executor needs of a change, and what `history` shows of it later."""
    shown = {"id": change.id, "finding": change.finding, "action": change.action, "target": change.target}
    return {**shown, "view": change.scope, "operations": [dict(operation) for operation in change.operations]}
