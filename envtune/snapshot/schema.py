"""The form of a snapshot, as described in docs/snapshot.md. Validated once, so that nothing fails later.

`normalised` returns a mapping with every table in its full form and every value of its type, or raises `SnapshotError`
naming the place: `processes[3].pid: a whole number is expected, not 'x'`. Unknown keys are ignored at the top and in
the tables (a later collector may record more); in file entries and commands, which people write by hand, they are
refused, because a misspelled key would silently mean "not recorded".
"""

from __future__ import annotations

import posixpath
import re
from typing import Any, Callable, Iterable, Mapping, NoReturn

from envtune.errors import SnapshotError
from envtune.messages import Message, Text
from envtune.schema.types import AnyOf, Bool, Bytes, Const, Field, ListOf, MapOf, Null, Number, Record, Str, optional
from envtune.schema.validate import Validator, is_normal_path
from envtune.schema.values import Data

SCHEMA = "envtune.snapshot/1"
KINDS = ("char", "block", "fifo", "socket")
TABLES = ("processes", "listeners", "interfaces", "disks")
COVERED_LIMIT = 10_000  # patterns; a recording has some hundred
COMMAND_ERRORS = {"ENOENT": "missing", "EACCES": "denied", "EPERM": "denied", "ETIMEDOUT": "timeout"}


def _is_base64(text: str) -> bool:
    import base64

    return base64.b64decode(text, validate=True) is not None


def _is_hexadecimal(text: str) -> bool:
    return bytes.fromhex(text) is not None


def _is_address(text: str) -> bool:
    """Return whether it is an address, with or without prefix length and zone, in the form of `ip addr`."""
    from envtune.intervals import address_family

    return address_family(text.partition("/")[0]) in (4, 6)


def _is_file_name(text: str) -> bool:
    return text not in ("", ".", "..") and "/" not in text and "\0" not in text


_TEXT, _TEXTS, _WHOLE, _NUMBER = Str(), ListOf(Str()), Number(whole=True), Number()
_TIME = Number(-253402300799, 253402300799)  # the end of the year 9999, the limit of Python's datetime
# Why a command could not be started: no process, memory or descriptor left, or not an executable.
_NOT_STARTED = (
    "EAGAIN",
    "ENOMEM",
    "EMFILE",
    "ENFILE",
    "ENOEXEC",
    "E2BIG",
    "EIO",
    "ELOOP",
    "ETXTBSY",
    "ENOSYS",
    "EINVAL",
    "ENOSPC",
)
_WORD = Str(numbers=True)  # an unquoted number is meant as text
_PATH = Str("/[^\0]*", name=Message("an absolute path"))
_FILE_PATH = Str(
    name=Message("an absolute path with no `..`, `//` or final `/`"), check=is_normal_path, keywords={"pattern": "^/"}
)
_FILE_NAME = Str(name=Message("the name of a file"), check=_is_file_name, keywords={"pattern": "^[^/]+$"})
_MODE = Str("[0-7]{1,5}", name=Message('an octal mode in quotes ("0644")'))
_HEXADECIMAL = Str(name=Message("hexadecimal digits"), check=_is_hexadecimal, keywords={"contentEncoding": "base16"})
_BASE64 = Str(name=Message("base64"), check=_is_base64, keywords={"contentEncoding": "base64"})
_ADDRESS = Str(name=Message("an IP address"), check=_is_address)
_WORDS = AnyOf(_TEXT, _TEXTS)

ENTRY = Record(
    Field("link", _TEXT, "Where a symbolic link leads."),
    Field("dir", AnyOf(Null(), Const(True), ListOf(_FILE_NAME)), "The names in a directory; null: not recorded."),
    Field("text", _TEXT, "What a file holds."),
    Field("base64", _BASE64, "What a file holds, where it is not UTF-8."),
    Field("size", _WHOLE, "Size of a file in bytes."),
    Field("mode", _MODE, "Permissions, octal."),
    Field("uid", _WHOLE, "Number of the owner."),
    Field("gid", _WHOLE, "Number of the group."),
    Field("mtime", _TIME, "When it was changed, in seconds since 1970."),
    Field("error", _TEXT, "The error that reading met: EACCES, EIO, ETIMEDOUT, ..."),
    Field("record_digest", _TEXT, "Digest of a wheel's or an installation's RECORD."),
    Field("runtime_versions", _TEXT, "Versions of the C and C++ runtime that a library needs and provides."),
    Field("tree_size", _TEXT, "How much lies below a directory."),
    Field("head", _HEXADECIMAL, "The first bytes of a file."),
    *(Field(kind, Const(True)) for kind in KINDS),
)
_OUTPUT = (
    Field("rc", _WHOLE, "Exit status; 0 when it is absent."),
    Field("stdout", _TEXT, "Standard output."),
    Field("stderr", _TEXT, "Standard error."),
    Field(
        "error",
        optional(Str(choices=("missing", "denied", "timeout", *COMMAND_ERRORS, *_NOT_STARTED))),
        "Why there is no output: there is no such program, this user may not run it, it did not answer.",
    ),
    Field("seconds", _NUMBER, "How long it was waited for."),
    Field("untrusted", _TEXT, "What others can change of the program, which therefore was not run."),
)
_ARGV = Field("argv", _WORDS, "The command: its words, or the line.")
COMMAND = Record(_ARGV._replace(required=True), *_OUTPUT)
_COMMANDS = AnyOf(MapOf(AnyOf(_TEXT, Record(_ARGV, *_OUTPUT))), ListOf(COMMAND))
_PID = Field("pid", _WHOLE, "Number of the process.", True)
_PROCESS = Record(
    _PID,
    Field("ppid", _WHOLE, "Number of its parent."),
    Field("user", _WORD, "Whose it is."),
    Field("name", optional(_TEXT), "Its name; the program's when it is absent."),
    Field("argv", optional(_WORDS), "Its command line."),
    Field("state", _TEXT, "One letter, as in ps."),
    Field("started", _TIME, "When it was started, in seconds since 1970."),
    Field("devices", optional(_TEXTS), "The NPU nodes it holds open."),
    Field("opaque", Bool(), "Its open files could not be read."),
    closed=False,
)
_LISTENER = Record(
    Field("address", _TEXT, "The address it listens on.", True),
    Field("port", Number(0, 65535, whole=True), "The TCP port.", True),
    Field("pid", optional(_WHOLE), "The process that listens, where it is known."),
    Field("process", optional(_TEXT), "Its name."),
    closed=False,
)
_INTERFACE = Record(
    Field("name", _TEXT, "Name of the interface.", True),
    Field("addresses", optional(ListOf(_ADDRESS)), "Its addresses, with or without prefix length."),
    Field("up", Bool(), "Whether it is up."),
    closed=False,
)
_DISK = Record(
    Field("path", _PATH, "Where the file system is mounted.", True),
    Field("total", _WHOLE, "Its size in bytes.", True),
    Field("free", _WHOLE, "What is free of it, in bytes.", True),
    Field("inodes", _WHOLE, "How many files it can hold, 0 without a fixed number."),
    Field("free_inodes", _WHOLE, "How many more files it can hold."),
    closed=False,
)
_TARGET = Record(
    Field("python", optional(_TEXT), "The Python of the job."),
    Field("script", optional(_TEXT), "The script that launches it."),
    Field("env_file", optional(_TEXT), "The file that sets its variables."),
    Field("pid", optional(_WHOLE), "Number of its running process."),
    Field("job", optional(_TEXT), "The name by which that process was looked for."),
    Field("peers", optional(_TEXTS), "The addresses of the other hosts."),
    closed=False,
)


def _table(row: Record) -> AnyOf:
    error = Record(Field("error", _TEXT, "Why there are no rows: EACCES, ...", True), closed=False)
    return AnyOf(ListOf(row), error, Null(), name=Message('a list, or {"error": "EACCES"}'))


SNAPSHOT = Record(
    Field("schema", Const(SCHEMA), "Name and version of this form.", True),
    Field("collector", optional(_WORD), "Version of the recorder."),
    Field("host", optional(_TEXT), "Name of the host."),
    Field("taken", optional(_TEXT), "When it was recorded, for people."),
    Field("now", _TIME, "When it was recorded, in seconds since 1970."),
    Field("uname", optional(MapOf(optional(_TEXT))), "sysname, nodename, release and machine, as in uname."),
    Field("euid", _WHOLE, "The user who recorded it; 0 is root."),
    Field("cwd", optional(_PATH), "The working directory."),
    Field("environ", optional(MapOf(optional(_WORD))), "Variables of the shell the job is started from."),
    Field("target", optional(_TARGET), "The job, as the options name it."),
    Field("covered", optional(ListOf(_PATH)), "Patterns of the paths that were looked at; a final /** is all below."),
    Field("files", optional(MapOf(AnyOf(_TEXT, Null(), ENTRY, Bytes()), _FILE_PATH)), "The recorded tree."),
    Field("commands", optional(_COMMANDS), "What commands said."),
    Field("processes", _table(_PROCESS), "The process table."),
    Field("listeners", _table(_LISTENER), "The listening TCP sockets."),
    Field("interfaces", _table(_INTERFACE), "The network interfaces."),
    Field("disks", _table(_DISK), "The file systems."),
    closed=False,
)


def _refuse(value: Data, message: Text) -> NoReturn:
    raise SnapshotError(value.path, message)


def normalised(data: Any) -> dict[str, Any]:
    """Return the mapping, which may lack `schema`, in its full form; SnapshotError says what is wrong with it."""
    named = {"schema": SCHEMA, **data} if isinstance(data, Mapping) else data
    found: dict[str, Any] = Validator(_refuse).judge(Data(named, name="snapshot"), SNAPSHOT)
    for key in ("uname", "environ"):
        found[key] = {name: value for name, value in (found.get(key) or {}).items() if value is not None}
    if len(found.get("covered") or ()) > COVERED_LIMIT:
        raise SnapshotError("covered", Message("more than {limit} patterns", limit=COVERED_LIMIT))
    target = found.get("target") or {}
    commands = found.get("commands")
    return {
        **found,
        "host": found.get("host") or "",
        "taken": found.get("taken") or "",
        "cwd": found.get("cwd") or "/",
        "euid": found.get("euid", 0),
        "now": float(found.get("now", 0)),
        "target": {name: value for name, value in target.items() if value is not None},
        "covered": found.get("covered"),
        "files": {path: _entry(entry) for path, entry in (found.get("files") or {}).items()},
        **({} if commands is None else {"commands": [*_commands(commands)]}),
        **{name: _table_rows(name, found[name]) for name in TABLES if found.get(name) is not None},
    }


def _entry(entry: Any) -> Any:
    if isinstance(entry, dict):
        if entry.get("dir") is True:
            entry["dir"] = None
        if "mtime" in entry:
            entry["mtime"] = float(entry["mtime"])
    return entry


def _commands(commands: Any) -> Iterable[dict[str, Any]]:
    """Return rows of `commands`, which are a list of rows, or short: `{"npu-smi info": "text"}`, `{...: {rc: 1}}`."""
    if isinstance(commands, list):
        for number, row in enumerate(commands):
            yield _command(f"commands[{number}]", row)
        return
    for line, result in commands.items():
        row = {"stdout": result} if isinstance(result, str) else result
        yield _command(f"commands: {line}", {"argv": line, **row})


def _command(where: str, row: Mapping[str, Any]) -> dict[str, Any]:
    argv = _words(row["argv"])
    if not argv:
        raise SnapshotError(where, Message("a command has at least one word"))
    error = row.get("error")
    if error is not None:
        return {"argv": argv, "error": COMMAND_ERRORS.get(error, error), "seconds": float(row.get("seconds", 0))}
    return {"argv": argv, "rc": row.get("rc", 0), "stdout": row.get("stdout", ""), "stderr": row.get("stderr", "")}


def _words(argv: Any) -> list[str]:
    return argv.split() if isinstance(argv, str) else list(argv or ())


def _table_rows(name: str, table: Any) -> Any:
    return [_ROWS[name](row) for row in table] if isinstance(table, list) else table


def _process(row: Mapping[str, Any]) -> dict[str, Any]:
    argv = _words(row.get("argv"))
    return {
        "pid": row["pid"],
        "ppid": row.get("ppid", 0),
        "user": row.get("user", ""),
        "name": row.get("name") or posixpath.basename(argv[0] if argv else ""),
        "argv": tuple(argv),
        "state": row.get("state", "S"),
        "started": float(row.get("started", 0)),
        "devices": tuple(row.get("devices") or ()),
        "opaque": row.get("opaque", False),
    }


def _listener(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "address": row["address"].strip("[]"),
        "port": row["port"],
        "pid": row.get("pid"),
        "process": row.get("process") or "",
    }


def _interface(row: Mapping[str, Any]) -> dict[str, Any]:
    addresses = tuple(re.split("[/%]", address)[0] for address in row.get("addresses") or ())
    return {"name": row["name"], "addresses": addresses, "up": row.get("up", True)}


_ROWS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "processes": _process,
    "listeners": _listener,
    "interfaces": _interface,
    "disks": dict,
}
