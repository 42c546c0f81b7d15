"""Tell from where it stands that an error is quoted: in a sentence, a cell, a command, a patch, a frame's source. Pure.

Where a page has no line that a program printed, an error in it was pasted as a line of its own, or somebody writes
about it.
"""

from __future__ import annotations

from typing import Sequence

from envtune.diagnose.events.forms import CODE, HELP, PROMPT, REPORT, SEARCH
from envtune.diagnose.logs.lines import ERROR
from envtune.records import expression

FAR = 200  # lines above one, in which the command that printed it is looked for

# What may stand before an error that begins its line: an item, a number, what pytest puts before it.
_BULLET = expression(
    r"\s*(?:[\w./-]+\.(?:log|txt|out|err)[:-](?:\d+[:-])?\s*|[-*+>\u2022]\s+|\d{1,3}[.):\u3001]\s*|E\s{2,})*"
)
_VALUE = expression(r"\s*(?:[-{[,]\s*)*[\"']?[\w.@-]+[\"']?\s?[:=]\s?[\"']$")  # the name of a value: `error: "`
_QUOTED = expression(r"[\u201c\u300c\u300e\u2018][^\u201d\u300d\u300f\u2019]*$")
# What a program says before an error: its name, or that something failed.
_SAYS = expression(
    r"^\S{1,80}[:\uff1a]\s*$|^\S{1,80}: error while loading|(?i:error|exception|fail(?:ed|ure)?|fault|abort\w*|reason"
    r"|terminated?|what\(\)|\u9519\u8bef|\u5931\u8d25|\u5f02\u5e38|\u62a5\u9519|\u539f\u56e0)\W{0,4}$"
)
_TEXTS = r"\.(?:md|rst|adoc|ya?ml|json|toml|html?|csv|pyi?|cc|cpp|h|hpp|c|sh|go|java|patch|diff)\b"
_SHOWS = (
    (HELP, expression(r"(?:man|info|tldr)\s|.*\s(?:--help|-h|help|--usage)\s*(?:\||$)")),
    (REPORT, expression(r"(?:sudo\s+)?(?:\S*/)?envtune\s+(?!run\b)|.*\b(?:explain|list-?errors|error-?codes)\b")),
    (REPORT, expression(r".*(?:\|\s*uniq\s+-\w*c|\bgrep\s(?:\S+\s)*-\w*c\w*\s|\|\s*wc\b)")),  # how often it did
    (
        CODE,
        expression(
            rf"strings\s|(?:cat|bat|less|more|head|tail|sed|view|vim?|nl)\s[^|]*{_TEXTS}|git\s+(?:diff|show|blame|log)\b"
        ),
    ),
    (
        SEARCH,
        expression(
            rf"(?:e?grep|z?grep|rg|ag|ack|git\s+grep)\s(?!.*\.(?:log|out|err|txt)\b).*"
            rf"(?:{_TEXTS}|\s-t\s?py|site-packages|/src\b)"
        ),
    ),
)
_FRAME = expression(r"(?P<before>.*?)File \"[^\"]+\", line \d+(?:, in .*)?$")
_ERROR = expression(ERROR)
# The source of a frame, as rich shows it.
_BOXED = expression(r"\s*(?:[\u2502|]\s+(?:\u2771\s)?\s*\d{1,6}\s\u2502|\u2502\s+(?:\u2771\s)?\s*\d{1,6}\s{2})")
_CRASH = expression(r"(?:Fatal|Segmentation|Traceback|Killed|Aborted|Bus error|Illegal|\w*Error: )")
_HUNK = expression(r"@@ -\d+(?:,\d+)? \+\d+")


def is_embedded(text: str, at: int) -> bool:
    """Return whether words, a cell or an open quotation mark stand before a place of a line."""
    before = text[:at]
    if _VALUE.match(before[: max(map(before.rfind, "\"'")) + 1]):
        return False
    if any(before.count(mark) % 2 for mark in '"`') or _QUOTED.search(before):
        return True
    rest = _BULLET.sub("", before, count=1)
    return bool(rest.strip()) and _SAYS.search(rest) is None


def typed_form(lines: Sequence[str], number: int) -> str:
    """Return why a line in a terminal is no event: a command, or what a command shows that reads texts."""
    if PROMPT.match(lines[number]):
        return "" if any(map(_CRASH.match, lines[number + 1 : number + 2])) else CODE
    for line in reversed(lines[max(0, number - FAR) : number]):
        typed = PROMPT.match(line)
        if typed is not None:
            return next((form for form, shows in _SHOWS if shows.match(typed["command"])), "")
    return ""


def is_source(lines: Sequence[str], number: int) -> bool:
    """Return whether a line is of a patch, or the source of a Python frame that holds the words of an error."""
    line = lines[number]
    frame = _FRAME.match(lines[number - 1]) if number else None
    if frame is not None and line[len(frame["before"]) :][:1].isspace():
        return _ERROR.search(line) is not None or '"' in line or "'" in line or " # " in line
    if _BOXED.match(line):
        return True
    if line[:1] not in ("+", "-", " "):
        return False
    for above in reversed(lines[max(0, number - FAR) : number]):
        if _HUNK.match(above):
            return True
        if above[:1] not in ("+", "-", " ", "\\", ""):
            return False
    return False
