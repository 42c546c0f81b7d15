"""One line of a log: its text without colours, and what its prefixes say of rank, process, device, time and level.

Formats (facts D9 of the project's sources; all of them occur mixed in one file):

    [ERROR] HCCL(148,python):2024-03-28-10:25:48.427.201 [topoinfo.cc:91][2168] ...     plog, slog
    [ERROR] 2024-03-07-01:31:48 (PID:116072, Device:0, RankID:-1) ERR00002 PTA ...      torch_npu on the screen
    [rank3]: Traceback ...          [default0]:[rank0]: ...                              torchrun
    (Worker_TP0 pid=948496) ERROR 11-06 11:21:05 [multiproc_executor.py:699] ...         vLLM
    2025-10-15 11:11:50.834 ERROR ...      [2024-09-18 11:14:25] ...                     Python logging
    EI0006: [PID: 15618] 2025-10-11-11:32:29.335.888 Getting socket times out.           CANN error text
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from typing import Optional

LINE_LIMIT = 16_384  # characters of one line that are looked at; a longer one is cut, and still counted as one

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_RANK = re.compile(r"^(?:\[[^\]\s]{1,40}\]:?\s*){0,2}\[rank[ _]?(\d+)\]|^\[default(\d+)\]:|^(?:\[|)(\d{1,5})(?:\]|):\s")
_RANK_FIELD = re.compile(r"\bRank ?ID:\s?(\d+)|\brank(?:\s?id)?[ =\[:]{1,2}(\d+)\b|\bWorker_TP(\d+)\b", re.IGNORECASE)
_PID = re.compile(r"\[PID:\s?(\d+)\]|\(PID:(\d+),|\bpid=(\d+)\)|^\S*\[\w+\]\s?[A-Z_]+\((\d+)[,)]")
_DEVICE = re.compile(r"\bDevice:(\d+)|\bdevice_id=(\d+)|\bdeviceId:\s?(\d+)|\blogicDeviceId_?=(\d+)")
_TIME = re.compile(
    r"(?<!\d)(20\d\d)-(\d\d)-(\d\d)[- T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,3})(?:[.,]?(\d{1,3}))?)?"
    r"|(?<![\d-])(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:[.,](\d{1,3}))?(?!\d)"
)
_LEVEL = re.compile(r"\b(DEBUG|INFO|EVENT|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b")


@dataclass(frozen=True)
class Line:
    """A line as it matters to a diagnosis. `time` in seconds (UTC as written; a date without year counts as 1972)."""

    number: int
    text: str
    rank: Optional[int] = None
    pid: Optional[int] = None
    device: Optional[int] = None
    time: Optional[float] = None
    level: str = ""


def clean(raw: bytes) -> str:
    """The text of a line: invalid UTF-8 replaced, colours and carriage returns removed, cut at LINE_LIMIT.

    A progress bar rewrites its line with carriage returns: what stood last is what the reader saw, but an error that
    was overwritten is still worth finding, so the parts are kept, apart by a blank.
    """
    text = raw[: 4 * LINE_LIMIT].decode("utf-8", "replace").rstrip("\r\n")
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\r" in text or "\0" in text:
        text = text.replace("\r", " ").replace("\0", "")
    return text[:LINE_LIMIT]


def parse(number: int, text: str) -> Line:
    """The line with what its prefixes tell; what they do not tell is None."""
    return Line(number, text, rank_of(text), _number(_PID, text), _number(_DEVICE, text), time_of(text), level_of(text))


def rank_of(text: str) -> Optional[int]:
    """The rank that printed the line, None when it does not say (`RankID:-1` does not say)."""
    head = text[:400]
    found = _number(_RANK, head)
    return found if found is not None else _number(_RANK_FIELD, head)


def level_of(text: str) -> str:
    """The first level word near the beginning, empty when there is none."""
    found = _LEVEL.search(text[:160])
    return found[1] if found else ""


def time_of(text: str) -> Optional[float]:
    """The first timestamp in seconds, None when there is none or it is no date."""
    found = _TIME.search(text[:400])
    if found is None:
        return None
    year, month, day, hour, minute, second = (found[i] for i in range(1, 7))
    milli, micro = found[7], found[8]
    if year is None:
        year, micro = "1972", None
        month, day, hour, minute, second, milli = (found[i] for i in range(9, 15))
    try:
        whole = calendar.timegm((int(year), int(month), int(day), int(hour), int(minute), int(second)))
    except ValueError:
        return None
    return whole + int((milli or "0").ljust(3, "0")) / 1e3 + int((micro or "0").ljust(3, "0")) / 1e6


def _number(pattern: re.Pattern[str], text: str) -> Optional[int]:
    found = pattern.search(text)
    if found is None:
        return None
    return next((int(group) for group in found.groups() if group is not None), None)
