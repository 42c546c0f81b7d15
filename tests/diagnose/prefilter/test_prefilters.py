"""Both prefilters, pure Python and hyperscan, let through every line that matches; so both give the same diagnosis."""

from __future__ import annotations

import os
import random
import re
import stat
from itertools import islice
from pathlib import Path
from typing import Iterator

import hyperscan  # in the extra dev
import pytest
from helpers.faq import FILES, entries
from helpers.growth import growth, is_linear
from helpers.search import examples as search
from helpers.shipped import parsed
from hypothesis import given
from hypothesis import strategies as st

from envtune.diagnose import patterns
from envtune.diagnose.logs.files import LogFile
from envtune.diagnose.patterns import Matcher, Pattern, Prefilter, patterns_of, select_prefilter
from envtune.diagnose.prefilter import hyperscan as hyperscan_filter
from envtune.diagnose.prefilter.hyperscan import HyperscanFilter, UnusableError
from envtune.diagnose.prefilter.literals import required_literals
from envtune.diagnose.prefilter.relax import ignores_case, relax_regex
from envtune.diagnose.prefilter.templates import DIGITS, GROWN, Expression, TemplateFilter
from envtune.diagnose.scan import Scan, scan

PATTERNS = patterns_of(entries())
EXPRESSIONS = [Expression(p.regex, p.multiline, p.role != "signature") for p in PATTERNS]
FEW = [expression for expression in EXPRESSIONS if "EI" in expression.regex]  # compiled in no time
SLICES = 48  # of the patterns: the fast tests try one
MATCHER = Matcher(PATTERNS)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def example_lines() -> Iterator[str]:
    for path in FILES:
        examples = parsed(path)["examples"]
        yield from examples["match"]
        yield from examples["near_miss"]


def every_line_is_a_candidate(block: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    for line in re.split(rb"[\r\n]", block):
        yield at, at + len(line)
        at += len(line) + 1


class Everything:
    """A prefilter that chooses nothing away: what it finds is what there is to be found."""

    def candidates(self, block: bytes, known: object = None) -> Iterator[object]:
        from envtune.diagnose.prefilter.templates import CandidateLine

        for start, end in every_line_is_a_candidate(block):
            yield CandidateLine(start, end, tuple(range(len(PATTERNS) + 1)))


def outcome(content: bytes, prefilter: Prefilter) -> tuple[object, ...]:
    found: Scan = scan([LogFile("log", content=content)], MATCHER, prefilter)
    first = found.first_error
    hits = [(h.pattern.owner, h.pattern.index, h.line.number, h.line.text, dict(h.groups)) for h in found.hits]
    return hits, found.counts, found.present, None if first is None else (first.line, first.before, first.after)


def generated_logs(number: int) -> Iterator[bytes]:
    """Lines of the examples among ordinary ones, with prefixes, colours, other line ends and broken bytes."""
    rng = random.Random(4)
    lines = [line for text in example_lines() for line in text.splitlines()]
    ordinary = ["[INFO] HCCL(7,python):2024-06-01-10:00:00.000.{} [c.cc:1]step {} done", "step {} loss {}", "{}|{}", ""]
    for _ in range(number):
        log = b""
        for _ in range(rng.randrange(1, 60)):
            line = rng.choice(lines) if rng.random() < 0.3 else rng.choice(ordinary).format(rng.random(), rng.random())
            line = rng.choice(["", "", "", "[rank3]: ", "[default1]:", "\x1b[31m", "2024-06-01 10:00:00 "]) + line
            log += line.encode("utf-8") + rng.choice([b"\n", b"\n", b"\r\n", b"\r", b"\x80\n", b"\x1b[0m\n"])
        yield log


@pytest.fixture(scope="module")
def prefilters() -> tuple[Prefilter, Prefilter]:
    return HyperscanFilter(EXPRESSIONS), TemplateFilter(EXPRESSIONS)


@pytest.mark.parametrize("stride", [40, pytest.param(1, marks=pytest.mark.slow)])
def test_both_find_what_is_there_in_every_example(prefilters: tuple[Prefilter, Prefilter], stride: int) -> None:
    for text in islice(example_lines(), None, None, stride):
        block = text.encode("utf-8") + b"\n"
        expected = outcome(block, Everything())  # type: ignore[arg-type]
        for prefilter in prefilters:
            assert outcome(block, prefilter) == expected, (type(prefilter).__name__, text)


@pytest.mark.parametrize("number", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_both_find_what_is_there_in_generated_logs(prefilters: tuple[Prefilter, Prefilter], number: int) -> None:
    for log in generated_logs(number):
        expected = outcome(log, Everything())  # type: ignore[arg-type]
        for prefilter in prefilters:
            assert outcome(log, prefilter) == expected, type(prefilter).__name__


@pytest.mark.parametrize("number", [4, pytest.param(30, marks=pytest.mark.slow)])
def test_the_closer_look_of_a_log_that_has_grown_loses_nothing(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr("envtune.diagnose.prefilter.templates.GROWN", 0)
    monkeypatch.setattr("envtune.diagnose.prefilter.templates.SMALL", 0)
    prefilter = TemplateFilter(EXPRESSIONS)
    for log in generated_logs(number):
        assert outcome(log, prefilter) == outcome(log, Everything())  # type: ignore[arg-type]


# ----------------------------------------------------------------- what both build on


@pytest.mark.parametrize("number", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, SLICES))])
def test_a_match_holds_what_it_is_said_to_need(number: int) -> None:
    """Texts that match are made from the expressions themselves."""
    for pattern in PATTERNS[number::SLICES]:
        _check_needs(pattern)


def _check_needs(pattern: Pattern) -> None:
    @search(6)
    @given(st.from_regex(pattern.regex))
    def check(text: str) -> None:
        _check_text(pattern, text)

    check()


def _check_text(pattern: Pattern, text: str) -> None:
    line = text if pattern.multiline else text.replace("\n", " ")
    match = re.search(pattern.regex, line)
    if match is None:
        return
    line = line[match.start() :].partition("\n")[0] if pattern.multiline else line
    raw = line.encode("utf-8", "replace")
    needs = required_literals(pattern.regex, pattern.multiline)
    holds = [all(any(_holds(one, line) for one in option) for option in conjunction) for conjunction in needs]
    assert not needs or any(holds), line
    fold = ignores_case(pattern.regex)
    assert re.search(relax_regex(pattern.regex, pattern.multiline), raw, re.IGNORECASE if fold else 0), line
    template = (raw.lower() if fold else raw).translate(DIGITS)
    assert re.search(relax_regex(pattern.regex, pattern.multiline, DIGITS), template), line


def _holds(literal: object, line: str) -> bool:
    text, exact = literal  # type: ignore[misc]
    return text in (line if exact else line.lower())


@pytest.mark.parametrize(
    ("regex", "line"),
    [
        (r"(?i)caf\u00e9 fail", "CAF\u00c9 FAIL"),
        (r"错误码(?:为|是)?\s*\d+ fail", "错误码是 ７ fail"),
        (r"(?P<a>\w+) fail \w+ (?P=a)", "x\u00fc fail 错 x\u00fc"),
        (r"device.{2,3}fail", "device错误 fail"),
        (r"(?=fail).{4}ure", "failure"),
        (r"(?<!no )failure", "a failure"),
        (r"\bfail[^a]end", "fail错end"),
        (r"(?:ab|cd){2,3}fail(?:ed)?$", "abcdabfail"),
    ],
)
def test_beyond_ascii_and_beyond_what_hyperscan_knows(regex: str, line: str) -> None:
    assert re.search(regex, line)
    expression = [Expression(regex)]
    for prefilter in (HyperscanFilter(expression), TemplateFilter(expression)):
        found = [candidate.numbers for candidate in prefilter.candidates(b"ok\n" + line.encode("utf-8") + b"\nok\n")]
        assert [0 in numbers for numbers in found] == [True], type(prefilter).__name__


# ------------------------------------------------------------------------ which one


def test_short_inputs_are_read_in_python_and_big_ones_with_hyperscan(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    monkeypatch.setattr(patterns, "_hyperscan_filter", lambda expressions: used.append("hyperscan"))
    small, big = LogFile("a", size=patterns.BIG - 1), LogFile("b", size=patterns.BIG)
    for files, expected in (([small], []), ([small, small], ["hyperscan"]), ([big], ["hyperscan"])):
        used.clear()
        list(select_prefilter(PATTERNS, files).candidates(b""))
        assert used == expected


def test_a_stream_that_has_grown_goes_on_with_hyperscan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "BIG", 1000)
    prefilter = select_prefilter([pattern for pattern in PATTERNS if "EI" in pattern.regex], [LogFile("-")])
    line = b"EI0006: Getting socket times out\n"
    seen = [len(list(prefilter.candidates(line * 10))) for _ in range(5)]
    assert seen == [10] * 5
    assert isinstance(prefilter._prefilter, HyperscanFilter)  # type: ignore[attr-defined]


def test_where_hyperscan_cannot_be_used_python_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise hyperscan.error("this processor is not supported")

    monkeypatch.setattr(hyperscan, "Database", broken)
    with pytest.raises(UnusableError):
        HyperscanFilter(EXPRESSIONS)
    prefilter = select_prefilter(PATTERNS, [LogFile("a", size=1 << 30)])
    assert list(prefilter.candidates(b"EI0006: Getting socket times out\n"))


# ------------------------------------------------------------------------ the cache


def cached(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "envtune" / hyperscan_filter.NAME


def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes each database that is made, rather than loaded."""
    made: list[str] = []
    rows = hyperscan_filter._rows

    def noted(*arguments: object) -> object:
        made.append("made")
        return rows(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(hyperscan_filter, "_rows", noted)
    return made


def test_the_database_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = compiled(monkeypatch)
    line = b"EI0006: Getting socket times out\n"
    first = list(HyperscanFilter(FEW).candidates(line))
    assert first and list(HyperscanFilter(FEW).candidates(line)) == first
    assert made == ["made"]
    assert stat.S_IMODE(cached(tmp_path).stat().st_mode) == 0o600


@pytest.mark.parametrize("spoil", ["cut", "flip", "writable", "link", "other"])
def test_a_cache_that_cannot_be_trusted_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: str
) -> None:
    HyperscanFilter(FEW)
    path = cached(tmp_path)
    content = path.read_bytes()
    if spoil == "cut":
        path.write_bytes(content[:-1000])
    elif spoil == "flip":
        path.write_bytes(content[:-1000] + bytes([content[-1000] ^ 1]) + content[-999:])
    elif spoil == "writable":
        path.chmod(0o666)
    elif spoil == "link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    made = compiled(monkeypatch)
    HyperscanFilter([*FEW, Expression("one more")] if spoil == "other" else FEW)
    assert made == ["made"]


def test_a_home_that_cannot_be_written_costs_only_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert list(HyperscanFilter(FEW).candidates(b"EI0006: Getting socket times out\n"))
    assert os.listdir(tmp_path) == ["a file"]


def test_a_long_line_costs_the_filter_in_proportion() -> None:
    """The scan looks through it in parts; the filter only says whether the words of a signature are in it."""

    def made(size: int) -> bytes:
        return b"error code is x, HCCL function error: " + b"0x" * (size // 2)

    def judge(line: bytes) -> None:
        judging = TemplateFilter(EXPRESSIONS)
        ordinary = b"step\n" * (GROWN // 5 + 1)
        list(judging.candidates(ordinary))
        assert list(judging.candidates(line))

    assert is_linear(growth(made, judge, 5_000))
