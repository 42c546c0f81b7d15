"""The words of everything that users read: one word for one thing, no metaphors, and both languages of every message.

A row names what is not written, and what is written instead. The texts are the messages of the code (help and errors
among them) and the catalogue: checks, FAQ entries, error codes and playbooks.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, Iterator, Sequence

import pytest
from babel.messages.pofile import read_po
from helpers.examples import ROOT
from helpers.yaml_text import load_yaml

from envtune.report.layout import beginnings, display_width, fits

CATALOGUE = ROOT / "envtune" / "locale" / "zh" / "LC_MESSAGES" / "envtune.po"
ENGLISH = [
    (r"\bmend(s|ed|ing)?\b|\brepair(s|ed|ing)?\b|\bcure[sd]?\b", "fix"),
    (r"\btak(e|es|en|ing) (it|this|that|them|\S+|a run) back\b|\btakes? back\b", "undo"),
    (r"\bjudg(e|es|ed|ing)\b", "check"),
    (
        r"\b(can|could)(not| not) (be told|tell)\b|\bis not told\b|\bnot known\b(?! in advance)",
        "is unknown",
    ),
    (r"\b[Cc]ould not be (checked|compared|decided)\b|\bcannot be (checked|decided)\b|\bcannot decide\b", "unknown"),
    (r"\btells?\b|\btold\b", "show, list, describe"),
    (r"\b(is|are) not (there|here)\b|\bnot there\b|\bis there\b", "is missing, does not exist, exists"),
    (r"\bleads? (to|out|back|nowhere|there)\b", "points to"),
    (r"\bspeaks? for\b|\bstands? (alone|beside|twice|in|as|by|behind|under)\b|\bits cause stands\b", "supports, is in"),
    (r"\bof (its|their|your|one's|our) own\b|\bby (itself|themselves)\b", "its own, separate"),
    (r"\bbeside\b", "next to, in addition to"),
    (r"\bin mind\b|\bin so many words\b|\bby the means\b|\bfor want of\b|\bnot well\b", "plain words"),
    (r"\blet(s)? (it|them|him|this|these ports)? ?(through|out|in)\b", "allow, block"),
    (r"\bpacket filter\b", "firewall"),
    (r"\b(nobody|everybody|somebody) (else|waited|listens|answers|wants|can be)\b", "the process, the host"),
    (r"\btak(e|es|en) .{0,30}\bout of (?!service|use)", "remove from"),
    (
        r"\b(is|are|be|was) silent\b|\bwithout a word\b|\bsays? nothing\b|\bnot a word\b",
        "does not mention, without a message",
    ),
    (r"\bgone\b|\baccept each other\b|\bdoes not serve\b|\bunlucky\b|\bclimb\b|\bculprit\b", "literal words"),
    (
        r"\bleft-over\b|\bdoubled\b|\bline ends\b|\btime-out\b|\bfor instance\b",
        "leftover, duplicate, line endings, timeout",
    ),
    (r"\bwants?\b|\bwanted\b|\bwishes\b", "needs, requires, expected"),
    (r"\bswitch(es|ed)? (it |\w+ )?(off|on)\b", "turn off, turn on"),
    (r"\bdistributions? (of OpenCV|any more)\b|\bOpenCV distribution", "package"),
    (r", too\b", "also, as well"),
    (r"\bof ours\b|\bour own\b|\bours\b", "envtune's"),
    (r"\bthere is (no|none)\b", "no, missing"),
    (r"\bother reasons\b|\botherwise like\b|\bdoes not say\b", "the reason; as on most hosts; does not mention"),
    (r"\b2 usage[,.; ](?!error)", "2 usage error"),
]
BRITISH = re.compile(
    r"(?i)(?<![-\w])(catalogues?|(colour|behaviour|flavour|favour(?!s\b)|honour|neighbour|labour)\w*"
    r"|\w*(initial|normal|serial|optim|organ|recogn|summar|synchron|minim|maxim|custom|util|visual|general|parallel|special"
    r"|local|author|final|priorit|standard|token|quant|virtual|container|random|character|anonym)is(e[drs]?|ers|ing|ations?)"
    r"|analys(e|ed|er|ers|ing)|(cancel|label|model|signal|travel|level|channel|journal)l(ed|ing)|(mis)?spelt|centres?|metres?"
    r"|licences?|defence|grey|judgement\w*|dialogues?|artefacts?|programmes?|ageing|towards|whilst|amongst|learnt|fulfils?)\b"
)
CHINESE = [
    (r"NPU 内存", "显存"),
    (r"其下的主机", "宿主机"),
    (r"无法检查|未能检查|无法比较：", "无法判断"),
    (r"空无一物|告终|元凶|点名|无声失效|悄然", "平实的说法"),
    (r"作业(?!调度|系统)(?<!Slurm 作业)", "任务"),
    (r"[一-鿿] ?[,;:?!] ?[一-鿿]", "全角标点"),
    (r"[一-鿿] ?\((?=[一-鿿])|(?<=[一-鿿])\) ?[一-鿿]|\([^()\n]*[一-鿿][^()\n]*\)", "全角括号"),
    (r"\d %", "数字与百分号之间不留空格"),
    (r"您", "你，或不写主语"),
    (r"发行包", "软件包"),
]


def bilingual(node: object) -> Iterator[tuple[str, str]]:
    """Language and text of every text below a node of a file; examples are logs and hosts."""
    if isinstance(node, dict):
        yield from ((lang, node[lang]) for lang in ("en", "zh") if isinstance(node.get(lang), str))
        node = [value for key, value in node.items() if key != "examples"]
    if isinstance(node, list):
        for value in node:
            yield from bilingual(value)


@cache
def files() -> Sequence[tuple[Path, object]]:
    """Every file of the catalogue and what it holds."""
    paths = sorted(path for folder in ("checks", "playbooks") for path in (ROOT / folder).rglob("*.yaml"))
    return [(path, load_yaml(path.read_text("utf-8"))) for path in paths]


@cache
def messages() -> Sequence[tuple[str, str]]:
    """English and Chinese of every message of the code."""
    with CATALOGUE.open("rb") as file:
        return [(str(message.id), str(message.string)) for message in read_po(file, locale="zh") if message.id]


@cache
def texts(lang: str) -> Sequence[tuple[str, str]]:
    """Place and text of everything that users read in one language, with X for what is filled in."""
    found = [
        (str(path.relative_to(ROOT)), text) for path, node in files() for of, text in bilingual(node) if of == lang
    ]
    found += [("message", pair[lang == "zh"]) for pair in messages()]
    return [(place, re.sub(r"\{[^}]*\}", "X", text) if lang == "en" else text) for place, text in found]


@pytest.mark.parametrize(("words", "instead"), ENGLISH, ids=[row[1] for row in ENGLISH])
def test_english(words: str, instead: str) -> None:
    found = [(place, text) for place, text in texts("en") if re.search(words, text)]
    assert not found, f"write: {instead}"


def prose(page: str) -> str:
    """A Markdown page without code, links and anchors: names of files, fields, checks and options are as they are."""
    page = re.sub(r"(?ms)^ *```.*?^ *```", "", page)
    return re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>]*>|(?m:^    .*)|[\w./\\-]*[_./][\w./\\-]*\w", "", page)


def test_english_is_spelled_as_in_america() -> None:
    """Names of fields, probes and checks are an interface, and stay as they are."""
    pages = [path for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if not path.name.endswith(".zh.md")]
    found = {(place, BRITISH.search(text)) for place, text in texts("en")}
    found |= {(str(path.relative_to(ROOT)), BRITISH.search(prose(path.read_text("utf-8")))) for path in pages}
    assert len(pages) > 50
    assert {(place, match[0]) for place, match in found if match} == set()


@pytest.mark.parametrize(("word", "is_british"), [("catalogue", True), ("Initialised", True), ("`favours`", False)])
def test_what_counts_as_british(word: str, is_british: bool) -> None:
    assert bool(BRITISH.search(f"the {word} of it")) == is_british


@pytest.mark.parametrize(("words", "instead"), CHINESE, ids=[row[1] for row in CHINESE])
def test_chinese(words: str, instead: str) -> None:
    found = [(place, text) for place, text in texts("zh") if re.search(words, text)]
    assert not found, f"write: {instead}"


def test_every_message_is_in_both_languages() -> None:
    """A translation holds Chinese, or the same values, names and commands as the English."""
    missing = [en for en, zh in messages() if not zh.strip()]
    fields = [en for en, zh in messages() if set(re.findall(r"\{\w+", zh)) - set(re.findall(r"\{\w+", en))]
    assert (missing, fields) == ([], [])


def check_entries() -> Iterator[dict[str, Any]]:
    """The checks of the catalogue as their files hold them."""
    for _, entry in files():
        if isinstance(entry, dict) and "probe" in entry:
            yield entry


def test_a_check_says_in_its_title_one_thing_that_is_wrong() -> None:
    """In one line of a report of 80 columns; of several outcomes the title is what they have in common."""
    titles = [(entry["id"], lang, entry["title"][lang]) for entry in check_entries() for lang in ("en", "zh")]
    assert len(titles) > 150
    assert [row for row in titles if re.search(r"\bn?or\b|或", row[2])] == []
    assert [row for row in titles if display_width(row[2]) > 61] == []


def test_a_remedy_begins_with_a_sentence_that_two_lines_hold() -> None:
    """What a report of 80 columns shows after `do:` where no line to paste fixes the problem; it is never cut."""
    remedies = ((entry["id"], lang, entry["remedy"][lang]) for entry in check_entries() for lang in ("en", "zh"))
    first = [(id_, lang, list(beginnings(text))[-1]) for id_, lang, text in remedies]
    assert len(first) > 150
    assert [row for row in first if not fits(("do: ", "处理：")[row[1] == "zh"] + row[2], 80 - 19, 2)] == []


def test_a_title_has_one_sentence_and_no_full_stop() -> None:
    for path, entry in files():
        title = entry.get("title") if isinstance(entry, dict) else None
        if isinstance(title, dict):
            assert not title["en"].endswith(".") and not title["zh"].endswith("。"), path
