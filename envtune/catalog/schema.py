"""The fields of the kinds of catalog entries; docs/schema publishes them for editors that complete YAML.

The order of the fields is the order in which a file gives them. What needs special rules is in forms.py. The entries of
a site have a separate form (SITE_TABLES): one language is enough, and fewer fields are required.
"""

from __future__ import annotations

from typing import Any, Mapping

from envtune.catalog.forms import (
    APPLIES,
    EXAMPLE,
    EXPECT,
    LINES,
    NAME,
    PROBE,
    REGEX,
    SITE_STEPS,
    STEPS,
    TEXT,
    TOKEN,
    either,
    in_any_language,
    several,
)
from envtune.messages import Message
from envtune.schema.types import AnyOf, Bool, Field, MapOf, Number, Record, Str, Type

ID = "[A-Z]{2,9}[0-9]{3}"
FAQ_ID = "[A-Z][0-9]{2,3}"
KINDS = ("checks", "faq", "playbooks", "families")
TITLES: Mapping[str, str] = {
    "checks": "envtune check (checks/<family>/<ID>-<name>.yaml)",
    "faq": "envtune FAQ entry (checks/faq/<ID>-<name>.yaml)",
    "playbooks": "envtune playbook (playbooks/<family>/<id>.yaml)",
}
FAMILY_FILE = "family"  # the stem of the file that describes the family of its folder
BILINGUAL = Record(
    Field("en", TEXT, "", True, Message("en is missing; add the English text")),
    Field("zh", TEXT, "", True, Message("zh is missing; add the Chinese text")),
    form="{en: ..., zh: ...}",
)

IN_ANY_LANGUAGE = in_any_language(TEXT)

SEVERITY = Str(choices=("info", "low", "medium", "high", "critical"))
ORIGIN = Str(choices=("seed", "inferred", "outside", "site"))
TEXTS = several(BILINGUAL)
_LINES = "[0-9]+(-[0-9]+)?"
SEED = Str(f"[0-9]{{3}}:{_LINES}([,;] ?([0-9]{{3}}:)?{_LINES})*", "003:1349-1403")

_IDENTITY = (
    Field("name", Str(NAME, "lower-case-words"), "States the defect; used in --select and in the file name.", True),
    Field("title", BILINGUAL, "One line for people.", True),
)

_LINE = Str(least=1)
COMMANDS = several(
    AnyOf(
        Record(Field("fix", _LINE, "Repairs what was found."), Field("look", _LINE, "Shows more."), least=1, most=1),
        _LINE,
    )
)

CHECK = Record(
    Field("id", Str(ID, "CPU001"), "Family and number; never used again for something else.", True),
    *_IDENTITY,
    Field("status", Str(choices=("experimental", "stable", "deprecated")), "Only stable checks run unasked.", True),
    Field("severity", SEVERITY, "How much a failure matters.", True),
    Field(
        "impact",
        Str(choices=("stops", "degrades", "none")),
        "What a failure does to a job: it fails or hangs; it runs slower or with other results (the default); nothing.",
    ),
    Field("note", Bool(), "What it finds is worth knowing and no problem; it counts for no verdict."),
    Field(
        "note_when",
        APPLIES,
        "Facts of hosts on which it is only that: a container cannot change what its image lacks.",
    ),
    Field(
        "covers",
        several(
            Record(
                Field("check", Str(ID, "ENV003"), "The check that finds the same.", True),
                Field("subject", TEXT, "What this check found, where the other one is about something else."),
            )
        ),
        "Checks with the same cause, which a report names beside this one: where both are about the same subject.",
    ),
    Field(
        "severity_by",
        several(
            Record(
                Field("when", APPLIES, "Facts the host must have."),
                Field("value", Str(), "The value that was read."),
                Field("severity", SEVERITY, "", True),
            )
        ),
        "Another severity by facts or by the value that was read; the first row that holds wins.",
    ),
    Field(
        "origin",
        ORIGIN,
        "seed: the porting guide says it; inferred: follows from it; outside: other sources.",
        True,
    ),
    Field("seed", SEED, "Where the porting guide says it: document:lines."),
    Field("rationale", BILINGUAL, "Why it matters for training.", True),
    Field("references", LINES, "Pages or documents that say so."),
    Field("tags", several(Str(NAME, "preflight")), "What the check is used for: preflight, fleet, troubleshoot."),
    Field("applies", APPLIES, "Facts the host must have, otherwise the check is not applicable."),
    Field("probe", PROBE, "What reads the host: {kind: {arguments}}.", True),
    Field("expect", EXPECT, "What the values read must meet.", True),
    Field("expected", BILINGUAL, "The same in words, where the values are the probe's own: true, match."),
    Field("falsepositives", TEXTS, "When a failure is right and yet not a problem."),
    Field("remedy", BILINGUAL, "What to do, and why it is safe."),
    Field("commands", COMMANDS, "What to type: {fix: ...} repairs what was found, {look: ...} shows more."),
    Field(
        "commands_by",
        several(Record(Field("when", APPLIES, "", True), Field("commands", COMMANDS, "", True))),
        "Other commands where facts say so; the first row that holds wins.",
    ),
    Field("playbook", Str(NAME, "set-cpu-governor"), "Former field: a playbook names its checks in `fixes`."),
    Field("faq", several(Str(FAQ_ID, "F06")), "Former field: an FAQ entry names its checks in `named_by`."),
    Field("volatile", Bool(), "Former field, without effect."),
    Field("deadline", Number(0.1, 300), "Seconds after which the check is given up."),
    Field(
        "examples",
        Record(*(Field(outcome, several(EXAMPLE)) for outcome in ("pass", "fail", "notapplicable", "unknown"))),
        "Small recorded hosts; they run as tests.",
    ),
)

_SIGNATURE = Record(
    Field("regex", REGEX, "Python regular expression; named groups become evidence."),
    Field("tokens", several(TOKEN), "Instead of it: what one message holds, in any order and spelling; rarest first."),
    Field("strength", Str(choices=("strong", "weak")), "strong: only this entry; weak: needs a second sign.", True),
    Field("origin", ORIGIN, "Whether the porting guide shows this text.", True),
    Field("multiline", Bool(), "The expression spans lines."),
    Field("frame", REGEX, "Must match a line of the Python traceback that ends there: whose code was importing, say."),
    Field(
        "requires",
        several(REGEX),
        "All must be told, too: by the inputs or the job's variables (NAME=value).",
    ),
    Field("npu", Bool(), "The inputs or those variables must show that the job uses an NPU, too."),
    Field("unless", several(REGEX), "None may be told: by the same file or those variables."),
)
SIGNATURES = several(either(_SIGNATURE, "regex", "tokens"))

_SUBJECT = Field("subject", TEXT, "Of the finding; `npu{device}` names what a signature captured, `*` is anything.")
_ACTUAL = Field("actual", TEXT, "A regular expression for what was found, in English; it may name groups, too.")
_WHEN = Field("when", APPLIES, "Facts that must hold; without a check they say it themselves.")
_CRITERION = Record(
    Field("check", Str(ID, "CANN005"), "The check that says so."),
    _SUBJECT,
    _ACTUAL,
    Field("found", BILINGUAL, "In words what `actual` matches; it may name groups, too."),
    _WHEN,
    Field("outcome", Str(choices=("fail", "pass")), "What the check must say; for rules_out pass, otherwise fail."),
    least=1,
    form="{check: ..., subject: ..., when: {...}}",
)

_NUMBER = Str("\\{[a-z_]+(\\+[0-9]+)?\\}", "{needed}")
_SETTINGS = MapOf(several(_NUMBER), Str("[A-Z][A-Z0-9_]*", "HCCL_BUFFSIZE"), least=1)

FAQ = Record(
    Field("id", Str(FAQ_ID, "F06"), "F: the porting guide's FAQ chapter; X: a symptom told elsewhere.", True),
    *_IDENTITY,
    Field("aliases", several(Str(FAQ_ID, "F10")), "Entries that say the same thing."),
    Field("signatures", SIGNATURES, "How the error looks in a log.", True),
    Field("precedence", Number(0, 1000, whole=True), "Where several entries match a line, the highest wins."),
    Field(
        "role",
        Str(choices=("cause", "waiting", "wrapper", "consequence")),
        "waiting: another rank did not come; wrapper: says that, not why; consequence: never the answer.",
    ),
    Field("cause", BILINGUAL, "Why it happens.", True),
    Field("remedy", BILINGUAL, "What to do.", True),
    Field("proves", several(_CRITERION), "What is so on the host exactly when the message is right."),
    Field("favours", several(_CRITERION), "What makes the cause likelier, and proves nothing."),
    Field("rules_out", several(_CRITERION), "What is so on the host only when the message is not right (any more)."),
    Field("run", TEXT, "The command that helps where no repair of the host does; the job's command follows it."),
    Field("set", _SETTINGS, "Variables of the job that the message asks for, and the captured number each is set to."),
    Field("confirm", several(Str(ID, "CANN005")), "Former field, for one more release: read as `favours`."),
    Field("named_by", several(Str(ID, "CANN005")), "Checks whose findings name this entry, the most telling first."),
    Field("side", Str(choices=("host", "code", "escalate", "ignore")), "Who has to act.", True),
    Field("versions", MapOf(TEXT, Str(NAME, "cann"), least=1), "Component -> version range it applies to."),
    Field("seed", SEED, "Where the porting guide says it: document:lines."),
    Field("references", LINES, "Pages or documents that say so."),
    Field(
        "examples",
        Record(Field("match", LINES, "Texts that must match."), Field("near_miss", LINES, "Texts that must not.")),
        "They run as tests.",
    ),
)

PLAYBOOK = Record(
    Field("id", Str(NAME, "set-cpu-governor"), "Also the file name.", True),
    Field("title", BILINGUAL, "One line for people.", True),
    Field("fixes", several(Str(ID, "CPU001")), "Checks whose failure it repairs.", True),
    Field("safety", Str(choices=("safe", "confirm", "manual")), "manual: shown, never run.", True),
    Field("disruption", Str(choices=("none", "job", "service", "reboot")), "What it interrupts.", True),
    Field("requires", Record(Field("root", Bool(), "Needs root.")), "Rights it needs."),
    Field("steps", STEPS, "What is done, in order: [{kind: {arguments}}].", True),
    Field("seed", SEED, "Where the porting guide says it: document:lines."),
    Field("references", LINES, "Pages or documents that say so."),
)

FAMILY = Record(
    Field("id", Str("[A-Z]{2,9}", "SITE"), "The letters of the ids of the family.", True),
    Field("title", BILINGUAL, "The heading of the family in a report.", True),
)

TABLES: Mapping[str, Record] = {"checks": CHECK, "faq": FAQ, "playbooks": PLAYBOOK, "families": FAMILY}

# Optional fields of a site's entry and their defaults; the rationale of a check defaults to its title (compile.py).
SITE_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "checks": {"status": "stable", "origin": "site"},
    "faq": {"side": "host"},
    "playbooks": {},
    "families": {},
}
SIGNATURE_DEFAULTS: Mapping[str, Any] = {"strength": "strong", "origin": "site"}


def _of_a_site(table: Record, *optional: str) -> Record:
    """Return the form of a site's entry: texts in either language, and fields with a default are optional."""
    types: Mapping[int, Type] = {
        id(BILINGUAL): IN_ANY_LANGUAGE,
        id(TEXTS): several(IN_ANY_LANGUAGE),
        id(STEPS): SITE_STEPS,
        id(SIGNATURES): several(either(_relaxed(_SIGNATURE, *SIGNATURE_DEFAULTS), "regex", "tokens")),
    }
    fields = (field._replace(type=types.get(id(field.type), field.type)) for field in table.fields)
    return _relaxed(Record(*fields), *optional)


def _relaxed(table: Record, *optional: str) -> Record:
    return Record(*(field._replace(required=field.required and field.name not in optional) for field in table.fields))


SITE_TABLES: Mapping[str, Record] = {
    kind: _of_a_site(table, *SITE_DEFAULTS[kind], *(("rationale",) if kind == "checks" else ()))
    for kind, table in TABLES.items()
}
