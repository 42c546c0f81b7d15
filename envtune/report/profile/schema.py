"""The form of `profile --format json`; docs/schema publishes it."""

from __future__ import annotations

from envtune.profile.rules import RULES
from envtune.profile.verdict import Bound
from envtune.report.profile.json import SCHEMA, SHARES
from envtune.report.schema import FINDING_2
from envtune.schema.types import AnyOf, Bool, Const, Field, ListOf, Null, Number, Record, Str, Type, optional

_TEXT, _COUNT, _SHARE = Str(), Number(0, whole=True), Number(0)
_BOUND = Str(choices=tuple(bound.value for bound in Bound))


def _field(name: str, type_: Type, doc: str = "") -> Field:
    return Field(name, type_, doc, required=True)


_RANK = Record(
    _field("rank", _TEXT, "Its number, or a directory where no file names the rank."),
    _field("verdict", _BOUND),
    _field("waits_for_stage", Bool(), "Another stage of the pipeline is what it waits for most."),
    _field("steps", _COUNT, "Steps the means are of."),
    _field("start_up_steps", _COUNT, "Steps at the beginning that were left out."),
    _field("step_us", Number(0), "Mean time of a step in microseconds."),
    _field("kind", Str(choices=("step", "iteration")), "iteration: of a graph; there, free is the gap before it."),
    _field("shares", Record(*(_field(name, _SHARE) for name in SHARES)), "Of the step, 0 to 1."),
    _field("preparing", optional(_SHARE), "Of the step, in free: before its first kernel. null where unknown."),
)
_EVIDENCE = Record(
    _field("id", Str(choices=tuple(RULES))),
    _field("title", _TEXT, "In the language of the answer, as are detail and advice."),
    _field("detail", _TEXT),
    _field("ranks", ListOf(_TEXT)),
    _field("share", optional(_SHARE), "0 to 1, of the rank where it is largest; null where unknown."),
    _field("of", optional(Str(choices=("step", "kernels"))), "What the share is of."),
    _field("major", Bool(), "false: too small for advice."),
    _field("advice", optional(_TEXT)),
    _field("source", _TEXT),
)
_SLOW = Record(
    _field("rank", _TEXT),
    _field("verdict", _BOUND, "host: its free time is longer; compute: its kernels are."),
    _field("excess", _SHARE, "Share of a step that it takes longer than the median of the others."),
    _field("waiting", ListOf(_TEXT), "The ranks that wait for it."),
    _field("certain", Bool(), "false: ranks are missing, and a slower one may be among them."),
)
_KIND = Record(
    _field("profiler", optional(_TEXT), "What wrote the profiles: torch_npu, MindSpore, MindSpore <= 2.2 or msprof."),
    _field("verdict", _BOUND, "Of these ranks."),
    _field("likely", Bool()),
    _field("ranks", ListOf(_TEXT)),
    _field("job_size", optional(_COUNT), "Ranks of the job; null where no file tells."),
    _field("missing_ranks", ListOf(_TEXT), "Ranks of the job without steps here, as numbers and ranges: 3, 8-15."),
)
HOST = Record(
    _field("host", _TEXT),
    _field("variables", optional(_TEXT), "The file with the finished job's variables, where they were checked."),
    _field(
        "explains", ListOf(ListOf(_TEXT)), "Failing checks that can explain the verdict, those of one cause together."
    ),
    _field("does_not_explain", ListOf(_TEXT), "Failing checks that do not."),
    _field("unknown", ListOf(_TEXT), "Checks that could explain it and are unknown."),
    _field("fix", optional(_TEXT), "The line that fixes what explains it, as far as envtune can."),
    _field("findings", ListOf(FINDING_2), "Of the checks that can explain it."),
)
PROFILE = Record(
    _field("schema", Const(SCHEMA)),
    _field("envtune", _TEXT, "Version of envtune."),
    _field(
        "verdict",
        _BOUND,
        "Of the job: of the slow rank where there is one, else of the mean of all ranks. Of "
        "several kinds, that of the one that is limited: data, host, communication, in this order.",
    ),
    _field("likely", Bool(), "true: the verdict does not rest on a table of steps, or ranks are missing."),
    _field("slow_rank", AnyOf(_SLOW, Null())),
    _field("kinds", ListOf(_KIND), "The ranks by what wrote their profiles; those of two kinds are not compared."),
    _field("ranks", ListOf(_RANK)),
    _field("evidence", ListOf(_EVIDENCE), "What costs time, the largest share of the step first."),
    _field("notes", ListOf(_TEXT), "What to know about the profile, in the language of the answer."),
    _field("files", _COUNT, "Files that were read."),
    _field("unread", ListOf(Record(_field("path", _TEXT), _field("reason", _TEXT)))),
    _field("host", AnyOf(HOST, Null()), "null where no check can explain the verdict, or none was run."),
)
