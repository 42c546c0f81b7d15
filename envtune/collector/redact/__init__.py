"""Remove secrets from whatever leaves the program: by names of variables and options, and by what secrets look like.

Everything that is recorded, printed, journaled or sent goes through one of these functions. Bytes that are not UTF-8
are kept as surrogates, so that they do not change the result; docs/snapshot.md says what is redacted.
"""

import re
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .script import redact_lines, redact_script
from .text import merged, redacted, secret_spans
from .values import REDACTED, is_trivial, keeps
from .words import line_spans, password_of, word_spans

# Trees of the kernel: links inside them lead to other names of the same thing, so they are followed without being
# recorded; what is read there comes from the kernel.
KERNEL_TREES = ("/proc/", "/sys/")


def redact_text(text: str) -> str:
    """Return a text (a line of a log, a sentence, JSON, Markdown) without secrets."""
    return redacted(text, merged(secret_spans(text) + line_spans(text)))


def redact_value(name: str, value: str) -> str:
    """Return the value of a variable in the form that may be kept."""
    if value and not keeps(name, value):
        return REDACTED
    password = password_of(name, value)
    return value[:password] + REDACTED if password else redact_argv([value])[0]


def redact_argv(argv: Sequence[str]) -> List[str]:
    """Return the words of a command line without secrets: `--token x`, `--password=x`, `-p secret`, `KEY=x`, URLs."""
    by_word: List[List[Tuple[int, int]]] = [[] for _ in argv]
    for place, start, end in word_spans(argv):
        by_word[place].append((start, end))
    return [redacted(word, sorted(spans)) for word, spans in zip(argv, by_word)]


def redact_row(row: Mapping[str, Any]) -> Dict[str, Any]:
    """Return what a command printed, without secrets."""
    return {key: redact_text(value) if key in ("stdout", "stderr") else value for key, value in row.items()}


# What is kept of the environment of a process that was not named: variables that tune a training job, nothing private.
JOB_VARIABLE = re.compile(
    r"(ACL|ASCEND|ATB|COMBINED|CPU_AFFINITY|DEVICE_|DISABLE_|DUMP_|DYNAMIC|GE_|HCCL|HOST_|HOSTAPI|INDUCTOR|INF_NAN|JOB_ID"
    r"|LOCAL_|MASTER_|MULTI_STREAM|NPU|OMP_|OOM|P2P_HCCL|PERF_DUMP|PER_STREAM|PROFILING|PTCOPY|PYTORCH|RANK|RESUME"
    r"|SCALAR|STREAMS|SWITCH|TASK_QUEUE|TBE|TE_|TOOLCHAIN|TORCH|TRI_COMBINED|WORLD_SIZE|\w*HCCL"
    r"|(?:GROUP_RANK|LD_LIBRARY_PATH|LD_PRELOAD|NODE_RANK|PATH|PYTHONHOME|PYTHONPATH)=)"
)
_SHELL = re.compile(r"#!.*\b(?:ba|da|k|z|a|mk)?sh\b")
_NO_SHELL = (
    ".py", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".xml", ".md", ".csh", ".tcsh", ".fish", ".info", ".csv",
    ".jsonl", ".html", ".js", ".pth", ".pem", ".key", ".crt", ".service", ".rules", ".properties",
)  # fmt: skip
_FOR_A_SHELL = re.compile(r"^[^\S\n]*(?:export|unset|source|[.]|case)\s", re.M)
_ENV_LINE = re.compile(r"^([ \t]*(?:export[ \t]+)?([^\W\d][\w.-]*)[ \t]*=[ \t]*)([^\r\n]*)", re.M)


def redact_file(path: str, data: bytes, job: Optional[int] = None, env_file: bool = False) -> Optional[bytes]:
    """Return the content of a file in the form that may be kept, None if it cannot be redacted because it is not text.

    `job` is the process that was named by --pid; `env_file`: the file is read as `KEY=VALUE` lines, or by a shell.
    """
    of_process = re.match(r"/proc/([0-9]+)/(environ|cmdline)$", path)
    text = data.decode("utf-8", "surrogateescape")
    if of_process:
        named = of_process.group(1) == str(job)
        return _encoded(_redacted_rows(text.split("\0"), of_process.group(2) == "environ", named))
    if path.startswith(KERNEL_TREES) and path != "/proc/cmdline":
        return data
    if "\0" in text or data[:2] in (b"\xff\xfe", b"\xfe\xff"):  # UTF-16, or not text
        return None
    if env_file and not _FOR_A_SHELL.search(text):
        text = _ENV_LINE.sub(_env_line, text)
    return _encoded(redact_script(text) if _is_for_a_shell(path, text) else redact_lines(text))


def _redacted_rows(rows: Sequence[str], environ: bool, named: bool) -> str:
    """Return the strings of a process, each ended by a NUL; its variables, or its arguments."""
    if not environ:
        return "\0".join(redact_argv(rows))
    kept = []
    for row in rows:
        name, mark, value = row.partition("=")
        if named or not row or JOB_VARIABLE.match(row):
            kept.append(name + mark + redact_value(name, value) if mark else redact_text(row))
    return "\0".join(kept)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _is_for_a_shell(path: str, text: str) -> bool:
    if text.startswith("#!"):
        return _SHELL.match(text) is not None
    return not path.endswith(_NO_SHELL)


def _env_line(match: "re.Match[str]") -> str:
    """Return a line of an env file, in which everything after `=` is the value."""
    start, name, value = match.groups()
    kept = not value or keeps(name, value) or is_trivial(value.partition(" #")[0].strip(" \"'"))
    return start + (value if kept else '"' + REDACTED + '"')
