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
from helpers.rows import sampled
from helpers.search import examples as search
from helpers.shipped import parsed
from hypothesis import given
from hypothesis import strategies as st

from envtune.catalog.signatures.literals import required_literals
from envtune.diagnose import code_forms, patterns
from envtune.diagnose.logs.files import LogFile
from envtune.diagnose.patterns import Matcher, Pattern, Prefilter, patterns_of, process_patterns, select_prefilter
from envtune.diagnose.prefilter import hyperscan as hyperscan_filter
from envtune.diagnose.prefilter.hyperscan import HyperscanFilter, UnusableError
from envtune.diagnose.prefilter.relax import ignores_case, relax_regex
from envtune.diagnose.prefilter.templates import DIGITS, GROWN, CandidateLine, Expression, TemplateFilter
from envtune.diagnose.scan import Scan, scan

PATTERNS = (*patterns_of(entries()), *process_patterns(), *code_forms.PATTERNS)
EXPRESSIONS = [Expression(p.regex, p.multiline, p.role in patterns.ONCE) for p in PATTERNS]
FEW = [expression for expression in EXPRESSIONS if "EI" in expression.regex]  # compiled in no time
SLICES = 48  # of the patterns: the fast tests try one
CHATTY_LITERALS = 8  # of 1,000
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
        for start, end in every_line_is_a_candidate(block):
            yield CandidateLine(start, end, tuple(range(len(PATTERNS) + 1)))


def outcome(content: bytes, prefilter: Prefilter) -> tuple[object, ...]:
    found: Scan = scan([LogFile("log", content=content)], MATCHER, prefilter)
    first = found.first_error
    hits = [(h.pattern.owner, h.pattern.index, h.line.number, h.line.text, dict(h.groups)) for h in found.hits]
    return hits, found.counts, found.present, None if first is None else (first.line, first.before, first.after)


def generated_logs(number: int) -> Iterator[bytes]:
    """Lines of the examples among ordinary ones, with prefixes, colors, other line ends and broken bytes."""
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


@pytest.mark.parametrize("stride", [80, pytest.param(1, marks=pytest.mark.slow)])
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


# ------------------------------------------------ literals that are frequent in a log, and refused


def literal_rows() -> list[tuple[str, tuple[int, ...]]]:
    """Return what hyperscan looks for instead of expressions, and the numbers of these."""
    rows = hyperscan_filter._rows(hyperscan, EXPRESSIONS)
    literal = re.compile(rb"(?:[^\\\[(.*+?{|]|\\.)+")
    return [
        (re.sub(rb"\\(.)", rb"\1", row.text).decode("utf-8"), tuple(numbers))
        for row, numbers in rows.items()
        if literal.fullmatch(row.text)
    ]


def chatty_log(literal: str, rng: random.Random, examples: list[str], length: int = 400) -> bytes:
    """Return a log in which every other line holds the literal, and a few hold known errors."""
    lines = []
    for number in range(length):
        kind = rng.random()
        if kind < 0.5:
            lines.append(f"[INFO] GE(7,python): op {number} {literal} of node {rng.random()}")
        elif kind < 0.52:
            lines.append(f"[WARNING] GE(7,python): op {number} {literal}")
        elif kind < 0.55:
            lines += rng.choice(examples).splitlines()
        else:
            lines.append(f"step {number} loss {rng.random()}")
    return ("\n".join(lines) + "\n").encode("utf-8")


def scanned(logs: list[bytes], prefilter: Prefilter, size: int) -> tuple[object, ...]:
    """Scan logs in blocks of that size, with one prefilter as a run does."""
    found = scan([LogFile(f"log{n}", content=log) for n, log in enumerate(logs)], MATCHER, InBlocks(prefilter, size))
    errors = [(error.file.path, error.line, error.before, error.after) for error in found.errors]
    hits = [(h.file.path, h.pattern, h.line, dict(h.groups), h.context) for h in (*found.hits, *found.codes)]
    return hits, found.counts, found.present, errors, found.notes.notes


class InBlocks:
    """A prefilter that is fed smaller blocks."""

    def __init__(self, prefilter: Prefilter, size: int) -> None:
        self._prefilter, self._size = prefilter, size

    def candidates(self, block: bytes, known: object = frozenset()) -> Iterator[object]:
        at = 0
        while at < len(block):
            end = block.find(b"\n", at + self._size) + 1 or len(block)
            for start, stop, numbers in self._prefilter.candidates(block[at:end], known):  # type: ignore[arg-type]
                yield CandidateLine(at + start, at + stop, numbers)
            at = end


@pytest.mark.slow
def test_what_takes_the_place_of_frequent_literals_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Literals of signatures, of what they require or exclude, of blocks, process lines and codes."""
    monkeypatch.setattr(hyperscan_filter, "MANY_LINES", 100)
    monkeypatch.setattr(hyperscan_filter, "MANY_BLOCKS", 8)
    rng = random.Random(4)
    rows, examples = literal_rows(), list(example_lines())
    replaced = 0
    for literal, numbers in rng.sample(rows, CHATTY_LITERALS):
        logs = [chatty_log(literal, rng, examples) for _ in range(2)]
        prefilter = HyperscanFilter(EXPRESSIONS)
        plain = HyperscanFilter(EXPRESSIONS)
        monkeypatch.setattr(plain, "_replace", lambda numbers, block: None)
        assert scanned(logs, prefilter, 3000) == scanned(logs, plain, 3000), literal
        replaced += not prefilter._whole.union(prefilter._others).isdisjoint(numbers)
    assert replaced >= CHATTY_LITERALS // 2


def test_a_frequent_literal_costs_no_candidates_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hyperscan_filter, "MANY_LINES", 100)
    prefilter = HyperscanFilter([Expression(r"cannot import name '\w+'"), Expression("device \\d+ is lost")])
    chatty = b"".join(b"%d cannot import name of that, %d\n" % (n, n) for n in range(200))
    found = b"cannot import name 'a'\ndevice 3 is lost\n"
    assert len(list(prefilter.candidates(chatty + found))) == 202
    assert [candidate.numbers for candidate in prefilter.candidates(chatty + found)] == [(0,), (1,)]


def test_literals_of_lines_that_match_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hyperscan_filter, "MANY_LINES", 100)
    prefilter = HyperscanFilter(FEW)
    for _ in range(3):
        assert len(list(prefilter.candidates(b"EI0006: Getting socket times out\n" * 200))) == 200
    assert not prefilter._whole


def test_a_word_that_is_required_and_frequent_is_found_in_the_next_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hyperscan_filter, "MANY_BLOCKS", 4)
    prefilter = HyperscanFilter([Expression("torch_npu version \\d", once=True)])
    first: set[int] = set()
    for _ in range(10):
        prefilter.candidates(b"torch_npu version unknown\n" * 3, first)
    assert prefilter._whole == {0}
    assert not list(prefilter.candidates(b"torch_npu version unknown\n" * 3, first))
    assert len(list(prefilter.candidates(b"torch_npu version 2\n", set()))) == 1
    assert not list(prefilter.candidates(b"torch_npu version 2\n", {0}))


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


@pytest.mark.parametrize("spoil", sampled(["cut", "flip", "writable", "link", "other"], 2))
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
