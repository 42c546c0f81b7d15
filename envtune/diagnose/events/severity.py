"""Tell a line that states a failure from one that only speaks of one: a setting, a warning of what may come. Pure.

A program states a failure at a level of errors, or by an exception or a code that begins its message. Below that level
a sentence with `if`, `may` or `previous` in it tells of an error that may come, or that is over.
"""

from __future__ import annotations

from envtune.diagnose.logs.lines import BENIGN, level_of, split_stream
from envtune.records import expression

FAILS, WARNS, INFORMS, NOTHING = "fails", "warns", "informs", ""

# What loggers put before a message, in any order: times, levels, places in code, names of loggers and processes.
_PREFIX = expression(
    r"(?:(?:time=|ts=)?[\[(\"]?\d{4}[-/]\d\d[-/]\d\d[ T_-]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?[\])\"]?[:,]?"
    r"|\[?(?:\d\d[-/])?\d\d[-/ ]?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [^\s:]+:|\[ *\d+\.\d{6}\]"
    r"|\[?(?:ERROR|CRITICAL|FATAL|WARN(?:ING)?|INFO|DEBUG|EVENT)\b(?:\|[^\]]{0,60})?\]?:?|[EWIFD]\d{3,4}(?= )"
    r"|\[[EWIFD]\d{0,4} [^\]]{1,80}\]|\(\w* ?(?:PID:|pid=|rank=)[^)]{1,60}\)|\[[\w.:@/ -]{1,60}\](?!:)"
    r"|[\w./-]+\.\w{1,4}:\d+\]?:?"
    r"|\w+\(\d+,[\w,.-]*\):|\d{2,8}(?= \S+\])|[\w.]{1,40}(?::[\w<>]{1,40}:\d{1,6})?(?= - )"
    r"|- |\||>{1,2}|-{2} |level=\w+|msg=\"|E {2,})\s*"
)
_RAISED = expression(
    r"(?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt|Exit)\b(?::|$|\()|\[?Error\]?:|E[A-Z\d]\d{4}(?::|\[PID|\(|$)"
    r"|\w{4,60}\(E[A-Z\d]\d{4}\)|ERR\d{5}\b|(?:fatal )?error: |terminate called|what\(\):|Traceback \("
    r"|Segmentation fault|Killed|Aborted|Bus error|Fatal Python"
)
_FAILS = expression(
    r"^\[?[EF]\d{3,4} |^\[[EF] |\[error\]|(?i:\blevel[\"']?\s?[=:]\s?[\"']?(?:error|fatal|critical|panic)\b)"
)
_WARNS = expression(
    r"^\[?W\d{3,4} |^\[W |(?i:^.{0,40}\bwarn(?:ing)?\b\]?\s?:|\[warn(?:ing)?\]|\b\w+Warning:"
    r"|\blevel[\"']?\s?[=:]\s?[\"']?warn)|^\W{0,3}(?:\u63d0\u793a|\u8b66\u544a|\u6ce8\u610f)\s?[:\uff1a]"
)
_INFORMS = expression(r"^\[?[ID]\d{3,4} |^\[[ID] |(?i:\blevel[\"']?\s?[=:]\s?[\"']?(?:info|debug|notice)\b)")
_SUPPOSES = expression(
    r"(?i)\b(?:if|when(?:ever)?|unless|until|once|in case|may|might|can|could|will|would|should|likely|possib\w+"
    r"|beyond|when exceeded|raises?|is (?:seen|near|reported|raised|handled|retried|short)"
    r"|are (?:seen|reported|raised|handled|retried|skipped)|on (?:timeout|expiry|errors?|failure|[\w.]+Error)"
    r"|retry on|armed|handlers?|polic(?:y|ies)|previous(?:ly)?|earlier|last (?:job|run|attempt)|errors? that"
    r"|codes? that|e\.g\.|such as|else|otherwise|to avoid|patterns?|matches|rules? \d|common causes?|means"
    r"|ends with|follows)\b"
    r"|\u82e5|\u5982\u679c|\u53ef\u80fd|\u4f1a\u62a5|\u8d85\u8fc7|\u4e0a\u6b21|\u4e4b\u524d|\u8bf7"
)
_FACT = expression(
    r"(?i)\bfail(?:s|ed|ure)?\b|\bcannot\b|\bcould not\b|\blost\b|\babnormal\b|\btim(?:ed|es) out\b|\bdetected\b"
    r"|\berror:|error code\b|\bnot found\b|\bret(?: is|code)?\W{1,3}-?\d|\u5931\u8d25|\u9519\u8bef"
)
_NAMED = expression(r"\b(?:E[A-Z\d]\d{4}|[125]07\d{3})\b")
_REPORTED = expression(r"\b(?:E[A-Z\d]\d{4}|[125]07\d{3})\)?\s?(?:[:\uff1a\]]|\[[PT]ID)|\bcode|(?i:\bret|\bresult)\b")
_SENTENCE = expression(r"[.;!] (?=[A-Z])|[\u3002\uff1b]")
_QUOTED = expression(r"'[^']*'|\"[^\"]*\"|`[^`]*`")


def message_of(text: str) -> str:
    """Return what a line says, without the names of processes, times, levels and places before it."""
    said = split_stream(text)[1].lstrip()
    at = 0
    while True:
        found = _PREFIX.match(said, at)
        if found is None or found.end() == at:
            return said[at:]
        at = found.end()


def severity_of(text: str) -> str:
    """Return FAILS, WARNS or INFORMS by the level of a line, NOTHING where it has none."""
    said = split_stream(text)[1]
    level = level_of(said)
    for severity, mark in ((FAILS, _FAILS), (WARNS, _WARNS), (INFORMS, _INFORMS)):
        if mark.search(said[:200]):
            return severity
    if not level:
        return NOTHING
    if level not in BENIGN:
        return FAILS
    return WARNS if level.startswith("WARN") else INFORMS


def supposes(text: str, at: int) -> bool:
    """Return whether the sentence at a place of a line tells of an error that may come or is over, not of a new one."""
    said = message_of(text)
    if _RAISED.match(said) is not None:
        return False
    at -= len(text) - len(said)
    begin = max((end.end() for end in _SENTENCE.finditer(said, 0, max(at, 0))), default=0)
    end = _SENTENCE.search(said, max(at, 0))
    return _SUPPOSES.search(said, begin, end.start() if end else len(said)) is not None


def states_failure(text: str) -> bool:
    """Return whether a line says that something failed: at a level of errors, or by how its message begins."""
    severity, said = severity_of(text), message_of(text)
    if severity in (FAILS, WARNS):
        return severity == FAILS
    if _RAISED.match(said) is not None:
        return True
    plain = _QUOTED.sub("", said)
    return severity == NOTHING and _FACT.search(plain) is not None and _SUPPOSES.search(plain) is None


def only_names_code(text: str) -> bool:
    """Return whether a line without a level holds the name of a code, and nothing that says that it was reported."""
    named = _NAMED.search(text) is not None and _REPORTED.search(text) is None
    return named and severity_of(text) == NOTHING and not states_failure(text)
