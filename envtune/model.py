"""The words of the project as frozen data. Imports nothing of ours.

Named tuples and not frozen dataclasses: making a class of the latter costs 0.8-1.2 ms, of the former 0.2 ms, and a run
of `check` that may cost 200 ms makes some fifty of them.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Callable, Mapping, Optional, Union

from envtune.messages import Text
from envtune.records import NamedTuple

Source = Union[str, Text]  # where a statement comes from: a path or a command, or words such as `this shell`


class Outcome(str, Enum):
    """What a check says about one subject."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"
    NOTAPPLICABLE = "notapplicable"
    ERROR = "error"
    WAIVED = "waived"
    FIXED = "fixed"


class Severity(str, Enum):
    """How much a failed check matters; `rank` orders them, from 0 for info to 4 for critical."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    def __init__(self, _: str) -> None:
        self.rank = len(type(self).__members__)  # of those before it


class Command(NamedTuple):
    """What to type about a finding: a line to paste, or as a text why none is shown (commandline.py).

    `kind` is fix where pasting the line repairs what was found, look where it only shows more. In a check the line is a
    template (audit/remedies.py).
    """

    kind: str
    line: Union[str, Text]


class Evidence(NamedTuple):
    """Where a statement comes from, and the raw text found there."""

    source: Source
    text: str = ""


Expectation = Mapping[str, Any]  # matchers by name, perhaps inside a quantifier; expect.py lists them
Wording = Callable[[Expectation], Optional[Text]]


class Reading(NamedTuple):
    """One value a probe read about one subject.

    `value` is what the expectation judges. `shown` replaces the generated wording where the value alone would not tell
    a person enough. `expected` does so for the expectation: as a function it words the expectation it is given, None
    for the generated words; as a text it says what the probe compared with, where `value` is the result of a comparison
    (true, `match`). `reason` says why this subject could not be read (then `value` is not judged).
    """

    subject: str
    value: Any
    evidence: Evidence
    shown: Optional[Text] = None
    expected: Union[Text, Wording, None] = None
    reason: Optional[Text] = None
    needs_privilege: bool = False  # the only reason is a missing privilege
    commands: tuple[Command, ...] = ()  # in place of the check's
    fields: Mapping[str, str] = {}  # for the lines of the check's commands


class Fact(NamedTuple):
    """One statement about what kind of host this is; `value` is None when it could not be told; `reason` says why."""

    name: str
    value: Optional[str]
    source: Source
    reason: Optional[Text] = None


class SeverityRow(NamedTuple):
    """Another severity of a check: where these facts hold and, unless it is None, the value that was read is this."""

    when: Mapping[str, Any]
    value: Any
    severity: Severity


class Waiver(NamedTuple):
    """What a site's policy accepts for a time: findings of `check` about `subject` on `hosts` (policy/patterns.py).

    `expires` is its last day, as 2027-01-31. `unknown`: it also covers what could not be checked.
    """

    check: str
    reason: str
    owner: str
    expires: str
    subject: str = "*"
    hosts: str = "*"
    unknown: bool = False


class Covered(NamedTuple):
    """A check whose findings have the same cause as those of the check that names it.

    They have it where both are about the same subject or, with `subject`, where the naming check found that one.
    """

    check: str
    subject: str = ""


class Check(NamedTuple):
    """One entry of `checks/<family>/`; see docs/catalogue.md for the fields."""

    id: str
    name: str
    title: Text
    status: str
    severity: Severity
    rationale: Text
    origin: str
    probe: str
    arguments: Mapping[str, Any]
    expect: Expectation
    applies: Mapping[str, Any] = {}
    severity_by: tuple[SeverityRow, ...] = ()
    seed: str = ""
    references: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    falsepositives: tuple[Text, ...] = ()
    remedy: Optional[Text] = None
    commands: tuple[Command, ...] = ()
    commands_by: tuple[tuple[Mapping[str, Any], tuple[Command, ...]], ...] = ()  # by facts; the first that holds wins
    faq: tuple[str, ...] = ()  # the entries that name the check in `named_by`
    deadline: float = 20.0
    waivers: tuple[Waiver, ...] = ()  # of the policy in use
    impact: str = "degrades"  # on a job: stops | degrades (slower, or other results) | none
    note: bool = False  # what it finds is worth knowing and no problem
    covers: tuple[Covered, ...] = ()
    expected: Optional[Text] = None  # the expectation in words, where its values are the probe's own (true, match)
    note_when: Mapping[str, Any] = {}  # facts of hosts on which it is a note; in a finding, `note` says whether it is
    by_policy: bool = False  # the site's policy says what is expected, which no title and no text of ours does

    @property
    def family(self) -> str:
        """The letters of the id: `CPU` for CPU001."""
        return self.id.rstrip("0123456789")

    @property
    def why(self) -> Optional[Text]:
        """Why it matters; None where a site's check says no more than its title."""
        return None if self.rationale.en == self.title.en else self.rationale


class Signature(NamedTuple):
    """How an FAQ entry's error looks in a log; a `strong` one is that entry's alone, a `weak` one needs a second sign.

    `requires` must all occur in the same log, `unless` must not; `origin` is seed where the porting guide shows it.
    `frame` must match a line of the Python traceback that ends with the line that was found. `regex` of one that is
    given by `tokens` (catalog/tokens.py) is made from them.
    """

    regex: str
    strength: str
    origin: str
    multiline: bool = False
    requires: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    frame: str = ""


class Criterion(NamedTuple):
    """What a check, or a fact about the host, says to the cause of an FAQ entry.

    `subject` (with `*`) and `actual` (a regular expression for the English text) pick findings of `check`; both may
    name groups of the signatures in braces. `when` are facts that must hold; without a check they speak for themselves.
    `outcome` is that of the finding: fail or pass. `found` says in words what `actual` picks.
    """

    check: str = ""
    subject: str = ""
    actual: str = ""
    when: Mapping[str, Any] = {}
    outcome: str = "fail"
    found: Optional[Text] = None


class FaqEntry(NamedTuple):
    """One entry of `checks/faq/`: a known error, its cause, what proves it on a host, and who has to act (`side`).

    `proves`: this is what the message says; `favours`: this makes it likelier; `rules_out`: with this it is not so.
    `run` is the command that helps where no repair does, with its arguments; `settings` are variables that the job
    needs, each with the captured numbers that its value may come from (`{needed}`, `{above+1}`).
    """

    id: str
    name: str
    title: Text
    signatures: tuple[Signature, ...]
    cause: Text
    remedy: Text
    side: str
    aliases: tuple[str, ...] = ()
    role: str = "cause"  # cause | waiting (another rank did not come) | wrapper (says that, not why) | consequence
    precedence: int = 500
    proves: tuple[Criterion, ...] = ()
    favours: tuple[Criterion, ...] = ()
    rules_out: tuple[Criterion, ...] = ()
    run: str = ""
    settings: Mapping[str, tuple[str, ...]] = {}
    named_by: tuple[str, ...] = ()
    versions: Mapping[str, str] = {}
    seed: str = ""
    references: tuple[str, ...] = ()

    @property
    def checks(self) -> tuple[str, ...]:
        """The ids of the checks that say something to its cause, the most telling first."""
        return tuple(dict.fromkeys(row.check for row in (*self.proves, *self.favours, *self.rules_out) if row.check))


class ErrorCode(NamedTuple):
    """A code that CANN, torch_npu or HCCL report: its meaning, what to do, who has to act, and where that is written.

    `generic` ones say where it failed, not why; `exact` ones have a row of their own, others their module's.
    """

    code: str
    meaning: Text
    action: Text
    side: str
    source: str
    faq: str = ""
    generic: bool = False
    exact: bool = True

    def entry(self) -> FaqEntry:
        """Return it as an FAQ entry, to be told like one."""
        return FaqEntry(
            self.code,
            f"code-{self.code.lower()}",
            self.meaning,
            (),
            self.meaning,
            self.action,
            self.side,
            role="wrapper" if self.generic else "cause",
            precedence=0,
            references=(self.source,),
        )


class Step(NamedTuple):
    """One typed step of a playbook; `lines` are what a person does, for the kind `instructions`."""

    kind: str
    arguments: Mapping[str, Any]
    lines: tuple[Text, ...] = ()


class Playbook(NamedTuple):
    """One entry of `playbooks/<family>/`: how to repair what the checks in `fixes` find."""

    id: str
    title: Text
    fixes: tuple[str, ...]
    safety: str
    disruption: str
    steps: tuple[Step, ...]
    root: bool = False
    seed: str = ""
    references: tuple[str, ...] = ()


class Finding(NamedTuple):
    """What one check says about one subject of one host."""

    check: Check
    outcome: Outcome
    severity: Severity
    subject: str
    actual: Optional[Text]
    expected: Optional[Text]
    reason: Optional[Text]
    evidence: Evidence
    needs_privilege: bool = False  # unknown only because of a missing privilege
    commands: tuple[Command, ...] = ()  # what to type on this host
    waiver: Optional[Waiver] = None  # why the outcome is waived; where it is not, the waiver has expired

    @property
    def id(self) -> str:
        """The id of the check."""
        return self.check.id


class FileStat(NamedTuple):
    """What `stat` says; `kind` is file, dir, link, char, block, fifo or socket; size in bytes, mtime in seconds."""

    kind: str
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    size: int = 0
    mtime: float = 0.0
    links: int = 1  # names of a file; a recording does not tell


class CommandResult(NamedTuple):
    """A finished command."""

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str

    @property
    def line(self) -> str:
        """The command as a person would type it."""
        return " ".join(self.argv)


class Process(NamedTuple):
    """One row of the process table; `started` in seconds since the epoch, `state` the letter of /proc/<pid>/stat."""

    pid: int
    ppid: int
    user: str
    name: str
    argv: tuple[str, ...] = ()
    state: str = "S"
    started: float = 0.0
    devices: tuple[str, ...] = ()  # /dev/davinci* nodes it holds open; empty when its descriptors may not be read
    opaque: bool = False  # its descriptors may not be read by this user


class Listener(NamedTuple):
    """One listening TCP socket; `process` is empty when the owner may not be read."""

    address: str
    port: int
    pid: Optional[int] = None
    process: str = ""


class Interface(NamedTuple):
    """One network interface and its addresses (without prefix length)."""

    name: str
    addresses: tuple[str, ...]
    up: bool = True


class Disk(NamedTuple):
    """Capacity of the file system that holds `path`, in bytes; inodes are None where a recording has none."""

    path: str
    total: int
    free: int
    inodes: Optional[int] = None  # 0: the file system has no fixed number
    free_inodes: Optional[int] = None


class Fixes(NamedTuple):
    """What `envtune fix` would do about the findings: the checks that it fixes, and why it does not fix others."""

    checks: Optional[tuple[str, ...]]  # None: nobody asked
    refused: Mapping[str, Text] = {}
    elsewhere: tuple[str, ...] = ()  # checks whose fix can be planned on the host itself, or as root


class Report(NamedTuple):
    """One run of `check` over one host."""

    host: str
    started: str
    seconds: float
    target: Mapping[str, Source]
    facts: tuple[Fact, ...]
    findings: tuple[Finding, ...]
    fixable: Optional[tuple[str, ...]] = None  # checks whose findings `envtune fix` would fix; None: nobody asked
    policy: Mapping[str, str] = {}  # `file` and `profile` of the policy in use
    catalogs: tuple[str, ...] = ()  # the directories of --catalog
    snapshot: str = ""  # of a recorded host: the file, as it was named
    elsewhere: tuple[str, ...] = ()  # further ones that it would fix as root, or on the host itself


class FixOptions(NamedTuple):
    """What the user said about the repair. An action whose signature has the keyword `options` gets it.

    `peers` are the addresses and networks (`10.0.0.2`, `10.0.0.0/24`, `fd00::/8`) of the other hosts of the job, names
    already resolved. `wheels` is a directory of wheels for hosts without a network, `env_file` the file to write
    variables to, `pid` and `owner` name one process and the user who must own it.
    """

    peers: tuple[str, ...] = ()
    wheels: Optional[str] = None
    env_file: Optional[str] = None
    pid: Optional[int] = None
    owner: Optional[str] = None


class VersionChange(NamedTuple):
    """A package that a change replaces by another version of it."""

    name: str
    before: str
    after: str


class Change(NamedTuple):
    """One thing a fix would write, and everything a person needs to consent to it.

    `before` and `after` are shown as a diff. `scope` says what changes: `live` (now), `boot` (next boot), `job` (what a
    new job's process sees). `operations` are what the executor carries out (executor/operations describes the kinds).
    """

    finding: str  # id of the check
    subject: str
    playbook: str
    action: str
    target: str
    before: str
    after: str
    scope: str
    operations: tuple[Mapping[str, Any], ...]
    safety: str = "safe"  # safe | confirm | manual
    disruption: str = "none"  # none | job | service | reboot
    root: bool = True
    undoable: bool = True
    other_owners: tuple[Text, ...] = ()  # who else sets the same thing
    note: Optional[Text] = None  # what else to know before consenting
    fixes: tuple[str, ...] = ()  # further checks that it fixes, besides `finding`
    # What the checks are run on afterwards (fields of TargetOptions), where the job named before cannot show the
    # effect: a variable written to a file is seen by the jobs that read that file, not by this shell.
    verify: Mapping[str, Any] = {}
    id: str = ""  # C01, C02, ... in the plan
    versions: tuple[VersionChange, ...] = ()  # what it replaces by another version
    interrupts: Optional[Text] = None  # what it may interrupt, where `disruption` alone would say too little
    until_reboot: Optional[Text] = None  # why it lasts until the next boot only
