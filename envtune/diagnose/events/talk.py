"""Tell what somebody in a conversation has from what is said about errors: chats, their exports, comments. Pure.

A message counts where it is an error that was pasted, or where its author says that it happens to him or asks for help.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Sequence

from envtune.records import expression

MANY = 3  # messages with an error that was pasted

# A message in a line: a time, a name, what is said.
_CHAT = expression(
    r"\[?(?:\d{4}[-/]\d\d?[-/]\d\d? )?\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?\]?,?\s+(?:<[^>]{1,30}>"
    r"|@?[^\s:\uff1a<\[\](=]{1,24}"
    r"(?: [^\s:\uff1a<\[\](=]{1,16})?[:\uff1a])\s|<[\w.@ -]{1,30}>\s|@[\w.-]{1,30}[:\uff1a,]?\s"
    r"|\(\d{1,2}:\d\d\)\s+[^\W\d]\w+(?: [\w.]{1,16})?\s{2,}"
    r"|(?P<name>(?!\w*(?:Error|Exception|ERROR|WARN|INFO|Solution|Cause"
    r"|E[A-Z\d]\d{4}))[^\s:\uff1a=/\\.\"'`#\[\](|*-]{1,16}"
    r"(?: [A-Z][\w.]{0,15})?)[:\uff1a]\s*(?=\S+ \S+ \S|\S*[\u4e00-\u9fff])"
)
_SPEAKER = expression(
    r"\s{0,2}(?:\*\*)?[\u3010\[]?@?(?P<who>[\w.\u4e00-\u9fff-]{1,24}[\u3011\]]?(?: [\w.\u4e00-\u9fff-]{1,16})?)"
    r"(?:\*\*)?(?:\uff08[^\uff09]{1,12}\uff09)?\.?[,\uff0c]?\s{1,4}"
    r"\[?(?:\d{2,4}[-/.]\d\d?[-/.]\d{1,4}\s)?"
    r"(?:\u4e0a\u5348|\u4e0b\u5348)?\s?\d{1,2}:\d\d(?::\d\d)?(?:\s?[AaPp][Mm])?\]?\s*$"
)
_DATED_SPEAKER = expression(
    r"\s{0,2}[\[(](?:\d{1,4}[-/.]\d\d?[-/.]\d{1,4},?\s)?\d{1,2}:\d\d(?::\d\d)?(?:\s?[AaPp][Mm])?[\])]\s"
    r"(?P<who>[^\W\d][\w.\u4e00-\u9fff-]{0,24}(?:,? [^\W\d][\w.]{0,16}){0,2})(?:\s*$|\s{2,}\S)"
)
_SAID = expression(r"\s*\"(?:text|content|body|message)\":\s\"(?P<said>.*)")
_SAYING = expression(r"\s*\"(?:user(?:_?name)?|author|name|sender|from|nick)\":\s")
_TALK = expression(
    r"(?i)\b(?:I|we|you|thanks?|thx|ok|okay|yes|yep|no|hi|morning|lol|sure|right)\b"
    r"|[\u5417\u5427\u4e86\u6211\u5462\u54e6]|[?\uff1f]$"
)
_REMARKS = expression(r"[\u5417\u5427\u5462\u54e6]|\u4e0d\u80fd|\u8981\u5148")
# In a conversation: somebody has it, or asks for help with it; talk about codes is neither.
_HAS_IT = expression(
    r"(?i)\b(?:I|we|my|our|it|job|jobs|training|run|node|rank \d+|card \d+|process(?:es)?)\b.{0,40}"
    r"\b(?:gets?|got|keeps?|hits?|fail(?:s|ed|ing)?|die[sd]|crash(?:es|ed)?|hangs?|throws?|threw|end(?:s|ed) with)\b"
    r"|\b(?:keep|just|are|am|still|also|i'm|we're) (?:getting|seeing|hitting|facing)\b"
    r"|\b(?:getting|seeing|hitting|facing) (?:this|an?|the|these|E[A-Z\d]\d{4}|\d{6}|it)\b"
    r"|\b(?:stuck|same here|same (?:error|problem|issue))\b"
    r"|\b(?:anyone|anybody) (?:else )?(?:seen|know|had|has|hit|here)|any ideas?\b|please (?:help|advise)|\bhelp me\b"
    r"|\bhow (?:do|can|to|should|did) .{0,20}(?:fix|solve|resolve|get rid|avoid|debug|work around)"
    r"|\bwhat(?:'s| is| does| could| can| causes?| am| are)? .{0,80}\b(?:mean|cause[sd]?|wrong|reason)\b"
    r"|\bwhy (?:do|does|did|am|is) (?:I|we|my|our|it|the (?:job|run|training))\b"
    r"|\u6c42\u52a9|\u8bf7\u95ee|\u600e\u4e48(?:\u529e|\u89e3\u51b3|\u56de\u4e8b|\u5904\u7406|\u4fee|\u641e|\u6392\u67e5)"
    r"|(?:\u4e00\u76f4|\u603b\u662f|\u53c8|\u8fd8\u662f|\u76f4\u63a5|\u521a|\u8dd1|\u8bad\u7ec3|\u542f\u52a8"
    r"|\u6211|\u8fd9\u8fb9|\u8fd9\u91cc).{0,12}(?:(?<![\u6ca1\u4e0d])\u62a5(?!\u8868)|\u51fa\u73b0|\u9047\u5230|\u78b0\u5230|\u6302\u4e86|\u5931\u8d25)"
    r"|(?<![\u6ca1\u4e0d])\u62a5(?:\u9519)?(?:\u4e86|[:\uff1a]|\u5982\u4e0b)|\u6709\u4eba(?:\u9047|\u89c1|\u77e5)|\u8c01(?:\u9047|\u89c1|\u77e5)"
)
_NOT_NOW = expression(
    r"(?i)\bif\b|\bwould\b|\blast (?:week|month|quarter|year)\b|\b(?:fixed|solved|resolved|went away|no longer)\b"
    r"|\u5982\u679c|\u4e07\u4e00|\u8981\u662f|\u4e4b\u524d|\u4ee5\u524d|\u4e0a\u5468|\u4e0a\u4e2a?\u6708|\u4e0a\u6b21"
    r"|\u6ca1\u518d|\u5c31\u597d\u4e86|\u5df2\u7ecf?(?:\u89e3\u51b3|\u4fee)|\u4fee\u597d|\u89e3\u51b3\u4e86"
)
_ERROR_LINE = (
    r"(?:\[?\w*\]?:? ?)?(?:(?:[\w.]+\.)?\w*(?:Error|Exception): \S.{12}|E[A-Z\d]\d{4}: .{12}"
    r"|\[?ERROR\b|\[?\d{4}-\d\d-\d\d.\d\d:)"
)
_WHOLE = expression(rf"(?:^|[:\uff1a`\"'>]\s?){_ERROR_LINE}")
_ALONE = expression(rf"[^\w\"'`\u201c\u300c>]{{0,3}}{_ERROR_LINE}")  # a message that is an error


class Talk:
    """The lines of a page as a conversation, where they are one."""

    def __init__(self, lines: Sequence[str], written: Sequence[str]) -> None:
        """Take the lines of a page, and those that are not empty and outside fences."""
        self._lines, self._written = lines, written

    def is_message(self, line: str) -> bool:
        """Return whether a line is a message of a chat with a line for each."""
        return self._chat and _CHAT.match(line) is not None

    @cached_property
    def messages(self) -> frozenset[str]:
        """The lines that look like a message of a chat, whatever the page is."""
        return frozenset(line for line in self._lines if _CHAT.match(line))

    def is_about(self, line: str) -> bool:
        """Return whether a line, that no program printed, only speaks of errors, in messages of several lines."""
        exported = _SAID.match(line) if self._exported else None
        if exported is not None:
            return not (_has_it(exported["said"]) or _ALONE.match(exported["said"]))
        shown = _ALONE.match(line) is not None and not _REMARKS.search(line)
        return self._conversation and not (shown or _has_it(line))

    @staticmethod
    def is_pasted(line: str) -> bool:
        """Return whether a message in a chat is an error that was pasted, or a question about one."""
        found = _CHAT.match(line)
        said = line[found.end() :] if found else line
        whole = _WHOLE.search(said)
        if whole is not None and whole[0][0] in "`\"'":
            whole = None  # some words of an error in a sentence are no paste
        return whole is not None or _has_it(said)

    @cached_property
    def _chat(self) -> bool:
        found = [match for match in map(_CHAT.match, self._written) if match is not None]
        talk = [match for match in found if _TALK.search(match.string, match.end())]
        names = {match["name"] for match in found} - {None}
        many = len(found) > 2 and 2 * len(found) > len(self._written)
        return many and bool(talk) and (len(names) != 1 or not all(match["name"] for match in found))

    @cached_property
    def _conversation(self) -> bool:
        """Whether names with a time stand above what they say: several, some of them again."""
        names = [who for who, _ in self._messages]
        return len(names) > 2 and 1 < len(set(names)) < len(names)

    @cached_property
    def is_of_many(self) -> bool:
        """Whether it is a conversation in which several people paste errors, each his own."""
        pasted = [who for who, lines in self._messages if any(map(_ALONE.match, lines))]
        return self._conversation and len(pasted) >= MANY and len(set(pasted)) > 1

    @cached_property
    def _messages(self) -> Sequence[tuple[str, Sequence[str]]]:
        """Who says what below a name with a time."""
        heads = [_SPEAKER.match(line) or _DATED_SPEAKER.match(line) for line in self._lines]
        places = [(n, head["who"]) for n, head in enumerate(heads) if head is not None]
        ends = [n for n, _ in places[1:]] + [len(heads)]
        said = [(who, self._lines[n + 1 : end]) for (n, who), end in zip(places, ends)]
        return [(who, lines) for who, lines in said if lines and lines[0].strip()]

    @cached_property
    def _exported(self) -> bool:
        """Whether it is an export of a chat as JSON."""
        first = next((line for line in self._lines if line.strip()), "")
        return first.lstrip()[:1] in ("{", "[") and min(_count(_SAID, self._lines), _count(_SAYING, self._lines)) > 1


def _has_it(said: str) -> bool:
    """Return whether somebody in a conversation says that an error happens to him."""
    return _HAS_IT.search(said) is not None and _NOT_NOW.search(said) is None


def _count(form: re.Pattern[str], lines: Sequence[str]) -> int:
    return sum(form.match(line) is not None for line in lines)
