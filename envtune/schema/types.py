"""The fields of the three kinds of catalogue entries, as tables: what `validate` checks and the JSON Schema says.

The order of the fields is the order in which a file gives them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Union

ID = "[A-Z]{2,9}[0-9]{3}"
FAQ_ID = "[A-Z][0-9]{2,3}"
NAME = "[a-z0-9]+([.-][a-z0-9]+)*"
KINDS = ("checks", "faq", "playbooks")


@dataclass(frozen=True)
class Str:
    """A text; `pattern` must match all of it, `form` says in words what it should look like."""

    pattern: str = ""
    form: str = ""
    choices: tuple[str, ...] = ()
    regex: bool = False  # the text itself must be a regular expression


@dataclass(frozen=True)
class Bool:
    """true or false."""


@dataclass(frozen=True)
class Number:
    """A number between two bounds, both included; `whole` refuses fractions."""

    least: float
    most: float
    whole: bool = False


@dataclass(frozen=True)
class Bilingual:
    """`{en: ..., zh: ...}`, both there and not empty."""


@dataclass(frozen=True)
class ListOf:
    """A list of at least `least` items."""

    item: Type
    least: int = 1


@dataclass(frozen=True)
class MapOf:
    """A mapping with free keys."""

    key: Str
    value: Type
    least: int = 1


@dataclass(frozen=True)
class Record:
    """A mapping with known keys."""

    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Special:
    """A form with rules of its own; `name` is probe, expect, applies, example or steps."""

    name: str


Type = Union[Str, Bool, Number, Bilingual, ListOf, MapOf, Record, Special]


@dataclass(frozen=True)
class Field:
    """One key of a record."""

    name: str
    type: Type
    doc: str
    required: bool = False


SEVERITY = Str(choices=("info", "low", "medium", "high", "critical"))
ORIGIN = Str(choices=("seed", "inferred", "outside"))
TEXTS = ListOf(Bilingual())
LINES = ListOf(Str())
_LINES = "[0-9]+(-[0-9]+)?"
SEED = Str(f"[0-9]{{3}}:{_LINES}([,;] ?([0-9]{{3}}:)?{_LINES})*", "003:1349-1403")

_IDENTITY = (
    Field("name", Str(NAME, "lower-case-words"), "States the defect; used in --select and in the file name.", True),
    Field("title", Bilingual(), "One line for people.", True),
)

CHECK = Record(
    (
        Field("id", Str(ID, "CPU001"), "Family and number; never used again for something else.", True),
        *_IDENTITY,
        Field("status", Str(choices=("experimental", "stable", "deprecated")), "Only stable checks run unasked.", True),
        Field("severity", SEVERITY, "How much a failure matters.", True),
        Field(
            "severity_by",
            ListOf(Record((Field("when", Special("applies"), "", True), Field("severity", SEVERITY, "", True)))),
            "Another severity where facts say so; the first row that holds wins.",
        ),
        Field(
            "origin",
            ORIGIN,
            "seed: the porting guide says it; inferred: follows from it; outside: other sources.",
            True,
        ),
        Field("seed", SEED, "Where the porting guide says it: document:lines."),
        Field("rationale", Bilingual(), "Why it matters for training.", True),
        Field("references", LINES, "Pages or documents that say so."),
        Field("tags", ListOf(Str(NAME, "preflight")), "What the check is used for: preflight, fleet, troubleshoot."),
        Field("applies", Special("applies"), "Facts the host must have, otherwise the check is not applicable."),
        Field("probe", Special("probe"), "What reads the host: {kind: {arguments}}.", True),
        Field("expect", Special("expect"), "What the values read must meet.", True),
        Field("falsepositives", TEXTS, "When a failure is right and yet not a problem."),
        Field("remedy", Bilingual(), "What to do, and why it is safe."),
        Field("commands", LINES, "Exact commands to paste."),
        Field(
            "commands_by",
            ListOf(Record((Field("when", Special("applies"), "", True), Field("commands", LINES, "", True)))),
            "Other commands where facts say so; the first row that holds wins.",
        ),
        Field("playbook", Str(NAME, "set-cpu-governor"), "Former field: a playbook names its checks in `fixes`."),
        Field("faq", ListOf(Str(FAQ_ID, "F06")), "Former field: an FAQ entry names its checks in `named_by`."),
        Field("volatile", Bool(), "Former field, without effect."),
        Field("deadline", Number(0.1, 300), "Seconds after which the check is given up."),
        Field(
            "examples",
            Record(
                tuple(Field(o, ListOf(Special("example")), "") for o in ("pass", "fail", "notapplicable", "unknown"))
            ),
            "Small recorded hosts; they run as tests.",
        ),
    )
)

SIGNATURE = Record(
    (
        Field("regex", Str(regex=True), "Python regular expression; named groups become evidence.", True),
        Field("strength", Str(choices=("strong", "weak")), "strong: only this entry; weak: needs a second sign.", True),
        Field("origin", ORIGIN, "Whether the porting guide shows this text.", True),
        Field("multiline", Bool(), "The expression spans lines."),
        Field(
            "requires",
            ListOf(Str(regex=True)),
            "All must be told, too: by the inputs or the job's variables (NAME=value).",
        ),
        Field("unless", ListOf(Str(regex=True)), "None may be told: by the same file or those variables."),
    )
)

FAQ = Record(
    (
        Field("id", Str(FAQ_ID, "F06"), "F: the porting guide's FAQ chapter; X: a symptom told elsewhere.", True),
        *_IDENTITY,
        Field("aliases", ListOf(Str(FAQ_ID, "F10")), "Entries that say the same thing."),
        Field("signatures", ListOf(SIGNATURE), "How the error looks in a log.", True),
        Field("precedence", Number(0, 1000, whole=True), "Where several entries match a line, the highest wins."),
        Field(
            "role",
            Str(choices=("cause", "waiting", "wrapper", "consequence")),
            "waiting: another rank did not come; wrapper: says that, not why; consequence: never the answer.",
        ),
        Field("cause", Bilingual(), "Why it happens.", True),
        Field("remedy", Bilingual(), "What to do.", True),
        Field("confirm", ListOf(Str(ID, "CANN005")), "Checks whose failure confirms the cause."),
        Field("named_by", ListOf(Str(ID, "CANN005")), "Checks whose findings name this entry, the most telling first."),
        Field("side", Str(choices=("host", "code", "escalate", "ignore")), "Who has to act.", True),
        Field("versions", MapOf(Str(NAME, "cann"), Str()), "Component -> version range it applies to."),
        Field("seed", SEED, "Where the porting guide says it: document:lines."),
        Field("references", LINES, "Pages or documents that say so."),
        Field(
            "examples",
            Record(
                (Field("match", LINES, "Texts that must match."), Field("near_miss", LINES, "Texts that must not."))
            ),
            "They run as tests.",
        ),
    )
)

STEPS: Mapping[str, str] = {
    "cpu.set_governor": "Write a value to a file below /sys.",
    "sysctl.set": "Set a kernel parameter now and for the next boot.",
    "file.dropin": "Put a file of our own into a configuration directory.",
    "environment.export": "Export a variable from the job's environment file.",
    "images.install_pillow": "Replace the Pillow of the job's Python by the build that fits the CPU.",
    "images.install_opencv": "Keep one of several OpenCV distributions of the job's Python.",
    "cann.install_te": "Replace te, topi and hccl of the job's Python by what the active CANN ships.",
    "images.patch_torchvision": "Change a known line of an installed Python file.",
    "packages.install": "Install packages with the system's package manager.",
    "cpu.enable_at_boot": "Enable and start a system service.",
    "firewall.allow": "Allow ports between the peers.",
    "processes.terminate": "End a process.",
    "instructions": "Steps that a person does: {en: [...], zh: [...]}.",
}

PLAYBOOK = Record(
    (
        Field("id", Str(NAME, "set-cpu-governor"), "Also the file name.", True),
        Field("title", Bilingual(), "One line for people.", True),
        Field("fixes", ListOf(Str(ID, "CPU001")), "Checks whose failure it repairs.", True),
        Field("safety", Str(choices=("safe", "confirm", "manual")), "manual: shown, never run.", True),
        Field("disruption", Str(choices=("none", "job", "service", "reboot")), "What it interrupts.", True),
        Field("requires", Record((Field("root", Bool(), "Needs root."),)), "Rights it needs."),
        Field("steps", Special("steps"), "What is done, in order: [{kind: {arguments}}].", True),
        Field("seed", SEED, "Where the porting guide says it: document:lines."),
        Field("references", LINES, "Pages or documents that say so."),
    )
)

TABLES: Mapping[str, Record] = {"checks": CHECK, "faq": FAQ, "playbooks": PLAYBOOK}
# what an example may hold: a snapshot's keys (docs/snapshot.md), `like` and `arch` of examples.py, and what to expect
EXAMPLE_KEYS = (
    *("expect", "like", "arch", "options", "host", "uname", "euid", "cwd", "now", "taken", "environ", "covered"),
    *("files", "commands", "processes", "listeners", "interfaces", "disks", "target"),
)
EXAMPLE_EXPECT = ("subject", "actual", "severity", "reason")
