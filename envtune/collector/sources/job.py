"""What the environment checks read: the variables that the job gets from a process, a launch script or a file."""

import os
import re
from typing import Any, Mapping

from ..python.wrappers import expanded
from .tables import Table, quietly

JOB = Table(
    stats=(
        "/opt/*gcc*/lib64/libstdc++.so.6",
        "/usr/local/*gcc*/lib64/libstdc++.so.6",
        "/usr/local/hdf5",
    ),
    listings=("/usr/local",),
)
# Variables that name a directory or file, and a file that must be in the directory (envtune/data/variables.json,
# `paths`).
PATH_VARIABLES = (
    "ACL_OP_COMPILER_CACHE_DIR", "ASCEND_CACHE_PATH", "ASCEND_WORK_PATH", "HCCL_RDMA_QP_PORT_CONFIG_PATH",
    "NPU_COLLECT_PATH", "OOM_SNAPSHOT_PATH", "TORCH_ACL_INIT_CONFIG_PATH", "TORCH_HCCL_STATUS_SAVE_PATH",
    "TUNE_BANK_PATH",
)  # fmt: skip
CONTAINED = "MultiQpSrcPort.cfg"
# The Python program that a command starts, and the lines of it that checks read; nothing else of it is recorded.
LAUNCHERS = r"(?:.*/)?(?:python[0-9.]*|torchrun|msrun|deepspeed|accelerate)"
SET_OPTION = r"[\"'](ACL_[A-Z_]+)[\"']\s*:\s*[\"']?([^\"',}\s]+)"  # an entry of the mapping given to set_option
OPTION_DIRECTORIES = ("ACL_DEBUG_DIR", "ACL_OP_COMPILER_CACHE_DIR")
# An option of a command: it follows a blank, or a quote where a script keeps options in a variable.
OPTION_START = r"(?<![^\s\"'(])--"
OPTION_VALUE = r"(?:=|[ \t]+)(\"[^\"\n]*\"|'[^'\n]*'|[^\s\\;|&]+)"
ASSIGNED = r"(?m)^[ \t]*(?:export[ \t]+)?(\w+)=[\"']?([^\s\"';&|$`]+)[\"']?[ \t]*$"
PROGRAM_LINES = r"ACL_|set_option|init_process_group|transfer_to_npu|mindspeed|set_dump"
SCRIPT_DEPTH = 8  # scripts that source scripts
FOLLOWED_LIMIT = 200  # files named by scripts
VALUES_LIMIT = 4 * 1024 * 1024  # characters of all values assigned in scripts
_ASSIGNMENT = r"\s*(?:export\s+|readonly\s+|declare\s+-x\s+)?([A-Za-z_]\w*)=([^;&|]*)"
_SOURCED = r"(?:^|[;&|{(]|\bthen\b|\bdo\b)\s*(?:source|\.)\s+(\"[^\"]+\"|'[^']+'|[^\s;&|)]+)"
_STARTED = r"(?:^|[;&|{(])\s*(?:exec\s+|nohup\s+)?(?:bash|sh)\s+([^-\s;&|)][^\s;&|)]*)"


def record_job(recorder: Any) -> None:
    """Record the job's environment: --pid, --script, --env-file. Sets `recorder.variables` as far as it can be read."""
    pid, script, env_file = (recorder.target.get(key) for key in ("pid", "script", "env_file"))
    for path in (env_file, script):
        if path:
            quietly(_follow_script, recorder, path, 0)
    if pid is not None:
        _record_process(recorder, pid)
    quietly(_record_program, recorder)
    whitelist = recorder.variables.get("HCCL_WHITELIST_FILE", "")
    if whitelist.startswith("/"):
        quietly(recorder.read_bytes, whitelist)
    for library in re.split(r"[:\s]+", recorder.variables.get("LD_PRELOAD", "")):
        if library.startswith("/"):
            quietly(recorder.head, library)
    for name in PATH_VARIABLES:
        _record_place(recorder, recorder.variables.get(name, ""))


def job_folder(recorder: Any) -> str:
    """Return the working directory of the named job, else the current one."""
    pid, script = recorder.target.get("pid"), recorder.target.get("script")
    if pid is not None:
        return str(recorder.readlink("/proc/%d/cwd" % pid))
    return os.path.dirname(os.path.normpath(os.path.join(recorder.cwd, script))) if script else str(recorder.cwd)


def command_text(recorder: Any) -> str:
    """Return the command line of the named process, or the text of the named script; empty without a named job."""
    pid, script = recorder.target.get("pid"), recorder.target.get("script")
    if pid is not None:
        text = recorder.read_bytes("/proc/%d/cmdline" % pid).decode("utf-8", "replace").replace("\0", " ")
    elif script:
        text = recorder.read_bytes(os.path.join(recorder.cwd, script)).decode("utf-8", "replace")
    else:
        return ""
    return re.sub(r"\\\r?\n", " ", text)


def program_name(text: str) -> str:
    """Return the first Python file after a launcher in one of the lines; empty if there is none."""
    for line in text.splitlines():
        words = line.split()
        if not any(re.match(LAUNCHERS + "$", word) for word in words):
            continue
        for word in words:
            plain = word.strip("\"'")
            if plain.endswith(".py") and not plain.startswith("-") and "$" not in plain:
                return plain
    return ""


def _record_program(recorder: Any) -> None:
    """Record the lines of the job's Python program that checks read."""
    lines = [line for line in command_text(recorder).splitlines() if not line.lstrip().startswith("#")]
    name = program_name("\n".join(lines))
    if name:
        path = os.path.normpath(os.path.join(job_folder(recorder), name))
        recorder.programs.add(path)
        for name, value in re.findall(SET_OPTION, recorder.read_bytes(path).decode("utf-8", "replace")):
            if name in OPTION_DIRECTORIES:
                quietly(recorder.stat, os.path.normpath(os.path.join(job_folder(recorder), value)))


def _record_place(recorder: Any, path: str) -> None:
    """Record whether `path` exists, and if not, below which directory it would be created."""
    path = os.path.normpath(path)
    quietly(recorder.stat, path + "/" + CONTAINED)
    while path.startswith("/") and path != "/":
        quietly(recorder.stat, path)
        path = os.path.dirname(path)


def _record_process(recorder: Any, pid: int) -> None:
    folder = "/proc/%d/" % pid
    for name in ("cmdline", "limits", "status", "cgroup", "stat", "comm"):
        quietly(recorder.read_bytes, folder + name)
    for name in ("exe", "cwd", "root", "ns/mnt", "ns/net", "ns/pid"):
        quietly(recorder.readlink, folder + name)
    try:
        rows = recorder.read_bytes(folder + "environ").decode("utf-8", "surrogateescape").split("\0")
    except OSError:
        return
    recorder.variables = dict(row.split("=", 1) for row in rows if "=" in row)


def _follow_script(recorder: Any, path: str, depth: int) -> None:
    """Record a script and every file it sources by a path that can be determined; note what it exports."""
    path = os.path.normpath(os.path.join(recorder.cwd, path))
    recorder.followed.append(path)
    in_a_circle = recorder.followed.count(path) > 3  # scripts that source each other
    if in_a_circle or len(recorder.followed) > FOLLOWED_LIMIT:
        return
    with recorder.following(path):
        _follow_lines(recorder, path, recorder.read_bytes(path).decode("utf-8", "replace"), depth)


def _follow_lines(recorder: Any, path: str, text: str, depth: int) -> None:
    variables = dict(recorder.variables)
    variables["0"] = path
    for line in re.sub(r"\\\n", " ", text).splitlines():
        assignment = re.match(_ASSIGNMENT, line)
        if assignment:
            name, value = assignment.group(1), expanded(assignment.group(2).strip(), variables)
            recorder.assigned += len(value)
            if "$" not in value and "`" not in value and recorder.assigned < VALUES_LIMIT:
                variables[name] = recorder.variables[name] = value
        for pattern in (_SOURCED, _STARTED):
            for word in re.findall(pattern, line):
                _follow_word(recorder, path, word, variables, depth)


def _follow_word(recorder: Any, path: str, word: str, variables: Mapping[str, str], depth: int) -> None:
    """Follow the script named by a word of `path`: relative to the working directory, or to the script's directory."""
    if depth >= SCRIPT_DEPTH or len(recorder.followed) > FOLLOWED_LIMIT:
        return
    target = expanded(word, variables).strip("\"'")
    if target and "$" not in target:
        for folder in dict.fromkeys((recorder.cwd, os.path.dirname(path))):
            quietly(_follow_script, recorder, os.path.join(folder, target), depth + 1)
