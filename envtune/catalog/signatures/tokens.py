"""Words that a message contains, in any order, as a regular expression: one signature for the wording of many releases.

CANN, torch_npu and HCCL reword errors in every release: `[notify][wait] timeout`, `Notify wait time out`,
`NotifyWaitTimedOut`. A token is one or several words; between them, and where a word has `_` or `-`, a few characters
other than letters and digits may follow, or none. Case does not matter, `timeout`, `time out` and `timed out` are one
word, and a word matches everything that begins with it: `fail` finds `failed` and `failure`. `a|b` is either.
"""

from __future__ import annotations

import re
from typing import Sequence

_TIMEOUT = re.compile(r"(?i)\btime[ds]?[ _-]?out\b")
_WORDS = re.compile(r"[A-Za-z0-9]+|[^\s\x00-\x7f]+")
_TIMED_OUT = r"(?<!with)time[ds]?[^A-Za-z0-9\n]?out"  # not in the function name SynchronizeStreamWithTimeout
_BETWEEN = r"[^A-Za-z0-9\n]{0,3}"
_WORD_BEGINS = r"(?<![A-Za-z0-9](?=[a-z0-9]))(?<![A-Z](?=[A-Z](?![a-z])))"  # also within CamelCase
# The lines that continue a message: indented ones, and the second of torch_npu's.
_NEXT_LINE = r"\n(?=[ \t]|\[Error\]|Solution|Possible Cause)"


def words_of(option: str) -> list[str]:
    """Return the words of a token, or of one of its alternatives."""
    return _WORDS.findall(_TIMEOUT.sub("timeout", option))


def is_token(text: str) -> bool:
    """Return whether each alternative of a text has words."""
    return "\n" not in text and all(map(words_of, text.split("|")))


def expression_of(tokens: Sequence[str], multiline: bool = False) -> str:
    """Return the expression for a line (or, `multiline`, a message of several) that holds all tokens in any order.

    Lines are found by the first token, which should therefore be the rarest; it must be in the first line of a message.
    """
    first, *others = map(_token, tokens)
    anywhere = rf"(?:[^\n]*{_NEXT_LINE})*?[^\n]*?" if multiline else r"[^\n]*?"
    return "".join(["^", *(f"(?={anywhere}{other})" for other in others), r"[^\n]*?", first])


def is_conjunction(regex: str) -> bool:
    """Return whether an expression comes from `expression_of`: its match starts at the beginning of the line."""
    return regex.startswith((r"^(?=[^\n]*?", r"^(?=(?:[^\n]*", r"^[^\n]*?"))


def _token(token: str) -> str:
    spelled = [_spelling(words_of(option)) for option in token.split("|")]
    return _WORD_BEGINS + "(?i:" + "|".join(spelled) + ")"


def _spelling(words: Sequence[str]) -> str:
    spelled = [_TIMED_OUT if word.lower() == "timeout" else re.escape(word) for word in words]
    return _BETWEEN.join(spelled) + (r"(?![0-9])" if words[-1][-1].isdecimal() else "")
