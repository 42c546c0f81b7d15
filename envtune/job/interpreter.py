"""Find the interpreter of the job by reading, never by starting it; the collector does it, for recordings, too."""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping, Optional, Union

from envtune.collector.python.errors import Unresolved
from envtune.collector.python.interpreter import describe_interpreter, find_interpreter
from envtune.errors import HostError, host_error_text
from envtune.host import Host
from envtune.job.target import PythonTarget, TargetOptions
from envtune.messages import Bilingual, Literal, Message, Text


def find_python(
    host: Host, options: TargetOptions, variables: Optional[Mapping[str, str]]
) -> Union[PythonTarget, Text]:
    """The interpreter of the job, or the reason why it cannot be told.

    Without the job's variables (a shell that sudo cleared) the reader's own PATH decides; the header names the result.
    """
    known = host.environ if variables is None else variables
    try:
        found = find_interpreter(host, known, host.cwd, options.python or "", options.pid)
    except Unresolved as problem:
        return unresolved_text(problem)
    except HostError as error:
        return host_error_text(error)
    return _target(found, chosen_text(found["chosen"], options))


def python_at(host: Host, variables: Mapping[str, str], path: str) -> PythonTarget:
    """The interpreter behind `path`; raises Unresolved or a HostError."""
    return _target(describe_interpreter(host, variables, host.cwd, path), Literal(path))


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
        return Message("named by --python {python}", python=options.python)
    if code == "pid":
        return Message("runs process {pid}", pid=options.pid)
    if code == "PATH":
        return Message("the first python3 on PATH")
    return Message("the environment of ${code}", code=code)


def unresolved_text(problem: Unresolved) -> Text:
    """What keeps the interpreter from being told, with the path at which reading ended."""
    return _UNRESOLVED[problem.code](problem.path, problem.detail)


_UNRESOLVED: Mapping[str, Callable[[str, str], Text]] = {
    "not-on-path": lambda path, name: Message("{name} is not on PATH", name=name or path),
    "missing": lambda path, _: Message("{path} is not there", path=path),
    "no-python-in": lambda path, _: Message("{path} is a directory without bin/python3", path=path),
    "no-process": lambda path, _: Message("there is no process {number}", number=_number(path)),
    "other-namespace": lambda path, _: Message(
        "process {number} sees other file systems (it runs in a container): run envtune inside it", number=_number(path)
    ),
    "not-python": lambda path, exe: Message(
        "process {number} runs {exe}, which is not a Python", number=_number(path), exe=exe
    ),
    "circle": lambda path, _: Message("{path} leads back to itself", path=path),
    "not-a-file": lambda path, _: Message("{path} is not a file", path=path),
    "not-an-interpreter": lambda path, _: Message("{path} is neither a program nor a script", path=path),
    "pyenv": lambda path, detail: Message(
        "{path} is a pyenv shim, and no version of {detail} has this program", path=path, detail=detail
    ),
    "wrapper": lambda path, detail: Bilingual(
        f"{path} is a script, and reading does not tell which Python it starts" + (f": {detail}" if detail else ""),
        f"{path} 是脚本，仅凭读取无法判断它启动哪个 Python" + (f"：{detail}" if detail else ""),
    ),
    "version": lambda path, found: Bilingual(
        f"the version of {path} cannot be told" + (f" (libraries of {found})" if found else " (no lib/pythonX.Y)"),
        f"无法判断 {path} 的版本" + (f"（存在 {found} 的库目录）" if found else "（没有 lib/pythonX.Y）"),
    ),
    "no-library": lambda path, lib: Message("there is no {lib} above {path}", lib=lib, path=path),
}


def _number(path: str) -> str:
    found = re.match(r"/proc/(\d+)", path)
    return found[1] if found else path
