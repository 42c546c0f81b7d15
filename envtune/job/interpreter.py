"""Finds the interpreter of the job by reading, never by starting it. The way is in collector.py, for recording too."""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping, Optional, Union

from envtune import collector
from envtune.errors import HostError, host_error_text
from envtune.host import Host
from envtune.job.target import PythonTarget, TargetOptions
from envtune.model import Text, same


def find_python(
    host: Host, options: TargetOptions, variables: Optional[Mapping[str, str]]
) -> Union[PythonTarget, Text]:
    """The interpreter of the job, or the reason why it cannot be told.

    Without the job's variables (a shell that sudo cleared) the reader's own PATH decides; the header names the result.
    """
    known = host.environ if variables is None else variables
    try:
        found = collector.find_interpreter(host, known, host.cwd, options.python or "", options.pid)
    except collector.Unresolved as problem:
        return unresolved_text(problem)
    except HostError as error:
        return host_error_text(error)
    return _target(found, chosen_text(found["chosen"], options))


def python_at(host: Host, variables: Mapping[str, str], path: str) -> PythonTarget:
    """The interpreter behind `path`; raises collector.Unresolved or a HostError."""
    return _target(collector.describe_interpreter(host, variables, host.cwd, path), same(path))


def _target(found: Mapping[str, Any], chosen: Text) -> PythonTarget:
    return PythonTarget(
        found["path"],
        found["real"],
        found["version"],
        found["kind"],
        found["prefix"],
        tuple(found["sites"]),
        chosen,
    )


def chosen_text(code: str, options: TargetOptions) -> Text:
    """Why this interpreter and no other."""
    if code == "named":
        return Text(f"named by --python {options.python}", f"由 --python {options.python} 指定")
    if code == "pid":
        return Text(f"runs process {options.pid}", f"进程 {options.pid} 所用")
    if code == "PATH":
        return Text("the first python3 on PATH", "PATH 中的第一个 python3")
    return Text(f"the environment of ${code}", f"${code} 指向的环境")


def unresolved_text(problem: collector.Unresolved) -> Text:
    """What keeps the interpreter from being told, with the path at which reading ended."""
    return _UNRESOLVED[problem.code](problem.path, problem.detail)


_UNRESOLVED: Mapping[str, Callable[[str, str], Text]] = {
    "not-on-path": lambda path, name: Text(f"{name or path} is not on PATH", f"PATH 中没有 {name or path}"),
    "missing": lambda path, _: Text(f"{path} is not there", f"{path} 不存在"),
    "no-python-in": lambda path, _: Text(
        f"{path} is a directory without bin/python3", f"目录 {path} 下没有 bin/python3"
    ),
    "no-process": lambda path, _: Text(f"there is no process {_number(path)}", f"进程 {_number(path)} 不存在"),
    "other-namespace": lambda path, _: Text(
        f"process {_number(path)} sees other file systems (it runs in a container): run envtune inside it",
        f"进程 {_number(path)} 处于另一个文件系统视图（运行在容器中）：请在该容器内运行 envtune",
    ),
    "not-python": lambda path, exe: Text(
        f"process {_number(path)} runs {exe}, which is not a Python",
        f"进程 {_number(path)} 运行的是 {exe}，不是 Python",
    ),
    "circle": lambda path, _: Text(f"{path} leads back to itself", f"{path} 的链接或脚本最终又指回自身"),
    "not-a-file": lambda path, _: Text(f"{path} is not a file", f"{path} 不是文件"),
    "not-an-interpreter": lambda path, _: Text(
        f"{path} is neither a program nor a script", f"{path} 既不是程序也不是脚本"
    ),
    "pyenv": lambda path, detail: Text(
        f"{path} is a pyenv shim, and no version of {detail} has this program",
        f"{path} 是 pyenv shim，而 {detail} 中没有任何版本提供该程序",
    ),
    "wrapper": lambda path, detail: Text(
        f"{path} is a script, and reading does not tell which Python it starts" + (f": {detail}" if detail else ""),
        f"{path} 是脚本，仅凭读取无法判断它启动哪个 Python" + (f"：{detail}" if detail else ""),
    ),
    "version": lambda path, found: Text(
        f"the version of {path} cannot be told" + (f" (libraries of {found})" if found else " (no lib/pythonX.Y)"),
        f"无法判断 {path} 的版本" + (f"（存在 {found} 的库目录）" if found else "（没有 lib/pythonX.Y）"),
    ),
    "no-library": lambda path, lib: Text(f"there is no {lib} above {path}", f"{path} 的上级目录中没有 {lib}"),
}


def _number(path: str) -> str:
    found = re.match(r"/proc/(\d+)", path)
    return found[1] if found else path
