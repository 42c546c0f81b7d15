"""Parse one line of a log: its text without colors, and the rank, process, device, time and level of its prefixes.

Formats, as in published logs; one file may mix all of them:

    [ERROR] HCCL(148,python):2024-03-28-10:25:48.427.201 [topoinfo.cc:91][2168] ...     plog, slog
    [ERROR] 2024-03-07-01:31:48 (PID:116072, Device:0, RankID:-1) ERR00002 PTA ...      torch_npu on the screen
    [rank3]: Traceback ...          [default0]:[rank0]: ...                              torchrun
    (Worker_TP0 pid=948496) ERROR 11-06 11:21:05 [multiproc_executor.py:699] ...         vLLM
    2025-10-15 11:11:50.834 ERROR ...      [2024-09-18 11:14:25] ...                     Python logging
    Jun  1 10:00:05 host kernel: ...      [Sat Jun  1 10:00:05 2024] ...                 syslog, journalctl; dmesg -T
    EI0006: [PID: 15618] 2025-10-11-11:32:29.335.888 Getting socket times out.           CANN error text
"""

from __future__ import annotations

import calendar
import re
import time as clock
from dataclasses import dataclass
from datetime import datetime
from typing import Iterable, Optional

NO_YEAR = 1972  # for a date without a year; a leap year
TRACEBACK = "Traceback (most recent call last"
LINE_LIMIT = 16_384  # characters of one line that are examined; a longer one is cut, but still counts as one

_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_RANK = re.compile(r"^(?:\[[^\]\s]{1,40}\]:?\s*){0,2}\[rank[ _]?(\d+)\]|^\[default(\d+)\]:|^(?:\[|)(\d{1,5})(?:\]|):\s")
# A line about another rank ("remote rank 7 did not answer", "rank [10.0.0.2/2]") does not say who printed it.
_OTHERS = "remote peer dst dest target root src source crimer informer other from to by of"
_RANK_FIELD = re.compile(
    r"\bRank ?ID:\s?(\d+)|\blocal ?rank ?\[[\d.:a-f]+/(\d+)\]|\bWorker_TP(\d+)\b|"
    + r"\brank"
    + "".join(f"(?<!\\b{word}[ _]rank)" for word in _OTHERS.split())
    + r"(?:\s?id)?[ =\[:]{1,2}(\d+)\b(?![./:]\w)",
    re.IGNORECASE,
)
_RANK_BEGINS = frozenset("[0123456789")
_PID = re.compile(r"\[PID:\s?(\d+)\]|\(PID:(\d+),|\bpid=(\d+)\)|^\S*\[\w+\]\s?[A-Z_]+\((\d+)[,)]")
_DEVICE = re.compile(r"\bDevice:(\d+)|\bdevice_id=(\d+)|\bdeviceId:\s?(\d+)|\blogicDeviceId_?=(\d+)")
_TIME = re.compile(
    r"(?<!\d)(20\d\d)-(\d\d)-(\d\d)[- T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,3})(?:[.,]?(\d{1,3}))?)?"
    r"|(?<![\d-])(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:[.,](\d{1,3}))?(?!\d)"
)
# rsyslog, `journalctl -k`, `dmesg -T`; seconds since boot, as printed by `dmesg`, give no time of day.
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_SYSLOG = re.compile(
    rf"(?:<\d+>)?\[?(?:[A-Z][a-z]{{2}} )?({'|'.join(_MONTHS)}) {{1,2}}(\d{{1,2}}) (\d\d):(\d\d):(\d\d)"
    r"(?:\.(\d{1,6}))?(?: (20\d\d)\])?"
)
# Any error, known or not, also `error` in Chinese. Case matters: "error" in an ordinary line means nothing.
ERROR = (
    r"\b(?:ERROR|Error|FATAL|Fatal|CRITICAL|PANIC)\b|\berror: |[A-Za-z](?:Error|Exception)(?::|$)|\bERR\d{5}\b"
    r"|\b(?:EH00|EI00|EJ00|EK00|EL00)\d\d\b|Traceback \(most recent call last|Segmentation fault|[Cc]ore dumped"
    r"|\bKilled\b|\bAborted\b|Bus error|Illegal instruction|terminate called|\u9519\u8bef[:\uff1a]"
)
BENIGN = frozenset({"DEBUG", "INFO", "EVENT", "WARN", "WARNING"})
_ERROR = re.compile(ERROR)
_LEVEL = re.compile(r"\b(DEBUG|INFO|EVENT|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b")


# Prefixes that launchers add to each line of a process, so that several can share a file: torchrun, a Python traceback
# of torch.distributed, mpirun --tag-output, vLLM and Ray workers, srun --label, pdsh, kubectl logs --prefix.
_STREAM = re.compile(
    r"(?:(?:\[default\d+\]:|\[rank ?_?\d+\]:|\[\d+,\d+\]<std(?:out|err|diag)>:"
    r"|\(\w+ (?:rank=\d+ )?pid=\d+(?:, ip=[^)]*)?\)|\[\d{1,5}\]:|\d{1,5}:(?= )"
    r"|(?:worker|node|host|pod|server)[\w.-]{0,60}:(?= )|\d{1,3}(?:\.\d{1,3}){3}:(?= )|\[pod/[\w./-]+\]) ?){1,3}"
)


@dataclass(frozen=True)
class Line:
    """A line as a diagnosis needs it. `time` in seconds (UTC as written; a date without year counts as 1972)."""

    number: int
    text: str
    rank: Optional[int] = None
    pid: Optional[int] = None
    device: Optional[int] = None
    time: Optional[float] = None
    level: str = ""


def without_noise(block: bytes) -> bytes:
    """Return the block without colors, other terminal sequences and NUL bytes; the number of lines does not change."""
    if b"\x1b" in block:
        block = _ANSI.sub(b"", block)
    return block.translate(None, b"\0") if b"\0" in block else block  # replace() is slow if there are many


def split_stream(text: str) -> tuple[str, str]:
    """Return the prefix that identifies the line's process (empty if there is none), and the message after it."""
    found = _STREAM.match(text)
    return ("", text) if found is None else (found[0].rstrip(), text[found.end() :])


def is_error(text: str) -> bool:
    """Return whether a line reports an error, known or not; a line that is marked INFO or WARNING does not."""
    return level_of(text) not in BENIGN and _ERROR.search(text) is not None


def parse(number: int, text: str) -> Line:
    """Return the line with the data from its prefixes; None for what they do not contain."""
    return Line(number, text, rank_of(text), pid_of(text), _number(_DEVICE, text), time_of(text), level_of(text))


def rank_of(text: str) -> Optional[int]:
    """Return the rank that printed the line, None if unknown (`RankID:-1`)."""
    head = text[:400]
    found = _number(_RANK, head) if head[:1] in _RANK_BEGINS else None
    if found is None:
        folded = head.lower()
        if "rank" in folded or "worker_tp" in folded:  # searching costs fifty times as much
            found = _number(_RANK_FIELD, head)
    return found


def pid_of(text: str) -> Optional[int]:
    """Return the process that printed the line, None if unknown."""
    return _number(_PID, text[:400])


def level_of(text: str) -> str:
    """Return the first log level near the beginning, empty if there is none."""
    found = _LEVEL.search(text[:160])
    return found[1] if found else ""


def time_of(text: str) -> Optional[float]:
    """Return the first timestamp in seconds, None if there is none or it is not a date."""
    found = _TIME.search(text[:400])
    if found is None:
        return _syslog_time(text)
    year, month, day, hour, minute, second = (found[i] for i in range(1, 7))
    milli, micro = found[7], found[8]
    if year is None:
        year, micro = str(NO_YEAR), None
        month, day, hour, minute, second, milli = (found[i] for i in range(9, 15))
    moment = int(year), int(month), int(day), int(hour), int(minute), int(second)
    return _seconds(moment, _fraction(milli) / 1e3 + _fraction(micro) / 1e6)


def _syslog_time(text: str) -> Optional[float]:
    found = _SYSLOG.match(text)
    if found is None:
        return None
    month, day, hour, minute, second, fraction, year = found.groups()
    moment = int(year or NO_YEAR), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), int(second)
    return _seconds(moment, int((fraction or "0").ljust(6, "0")) / 1e6)


def _seconds(moment: tuple[int, int, int, int, int, int], fraction: float) -> Optional[float]:
    try:
        datetime(*moment[:5], min(moment[5], 59))  # 60 is a leap second
    except ValueError:
        return None
    return calendar.timegm(moment) + fraction


def _fraction(digits: Optional[str]) -> int:
    """Return the three digits of milliseconds or microseconds as a number."""
    return int((digits or "0").ljust(3, "0"))


def year_of(time: float) -> int:
    """Return the year of a time in seconds."""
    return clock.gmtime(time).tm_year


def in_year(time: float, year: int) -> float:
    """Return the same day and hour in another year, in seconds."""
    return calendar.timegm((year, *clock.gmtime(time)[1:6])) + time % 1


def _number(pattern: re.Pattern[str], text: str) -> Optional[int]:
    found = pattern.search(text)
    if found is None:
        return None
    return next((int(group) for group in found.groups() if group is not None), None)


def trimmed(lines: Iterable[str]) -> list[str]:
    """Return the lines without the empty ones at the end."""
    trimmed = list(lines)
    while trimmed and not trimmed[-1].strip():
        trimmed.pop()
    return trimmed


@dataclass(frozen=True)
class TimeWindow:
    """The lines with a time in [since, until]; a line without a time belongs to the one before it."""

    since: Optional[float] = None
    until: Optional[float] = None

    @property
    def open(self) -> bool:
        """Whether the window includes every line."""
        return self.since is None and self.until is None

    def holds(self, time: Optional[float]) -> bool:
        """Return whether a line of that time is in the window."""
        if time is None:
            return self.since is None
        if year_of(time) == NO_YEAR:
            time = in_year(time, year_of(self.since or self.until or time))
        return (self.since is None or time >= self.since) and (self.until is None or time <= self.until)
