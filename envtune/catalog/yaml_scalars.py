"""What an unquoted YAML scalar means, and why most of the surprising ones are refused.

Source of the forms: the YAML 1.1 type repository (yaml.org/type/: bool, null, int, float, timestamp, merge, value), as
PyYAML resolves them.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, Optional

from envtune.messages import N_, Message, Text

_BOOLS = frozenset(
    form
    for word in ("yes", "no", "on", "off", "true", "false", "y", "n")
    for form in (word, word.capitalize(), word.upper())
    if form not in ("true", "false")
)
_NULLS = frozenset(["", "~", "null", "Null", "NULL"])
_INT = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")
_ODD_NUMBERS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[-+]?0[0-7_]+"), N_("an octal number in YAML ({value})")),
    (re.compile(r"[-+]?0b[0-1_]+"), N_("a binary number in YAML")),
    (re.compile(r"[-+]?0x[0-9a-fA-F_]+"), N_("a hexadecimal number in YAML")),
    (
        re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"),
        N_("a number of base 60 in YAML ({value})"),
    ),
    (
        re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ \t]+|$)[-+0-9:.Zz \t]*"),
        N_("a date in YAML"),
    ),
    (re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"), N_("not a number one can compare with")),
    (
        re.compile(r"[-+]?([0-9][0-9_]*)?\.[0-9_]*([eE][-+]?[0-9]+)?"),
        N_("a number in YAML ({value})"),
    ),
    (re.compile(r"[-+]?[0-9][0-9_]*"), N_("a number in YAML ({value})")),
)
# what the parser says -> what most likely helps
_HINTS: Mapping[str, Text] = {
    "'\\t'": Message("indent with blanks, not with tabs"),
    "mapping values are not allowed": Message("quote a text that holds `: `"),
    "escape": Message("double the backslash, or use single quotes"),
    "expected ':'": Message("write `key: value`"),
    "cannot start any token": Message(
        "quote a text that begins with this character, and indent with blanks, not with tabs"
    ),
    "expected node content": Message("close the quote or bracket"),
    "expected <block end>": Message("check the indentation, and quote texts that hold quotes"),
    "end of stream": Message("close the quote or bracket"),
}


def hint(problem: str) -> Text:
    """What most likely helps against a syntax error that PyYAML words as `problem`."""
    for words, text in _HINTS.items():
        if words in problem:
            return text
    return Message("quote texts that hold any of : # { } [ ] & * ! | > % @")


def scalar(text: str) -> tuple[str, Any, Optional[Text]]:
    """(kind, value, trap) of an unquoted scalar; `trap` says why it is refused."""
    if text in ("true", "false"):
        return "bool", text == "true", None
    if text in _NULLS:
        return "null", None, None
    if _INT.fullmatch(text) and text != "-0":
        return "int", int(text), None
    if _FLOAT.fullmatch(text) and repr(float(text)) == text:
        return "float", float(text), None
    return "text", text, _trap(text)


def _trap(text: str) -> Optional[Text]:
    if text in _BOOLS:
        return _refused(text, Message("a truth value in YAML"), Message("true or false"))
    if text in ("<<", "="):
        return _refused(text, Message("a special word of YAML"))
    for pattern, what in _ODD_NUMBERS:
        if pattern.fullmatch(text):
            value = _number(text)
            return _refused(text, Message(what, value=value))
    return None


def _refused(text: str, what: Text, other: Optional[Text] = None) -> Text:
    if other is None:
        return Message('unquoted, {text} is {what}; write "{text}" with quotes', text=text, what=what)
    return Message(
        'unquoted, {text} is {what}; write "{text}" with quotes, or {other}', text=text, what=what, other=other
    )


def _number(text: str) -> str:
    """What YAML 1.1 makes of an odd number."""
    digits = text.replace("_", "").lstrip("+")
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    try:
        if ":" in digits:
            total = 0.0
            for part in digits.split(":"):
                total = total * 60 + float(part)
            return f"{sign}{total:g}" if total != int(total) else f"{sign}{int(total)}"
        if re.fullmatch("0[0-7]+", digits):
            return f"{sign}{int(digits, 8)}"
        return sign + (repr(float(digits)) if "." in digits else str(int(digits)))
    except (ValueError, OverflowError):
        return f"{sign}{digits}"
