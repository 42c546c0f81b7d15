"""The form of what `envtune fleet` prints with `--format json`; docs/schema publishes it."""

from __future__ import annotations

from envtune.audit.verdict import Verdict
from envtune.fleet.collected import Collection
from envtune.fleet.questions import CODES
from envtune.model import Outcome, Severity
from envtune.report.fleet.data import SCHEMA
from envtune.schema.types import AnyOf, Bool, Const, Field, ListOf, MapOf, Null, Number, Record, Str, Type, optional

QUESTIONS = ("report", "drift", "host", "since", "golden")
_TEXT, _COUNT = Str(), Number(0, whole=True)
_TEXTS, _OPTIONAL_TEXT = ListOf(_TEXT), optional(_TEXT)
_TIME = optional(Str("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"))
_SEVERITY = Str(choices=tuple(severity.value for severity in Severity))
_VERDICTS = tuple(word.value for word in Verdict)
_COLLECTIONS = tuple(word.value for word in Collection)
_COLLECTION = Str(choices=_COLLECTIONS)


def _field(name: str, type_: Type, doc: str = "") -> Field:
    return Field(name, type_, doc, required=True)


_HOSTS = (_field("hosts", _TEXTS), _field("folded", _TEXT, "The same names as clush, pdsh and Slurm read them."))
_HOST = Record(
    _field("host", _TEXT),
    _field("collection", _COLLECTION, "How the last attempt to collect it ended."),
    _field("detail", _TEXT, "What was printed where it was not collected."),
    _field("seconds", Number(0)),
    _field("attempted", _TIME, "When the last attempt was made."),
    _field("collected", _TIME, "When it was collected last; null: never."),
    _field("verdict", optional(Str(choices=_VERDICTS)), "null: the last attempt did not collect it."),
)
_CHECK = Record(
    _field("id", _TEXT, "Id of the check."),
    _field("title", _TEXT, "In the language of the report."),
    _field("outcome", Str(choices=tuple(CODES)), "note: it failed and is no problem."),
    _field("severity", _SEVERITY),
    *_HOSTS,
    _field("since", _TIME, "The first run that found it so on one of the hosts."),
    _field(
        "found",
        ListOf(
            Record(_field("text", _OPTIONAL_TEXT, "What was found, or why it is unknown."), _field("hosts", _TEXTS))
        ),
    ),
    _field("fix", _OPTIONAL_TEXT, "What to type on each host."),
)
_DIFFERENCE = Record(
    _field("fact", _TEXT, "driver, variable:MASTER_ADDR, package:numpy."),
    _field("severity", _SEVERITY),
    _field("majority", Bool(), "Whether more than half of the hosts of which it is known have the first value."),
    _field("values", ListOf(Record(_field("value", _OPTIONAL_TEXT, "null: not set, not installed."), *_HOSTS))),
    _field("unknown", ListOf(Record(_field("reason", _TEXT), *_HOSTS))),
)
_GROUP = Record(
    _field("group", _TEXT, "What the hosts have in common, or their names."),
    _field("hosts", _TEXTS),
    _field("differences", ListOf(_DIFFERENCE), "What matters most first."),
)
_CHANGE = Record(
    _field("when", _TIME, "The run that found it."),
    _field("host", _TEXT),
    _field("kind", Str(choices=("check", "fact"))),
    _field("name", _TEXT, "Id of a check, or name of a fact."),
    _field("before", _OPTIONAL_TEXT),
    _field("after", _OPTIONAL_TEXT),
)
_GOLDEN = Record(
    _field("fact", _TEXT),
    _field("expected", _TEXT, "What the policy says."),
    _field("outcome", Str(choices=(Outcome.FAIL.value, Outcome.UNKNOWN.value, Outcome.WAIVED.value))),
    _field("found", _TEXT),
    *_HOSTS,
)
_COLLECTED = Record(
    _field("run", _TIME),
    _field("collection", _COLLECTION),
    _field("verdict", AnyOf(Str(choices=_VERDICTS), Null())),
)
FLEET = Record(
    _field("schema", Const(SCHEMA)),
    _field("envtune", _TEXT, "Version of envtune."),
    _field("question", Str(choices=QUESTIONS), "What is answered; audit and ingest answer report."),
    Field("hosts", ListOf(_HOST), "report; host: the one."),
    Field("collected", _COUNT, "report: how many hosts the last attempt collected."),
    Field("verdicts", MapOf(_COUNT, Str(choices=_VERDICTS)), "report: hosts per verdict."),
    Field("not_collected", MapOf(_TEXTS, Str(choices=_COLLECTIONS[1:])), "report: by cause."),
    Field("checks", ListOf(_CHECK), "report: checks that did not pass; host: all of them."),
    Field("groups", ListOf(_GROUP), "report, drift: hosts that are compared with each other."),
    Field("changes", ListOf(_CHANGE), "report: since the run before; host, since: since then."),
    Field("golden", ListOf(_GOLDEN), "golden: hosts that are not as the policy says."),
    Field("facts", MapOf(_OPTIONAL_TEXT), "host"),
    Field("unknown_facts", MapOf(_OPTIONAL_TEXT), "host: why a fact is unknown."),
    Field("collections", ListOf(_COLLECTED), "host: every attempt, the latest first."),
)
