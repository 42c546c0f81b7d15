"""Whether a snapshot mapping has the shape that docs/snapshot.md describes. Checked once, so that nothing trips later.

`normalised` gives a mapping in which every table is in its full form and every value of its type, or raises
`SnapshotError` naming the place: `processes[3].pid: a whole number is expected, not "x"`. Keys that are not known are
left alone at the top and in the tables (a later collector may say more); in file entries and commands, which people
write by hand, they are refused, because a misspelt key would silently mean "not recorded".
"""

from __future__ import annotations

import posixpath
import re
from typing import Any, Callable, Iterator, Mapping, Optional

from envtune.errors import SnapshotError
from envtune.messages import Bilingual, Message
from envtune.snapshot.values import (
    entry_path,
    mapping,
    number,
    optional_mapping,
    path,
    refused,
    text,
    texts,
    whole,
    word,
)

SCHEMA = "envtune.snapshot/1"
KINDS = ("char", "block", "fifo", "socket")
ENTRY_KEYS = frozenset(
    ("link", "dir", "text", "base64", "size", "mode", "uid", "gid", "mtime", "error", "record_digest", "head", *KINDS)
)
COMMAND_KEYS = frozenset(("argv", "rc", "stdout", "stderr", "error", "seconds"))
COMMAND_ERRORS = {"ENOENT": "missing", "EACCES": "denied", "EPERM": "denied", "ETIMEDOUT": "timeout"}
TABLES = ("processes", "listeners", "interfaces", "disks")


def normalised(data: Any) -> dict[str, Any]:
    """The mapping in its full form; raises SnapshotError naming what is not as it should be."""
    found = dict(mapping("snapshot", data))
    schema = found.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise refused("schema", SCHEMA, schema)
    for key in ("host", "taken", "cwd"):
        found[key] = text(key, found.get(key) or "")
    found["cwd"] = path("cwd", found["cwd"] or "/")
    found["euid"] = whole("euid", found.get("euid", 0))
    found["now"] = number("now", found.get("now", 0))
    found["uname"] = {k: text(f"uname.{k}", v) for k, v in optional_mapping("uname", found).items() if v is not None}
    environ = optional_mapping("environ", found)
    found["environ"] = {text("environ", k): word(f"environ.{k}", v) for k, v in environ.items() if v is not None}
    found["target"] = _target(optional_mapping("target", found))
    found["covered"] = _covered(found.get("covered"))
    found["files"] = {entry_path(k): entry(k, v) for k, v in optional_mapping("files", found).items()}
    if found.get("commands") is not None:
        found["commands"] = list(command_rows(found["commands"]))
    for name in TABLES:
        if found.get(name) is not None:
            found[name] = _table(name, found[name])
    return found


# ---------------------------------------------------------------------------------------------------- structures


def _target(value: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        key: text(f"target.{key}", value[key]) for key in ("python", "script", "env_file") if value.get(key) is not None
    }
    if value.get("pid") is not None:
        found["pid"] = whole("target.pid", value["pid"])
    if value.get("peers") is not None:
        found["peers"] = texts("target.peers", value["peers"])
    return found


def _covered(value: Any) -> Optional[list[str]]:
    if value is None:
        return None
    return [path(f"covered[{place}]", one) for place, one in enumerate(texts("covered", value))]


def entry(where: str, value: Any) -> Any:
    """One entry of `files`: null, text, bytes or a mapping of known keys."""
    where = f"files: {where}"
    if value is None or isinstance(value, bytes):
        return value
    if not isinstance(value, Mapping):
        return text(where, value)
    _only(where, value, ENTRY_KEYS)
    made: dict[str, Any] = {}
    for key, one in value.items():
        made[key] = _ENTRY_FORMS[key](f"{where}: {key}", one)
    return made


def _only(where: str, value: Mapping[str, Any], known: frozenset[str]) -> None:
    for key in mapping(where, value):
        if key not in known:
            raise SnapshotError(
                where,
                Bilingual(
                    f"{key} is not one of {', '.join(sorted(known))}", f"{key} 不在 {'、'.join(sorted(known))} 之中"
                ),
            )


def _names(where: str, value: Any) -> Optional[list[str]]:
    if value is None or value is True:
        return None
    names = texts(where, value)
    for name in names:
        if not name or "/" in name or name in (".", "..") or "\0" in name:
            raise refused(where, "the name of a file", name)
    return names


def _mode(where: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch("[0-7]{1,5}", value):
        raise refused(where, 'an octal mode in quotes ("0644")', value)
    return value


def _true(where: str, value: Any) -> bool:
    if value is not True:
        raise refused(where, "true", value)
    return True


def _hexadecimal(where: str, value: Any) -> str:
    try:
        bytes.fromhex(text(where, value))
    except ValueError:
        raise refused(where, "hexadecimal digits", value) from None
    return str(value)


def _base64(where: str, value: Any) -> str:
    import base64

    try:
        base64.b64decode(text(where, value), validate=True)
    except ValueError:
        raise refused(where, "base64", value) from None
    return str(value)


_ENTRY_FORMS: Mapping[str, Callable[[str, Any], Any]] = {
    "link": text,
    "dir": _names,
    "text": text,
    "base64": _base64,
    "size": whole,
    "mode": _mode,
    "uid": whole,
    "gid": whole,
    "mtime": number,
    "error": text,
    "record_digest": text,
    "head": _hexadecimal,
    **dict.fromkeys(KINDS, _true),
}


def command_rows(value: Any) -> Iterator[dict[str, Any]]:
    """Rows of `commands`, which are a list of rows, or short: `{"npu-smi info": "text"}`, `{...: {rc: 1}}`."""
    if isinstance(value, Mapping):
        for line, result in mapping("commands", value).items():
            row = {"stdout": result} if isinstance(result, str) else dict(mapping(f"commands: {line}", result))
            yield _command(f"commands: {line}", {"argv": line.split(), **row})
        return
    if not isinstance(value, (list, tuple)):
        raise refused("commands", "a mapping or a list", value)
    for place, one in enumerate(value):
        yield _command(f"commands[{place}]", dict(mapping(f"commands[{place}]", one)))


def _command(where: str, row: dict[str, Any]) -> dict[str, Any]:
    _only(where, row, COMMAND_KEYS)
    argv = row.get("argv")
    made: dict[str, Any] = {"argv": argv.split() if isinstance(argv, str) else texts(f"{where}.argv", argv)}
    if not made["argv"]:
        raise SnapshotError(where, Message("a command has at least one word"))
    if row.get("error") is not None:
        said = text(f"{where}.error", row["error"])
        made["error"] = COMMAND_ERRORS.get(said, said)
        if made["error"] not in ("missing", "denied", "timeout"):
            raise refused(f"{where}.error", "missing, denied or timeout", said)
        made["seconds"] = number(f"{where}.seconds", row.get("seconds", 0))
        return made
    made["rc"] = whole(f"{where}.rc", row.get("rc", 0))
    for key in ("stdout", "stderr"):
        made[key] = text(f"{where}.{key}", row.get(key, ""))
    return made


# ---------------------------------------------------------------------------------------------------- tables


def _table(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        if "error" not in value:
            raise refused(name, 'a list, or {"error": "EACCES"}', value)
        return {"error": text(f"{name}.error", value["error"])}
    if not isinstance(value, (list, tuple)):
        raise refused(name, "a list", value)
    form = _ROWS[name]
    return [form(f"{name}[{place}]", mapping(f"{name}[{place}]", row)) for place, row in enumerate(value)]


def _need(where: str, row: Mapping[str, Any], key: str) -> Any:
    if row.get(key) is None:
        raise SnapshotError(where, Message("{key} is missing", key=key))
    return row[key]


def _process(where: str, row: Mapping[str, Any]) -> dict[str, Any]:
    argv = row.get("argv") or ()
    words = argv.split() if isinstance(argv, str) else texts(f"{where}.argv", argv)
    return {
        "pid": whole(f"{where}.pid", _need(where, row, "pid")),
        "ppid": whole(f"{where}.ppid", row.get("ppid", 0)),
        "user": word(f"{where}.user", row.get("user", "")),
        "name": text(f"{where}.name", row.get("name") or posixpath.basename(words[0] if words else "")),
        "argv": tuple(words),
        "state": text(f"{where}.state", row.get("state", "S")),
        "started": number(f"{where}.started", row.get("started", 0)),
        "devices": tuple(texts(f"{where}.devices", row.get("devices") or ())),
        "opaque": bool(row.get("opaque", False)),
    }


def _listener(where: str, row: Mapping[str, Any]) -> dict[str, Any]:
    port = whole(f"{where}.port", _need(where, row, "port"))
    if not 0 <= port <= 65535:
        raise refused(f"{where}.port", "a port", port)
    pid = row.get("pid")
    return {
        "address": text(f"{where}.address", _need(where, row, "address")).strip("[]"),
        "port": port,
        "pid": None if pid is None else whole(f"{where}.pid", pid),
        "process": text(f"{where}.process", row.get("process") or ""),
    }


def _interface(where: str, row: Mapping[str, Any]) -> dict[str, Any]:
    addresses = texts(f"{where}.addresses", row.get("addresses") or ())
    return {
        "name": text(f"{where}.name", _need(where, row, "name")),
        "addresses": tuple(re.split("[/%]", one)[0] for one in addresses),
        "up": bool(row.get("up", True)),
    }


def _disk(where: str, row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "path": path(f"{where}.path", _need(where, row, "path")),
        "total": whole(f"{where}.total", _need(where, row, "total")),
        "free": whole(f"{where}.free", _need(where, row, "free")),
    }


_ROWS: Mapping[str, Callable[[str, Mapping[str, Any]], dict[str, Any]]] = {
    "processes": _process,
    "listeners": _listener,
    "interfaces": _interface,
    "disks": _disk,
}
