"""What a host proves: the own example of every entry against hosts that have nothing to do with it, and its own."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Iterator, Mapping, Optional, Sequence

import pytest
from helpers.examples import ROOT
from helpers.faq import entries, examples, found_in
from helpers.recorded import host_names
from helpers.rows import sampled
from helpers.shipped import parsed
from helpers.yaml_text import load_yaml

from envtune.audit import examine
from envtune.audit.applicability import excluded
from envtune.catalog import load
from envtune.catalog.examples import example_data
from envtune.context import Context
from envtune.context.open import open_context, recorded_options
from envtune.diagnose.proof import LIKELY, NOT_HERE, PROVED, RULED_OUT, UNCHECKED, Judgement, judge
from envtune.messages import Literal
from envtune.model import Criterion, Evidence, Fact, FaqEntry, Finding, Outcome, Severity
from envtune.report.pages.entry import sections
from envtune.snapshot.host import SnapshotHost

# Recorded hosts with defects of their own, and those where nothing is wrong with what an entry is about.
TROUBLED = {
    "910a-ubuntu1804-mixed",
    "910b-openeuler2203-troubled",
    "910b-ubuntu2004-residual",
    "910a-centos76-nnae202",
    "container-without-driver",
    "vm-ubuntu2204",  # no CANN
}
BREAKAGES = ROOT / "tests" / "cases" / "proof" / "breakages.yaml"


class Asked:
    """A recorded host with every check that an entry names, each judged once."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._findings: dict[str, Sequence[Finding]] = {}

    numbers_devices = True

    def holds(self, when: Mapping[str, Any]) -> Optional[tuple[Fact, ...]]:
        facts = self.context.facts
        return tuple(facts[name] for name in when) if excluded(when, facts)[0] is None else None

    def judge(self, entry: FaqEntry, groups: Mapping[str, str]) -> Judgement:
        found = [finding for id_ in entry.checks for finding in self._examined(id_)]
        return judge(entry, groups, found, self)

    def _examined(self, id_: str) -> Sequence[Finding]:
        if id_ not in self._findings:
            self._findings[id_] = examine(checks()[id_], self.context)
        return self._findings[id_]


@cache
def checks() -> Mapping[str, Any]:
    return {check.id: check for check in load().checks}


@cache
def told() -> tuple[tuple[FaqEntry, str, Mapping[str, str]], ...]:
    """Every example of every entry with what its signatures capture."""
    known = {entry.id: entry for entry in entries()}
    rows = []
    for parameter in examples("match"):
        id_, text = parameter.values
        hits = [hit for hit in found_in(text).hits if hit.pattern.owner == id_]
        groups = {name: value for hit in hits for name, value in hit.groups.items()}
        rows.append((known[id_], text, groups))
    return tuple(rows)


def proved(host: Asked) -> dict[str, str]:
    """The entries that are proved on a host by one of their examples, and by what."""
    rows = {}
    for entry, _, groups in told():
        judged = host.judge(entry, groups)
        if judged.verdict == PROVED:
            rows[entry.id] = ", ".join(g.finding.id if g.finding else "facts" for g in judged.grounds)
    return rows


def recorded(name: str, change: Mapping[str, Any] = {}, replace: Mapping[str, Sequence[str]] = {}) -> Asked:
    """A recorded host with some of it changed; `replace` is old and new text in the answer of a command."""
    data = dict(example_data({"like": name, **change}, _source))
    for command, (old, new) in replace.items():
        assert old in data["commands"][command], command
        data["commands"] = {**data["commands"], command: data["commands"][command].replace(old, new)}
    return Asked(open_context(SnapshotHost(data), recorded_options(data.get("target") or {})))


def _source(name: str) -> Mapping[str, Any]:
    for folder in (ROOT / "tests" / "hosts", ROOT / "checks" / "examples"):
        if (folder / f"{name}.yaml").exists():
            return dict(parsed(folder / f"{name}.yaml"))
    raise LookupError(name)


@pytest.mark.parametrize("name", sampled([name for name in host_names() if name not in TROUBLED], 2))
def test_a_healthy_host_and_one_without_an_npu_prove_nothing(name: str) -> None:
    assert proved(recorded(name)) == {}


@cache
def rows() -> Sequence[Mapping[str, Any]]:
    cases: Sequence[Mapping[str, Any]] = load_yaml(BREAKAGES.read_text("utf-8"))["breakages"]
    return cases


def breakages() -> Iterator[Any]:
    for number, row in enumerate(rows()):
        yield pytest.param(row, id=f"{number}-{row['name']}")


@pytest.mark.parametrize("row", sampled(breakages(), 4))
def test_a_breakage_proves_what_it_breaks_and_nothing_else(row: Mapping[str, Any]) -> None:
    host = recorded(row["like"], row.get("change", {}), row.get("replace", {}))
    assert set(proved(host)) == set(row["proves"])


def test_every_entry_that_can_be_proved_is_proved_by_a_breakage_of_its_own() -> None:
    wanted = {entry.id for entry in entries() if entry.proves}
    assert wanted - {id_ for row in rows() for id_ in row["proves"]} == set()


# ---------------------------------------------------------------------- the rules


def entry(**criteria: Sequence[Criterion]) -> FaqEntry:
    shipped = next(entry for entry in entries() if entry.id == "F07")
    lists = {"proves": (), "favours": (), "rules_out": (), **criteria}
    return shipped._replace(**{name: tuple(rows) for name, rows in lists.items()})


def found(outcome: Outcome, subject: str = "", actual: str = "") -> Finding:
    return Finding(checks()["CANN007"], outcome, Severity.HIGH, subject, Literal(actual), None, None, Evidence("", ""))


class Stated:
    def __init__(self, numbers_devices: bool = True, holds: bool = True) -> None:
        self.numbers_devices, self._holds = numbers_devices, holds

    def holds(self, when: Mapping[str, Any]) -> Optional[tuple[Fact, ...]]:
        return tuple(Fact(name, str(value), "") for name, value in when.items()) if self._holds else None


CARD = Criterion("CANN007", "npu{device}")
READ = Criterion("CANN007", "pid", "^{pid} of")
FAIL, PASS, UNKNOWN, NA = Outcome.FAIL, Outcome.PASS, Outcome.UNKNOWN, Outcome.NOTAPPLICABLE


@pytest.mark.parametrize(
    ("criteria", "groups", "findings", "verdict"),
    [
        ({"proves": [CARD]}, {"device": "3"}, [found(FAIL, "npu2-5")], PROVED),
        ({"proves": [CARD]}, {"device": "3"}, [found(FAIL, "npu30")], NOT_HERE),
        ({"proves": [CARD]}, {}, [found(FAIL, "npu3")], LIKELY),  # the log does not say which card
        ({"proves": [READ]}, {"pid": "77"}, [found(FAIL, "pid", "77 of li")], PROVED),
        ({"proves": [READ]}, {"pid": "7"}, [found(FAIL, "pid", "77 of li")], NOT_HERE),
        ({"proves": [READ]}, {"pid": ".*"}, [found(FAIL, "pid", "77 of li")], NOT_HERE),  # text, no expression
        ({"proves": [CARD]}, {"device": "*"}, [found(FAIL, "npu3")], NOT_HERE),
        ({"favours": [CARD]}, {"device": "3"}, [found(FAIL, "npu3")], LIKELY),
        (
            {"proves": [CARD], "rules_out": [CARD._replace(outcome="pass")]},
            {"device": "3"},
            [found(PASS, "npu0-7")],
            RULED_OUT,
        ),
        ({"rules_out": [CARD._replace(outcome="pass")]}, {}, [found(PASS, "npu0-7")], NOT_HERE),
        ({"proves": [CARD], "rules_out": [Criterion("CANN007", outcome="pass")]}, {}, [found(UNKNOWN)], UNCHECKED),
        ({"proves": [CARD]}, {"device": "3"}, [found(NA)], NOT_HERE),
        ({"proves": [CARD]}, {"device": "3"}, [], UNCHECKED),
        ({"proves": [Criterion(when={"cann": "none"})]}, {}, [], PROVED),  # a fact says it
    ],
)
def test_what_is_found_on_the_subject_of_the_log_decides(
    criteria: Mapping[str, Sequence[Criterion]], groups: Mapping[str, str], findings: Sequence[Finding], verdict: str
) -> None:
    assert judge(entry(**criteria), groups, findings, Stated()).verdict == verdict


def test_a_number_that_the_job_counts_otherwise_proves_nothing() -> None:
    judged = judge(entry(proves=[CARD]), {"device": "3"}, [found(FAIL, "npu3")], Stated(numbers_devices=False))
    assert judged.verdict == LIKELY


def test_a_condition_that_does_not_hold_says_nothing() -> None:
    conditional = CARD._replace(when={"container": False})
    judged = judge(entry(proves=[conditional]), {"device": "3"}, [found(FAIL, "npu3")], Stated(holds=False))
    assert judged.verdict == NOT_HERE


def test_criteria_name_groups_of_their_own_signatures() -> None:
    for one in entries():
        known = {name for signature in one.signatures for name in re.compile(signature.regex).groupindex}
        for criterion in (*one.proves, *one.favours, *one.rules_out):
            named = {*re.findall(r"{([a-z_]+)}", criterion.subject + criterion.actual)}
            assert named <= known, one.id
            re.compile(re.sub(r"{[a-z_]+}", "x", criterion.actual))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_explain_shows_no_placeholder(lang: str) -> None:
    catalogue = load()
    for one in catalogue.faq:
        for section in sections(one, catalogue):
            if section.kind != "code":
                for line in section.lines:
                    assert not re.search(r"{[a-z_]+}", line.to(lang)), (one.id, line.to(lang))
