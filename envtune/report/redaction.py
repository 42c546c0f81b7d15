"""Take secrets out of what is printed. The redactor is loaded when a text may hold one: most reports hold none."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

# What every secret has at least one of: a word in its name, its shape, or its length. Of a folded text, with the
# alternatives under their first letter: without regard to case the expression takes ten times as long.
_MAY_HOLD = re.compile(
    r"p(?:ass|w|in[=:\s]|at[=:]|sk|ypi-)|s(?:ecret|ig[=:]|ess|as|alt|sh-|g\.|k[-_=:\s])|tok|c(?:red|ookie)|key|jwt"
    r"|a(?:uth|k[=:\sil]|sia|iza)|b(?:earer|asic|ot)|l(?:icen[sc]e|ogin|tai)|otp|oy2|h(?:f_[a-z0-9]{8}|st3|v[sbr]\.)"
    r"|hook(?! (?!is|was)[^\W\d_]{1,5}\s)"  # what is so short is no secret behind this word
    r"|d(?:sn|p\.)|eyj|g(?:h[pousr]_|l[a-z]{2,5}-)|xox|npm_|rk_|://[^/\s]*@|:[^\s:@]{6,64}@"
    r"|\s-(?!brief |w net\.)(?:[a-z][^\s)]|[apuw]\s)|--(?:user|cert)\b|/p:"
    r"|\b[a-z]+/[^\s/@]+@|:[0-9]{1,5}:[^\s:]+:[^\s:]+:"
    r"|(?=[a-z0-9+/]{24})[a-z+/]{0,80}[0-9][a-z+/]{0,80}[0-9]"  # a path of letters is none
)
# Compiled when a text is not plain ASCII, which costs a millisecond.
_CHINESE_NAME = r"[\u4e00-\u9fff][=:\uff1a]|\u5bc6[\u7801\u94a5]|\u53e3\u4ee4|\u4ee4\u724c|\u79c1\u94a5|\u51ed\u8bc1"
_DOTTED = {0x130: "i", 0x131: "i"}  # which `re` takes for an i without regard to case, and folding does not


def _may_hold_secret(text: str) -> bool:
    """Return whether the redactor has to look at a text."""
    if text.isascii():
        return _MAY_HOLD.search(text.lower()) is not None
    folded = text.translate(_DOTTED).casefold()
    return (_MAY_HOLD.search(folded) or re.search(_CHINESE_NAME, folded)) is not None


@lru_cache(maxsize=1024)  # a report says the same words many times
def redacted(text: str) -> str:
    """Return the text without secrets."""
    if not _may_hold_secret(text):
        return text
    from envtune.collector.redact import redact_text

    return redact_text(text)


def redacted_data(value: Any) -> Any:
    """Return plain data with every string in it redacted; a value under the name of a secret goes by that name."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {name: _member(name, member) for name, member in value.items()}
    return [redacted_data(member) for member in value] if isinstance(value, (list, tuple)) else value


def _member(name: Any, value: Any) -> Any:
    if isinstance(value, str) and isinstance(name, str) and _may_hold_secret(name):
        from envtune.collector.redact import redact_value

        return redact_value(name, value)
    return redacted_data(value)
