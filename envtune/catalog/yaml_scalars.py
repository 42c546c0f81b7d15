"""What an unquoted YAML scalar means, and why most of the surprising ones are refused.

Source of the forms: the YAML 1.1 type repository (yaml.org/type/: bool, null, int, float, timestamp, merge, value), as
PyYAML resolves them.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, Optional

from envtune.model import Text

_BOOLS = frozenset(
    form
    for word in ("yes", "no", "on", "off", "true", "false", "y", "n")
    for form in (word, word.capitalize(), word.upper())
    if form not in ("true", "false")
)
_NULLS = frozenset(["", "~", "null", "Null", "NULL"])
_INT = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")
_ODD_NUMBERS: tuple[tuple[re.Pattern[str], Text], ...] = (
    (re.compile(r"[-+]?0[0-7_]+"), Text("an octal number in YAML ({})", "在 YAML 中是八进制数（{}）")),
    (re.compile(r"[-+]?0b[0-1_]+"), Text("a binary number in YAML", "在 YAML 中是二进制数")),
    (re.compile(r"[-+]?0x[0-9a-fA-F_]+"), Text("a hexadecimal number in YAML", "在 YAML 中是十六进制数")),
    (
        re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"),
        Text("a number of base 60 in YAML ({})", "在 YAML 中是六十进制数（{}）"),
    ),
    (
        re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ \t]+|$)[-+0-9:.Zz \t]*"),
        Text("a date in YAML", "在 YAML 中是日期"),
    ),
    (re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"), Text("not a number one can compare with", "不是可比较的数")),
    (
        re.compile(r"[-+]?([0-9][0-9_]*)?\.[0-9_]*([eE][-+]?[0-9]+)?"),
        Text("a number in YAML ({})", "在 YAML 中是数字（{}）"),
    ),
    (re.compile(r"[-+]?[0-9][0-9_]*"), Text("a number in YAML ({})", "在 YAML 中是数字（{}）")),
)
# what the parser says -> what most likely helps
_HINTS: Mapping[str, Text] = {
    "'\\t'": Text("indent with blanks, not with tabs", "请用空格而不是制表符缩进"),
    "mapping values are not allowed": Text("quote a text that holds `: `", "含有 `: ` 的文本请加引号"),
    "escape": Text("double the backslash, or use single quotes", "请双写反斜杠，或改用单引号"),
    "expected ':'": Text("write `key: value`", "请写成 `键: 值`"),
    "cannot start any token": Text(
        "quote a text that begins with this character, and indent with blanks, not with tabs",
        "以该字符开头的文本请加引号；缩进请用空格而不是制表符",
    ),
    "expected node content": Text("close the quote or bracket", "请补全引号或括号"),
    "expected <block end>": Text(
        "check the indentation, and quote texts that hold quotes", "请检查缩进，并为含引号的文本加引号"
    ),
    "end of stream": Text("close the quote or bracket", "请补全引号或括号"),
}


def hint(problem: str) -> Text:
    """What most likely helps against a syntax error that PyYAML words as `problem`."""
    for words, text in _HINTS.items():
        if words in problem:
            return text
    return Text(
        "quote texts that hold any of : # { } [ ] & * ! | > % @", "含有 : # { } [ ] & * ! | > % @ 的文本请加引号"
    )


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
        return _refused(
            text, Text("a truth value in YAML", "在 YAML 中是布尔值"), Text("true or false", "true 或 false")
        )
    if text in ("<<", "="):
        return _refused(text, Text("a special word of YAML", "是 YAML 的特殊记号"))
    for pattern, what in _ODD_NUMBERS:
        if pattern.fullmatch(text):
            value = _number(text)
            return _refused(text, Text(what.en.format(value), what.zh.format(value)))
    return None


def _refused(text: str, what: Text, other: Optional[Text] = None) -> Text:
    en, zh = (
        f'unquoted, {text} is {what.en}; write "{text}" with quotes',
        f'不加引号时，{text} {what.zh}；请加引号写成 "{text}"',
    )
    return Text(f"{en}, or {other.en}", f"{zh}，或写 {other.zh}") if other else Text(en, zh)


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
