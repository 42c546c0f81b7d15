"""What starts the job: its command line or launch script, the options in it, and the Python program it names."""

from __future__ import annotations

import posixpath
import re
from typing import Mapping, Optional

from envtune.collector.sources.job import ASSIGNED, OPTION_START, OPTION_VALUE, program_name
from envtune.context import Context
from envtune.errors import HostError
from envtune.records import NamedTuple, expression

_VARIABLE = expression(r"\$(?:\{(\w+)\}|(\w+))")


class Command(NamedTuple):
    """The lines that start the job, and the file that contains them."""

    text: str
    source: str


class Program(NamedTuple):
    """The Python program that the command names, and those of its lines that checks read."""

    path: str
    text: str


def job_command(context: Context) -> Optional[Command]:
    """Return the command line of the named process, or the lines of the named script; None if no job is named."""
    return context.cached(_read_command)


def _read_command(context: Context) -> Optional[Command]:
    options, host = context.target.options, context.host
    if options.pid is not None:
        argv = next((process.argv for process in host.processes() if process.pid == options.pid), ())
        return Command(" ".join(argv), f"/proc/{options.pid}/cmdline")
    if options.script is None:
        return None
    source = posixpath.join(host.cwd, options.script)
    try:
        text = host.read(source)
    except HostError:
        return None  # the environment checks report that the script cannot be read
    lines = re.sub(r"\\\r?\n", " ", text).splitlines()
    return Command("\n".join(line for line in lines if not line.lstrip().startswith("#")), source)


def option_value(context: Context, pattern: str) -> Optional[tuple[str, str]]:
    """Return (value, source) of the last option whose name matches; variables of the job are expanded.

    None if the option is not given, or its value depends on an unknown variable.
    """
    command = job_command(context)
    if command is None:
        return None
    values = re.findall(rf"{OPTION_START}(?:{pattern}){OPTION_VALUE}", command.text)
    if not values:
        return None
    value = _filled_in(values[-1].strip("\"'"), context)
    return None if value is None or value.startswith("-") else (value, command.source)


def master_option(context: Context) -> tuple[Optional[tuple[str, str]], Optional[tuple[str, str]]]:
    """Return address and port of the master from the launch command, each with the file, None if not given.

    Source: options of torchrun (--master_addr, --master_port, --rdzv_endpoint HOST:PORT); 003:594 (--addr).
    """
    address, port = option_value(context, "master[-_]addr|addr"), option_value(context, "master[-_]port")
    endpoint = option_value(context, "rdzv[-_]endpoint")
    if endpoint is not None:
        host, _, number = endpoint[0].rpartition(":")
        if host and number.isdecimal():
            address = address or (host.strip("[]"), endpoint[1])
            port = port or (number, endpoint[1])
    return address, port


def master_port_text(context: Context) -> Optional[str]:
    """Return MASTER_PORT of the job: from its variable, else from the launch command; None if neither."""
    text = context.target.variables().get("MASTER_PORT")
    option = master_option(context)[1] if text is None else None
    return text if option is None else option[0]


def _filled_in(value: str, context: Context) -> Optional[str]:
    command = job_command(context)
    assigned = dict(re.findall(ASSIGNED, command.text)) if command is not None else {}  # not all of it is exported
    try:
        known: Mapping[str, str] = {**assigned, **(context.target.environment.variables or {})}
        value = _VARIABLE.sub(lambda found: known[found[1] or found[2]], value)
    except KeyError:
        return None
    return None if "$" in value or "`" in value else value


def job_folder(context: Context) -> str:
    """Return the job's working directory: that of the named process, of the named script, or the current one."""
    options, host = context.target.options, context.host
    if options.pid is not None:
        return host.readlink(f"/proc/{options.pid}/cwd")
    if options.script is not None:
        return posixpath.dirname(posixpath.normpath(posixpath.join(host.cwd, options.script)))
    return host.cwd


def job_program(context: Context) -> Optional[Program]:
    """Return the Python program of the command; None if there is none, or it cannot be read."""
    return context.cached(_read_program)


def _read_program(context: Context) -> Optional[Program]:
    command = job_command(context)
    name = "" if command is None else program_name(command.text)
    if not name:
        return None
    try:
        path = posixpath.normpath(posixpath.join(job_folder(context), name))
        return Program(path, context.host.read(path))
    except HostError:
        return None
