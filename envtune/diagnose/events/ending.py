"""Tell what a run died of, where its log says so completely and it is no failure of an NPU. Pure.

A log whose last failure is an exception of the program's own data, a tool that stopped, or the end of the job's time
has its explanation. What earlier lines only warn of, or print as a setting, is then no diagnosis; a line that states a
failure stays one.
"""

from __future__ import annotations

import re
from typing import Optional, Sequence

from envtune.diagnose.events.severity import INFORMS, WARNS, message_of, severity_of
from envtune.diagnose.logs.lines import split_stream
from envtune.records import expression

LAST = 40  # lines at the end of a log, in which a run that died says of what

_EXCEPTION = expression(
    r"(?P<type>(?:\w+\.){0,6}[A-Z]\w*(?:Error|Exception|Interrupt|NotFound|OutOfMemory|DoesNotExist))\b"
    r"(?:\(\w+\))?(?:: (?P<said>.*)|:?$)"
)
# They say that another process, thread or program failed.
_WRAPPERS = expression(
    r"(?:ChildFailed|CalledProcess|BrokenPipe|ConnectionReset|ConnectionAborted|ConnectionRefused|EOF|Timeout|Cancelled"
    r"|EngineDead|Deadlock|ActorDied|RayActor|RayTask|WorkerCrashed|BrokenProcessPool|ProcessRaised|ProcessExited"
    r"|Remote"
    r"|Multiprocess\w*|Subprocess\w*|Elastic\w*)\w*(?:Error|Exception)"
)
# They are raised for what libraries below Python say; what they say decides.
_BELOW = expression(
    r"(?:(?!torch\.cuda\.)(?:torch|acl|hccl|mindspore|tensorflow)\.[\w.]*|.*\bexceptions\.Dist)?"
    r"(?:Runtime|System|Internal|Accelerator|DistBackend|DistNetwork|DistStore|OutOfMemory|BackendCompilerFailed)?"
    r"(?:Error|Exception)$"
)
_ABOVE = expression(
    r"CUDA (?:error|out of memory)|NCCL error|shapes? cannot be multiplied|[Ss]ize mismatch|size of tensor \w+ \("
    r"|Sizes of tensors must match|is invalid for input of size|does not require grad|PytorchStreamReader failed"
    r"|backward through the graph a second time|Given groups=|expected scalar type|Found dtype|index out of range"
    r"|mismatch for|loading state_dict|Could not infer dtype|no kernel image|invalid magic number"
    r"|can't start new thread"
)
_TOOLS = expression(
    r"(?:ERROR: (?:Could not (?:find|build|install)|No matching distribution|Cannot install|Invalid requirement)"
    r"|error: subprocess-exited-with-error|CMake Error\b|slurmstepd: error: \*\*\* (?:JOB|STEP) .*\bCANCELLED\b"
    r"|docker: Error response from daemon|\S+: line \d+: \S+: (?:command not found|No such file|Permission denied)"
    r"|(?:\S+: )?error: (?:unrecognized arguments|the following arguments|argument \S|ambiguous option|pathspec)"
    r"|fatal: (?!error)|The node was low on resource|Permission denied \(publickey|curl: \(\d+\)|npm ERR!"
    r"|Watchdog caught collective operation timeout: WorkNCCL|E: Unable to locate"
    r"|Error: Could not find or load main|Caused by: java)"
)
_OF_AN_NPU = expression(
    r"(?i)(?<![a-z])npu(?![-_\[]?\d)|ascend|hccl|\bcann\b|\bacl|davinci|\bhccp|\btbe\b|\bte\b|\btvm\b|\bopp\b"
    r"|\bE[A-Z\d]\d{4}\b"
    r"|\b[125]07\d{3}\b|\bERR\d{5}\b"
)
_PATH = expression(r"(?<![\w.])[\w.~@+-]*/[^\s'\",)]*")
_OF_FILES = expression(r"(?:FileNotFound|IsADirectory|NotADirectory|Permission|FileExists)Error|DatasetNotFound")


def other_death(text: bytes, begin: int) -> range:
    """Return the numbers of the lines that tell the last failure near the end, if it is complete and none of an NPU.

    The first line has the number `begin`.
    """
    lines = text.decode("utf-8", "replace").split("\n")
    number = _last_failure(lines)
    if number is None:
        return range(0)
    first = last = number
    while first > 0 and _continues(lines[first - 1]):
        first -= 1
    while last + 1 < len(lines) and _continues(lines[last + 1]):
        last += 1
    return range(begin + first, begin + last + 1)


def _continues(line: str) -> bool:
    """Return whether a line is a frame of a traceback, or goes on with what the line above it says."""
    return split_stream(line)[1][:1].isspace() and not line.isspace()


def _last_failure(lines: Sequence[str]) -> Optional[int]:
    last = [(number, line) for number, line in enumerate(lines) if line.strip()][-LAST:]
    for number, line in reversed(last):
        if severity_of(line) in (WARNS, INFORMS):
            continue
        said = message_of(line)
        if _TOOLS.match(said) or _TOOLS.match(line):
            return number if _OF_AN_NPU.search(said) is None else None
        exception = _EXCEPTION.match(said)
        if exception is not None and not _is_wrapper(exception["type"], exception["said"] or ""):
            return number if _is_own(exception["type"], exception["said"] or "") else None
    return None


def _is_wrapper(kind: str, said: str) -> bool:
    name = kind.rpartition(".")[2]
    engine = re.search(r"See root cause above|exited unexpectedly|Failed core proc", said)
    return _WRAPPERS.fullmatch(name) is not None or engine is not None


def _is_own(kind: str, said: str) -> bool:
    """Return whether an exception is one of the program and its data, by what it is called and what it says."""
    if _OF_AN_NPU.search(_PATH.sub("", said) if _OF_FILES.search(kind) else said) or "/dev/davinci" in said:
        return False
    return _ABOVE.search(said) is not None or _BELOW.match(kind) is None or kind.startswith("torch.cuda.")
