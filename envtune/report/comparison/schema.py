"""The forms of `check --format json` over several hosts and of `diff --format json`; docs/schema publishes them."""

from __future__ import annotations

from envtune.audit.verdict import Verdict
from envtune.model import Outcome, Severity
from envtune.report.comparison.difference_json import SCHEMA as DIFFERENCE_SCHEMA
from envtune.report.comparison.json import SCHEMA as COMPARISON_SCHEMA
from envtune.schema.types import AnyOf, Bool, Const, Field, ListOf, MapOf, Null, Number, Record, Str, Type, optional

_TEXT, _COUNT, _BOOL = Str(), Number(0, whole=True), Bool()
_TEXTS, _OPTIONAL_TEXT = ListOf(_TEXT), optional(_TEXT)
_VERDICTS = tuple(word.value for word in Verdict)
_SEVERITY = Str(choices=tuple(severity.value for severity in Severity))


def _field(name: str, type_: Type, doc: str = "") -> Field:
    return Field(name, type_, doc, required=True)


_POLICY = Field(
    "policy",
    Record(_field("file", _TEXT), _field("profile", _TEXT, "Empty where none is used.")),
    "The site's policy in use, where there is one.",
)
_HOSTS = (_field("hosts", _TEXTS), _field("folded", _TEXT, "The same names as clush, pdsh and Slurm read them."))
_FACT = Record(
    _field("fact", _TEXT, "driver, variable:MASTER_ADDR, package:numpy."),
    _field("severity", _SEVERITY, "high: the ranks of one job must agree."),
    _field("majority", _BOOL, "Whether more than half of the hosts of which it is known have the first value."),
    _field(
        "values",
        ListOf(Record(_field("value", _OPTIONAL_TEXT, "null: not set, not installed."), *_HOSTS)),
        "The most frequent first; <host> and <address> stand for the host's own.",
    ),
    _field("unknown", ListOf(Record(_field("reason", _TEXT), *_HOSTS))),
)
_CHECK = (
    _field("id", _TEXT, "Id of the check."),
    _field("name", _TEXT),
    _field("title", _TEXT, "In the language of the report."),
    _field("severity", _SEVERITY),
)
_CHECK_ROW = Record(
    *_CHECK,
    _field("by_severity", MapOf(_TEXTS), "The hosts by the severity that it has there; `severity` is the highest."),
    *_HOSTS,
    _field("differs", _TEXTS, "Those of the hosts that differ in it from most hosts of their kind."),
    _field(
        "variants",
        ListOf(
            Record(
                _field("subject", _TEXT, "What it is about on these hosts."),
                _field("text", _OPTIONAL_TEXT, "What was found, or why it is unknown."),
                *_HOSTS,
            )
        ),
    ),
)
_HOST_ROW = Record(
    _field("host", _TEXT, "Its name; with the file where two snapshots have the same one."),
    _field("source", _TEXT, "The snapshot."),
    _field("started", _TEXT, "When it was recorded."),
    _field("verdict", Str(choices=_VERDICTS)),
    _field(
        "severities",
        Record(*(_field(severity.value, _COUNT) for severity in reversed(Severity))),
        "How many checks failed there, as in the report on that host.",
    ),
    _field("failed", _TEXTS, "Ids of checks, what matters most first."),
    _field("unknown", _TEXTS, "Ids of checks that are unknown or ended with an error."),
    _field(
        "differs",
        Record(_field("facts", _TEXTS), _field("checks", _TEXTS)),
        "In what it differs from most hosts of its kind or job.",
    ),
)
_GROUP = Record(
    _field(
        "kind",
        AnyOf(MapOf(_OPTIONAL_TEXT), Null()),
        "npu, arch, os, container, vm of most hosts; null: a job.",
    ),
    _field("job", _OPTIONAL_TEXT, "MASTER_ADDR:MASTER_PORT of hosts of several kinds that run one job."),
    *_HOSTS,
    _field("same", MapOf(_OPTIONAL_TEXT), "Facts that are known and the same on all of them."),
    _field("differences", ListOf(_FACT), "What matters most first."),
    _field("unknown", ListOf(_FACT), "Facts that are unknown of some and differ on no others."),
)
COMPARISON = Record(
    _field("schema", Const(COMPARISON_SCHEMA)),
    _field("envtune", _TEXT, "Version of envtune."),
    _field("verdict", Str(choices=_VERDICTS)),
    _field(
        "counts", Record(_field("hosts", _COUNT), *(_field(word, _COUNT) for word in _VERDICTS)), "Hosts per verdict."
    ),
    _field("hosts", ListOf(_HOST_ROW)),
    _field("groups", ListOf(_GROUP), "Hosts that are compared with each other."),
    _field("failures", ListOf(_CHECK_ROW), "Checks that fail on some host, what matters most first."),
    _field("unknown", ListOf(_CHECK_ROW), "Checks that are unknown on some host."),
    _field("not_read", ListOf(Record(_field("source", _TEXT), _field("reason", _TEXT)))),
    _POLICY,
)
_SIDE = Record(
    _field("outcome", Str(choices=tuple(outcome.value for outcome in Outcome))),
    _field("texts", _TEXTS, "What was found, or why not."),
)
_CHECK_PAIR = Record(*_CHECK, _field("left", _SIDE), _field("right", _SIDE))
_VALUE = Record(
    _field("value", _OPTIONAL_TEXT, "null: not set, not installed, or unknown."),
    _field("unknown", _OPTIONAL_TEXT, "Why it is unknown; null where it is known."),
)
_FACT_PAIR = Record(_field("fact", _TEXT), _field("left", _VALUE), _field("right", _VALUE))
_HOST = Record(_field("host", _TEXT), _field("source", _TEXT), _field("started", _TEXT))
_PAIRS = (_field("facts", ListOf(_FACT_PAIR)), _field("checks", ListOf(_CHECK_PAIR)))
DIFFERENCE = Record(
    _field("schema", Const(DIFFERENCE_SCHEMA)),
    _field("envtune", _TEXT, "Version of envtune."),
    _field("differs", _BOOL, "Whether anything is known to differ."),
    _field("left", _HOST),
    _field("right", _HOST),
    *_PAIRS,
    _field("unknown", Record(*_PAIRS), "What is unknown on one side or both: no difference."),
    _field("same", Record(_field("facts", _COUNT), _field("checks", _COUNT)), "How many are the same."),
    _POLICY,
)
