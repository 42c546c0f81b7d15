"""The forms in which error codes are printed. Pure.

A number is a code only in one of these forms; ports, process ids and step counts are numbers, too.

    error code is 507011     ErrCode=207001     ret=107002, retCode:507011, runtime result = 507011     aclError:507899
    EI0006: ...     [EI0006]     Communication_Error_Timeout(EI0002): ...     EZ9999[PID: 7] ...     "errCode": "E80001"
    ERR02200 DIST call hccl api failed.     HCCL function error: HcclGetRootInfo(&hcclID), error code is 7
"""

from __future__ import annotations

import re
from typing import Iterator

from envtune.diagnose.logs.lines import BENIGN, level_of
from envtune.diagnose.patterns import Pattern

_BANDS = "(?:100|107|145|148|200|207|245|300|345|500|507|545)"
_NAMED = r"[\s:=\"'\[(<]{0,4}(?:is|\u4e3a|\u662f)?[\s:=\"'\[(<]{0,4}"
# Before a mark: nothing or a separator; after it, what precedes a message: `EI0006: `, `(EI0002):`, `[EI0006]`, `[PID`.
_BEFORE = r"(?:^|(?<=[\s\[(\"'=:,;|>\]]))"
_AFTER = r"(?=\)?\s?[:\uff1a]|\]|\[PID|\[TID|[\"'],|[\"']\})"
# Pairs of first characters: with each following digit they give as many spellings as the prefilter looks for
# (literals.MAX_SPELLINGS); with a single character it would keep too few. No module has EG.
_STARTS = (
    *("EA E1", "EB E2", "EC E3", "EE E4", "EF E5", "EH E6", "EI E7", "EJ E8", "EK E9"),
    *("EL EM", "EO EP", "EZ EG"),
)


def _mark(starts: str) -> str:
    prefixes = "|".join(f"{start}{digit}" for start in starts.split() for digit in range(10))
    return f"{_BEFORE}(?P<code>(?:{prefixes})\\d{{3}}){_AFTER}"


_FORMS = (
    rf"(?i)error[ _]?code{_NAMED}(?P<code>{_BANDS}\d{{3}})\b",
    rf"(?i)(?:errcode|errno|\u9519\u8bef\u7801|aclerror){_NAMED}(?P<code>{_BANDS}\d{{3}})\b",
    # After just `ret` or `result`, round numbers are counts more often than codes.
    rf"(?i)(?:retcode|return code|return value|runtime result){_NAMED}(?P<code>{_BANDS}(?!000)\d{{3}}|[125]07000)\b",
    rf"\b(?:ret|rtRet|result|rc)(?:=|: ?| = |\[)(?P<code>{_BANDS}(?!000)\d{{3}}|[125]07000)\b",
    *map(_mark, _STARTS),
    r"(?P<code>\bERR\d{4,5})(?= (?:PTA|OPS|DIST|GRAPH|PROF)\b)",
    r"HCCL function error:[^\n]{0,300}?, error code is (?P<hccl>\d{1,2})\b",
)
PATTERNS = tuple(Pattern("", regex, "weak", "code", index=index) for index, regex in enumerate(_FORMS))


def code_of(match: re.Match[str]) -> str:
    """Return the code that a form matched, as the dictionary writes it."""
    groups = match.groupdict()
    if groups.get("hccl"):
        return f"HCCL{int(groups['hccl'])}"
    code: str = groups["code"].upper()
    # formatErrorCode writes at least two digits for the kind: ERR0003 is module 00, kind 003 (NPUException.cpp).
    return code if len(code) != len("ERR0003") else f"{code[:5]}0{code[5:]}"


def codes_in(match: re.Match[str]) -> Iterator[re.Match[str]]:
    """Yield every code in a recognized form; none in a line marked INFO or WARNING, which prints a setting."""
    if level_of(match.string) not in BENIGN:
        yield match
        yield from match.re.finditer(match.string, match.end())
