"""Tell a line that reports an event from one that only holds its words: source code, a search, a table, a report.

`form_of` gives the reason why a line is a mention, or QUOTED for words that somebody quotes (a heading, a list, a
chat), which are a question as long as a page does not quote many. Pure; a line is judged after a signature was found.
"""

from __future__ import annotations

import re
from typing import Callable

from envtune.diagnose.events.severity import INFORMS, NOTHING, WARNS, message_of, severity_of, supposes
from envtune.diagnose.logs.lines import ERROR, level_of
from envtune.records import expression

CODE, SEARCH, TABLE, HISTORY, HELP = "code", "search", "table", "history", "help"
TEST, SETTING, REPORT, CATALOGUE, QUOTED = "test", "setting", "report", "catalogue", "quoted"
HARMLESS = ("INFO", "DEBUG", "EVENT")  # levels at which settings are printed

_SOURCES = "py|pyi|cc|cpp|cxx|c|h|hh|hpp|cu|cce|sh|go|rs|java|js|ts|cmake|in|proto|ipynb"
_DOCUMENTS = "md|rst|adoc|ya?ml|json|toml|po|html?|csv"
# `grep -n` and ripgrep; what a compiler or Python's warnings say of a place is an event.
_SEARCHED = expression(
    rf"(?:[\w.@+-]*[/\\])*[\w.@+-]+\.(?:(?:md|rst|adoc)[:-]\d{{1,6}}[:-]|(?:(?P<source>{_SOURCES})|{_DOCUMENTS})"
    r"[:-](?:\d{1,6}[:-])?"
    r"(?! ?(?:\d{1,6}:|line \d|(?:fatal )?error\b|warning\b|note\b|undefined\b|\w*(?:Warning|Error|Exception)\b)))"
    r"(?P<rest>.*)"
)
_LIKE_SOURCE = expression(r"\s{2,}|.*[\"'`(]|\s*(?://|#|/?\*)")
# How a statement begins. A line of a log may hold quotation marks, too, but does not begin like this.
_STATEMENT = expression(
    r"(?:\d{1,6}[:|\s]\s*)?[+-]?\s*(?:(?:el)?if\b|while\b|for\b|with\b|raise\b|throw\b|return\b|assert\b|case\b|except\b"
    r"|import\b|from\b|def\b|class\b|static\b|const\b|auto\b|std::|#\s?define\b|(?:\w+\.)?log(?:ger|ging)?\.\w+\("
    r"|echo\b|\$ |grep\b|rg\b|[A-Z][A-Z_]{3,}\(|(?!\w*(?:Error|Exception)\()[A-Za-z_][\w.]*\((?!PID|pid)"
    r"|[A-Za-z_][\w.\[\]\"']*(?:\s?:\s?\w[\w\[\], .]*)?\s=\s|[rfbu]{0,2}[\"'](?![\w ]+[\"']\s?:))"
)
_COMMENT = expression(r"\s*(?://|/\*|<!--)\s")
_JSON_LINE = expression(r"\s*\{\s*\"")
_OPTION = expression(r"\s{0,12}(?:-\w,? )?--[A-Za-z][\w-]*(?:[ =]\S+)?(?:\s{2,}\S|$)")
_TEST_NAME = expression(r"\S*\.py::\S+|\btest_\w+")
_TEST_PASSED = expression(r"\.py::\S+.*\b(?:PASSED|SKIPPED|XFAIL)|^(?:PASSED|SKIPPED|XFAIL)\b|\.\.\. ok$")
_COMMIT = expression(
    r"[*|\\/ ]{0,8}(?=[a-f\d]{0,39}[a-f])(?=[a-f\d]{0,39}\d)[a-f\d]{7,40} "
    r"(?:\([^)]{1,80}\) |\d{4}-\d\d-\d\d )?[A-Za-z\[]"
    r"|(?i:commit message): "
)
_LABELS = "\u81f4\u547d|\u4e25\u91cd|\u4e00\u822c|\u8f7b\u5fae|\u63d0\u793a|\u8bf4\u660e|\u65e0\u6cd5\u5224\u65ad"
_OWN_REPORT = expression(
    r"(?:\s{2}\d{1,2}\. )?(?:[FXRHOI]\d{2,3}|[A-Z]{3,4}\d{3})  \S|#{2,3} [FXRHOI]\d{2,3} "
    rf"|(?:critical|high|medium|low|info|note|unknown|{_LABELS}) +[A-Z]{{2,9}}\d{{3}}(?:,| {{1,3}}\*?,?) ?\S"
)
_OWN_ROW = expression(r" {8}[>|] | {10}\S|  \S{2,8} {2,}\S|\s*\"\w+\": ")
_ERROR = expression(ERROR)
_OWN_MARKS = (b"envtune.diagnosis/", b"envtune.report/", b"\n  cause   ", b"\n  \xe5\x8e\x9f\xe5\x9b\xa0    ")
_FAILS = expression(
    r"\w(?:Error|Exception)\b|\b[Ff]ail(?:ed|ure)|FAIL|\bERROR\b|Traceback|\b[Ee]rror:|\b[Cc]annot\b|[Aa]bnormal|\b[Ll]ost\b"
)
# The level of what programs look at, which reports no failure.
_LOOKED_AT = expression(r"(?:\[?[\d:., T/-]{8,30}\]?\s\W{0,3})?\[?DEBUG\b")
_SETS = expression(
    r"(?i)\bthreshold\b|\bset (?:by|to)\b|\bis set\b"
    r"|\b(?:will|would) be\b|\bis (?:reported|returned)\b|\bon failure\b|\bsuccess\b|\boccurs\b|\bon expiry\b"
)
_RAISED = expression(r"\w(?:Error|Exception)\b|Traceback|\bE[A-Z\d]\d{4}: (?:\[PID|[A-Z])")
_COMPARED = expression(  # what pytest shows of values
    r"(?:E {2,})?AssertionError: assert [\[('\"]|E {2,}(?:At index \d+ diff:|assert [\[('\"]|[?+-] )|> {2,}assert\s"
)
_STAMPED = expression(
    r"\[?(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|ERROR|WARN|CRITICAL|FATAL|rank\s?\d|[EW] )|E[A-Z\d]\d{4}[:\[]"
    r"|(?:[\w.]+\.)?\w*(?:Error|Exception)(?::|$|\()|(?:fatal )?error: |loc\(|E\d{4} |terminate called|\s*what\(\)"
)
_CITED = expression(r"\s{0,3}(?!>>> )(?:>\s?)+")
_QUOTING = expression(
    r"\s{0,8}(?:#{1,6}\s|[-*+\u2022]\s|\d{1,2}[.)\u3001]\s|>|\|)"  # a heading, an item, a quotation, a row
    r"|\[?\d{1,2}:\d\d(?::\d\d)?(?:\s?[AP]M)?\]?\s(?:<[^>]{1,30}>|@?[\w.-]{1,24}:)\s"  # a chat
    r"|<[\w.-]{1,24}>\s|@\w{1,24}\b"
    r"|(?:Q|A|Question|Answer|\u95ee|\u7b54|\u95ee\u9898|\u73b0\u8c61)[:\uff1a]"
)
_ASKS = expression(
    r"(?i)\b(?:if you (?:see|get)|has anyone|anybody|how (?:do|to|can)|what (?:does|is)|means?\b|indicates|occurs when"
    r"|known issue|fixed in|see also|troubleshoot|workaround)|\u8868\u793a|\u600e\u4e48|\u4e3a\u4ec0\u4e48|\u9047\u5230"
)
# The value of an option or a variable: its name, `=` or the dots of Megatron, and what opens a list or a string.
_VALUE = expression(
    r"(?P<key>\b[A-Za-z_][\w.-]{2,40}[\"']?)(?:=| = |\s?\.{4,}\s?)"
    r"(?P<open>\[(?=[\"'])|\((?=[\"'])|[\"'])"
)
# How long something may last, and a variable of the environment.
_LASTS = expression(r"(?i)[\w ]{0,40}time ?out\W{0,3}(?:is |of |set to )?\d+ ?(?:s|sec\w*|ms|min\w*)\b")
_ASSIGNED = expression(
    r"\s*(?:(?:declare -x|export|ENV|\+ export|-) )?(?!\w*(?:ERR|EXC|MSG|MESSAGE|REASON|CAUSE|LOG|STATUS))"
    r"[A-Z][A-Z\d]*_[A-Z\d_]+(?:=|:\s+)|\s*(?:declare -x|export) \w+="
)
_LINTED = expression(r"\.pyi?:\d+:\d+: [A-Z]{1,4}\d{2,4}\b")  # what a program that checks source code finds
_TELLS = expression(  # names of values that say what happened
    r"(?i)err|exc|msg|message|reason|cause|detail|std|out|status|log|what|trace|fail|text|body|content|event|result|line"
    r"|info"
)
_ARGUMENT = expression(r"\s{0,4}(?:\[\w+\]:? ?)?\w{2,60} \.{4,} ")  # as Megatron prints them
# A counter of errors that has counted none.
_NONE = expression(
    r"(?i)(?!.*(?:fail|abnormal|\berror code\b))[|\s\"']*[\w .()/-]{3,60}[\"']?(?:\s*[:=|]\s*|\s{2,})\"?"
    r"(?:0|NA|N/A|none|null)\"?\s*[|,;]?\s*$"
)
# What a program looked for and did not find: a key of words. Those of a state_dict have none, or say they are keys.
_MISSING_KEY = expression(r"KeyError: ['\"](?!.*\bkey\b)[^'\"]* ")
# A command that somebody typed.
PROMPT = expression(
    r"\s{0,4}(?:\([\w.-]{1,40}\)\s?)?(?:\[[\w.-]+@[^\]]{1,80}\]\s?[$#]|[\w.-]+@[\w.-]+:[^$#\n]{0,80}[$#]|[$\u276f\u279c])"
    r"\s(?P<command>[\w./~].*)"
)
_ENDS = {"[": "]", "(": ")", '"': "\n", "'": "\n"}
_MARKS = "\"'`\u201c\u300c"


def form_of(text: str, at: int, block: Callable[[], bytes], printed: bool = True) -> str:
    """Return why what stands at a place of a line is no event, QUOTED, or nothing for an event.

    `block` gives the lines around it; with `printed` False a line that prints a setting counts as any other.
    """
    if (printed and _tells_nothing(text, at)) or _is_setting(text, at) or _NONE.match(text) or _ARGUMENT.match(text):
        return SETTING
    if _MISSING_KEY.match(text) or _COMPARED.match(text) or _LINTED.search(text, 0, at):
        return CODE
    if _STAMPED.match(unquoted(text)):
        return TEST if _is_test_name(text, at) else ""
    return _source_form(text, at) or _document_form(text, at, block)


def unquoted(text: str) -> str:
    """Return a line without the `>` of a mail that quotes it."""
    return _CITED.sub("", text)


def _tells_nothing(text: str, at: int) -> bool:
    """Return whether a line below the level of errors tells a setting, or of an error that may come."""
    severity = severity_of(text)
    if severity == NOTHING:
        return _LASTS.match(text, at) is not None or _ASSIGNED.match(message_of(text[:at])) is not None
    supposed = severity in (WARNS, INFORMS) and (_LASTS.match(text, at) is not None or supposes(text, at))
    return supposed or _LOOKED_AT.match(text) is not None or (level_of(text) in HARMLESS and _tells_settings(text))


def _tells_settings(text: str) -> bool:
    """Return whether a line at a harmless level names no failure, or only in a sentence about a setting."""
    return _RAISED.search(text) is None and (_FAILS.search(text) is None or _SETS.search(text) is not None)


def _is_setting(text: str, at: int) -> bool:
    """Return whether a place is within the value of an option, in quotes or brackets: `retry_on=['EI0002']`."""
    if level_of(text) not in ("", *HARMLESS):
        return False
    found = next(iter([*_VALUE.finditer(text, 0, at + 1)][-1:]), None)
    if found is None or _TELLS.search(found["key"]):
        return False
    value = text[found.end() - 1 : at]
    return not any(mark in value for mark in _ENDS[found["open"][-1]])


def is_mention(text: str) -> bool:
    """Return whether the first error word of a line is that of source code, of a test's name or the like."""
    error = _ERROR.search(text)
    if error is not None and PROMPT.match(text):
        return True
    return error is not None and form_of(text, error.start(), lambda: b"") not in ("", QUOTED)


def _source_form(text: str, at: int) -> str:
    found = _SEARCHED.match(text)
    if found is not None and (not found["source"] or _LIKE_SOURCE.match(found["rest"])):
        return SEARCH
    if _is_test_name(text, at):
        return TEST
    in_quotes = any(text.count(mark, 0, at) % 2 for mark in "\"'`") or text[at : at + 1] in _MARKS
    if _COMMENT.match(text) or (in_quotes and _STATEMENT.match(text.lstrip()) and not _JSON_LINE.match(text)):
        return CODE
    return ""


def _is_test_name(text: str, at: int) -> bool:
    if "test" not in text and "PASSED" not in text:
        return False
    inside = any(name.start() <= at < name.end() for name in _TEST_NAME.finditer(text))
    return inside or _TEST_PASSED.search(text) is not None


def _document_form(text: str, at: int, block: Callable[[], bytes]) -> str:
    if _OPTION.match(text):
        return HELP
    if _COMMIT.match(text):
        return HISTORY
    if _OWN_REPORT.match(text):
        return REPORT
    form = _page_form(text, block)
    if form:
        return form
    quoted = any(text.count(mark, 0, at) % 2 for mark in '"`') or any(mark in text[:at] for mark in "\u201c\u300c")
    asked = _QUOTING.match(text) or _ASKS.search(text) or (quoted and not _JSON_LINE.match(text))
    return QUOTED if asked else ""


def _page_form(text: str, block: Callable[[], bytes]) -> str:
    """Return what the lines around say that this one is, where it looks like that."""
    stripped = text.strip()
    if stripped[:1] == "|" and stripped[-1:] == "|":
        around = block()
        return TABLE if any(mark in around for mark in (b"|--", b"| --", b"|:-", b"| :-")) else ""
    if text[:4].isspace() and b"commit " in block() and re.search(rb"(?m)^commit [0-9a-f]{40}", block()):
        return HISTORY
    if _OWN_ROW.match(text) and any(mark in block() for mark in _OWN_MARKS):
        return REPORT
    if text[:1].isspace() and b"sage:" in block() and b"--help" in block():
        return HELP
    return ""
