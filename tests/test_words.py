"""The words of everything that users read: one word for one thing, no metaphors, and both languages of every message.

A row names what is not written, and what is written instead. The texts are the messages of the code (help and errors
among them) and the catalogue: checks, FAQ entries, error codes and playbooks.
"""

from __future__ import annotations

import re
from typing import Iterator

import pytest
import yaml
from babel.messages.pofile import read_po
from helpers.examples import ROOT

CATALOGUE = ROOT / "envtune" / "locale" / "zh" / "LC_MESSAGES" / "envtune.po"
ENGLISH = [
    (r"\bmend(s|ed|ing)?\b|\brepair(s|ed|ing)?\b|\bcure[sd]?\b", "fix"),
    (r"\btak(e|es|en|ing) (it|this|that|them|\S+|a run) back\b|\btakes? back\b", "undo"),
    (r"\bjudg(e|es|ed|ing)\b", "check"),
    (
        r"\b(can|could)(not| not) (be told|tell)\b|\bis not told\b|\bnot known\b(?! in advance)",
        "is unknown, could not be checked",
    ),
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
    (r"\b2 usage[,.; ](?!error)", "2 usage error"),
]
CHINESE = [
    (r"NPU 内存", "显存"),
    (r"其下的主机", "宿主机"),
    (r"空无一物|告终|元凶|点名|无声失效|悄然", "平实的说法"),
    (r"作业(?!调度|系统)(?<!Slurm 作业)", "任务"),
    (r"[一-鿿] ?[,;] ?[一-鿿]", "全角标点"),
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


def catalogue_texts() -> Iterator[tuple[str, str, str]]:
    """Place, language and text of every text in the catalogue's files."""
    for path in sorted(path for folder in ("checks", "playbooks") for path in (ROOT / folder).rglob("*.yaml")):
        place = str(path.relative_to(ROOT))
        for lang, text in bilingual(yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)):
            yield place, lang, text


def messages() -> Iterator[tuple[str, str]]:
    """English and Chinese of every message of the code."""
    with CATALOGUE.open("rb") as file:
        for message in read_po(file, locale="zh"):
            if message.id:
                yield str(message.id), str(message.string)


def texts(lang: str) -> list[tuple[str, str]]:
    """Place and text of everything that users read in one language."""
    found = [(place, text) for place, language, text in catalogue_texts() if language == lang]
    return found + [("message", pair[lang == "zh"]) for pair in messages()]


@pytest.mark.parametrize(("words", "instead"), ENGLISH, ids=[row[1] for row in ENGLISH])
def test_english(words: str, instead: str) -> None:
    found = [(place, text) for place, text in texts("en") if re.search(words, re.sub(r"\{[^}]*\}", "X", text))]
    assert not found, f"write: {instead}"


@pytest.mark.parametrize(("words", "instead"), CHINESE, ids=[row[1] for row in CHINESE])
def test_chinese(words: str, instead: str) -> None:
    found = [(place, text) for place, text in texts("zh") if re.search(words, text)]
    assert not found, f"write: {instead}"


def test_every_message_is_in_both_languages() -> None:
    """A translation holds Chinese, or the same values, names and commands as the English."""
    missing = [en for en, zh in messages() if not zh.strip()]
    fields = [en for en, zh in messages() if set(re.findall(r"\{\w+", zh)) - set(re.findall(r"\{\w+", en))]
    assert (missing, fields) == ([], [])


def test_a_title_has_one_sentence_and_no_full_stop() -> None:
    for path in sorted((ROOT / "checks").rglob("*.yaml")):
        entry = yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)
        title = entry.get("title") if isinstance(entry, dict) else None
        if isinstance(title, dict):
            assert not title["en"].endswith(".") and not title["zh"].endswith("。"), path
