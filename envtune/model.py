"""The data types of the project, immutable. Imports nothing else of envtune.

Named tuples instead of frozen dataclasses: defining a dataclass costs 0.8-1.2 ms, a named tuple 0.2 ms, and a run of
`check`, with a budget of 200 ms, defines some fifty of them.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Callable, Mapping, Optional, Union

from envtune.messages import Text
from envtune.records import NamedTuple

Source = Union[str, Text]  # where a statement comes from: a path or a command, or words such as `this shell`


class Outcome(str, Enum):
    """The outcome of a check for one subject."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"
    NOTAPPLICABLE = "notapplicable"
    ERROR = "error"
    WAIVED = "waived"
    FIXED = "fixed"

    __hash__ = str.__hash__  # that of Enum is Python code, and these are keys everywhere


class Severity(str, Enum):
    """How serious a failed check is; `rank` orders them, from 0 for info to 4 for critical."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    def __init__(self, _: str) -> None:
        self.rank = len(type(self).__members__)  # of those before it


class Command(NamedTuple):
    """What to type about a finding: a line to paste, or a text that says why none is shown (commandline.py).

    `kind` is fix if the line repairs what was found, look if it only shows more. In a check the line is a
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

    `value` is what the expectation judges. `shown` replaces the generated wording if the value alone would not tell a
    person enough. `expected` does so for the expectation: a function returns the wording of the expectation it is
    given, or None for the generated one; a text says what the probe compared with, if `value` is the result of a
    comparison (true, `match`). `reason` says why this subject could not be read (then `value` is not judged).
    """

    subject: str
    value: Any
    evidence: Evidence
    shown: Optional[Text] = None
    expected: Union[Text, Wording, None] = None
    reason: Optional[Text] = None
    needs_privilege: bool = False  # the only reason is a missing privilege
    commands: tuple[Command, ...] = ()  # instead of the check's
    fields: Mapping[str, str] = {}  # for the lines of the check's commands


class Fact(NamedTuple):
    """One statement about the kind of host; `value` is None if it could not be determined; `reason` says why."""

    name: str
    value: Optional[str]
    source: Source
    reason: Optional[Text] = None


class SeverityRow(NamedTuple):
    """Another severity of a check, used if these facts hold and the value read equals `value` (unless that is None)."""

    when: Mapping[str, Any]
    value: Any
    severity: Severity


class Waiver(NamedTuple):
    """What a site's policy accepts for a time: findings of `check` about `subject` on `hosts` (policy/patterns.py).

    `expires` is its last day, as 2027-01-31. `unknown`: it also covers checks that are unknown.
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

    They do if both are about the same subject or, with `subject`, if the naming check found that one.
    """

    check: str
    subject: str = ""


class Check(NamedTuple):
    """One entry of `checks/<family>/`; see docs/catalog.md for the fields."""

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
    note: bool = False  # what it finds is worth knowing but not a problem
    covers: tuple[Covered, ...] = ()
    expected: Optional[Text] = None  # the expectation in words, if its values are the probe's own (true, match)
    note_when: Mapping[str, Any] = {}  # facts of hosts on which it is a note; in a finding, `note` says whether it is
    by_policy: bool = False  # the site's policy says what is expected, which no title and no text of ours does

    @property
    def family(self) -> str:
        """The letters of the id: `CPU` for CPU001."""
        return self.id.rstrip("0123456789")

    @property
    def why(self) -> Optional[Text]:
        """Why it matters; None if a site's check has nothing beyond its title."""
        return None if self.rationale.en == self.title.en else self.rationale


class Signature(NamedTuple):
    """How an FAQ entry's error looks in a log; a `strong` one belongs to it alone, a `weak` one needs a second sign.

    `requires` must all occur in the same log, `unless` must not; `origin` is seed where the porting guide shows it.
    `frame` must match a line of the Python traceback that ends with the line that was found. `regex` of one that is
    given by `tokens` (catalog/signatures/tokens.py) is made from them.
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
    """What a check, or a fact about the host, says about the cause of an FAQ entry.

    `subject` (with `*`) and `actual` (a regular expression for the English text) pick findings of `check`; both may
    name groups of the signatures in braces. `when` are facts that must hold; without a check they are sufficient.
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

    `proves`: this is what the message says; `favours`: this makes it likelier; `rules_out`: this excludes it. `run` is
    the command, with its arguments, that helps if no repair does; `settings` are variables that the job needs, each
    with the captured numbers that its value may come from (`{needed}`, `{above+1}`).
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
        """The ids of the checks that say something about its cause, the most conclusive first."""
        return tuple(dict.fromkeys(row.check for row in (*self.proves, *self.favours, *self.rules_out) if row.check))


class ErrorCode(NamedTuple):
    """A code that CANN, torch_npu or HCCL report: its meaning, what to do, who has to act, and the source.

    `generic` ones say where it failed, not why; `exact` ones have their own row, others that of their module.
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
        """Return it as an FAQ entry, to be reported like one."""
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
    """One typed step of a playbook; `lines` are the steps for a person, for the kind `instructions`."""

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
    """The result of one check for one subject of one host."""

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
    waiver: Optional[Waiver] = None  # why the outcome is waived; if it is not, the waiver has expired

    @property
    def id(self) -> str:
        """The id of the check."""
        return self.check.id


class FileStat(NamedTuple):
    """The result of `stat`; `kind` is file, dir, link, char, block, fifo or socket; size in bytes, mtime in seconds."""

    kind: str
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    size: int = 0
    mtime: float = 0.0
    links: int = 1  # hard links of a file; not recorded


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
    devices: tuple[str, ...] = ()  # /dev/davinci* nodes it has open; empty if its descriptors may not be read
    opaque: bool = False  # its descriptors may not be read by this user


class Listener(NamedTuple):
    """One listening TCP socket; `process` is empty if the owner may not be read."""

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
    """Capacity of the file system that contains `path`, in bytes; inodes are None if a recording has none."""

    path: str
    total: int
    free: int
    inodes: Optional[int] = None  # 0: the file system has no fixed number
    free_inodes: Optional[int] = None


class Fixes(NamedTuple):
    """What `envtune fix` would do about the findings: the checks it fixes, and why it does not fix others."""

    checks: Optional[tuple[str, ...]]  # None: not determined
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
    fixable: Optional[tuple[str, ...]] = None  # checks whose findings `envtune fix` would fix; None: not determined
    policy: Mapping[str, str] = {}  # `file` and `profile` of the policy in use
    catalogs: tuple[str, ...] = ()  # the directories of --catalog
    snapshot: str = ""  # of a recorded host: the file, as named by the user
    elsewhere: tuple[str, ...] = ()  # more that it would fix as root, or on the host itself
    settings: tuple[str, ...] = ()  # the options that name the job, the policy and the catalog, for the next command
    selection: tuple[str, ...] = ()  # the options that chose the checks


class FixOptions(NamedTuple):
    """The user's options for the repair. An action whose signature has the keyword `options` gets them.

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
    # The target of the checks afterwards (fields of TargetOptions), if the job named before cannot show the effect: a
    # variable written to a file is seen by the jobs that read that file, not by this shell.
    verify: Mapping[str, Any] = {}
    id: str = ""  # C01, C02, ... in the plan
    versions: tuple[VersionChange, ...] = ()  # what it replaces by another version
    interrupts: Optional[Text] = None  # what it may interrupt, if `disruption` alone would say too little
    until_reboot: Optional[Text] = None  # why it lasts only until the next boot
