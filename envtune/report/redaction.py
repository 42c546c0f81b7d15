"""Take secrets out of what is printed. The redactor is loaded when a text may hold one: most reports hold none."""

from __future__ import annotations

import re
from typing import Any

# What every secret has at least one of: a word in its name, its shape, or its length.
_MAY_HOLD = re.compile(
    r"(?i)pass|pw|secret|tok|cred|key|cookie|jwt|auth|sig[=:]|bearer|basic|sess|licen[sc]e|[as]k[=:\s]|sas|salt|pin[=:\s]|otp"
    r"|pat[=:]|psk|hook|bot|dsn|login|pword|://[^/\s]*@|eyJ|hf_[a-z0-9]{8}|sk-|gh[pousr]_|gl[a-z]{2,5}-|LTAI|HST3|AK[IL]|ASIA|xox|AIza"
    r"|npm_|pypi-|ssh-|[sr]k_|hv[sbr]\.|SG\."
    r"|\s-(?!brief )[a-zA-Z][^\s)]|[\u4e00-\u9fff][=:\uff1a]|:[^\s:@]{6,64}@|oy2|dp\.|AKCp"
    r"|(?=[a-z+/]{0,80}[0-9][a-z+/]{0,80}[0-9])[a-z0-9+/]{24}"  # a path of letters is none
)


def redacted(text: str) -> str:
    """Return the text without secrets."""
    if not _MAY_HOLD.search(text):
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
    if isinstance(value, str) and isinstance(name, str) and _MAY_HOLD.search(name):
        from envtune.collector.redact import redact_value

        return redact_value(name, value)
    return redacted_data(value)
