"""The forms of `check --format json` and `diagnose --format json`; docs/schema publishes them."""

from __future__ import annotations

from envtune.audit.verdict import Verdict
from envtune.diagnose.proof import VERDICTS
from envtune.model import Outcome, Severity
from envtune.report.check_json import SCHEMAS as REPORT_SCHEMAS
from envtune.report.diagnosis.content import MENTIONS
from envtune.report.diagnosis.json import SCHEMAS, SIDES
from envtune.report.npu import SCHEMA as NPU_SCHEMA
from envtune.report.problems import IMPACTS
from envtune.schema.types import AnyOf, Bool, Const, Field, ListOf, MapOf, Null, Number, Record, Str, Type, optional

_TEXT = Str()
_TEXTS, _WORDS, _OPTIONAL_TEXT = ListOf(_TEXT), MapOf(_TEXT), optional(_TEXT)
_FORMER_VERDICTS = ("confirmed", "refuted", "unknown", "not_checked")
_COUNT, _LINE_NUMBER = Number(0, whole=True), Number(1, whole=True)


def _field(name: str, type_: Type, doc: str = "") -> Field:
    return Field(name, type_, doc, required=True)


_COMMAND = Record(
    _field("kind", Str(choices=("fix", "look")), "fix: it repairs what was found; look: it shows more."),
    _field("line", _OPTIONAL_TEXT, "null where none can be shown."),
    _field("reason", _OPTIONAL_TEXT, "Why none is shown."),
)
FINDING = Record(
    _field("id", _TEXT, "Id of the check."),
    _field("name", _TEXT),
    _field("outcome", Str(choices=tuple(outcome.value for outcome in Outcome))),
    _field("severity", Str(choices=tuple(severity.value for severity in Severity))),
    _field("subject", _TEXT, "What it is about (npu3, cpu4-7, te); empty for the whole host."),
    _field("actual", _OPTIONAL_TEXT, "What was found, in the report's language."),
    _field("expected", _OPTIONAL_TEXT),
    _field("reason", _OPTIONAL_TEXT, "Why it is unknown, not applicable, an error or fixed."),
    _field("evidence", Record(_field("source", _TEXT), _field("text", _TEXT)), "Path or command, and the raw text."),
    _field("remedy", _OPTIONAL_TEXT, "What to do, and the lines that repair it."),
    _field("commands", ListOf(_COMMAND), "Lines to paste."),
    _field("faq", _TEXTS),
    Field(
        "waiver",
        Record(
            _field("reason", _TEXT, "Why the finding is accepted."),
            _field("owner", _TEXT),
            _field("expires", _TEXT, "The last day on which it holds: 2027-01-31."),
            _field("expired", Bool(), "true: the day is over, and the finding counts again."),
        ),
        "The waiver of the site's policy, where there is one.",
    ),
)
_HEAD = (
    _field("envtune", _TEXT, "Version of envtune."),
    _field("host", _TEXT),
    _field("started", Str("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")),
    _field("seconds", Number(0)),
)
_READY = (
    "ready: at least one check passed or is waived, and none of at least medium severity failed or is unknown; "
    "ready_with_advice: so, and what failed is low; not_sure: what matters is unknown, or everything that applies"
)
_POLICY = Field(
    "policy",
    Record(_field("file", _TEXT), _field("profile", _TEXT, "Empty where none is used.")),
    "The site's policy in use, where there is one.",
)
_OUTCOMES = Record(*(_field(outcome.value, _COUNT) for outcome in Outcome))
REPORT_1 = Record(
    _field("schema", Const(REPORT_SCHEMAS[1])),
    *_HEAD,
    _field("target", _WORDS, "The job that was judged."),
    _field("facts", _WORDS, "What kind of host it is; `unknown` where it could not be told."),
    _field("findings", ListOf(FINDING)),
    _field("summary", _OUTCOMES, "Outcome -> number of findings."),
    Field(
        "verdict",
        Str(choices=tuple(word.value for word in Verdict if word is not Verdict.NO_NPU)),
        f"{_READY}.",
    ),
    _POLICY,
)
POLICY_CHECK = Record(
    _field("schema", Const("envtune.policy-check/1")),
    _field("file", _TEXT),
    _field("profile", _TEXT, "Empty where none is used."),
    _field("date", _TEXT, "The day by which waivers are judged: that of the host's clock, or of the latest recording."),
    _field(
        "waivers",
        ListOf(
            Record(
                *(_field(name, _TEXT) for name in ("check", "reason", "owner", "expires", "subject", "hosts")),
                _field("unknown", Bool(), "true: it also covers checks that are unknown."),
                _field("state", Str(choices=("valid", "soon", "expired")), "soon: it expires within --within days."),
                _field("used", AnyOf(Bool(), Null()), "Whether it waives anything; null: it is for other hosts."),
            )
        ),
    ),
)
_COMMAND_2 = Record(
    _field("kind", Str(choices=("fix", "look")), "fix: it fixes what was found; look: it shows more."),
    _field("command", _OPTIONAL_TEXT, "A line to paste into a shell; null where none can be shown."),
    _field("reason", _OPTIONAL_TEXT, "Why none is shown."),
)
_OF_FINDING = FINDING.by_name
FINDING_2 = Record(
    _OF_FINDING["id"],
    _OF_FINDING["name"],
    _field("title", _TEXT, "What the check finds, in the report's language."),
    _OF_FINDING["outcome"],
    _OF_FINDING["severity"],
    _field("note", Bool(), "A failure is worth knowing and no problem: it counts for nothing."),
    _field("needs_root", Bool(), "Unknown only because a privilege is missing."),
    *(_OF_FINDING[name] for name in ("subject", "actual", "expected", "reason", "evidence")),
    _field("remedy", _OPTIONAL_TEXT, "What to do, in words."),
    _field("commands", ListOf(_COMMAND_2), "What to type, what fixes it first."),
    _OF_FINDING["faq"],
    _OF_FINDING["waiver"],
)
_PROBLEM = Record(
    _field("checks", ListOf(_TEXT, least=1), "The check that says most, then those that found the same."),
    _field("severity", _OF_FINDING["severity"].type, "The highest of them."),
    _field("impact", Str(choices=IMPACTS), "stops: a job fails or hangs; degrades: slower, or other results."),
    _field("fixable", optional(Bool()), "Whether `envtune fix` would fix it; null where that was not asked."),
)
_NOTE = Record(_field("check", _TEXT), _field("title", _TEXT), _field("actual", _OPTIONAL_TEXT))
_COUNTS = Record(
    _field("checks", _COUNT),
    _field("problems", _COUNT, "Checks that failed or of which envtune itself failed."),
    _field("notes", _COUNT, "Checks that found what is worth knowing; they are in no other number but `checks`."),
    _field("need_root", _COUNT, "Checks that are unknown only because a privilege is missing."),
    _field("waived", _COUNT, "Checks of which the site waives something, whatever else they say."),
    _field("outcomes", _OUTCOMES, "Outcome -> number of checks; each counts once, by the worst of its findings."),
    _field("severities", Record(*(_field(one.value, _COUNT) for one in reversed(Severity))), "Of the problems."),
)
_FACT = AnyOf(Str(), Bool(), Number(whole=True), Null())
REPORT_2 = Record(
    _field("schema", Const(REPORT_SCHEMAS[2])),
    *_HEAD,
    _field(
        "verdict",
        Str(choices=tuple(word.value for word in Verdict)),
        f"{_READY}; nothing_checked: no check applies; no_npu: no NPU, driver or CANN, only general checks were run.",
    ),
    _field("counts", _COUNTS),
    _field("target", _WORDS, "The job that was checked."),
    _field("facts", MapOf(_FACT), "What kind of host it is; null where that is unknown."),
    _field("unknown_facts", _WORDS, "Why a fact is unknown."),
    _field("problems", ListOf(_PROBLEM), "What is wrong, each cause once, in the order in which to read it."),
    _field("notes", ListOf(_NOTE)),
    _field("findings", ListOf(FINDING_2), "In the order of the catalog."),
    _POLICY,
)
_LINE = Record(_field("file", _TEXT), _field("line", _LINE_NUMBER), _field("text", _TEXT))
_JUDGED_1 = (
    _field("verdict", Str(choices=_FORMER_VERDICTS), "What the confirming checks say now."),
    _field(
        "confirm",
        ListOf(FINDING),
        "Their findings; `fixed`: it was so and a run of envtune fix cured it (see `reason`).",
    ),
)
_RANK = optional(Number(whole=True))
_PROCESS_FIELDS = (
    _field("rank", _RANK),
    _field("host", _OPTIONAL_TEXT, "A directory, a host name or an address, as the inputs name it."),
    _field("device", _RANK, "Of that host."),
    _field("file", _OPTIONAL_TEXT, "Where to read on; null where there is no log of it."),
)
_PROCESS = Record(*_PROCESS_FIELDS)
_ROOT = Record(*_PROCESS_FIELDS, _field("why", _TEXT, "What makes it the root."))
_CODE = Record(
    _field("code", _TEXT, "507011, EI0006, ERR02200; HCCL7 for a result of HCCL."),
    _field("meaning", _TEXT, "In the language of the answer."),
    _field("action", _TEXT, "What to do, in the language of the answer."),
    _field("faq", _OPTIONAL_TEXT, "The FAQ entry that says more."),
    _field("source", _TEXT, "Where the code is documented."),
    _field("count", _LINE_NUMBER, "Lines of the inputs that say so."),
    _field("file", _TEXT, "Where the first of them is."),
    _field("line", _LINE_NUMBER),
)
_JOB = (
    Field("codes", ListOf(_CODE), "Error codes in lines that report an error, in the order in which they happened."),
    Field("root", AnyOf(_ROOT, Null()), "The process that failed first; null for one process, or if nothing tells."),
    Field("candidates", ListOf(_ROOT), "Where nothing tells: the processes among which the root is."),
    Field("waiters", ListOf(_PROCESS), "Processes that only waited for others."),
    Field("missing", ListOf(_COUNT), "Ranks that did not connect, or of which there is no log."),
    Field(
        "links",
        ListOf(Record(_field("from", _PROCESS), _field("to", _PROCESS), _field("why", _TEXT))),
        "Who waited for whom.",
    ),
)
_GROUND = Record(
    _field("effect", Str(choices=("proves", "favours", "rules_out"))),
    _field("says", _TEXT, "In the language of the answer."),
    _field("finding", AnyOf(FINDING, Null()), "Null where the facts say it."),
    _field("facts", _WORDS, "What had to hold besides."),
)
_JUDGED_2 = (
    _field("verdict", Str(choices=VERDICTS), "What the host says to it now."),
    _field("reason", _TEXT, "The verdict in a sentence."),
    _field("grounds", ListOf(_GROUND), "What decides the verdict; empty for not_here and could_not_check."),
    _field("findings", ListOf(FINDING), "Everything that was looked at; `fixed`: a run of envtune fix cured it."),
)


_STATE = Record(
    _field("file", _TEXT),
    _field("line", _LINE_NUMBER, "Where the table begins."),
    _field("finding", FINDING),
)
_MENTION = Record(
    _field("id", _TEXT, "Id of the FAQ entry, or the code."),
    _field("name", _TEXT),
    *_LINE.fields,
    _field("why", Str(choices=tuple(MENTIONS)), "Why it is no event, or did not end the run."),
    _field("reason", _TEXT, "The same in words."),
    _field("count", _LINE_NUMBER, "Lines that are known."),
)

_CELL = optional(Number(0, whole=True))
_NPU_PROCESS = Record(
    _field("pid", _COUNT),
    _field("name", _TEXT),
    _field("user", _OPTIONAL_TEXT, "Null where the process table does not show the process."),
    _field("memory", _CELL, "MB."),
)
_DEVICE = Record(
    _field("id", _TEXT, "npu3 for /dev/davinci3; a PCI address where there is no device node."),
    _field("model", _OPTIONAL_TEXT),
    _field("health", _OPTIONAL_TEXT, "As npu-smi says it: OK, Warning, Alarm, Critical, UNKNOWN."),
    _field("temperature", optional(Number()), "Degrees Celsius."),
    _field("memory", AnyOf(Record(_field("used", _COUNT), _field("total", _COUNT)), Null()), "MB, of the HBM."),
    _field("bus", _OPTIONAL_TEXT, "PCI address."),
    _field("processes", AnyOf(ListOf(_NPU_PROCESS), Null())),
    _field("unknown", _WORDS, "Key of this record -> why it is unknown or may not be all, in the report's language."),
)
NPUS = Record(
    _field("schema", Const(NPU_SCHEMA)),
    _field("envtune", _TEXT, "Version of envtune."),
    _field("host", _TEXT),
    _field("devices", ListOf(_DEVICE)),
)


def _diagnosis(schema: int, judged: tuple[Field, ...]) -> Record:
    row = Record(
        _field(
            "id",
            Str("([A-Z][0-9]{2,3}|[0-9]{6}|E[A-Z1-9][0-9]{4}|ERR[0-9]{5}|HCCL[0-9]{1,2})"),
            "Id of the FAQ entry, or the code.",
        ),
        _field("name", _TEXT),
        _field("rank", _LINE_NUMBER, "Place in this list; 1 is the most likely."),
        _field("strength", Str(choices=("strong", "weak"))),
        _field("confidence", Str(choices=("high", "low")), "low: only weak signs speak for it."),
        _field("count", _LINE_NUMBER, "Lines of the inputs that say so."),
        _field("lines", ListOf(_LINE, least=1), "The first of them."),
        _field("groups", _WORDS, "What the signatures' groups say."),
        _field(
            "where",
            Record(_field("rank", optional(Number(whole=True))), _field("host", _OPTIONAL_TEXT)),
            "The rank of the job and the host at fault; null where the inputs do not say.",
        ),
        *judged,
        _field("side", Str(choices=SIDES), "Who has to act."),
        _field("remedy", _TEXT, "What to do, in the language of the answer."),
    )
    return Record(
        _field("schema", Const(SCHEMAS[schema])),
        _field("inputs", _TEXTS),
        _field("diagnoses", ListOf(row), "What we would act on, the most likely first."),
        _field("hints", ListOf(row), "Weak signs only."),
        _field("harmless", ListOf(row), "Known lines that mean nothing."),
        _field("consequences", ListOf(row), "What followed from it, and ranks that only waited."),
        _field("states", ListOf(_STATE), "What checks find in tables of npu-smi and ps that the inputs hold."),
        _field("mentions", ListOf(_MENTION), "Lines that hold a signature and report no event."),
        _field("first_error", AnyOf(_LINE, Null()), "The first line that looks like an error, known or not."),
        *_JOB,
    )


DIAGNOSIS_1, DIAGNOSIS_2 = _diagnosis(1, _JUDGED_1), _diagnosis(2, _JUDGED_2)
