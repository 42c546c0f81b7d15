"""What an error line means for the process that printed it, if the caller knows nothing more specific.

own     it failed on its own; nothing else needs to be known about the error
wait    another process did not come
after   it is a consequence of something else: a wrapper, the end of a connection, a launcher that ended it
unsure  a line of CANN marked as an error: there are many, and most are consequences
"""

from __future__ import annotations

import re

from envtune.ranks.records import AFTER, OWN, UNSURE, WAIT

# A process's own dealings outside of the job, in words that are also used for waiting.
_OUTSIDE = re.compile(
    r"(?i)dataloader|https?connection|https?://|urllib|requests\.|huggingface|modelscope|TimeoutExpired|sqlite|redis|mysql"
    r"|Ran out of input"
)
# Launchers, stores and connections: what a process prints when another one is gone or late. The name of a function or a
# setting (aclrtSynchronizeStreamWithTimeout, HCCL_EXEC_TIMEOUT) does not count.
_TIME_OUT = r"(?<![a-z_])tim(?:e[ds]?)[ _-]?out|deadline exceeded|reached the timeout"
_WAIT = re.compile(
    r"(?i)EI0002|EI0006|EI0015|EE1002|50704[678]|107020|heartbeat|stream sync\w* |waiting for clients|" + _TIME_OUT
)
_ONLY_TIME = re.compile(rf"(?i){_TIME_OUT}")
_AFTER = re.compile(
    r"(?i)connection (?:reset|closed|aborted|refused)|broken ?pipe|closed by peer|EOFError|end of file|ChildFailedError"
    r"|SIGTERM|signal 15|SignalException|KeyboardInterrupt|elastic\.multiprocessing|closing signal|worker group failed"
    r"|EngineDead|EngineCore|failed to send|RayTaskError|ActorDied|RayActorError|WorkerCrashed|actor is dead|raylet"
    r"|ERR02\d{3}|DistBackendError|DistNetworkError|DistStoreError|DistError|Rendezvous"
    r"|hccl|hcom|process ?group|monitoredBarrier|TCPStore|c10d|gloo|rectify the fault|Ascend Error"
    r"|leaked semaphore|resource_tracker|CalledProcessError|exit(?:s|ed|ing)? (?:with|code)|process exit\b"
    r"|aborting|atexit|Killing subprocess"
    r"|srun: error|slurmstepd|mpirun|prterun|BrokenProcessPool|multiproc_executor.*died|cancelled|Aborted|core dumped"
)
_CRASH = re.compile(r"Segmentation fault|SIGSEGV|Bus error|Illegal instruction|SIGBUS|SIGILL|\bKilled\b|SIGKILL")
_CANN = re.compile(
    r"\[ERROR\]\s?[A-Z_]+\(\d+|^E[EHIJKLZ\d]\d{4}\b|^\s*\[Error\]: |\[PID: ?\d+\]|\bERR0\d{4}\b|error code is \d+"
    r"|(?i:inner error|reported as above)"
)
_EXCEPTION = re.compile(r"(?:^|[\]\)>:] ?)[\w.]*(?:Error|Exception|TimeoutExpired|Timeout)\b(?::|$)")
_HCCL = re.compile(r"\[ERROR\]\s?(?:HCCL|HCCP|ROCE|TDT|TSD)\(")


def is_exception(text: str) -> bool:
    """Return whether the line names the exception by which a Python program ends."""
    return _EXCEPTION.search(text) is not None


def is_vague(text: str) -> bool:
    """Return whether an exception only says that time ran out, without mentioning a collective: for whom is unknown."""
    said = _ONLY_TIME.sub("", text)
    waits = any(regex.search(said) for regex in (_WAIT, _AFTER, _CANN, _HCCL))
    return is_exception(text) and not waits


def meaning(text: str) -> str:
    """Return own, wait, after or unsure."""
    if _CRASH.search(text):
        return OWN
    if _OUTSIDE.search(text):
        return OWN
    if _HCCL.search(text):
        return WAIT if _WAIT.search(text) else AFTER
    if _WAIT.search(text):
        return WAIT
    if _AFTER.search(text):
        return AFTER
    return UNSURE if _CANN.search(text) else OWN
