"""The job's environment: from a running process, a launch script, an env file, or else this shell.

A process's environment is what it was started with and is used unchanged; so is what a finished job's profiler noted
(finished.py), which is named like an env file. A script is applied on top of an env file, that on top of this shell's
variables. sudo and a non-interactive ssh clear or replace the shell's variables: without a named job they are not
judged at all, and a named script or env file is then judged on its own, and what it inherits is unknown.
"""

from __future__ import annotations

import re
from typing import Mapping, Optional

from envtune.errors import Denied, HostError, Missing, host_error_text
from envtune.host import Host
from envtune.job.finished import finished_environment, is_json
from envtune.job.target import THIS_SHELL, JobEnvironment, TargetOptions, alone, layered, process_source
from envtune.messages import Message, Text
from envtune.records import expression

_NAME = expression(r"[A-Za-z_][A-Za-z0-9_]*")


def read_environment(host: Host, options: TargetOptions) -> JobEnvironment:
    """Return the job's variables, or the reason why they are unknown."""
    if options.pid is not None:
        return process_environment(host, options.pid)
    return declared_environment(host, options)


def declared_environment(host: Host, options: TargetOptions) -> JobEnvironment:
    """Return the environment of a job started from this shell by the named script, with the named env file."""
    shell = shell_environment(host)
    if shell.reason is not None and (options.env_file is not None or options.script is not None):
        shell = shell._replace(reason=_not_passed_on(host.environ))
    if options.env_file is not None:
        shell = _with_env_file(host, options.env_file, shell)
    if options.script is not None:
        from envtune.job.script import script_environment

        return script_environment(host, options.script, shell)
    return shell


def process_environment(host: Host, pid: int) -> JobEnvironment:
    """Return the environment process `pid` was started with; its later changes are not visible there."""
    path = f"/proc/{pid}/environ"
    try:
        return JobEnvironment(parse_environ(host.read_bytes(path)), process_source(pid))
    except Missing:
        return JobEnvironment(None, path, Message("no process {pid}", pid=pid))
    except Denied:
        reason = Message("only root and the owner of process {pid} can read {path}", path=path, pid=pid)
        return JobEnvironment(None, path, reason, needs_privilege=True)
    except HostError as error:
        return JobEnvironment(None, path, host_error_text(error))


def parse_environ(data: bytes) -> dict[str, str]:
    """Parse /proc/<pid>/environ: `NAME=value` strings, each ended by a NUL; anything else in it is not a variable."""
    variables: dict[str, str] = {}
    for row in data.split(b"\0"):
        name, equals, value = row.partition(b"=")
        if equals and name:
            variables.setdefault(name.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape"))
    return variables


def shell_environment(host: Host) -> JobEnvironment:
    """Return the variables of the shell that envtune runs in, if a job would get them."""
    reason = why_replaced(host.environ)
    if reason is None:
        return JobEnvironment(dict(host.environ), THIS_SHELL)
    return JobEnvironment(None, THIS_SHELL, reason)


def _is_sudo(variables: Mapping[str, str]) -> bool:
    return "SUDO_USER" in variables or "SUDO_COMMAND" in variables


def why_replaced(variables: Mapping[str, str]) -> Optional[Text]:
    """Return why these variables are not those of the user's login shell; None if they are."""
    if _is_sudo(variables):
        return Message("sudo cleared the environment; name the job with --pid, --script or --env-file")
    if "SSH_CONNECTION" in variables and "SSH_TTY" not in variables:
        return Message(
            "a command run over ssh does not get the environment of a login shell; name the job with --pid, "
            "--script or --env-file"
        )
    return None


def _not_passed_on(variables: Mapping[str, str]) -> Text:
    """Return why what a named script inherits from its shell (`X=/new:$X`) is unknown here."""
    if _is_sudo(variables):
        return Message(
            "sudo cleared the environment from which the script takes this; run envtune without sudo, or "
            "name the running job with --pid"
        )
    return Message(
        "a command run over ssh does not get the environment from which the script takes this; run envtune"
        " in a login shell, or name the running job with --pid"
    )


def _with_env_file(host: Host, path: str, base: JobEnvironment) -> JobEnvironment:
    """Return the file's variables on top of `base`; if that is not the job's, only the file's."""
    from envtune.shell.machine import script_text

    try:
        text = script_text(path, host.read_bytes(path))
    except HostError as error:
        return JobEnvironment(None, path, host_error_text(error), needs_privilege=isinstance(error, Denied))
    return env_file_environment(host, path, text, base)


def is_for_a_shell(text: str) -> bool:
    """Return whether an env file is written to be sourced by a shell, and must be interpreted like one."""
    return re.search(r"^[^\S\n]*(export|unset|source|[.]|case)\s", text, re.MULTILINE) is not None


def env_file_environment(host: Host, path: str, text: str, base: JobEnvironment) -> JobEnvironment:
    """Return the job's variables if the env file at `path` contained `text`; also for profiler_metadata.json."""
    if is_json(text):
        return finished_environment(path, text)
    if is_for_a_shell(text):
        from envtune.job.script import text_environment

        return text_environment(host, path, text, base, sourced=True)
    declared, places = parse_env_file(text, path)
    known = {**(base.variables or {}), **{name: value for name, value in declared.items() if value is not None}}
    unknown = {name: reason for name, reason in base.unknown.items() if name not in known}
    if base.variables is not None:
        source = layered(path, base.source)
        return base._replace(variables=known, source=source, unknown=unknown, places=places, is_plain=True)
    for name in set(declared) - set(known):
        unknown[name] = base.reason or Message("inherited from a shell that was not read")
    return JobEnvironment(known, alone(path), unknown=unknown, places=places, is_plain=True)


def parse_env_file(text: str, path: str) -> tuple[dict[str, Optional[str]], dict[str, str]]:
    """Parse an env file of `KEY=VALUE` lines as docker does: everything after `=` is the value, nothing is expanded.

    Quotes around a whole value are removed: docker compose and every shell do so, only `docker run` keeps them. A
    bare KEY passes the caller's value on and is None here. Returns the variables, and `file:line` of each.
    """
    variables: dict[str, Optional[str]] = {}
    places: dict[str, str] = {}
    for number, row in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        line = row.strip()
        name, equals, value = line.partition("=")
        name = name.strip()
        if line.startswith("#") or not _NAME.fullmatch(name):
            continue
        variables[name] = _unquoted(value.strip()) if equals else None
        places[name] = f"{path}:{number}"
    return variables, places


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
