"""The type of a path, and the content of text files: for the checks of a site."""

from __future__ import annotations

import json
import posixpath
import re
from typing import Annotated, Any, Iterable, Iterator, Sequence

from envtune import expect
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Missing, Undetermined
from envtune.host import Host
from envtune.messages import N_, Message
from envtune.model import FileStat, Reading
from envtune.resources.files.value import missing, reading

MAX_LINES = 200  # readings of one file
_SECTION = re.compile(r"\[([^\]]*)\]\s*(?:[#;].*)?")
_SETTING = re.compile(r"([^\s=:#;]+)(?:\s*[=:]\s*|\s+)(.*)")


@probe("file.kind")
def kind(
    context: Context, *, path: Annotated[str, N_("Absolute path; symbolic links are followed.")]
) -> Iterable[Reading]:
    """Type of a path: `file`, `dir`, `link` (broken link), `char`, `block`, `fifo`, `socket` or `missing`."""
    _require_absolute(path)
    try:
        found = context.host.stat(path)
    except Missing:
        return [_broken_link(context.host, path)]
    return [reading(path, found.kind, path)]


def _broken_link(host: Host, path: str) -> Reading:
    try:
        host.stat(path, False)
    except Missing:
        return missing(path, path)
    shown = Message("a link to {target}, which is missing", target=host.readlink(path))
    return reading(path, "link", path, shown=shown)


@probe("file.mode")
def mode(
    context: Context, *, path: Annotated[str, N_("Absolute path; symbolic links are followed.")]
) -> Iterable[Reading]:
    """Mode of a file or directory as four octal digits, such as `0644`; `missing` if the file does not exist."""
    return [_stat_reading(context.host, path, lambda found: f"{found.mode & 0o7777:04o}")]


@probe("file.owner")
def owner(
    context: Context, *, path: Annotated[str, N_("Absolute path; symbolic links are followed.")]
) -> Iterable[Reading]:
    """Owner of a file or directory, by name or by number if it has no name; `missing` if the file does not exist."""
    host = context.host
    return [_stat_reading(host, path, lambda found: _account(host, "/etc/passwd", found.uid))]


@probe("file.group")
def group(
    context: Context, *, path: Annotated[str, N_("Absolute path; symbolic links are followed.")]
) -> Iterable[Reading]:
    """Group of a file or directory, by name or by number if it has no name; `missing` if the file does not exist."""
    host = context.host
    return [_stat_reading(host, path, lambda found: _account(host, "/etc/group", found.gid))]


def _stat_reading(host: Host, path: str, value: Any) -> Reading:
    _require_absolute(path)
    try:
        found: FileStat = host.stat(path)
    except Missing:
        return missing(path, path)
    return reading(path, value(found), path)


def _account(host: Host, table: str, number: int) -> str:
    """Return the name of a user or group; root's without reading, and the number if the table has no name."""
    if number == 0:
        return "root"
    try:
        rows = host.read(table).splitlines()
    except Missing:
        return str(number)
    fields = (row.split(":") for row in rows)
    return next((row[0] for row in fields if len(row) > 2 and row[2] == str(number)), str(number))


@probe("file.match")
def match(
    context: Context,
    *,
    path: Annotated[str, N_("Absolute path of a text file.")],
    pattern: Annotated[
        str, N_("Regular expression; its first group is the value, or the whole match if it has no group.")
    ],
) -> Iterable[Reading]:
    """Text that matches a pattern, for each matching line; empty if no line matches, `missing` without the file."""
    text = _text(context.host, path)
    if text is None:
        return [missing(path, path)]
    try:
        search = re.compile(pattern).search
    except re.error as error:
        reason = Message("{pattern} is not a regular expression: {error}", pattern=pattern, error=error)
        raise Undetermined(reason, path) from None
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        hit = search(line)
        if hit is not None:
            value = (hit.group(1) or "") if hit.re.groups else hit.group()
            found.append(reading(f"{path}:{number}", value, path, line))
    return found[:MAX_LINES] or [reading(path, "", path, shown=Message("no line matches"))]


@probe("file.setting")
def setting(
    context: Context,
    *,
    path: Annotated[str, N_("Absolute path of a text file.")],
    key: Annotated[str, N_("Key, the text before `=`, `:` or the first blank.")],
    section: Annotated[str, N_("Section that contains the key (`[section]`); all sections if not given.")] = "",
) -> Iterable[Reading]:
    """Value of a key in a file of `key = value`, `key: value` or `key value` lines; `missing` if not set.

    Lines that begin with `#` or `;` are comments. Quotes around a value, and an `export` before the key, are left out.
    """
    text = _text(context.host, path)
    if text is None:
        return [missing(f"{path}: {key}", path)]
    rows = [
        reading(f"{path}:{number} {key}", value, path, line)
        for number, line, name, value in _settings(text, section)
        if name == key
    ]
    return rows[:MAX_LINES] or [missing(f"{path}: {key}", path)]


def _settings(text: str, section: str) -> Iterator[tuple[int, str, str, str]]:
    """Yield (line number, line, key, value) of the section, or of all if it is empty."""
    current = ""
    for number, line in enumerate(text.splitlines(), 1):
        row = line.strip().removeprefix("export ")
        header = _SECTION.fullmatch(row)
        found = None if not row or row[0] in "#;" else _SETTING.fullmatch(row)
        if header is not None:
            current = header[1].strip()
        elif found is not None and section in ("", current):
            yield number, line, found[1], _unquoted(found[2].strip())


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


@probe("file.json")
def json_value(
    context: Context,
    *,
    path: Annotated[str, N_("Absolute path of a JSON file.")],
    key: Annotated[str, N_("Keys separated by dots (`default-ulimits.nofile.Soft`); a number selects a list item.")],
) -> Iterable[Reading]:
    """Value of a key in a JSON file; `missing` if the file or the key does not exist."""
    subject = f"{path}: {key}"
    text = _text(context.host, path)
    if text is None:
        return [missing(subject, path)]
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Undetermined(Message("{path} is not JSON: {error}", path=path, error=error), path) from None
    try:
        value = _picked(data, key.split("."))
    except LookupError:
        return [missing(subject, path)]
    if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
        return [reading(subject, expect.value_text(value), path)._replace(value=tuple(map(expect.value_text, value)))]
    plain = json.dumps(value) if isinstance(value, (dict, list)) else expect.value_text(value)
    return [reading(subject, plain, path)]


def _picked(data: Any, keys: Sequence[str]) -> Any:
    """Return the value below the keys; of keys joined by dots the longest is tried first. Raises LookupError."""
    if not keys:
        return data
    if isinstance(data, list):
        if not keys[0].isdecimal():
            raise KeyError(keys[0])
        return _picked(data[int(keys[0])], keys[1:])
    for count in range(len(keys), 0, -1):
        name = ".".join(keys[:count])
        if isinstance(data, dict) and name in data:
            return _picked(data[name], keys[count:])
    raise LookupError(".".join(keys))


def _text(host: Host, path: str) -> Any:
    """Return the text of a file, None if it is missing."""
    _require_absolute(path)
    try:
        return host.read(path)
    except Missing:
        return None


def _require_absolute(path: str) -> None:
    if not path.startswith("/") or posixpath.normpath(path) != path:
        raise Undetermined(Message("{path} is not an absolute path without `..`, `//` or a final `/`", path=path), path)
