"""Open a snapshot: a directory, a tar (also gzipped), or one JSON file. The input may be hostile.

Only names defined by the format are read. Nothing is ever unpacked; directories are walked with `O_NOFOLLOW`, so
no link of the snapshot is followed by the operating system. Links below `files/` are recorded as links and resolve
inside the recorded tree. Sizes and counts are bounded (`LIMITS`); what violates a rule is refused, with its name.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from pathlib import Path
from typing import IO, Any, Iterator, NamedTuple, Optional, Union

from envtune.errors import SnapshotError, system_error_text
from envtune.messages import Message
from envtune.snapshot.archive import read_archive, special
from envtune.snapshot.host import SnapshotHost
from envtune.snapshot.json import read_json
from envtune.snapshot.schema import SCHEMA


class Limits(NamedTuple):
    """Limits of a snapshot: bytes when unpacked, bytes of one member, number of members, depth of directories."""

    total: int = 128 * 1024 * 1024
    member: int = 32 * 1024 * 1024
    members: int = 50_000
    depth: int = 64


LIMITS = Limits()
TABLES = ("files", "commands", "processes", "listeners", "interfaces", "disks")
MANIFEST = "manifest.json"


class Link(NamedTuple):
    """A symbolic link among the members."""

    target: str


class Folder(NamedTuple):
    """A directory among the members."""


Member = Union[bytes, Link, Folder]


def too_large(name: str, limit: int) -> SnapshotError:
    """Return the error for a member of more than `limit` bytes."""
    return SnapshotError(name, Message("larger than {limit} MiB", limit=limit >> 20))


def open_snapshot(path: Union[str, Path]) -> SnapshotHost:
    """Return the recorded host in `path`; raises SnapshotError, which names the file and the wrong member."""
    place = os.fspath(path)
    try:
        kind = os.stat(place).st_mode
        if stat.S_ISDIR(kind):
            members = _from_directory(place)
        elif stat.S_ISREG(kind):
            members = _from_file(place)
        else:
            raise SnapshotError("", Message("neither a directory nor a file"))
        return SnapshotHost(assembled(members))
    except SnapshotError as error:
        raise error.below(place) from None
    except OSError as error:
        raise SnapshotError(place, system_error_text(error)) from None
    except (MemoryError, RecursionError):
        raise SnapshotError(place, Message("too large or too deeply nested to be a snapshot")) from None


def read_snapshot(file: IO[bytes], name: str) -> SnapshotHost:
    """Return the recorded host in an open file, which has the name `name` in a SnapshotError."""
    try:
        return SnapshotHost(assembled(_from_open_file(file)))
    except SnapshotError as error:
        raise error.below(name) from None
    except RecursionError:
        raise SnapshotError(name, Message("too large or too deeply nested to be a snapshot")) from None


def assembled(members: dict[str, Member]) -> dict[str, Any]:
    """Return the single mapping built from the members."""
    members = _without_top_folder(members)
    manifest = members.get(MANIFEST)
    if not isinstance(manifest, bytes):
        raise SnapshotError(
            "",
            Message("{MANIFEST} is missing: not a snapshot (docs/snapshot.md)", MANIFEST=MANIFEST),
        )
    data = read_json(MANIFEST, manifest)
    if not isinstance(data, dict):
        raise SnapshotError(MANIFEST, Message("a mapping is expected"))
    _require_schema(data)
    for name in TABLES:
        content = members.get(f"{name}.json")
        if content is None:
            continue
        if not isinstance(content, bytes):
            raise SnapshotError(f"{name}.json", Message("not a regular file"))
        if name in data:
            raise SnapshotError(f"{name}.json", Message("the same table is also in {MANIFEST}", MANIFEST=MANIFEST))
        data[name] = read_json(f"{name}.json", content)
    _add_tree(data, members)
    _add_commands(data, members)
    return data


def _require_schema(data: dict[str, Any]) -> None:
    if "schema" not in data:
        raise SnapshotError(MANIFEST, Message('"schema" is missing; this envtune reads "{SCHEMA}"', SCHEMA=SCHEMA))
    if data["schema"] != SCHEMA:
        raise SnapshotError(
            MANIFEST,
            Message('schema is {said}; this envtune reads "{SCHEMA}"', said=repr(data["schema"]), SCHEMA=SCHEMA),
        )


def _without_top_folder(members: dict[str, Member]) -> dict[str, Member]:
    """Return the members without the top directory of `tar czf host.tar.gz host/`."""
    if MANIFEST in members:
        return members
    tops = {name.split("/")[0] for name in members}
    top = tops.pop() if len(tops) == 1 else ""
    if f"{top}/{MANIFEST}" not in members:
        return members
    return {name[len(top) + 1 :]: member for name, member in members.items() if name != top}


def _add_tree(data: dict[str, Any], members: dict[str, Member]) -> None:
    """Add what is below `files/`, a root file system; files.json has what a tree cannot express."""
    tree: dict[str, Any] = {}
    for name, member in members.items():
        if name.startswith("files/"):
            tree[name[len("files") :]] = _entry(name, member)
    if not tree:
        return
    said = data.get("files") or {}
    if not isinstance(said, dict):
        raise SnapshotError("files.json", Message("a mapping is expected"))
    for path, entry in said.items():
        tree[path] = _merged(tree.get(path), entry)
    data["files"] = tree


def _entry(name: str, member: Member) -> Any:
    if isinstance(member, Folder):
        return {"dir": None}
    if isinstance(member, Link):
        return {"link": _inside(name, member.target)}
    return member


def _merged(content: Any, entry: Any) -> Any:
    """Return the entry in files.json, with the content from the tree if it only has mode, owner and time."""
    if isinstance(entry, dict) and isinstance(content, bytes) and set(entry) <= {"mode", "uid", "gid", "mtime", "size"}:
        import base64

        try:
            return {"text": content.decode("utf-8"), **entry}
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(content).decode("ascii"), **entry}
    return entry


def _inside(name: str, target: str) -> str:
    """Return the target of a recorded link; refused if it leaves the recorded root."""
    depth = name.count("/") - 1  # files/etc/x is one directory below the recorded root
    for part in target.split("/") if not target.startswith("/") else ():
        depth += -1 if part == ".." else 0 if part in ("", ".") else 1
        if depth < 0:
            raise SnapshotError(name, Message("the link points outside the snapshot ({target})", target=target))
    if not target or "\0" in target:
        raise SnapshotError(name, Message("an empty link"))
    return target


def _add_commands(data: dict[str, Any], members: dict[str, Member]) -> None:
    """Add the files of `commands/`: each is the standard output of the command it is named after."""
    found = {
        name[len("commands/") :]: member
        for name, member in members.items()
        if name.startswith("commands/") and not isinstance(member, Folder)
    }
    if not found:
        return
    said = data.get("commands")
    rows: list[Any] = []
    if isinstance(said, dict):
        rows = [{"argv": line, **(r if isinstance(r, dict) else {"stdout": r})} for line, r in said.items()]
    elif isinstance(said, list):
        rows = list(said)
    for line, content in found.items():
        if not isinstance(content, bytes) or "/" in line:
            raise SnapshotError(f"commands/{line}", Message("not a file named after a command"))
        rows.append({"argv": line, "stdout": content.decode("utf-8", "replace")})
    data["commands"] = rows


# ---------------------------------------------------------------------------------------------------- a directory


class _Budget:
    """Counts members and bytes, and refuses what is beyond LIMITS."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._members = 0
        self._bytes = 0

    def member(self, name: str, size: int = 0) -> None:
        self._members += 1
        self._bytes += size
        if self._members > self._limits.members:
            raise SnapshotError(name, Message("more than {members} members", members=self._limits.members))
        if size > self._limits.member:
            raise too_large(name, self._limits.member)
        if self._bytes > self._limits.total:
            total = self._limits.total >> 20
            raise SnapshotError(name, Message("more than {total} MiB in all", total=total))
        if name.count("/") > self._limits.depth:
            depth = self._limits.depth
            raise SnapshotError(name[:200], Message("directories nested deeper than {depth}", depth=depth))


def _from_directory(path: str) -> dict[str, Member]:
    members: dict[str, Member] = {}
    budget = _Budget(LIMITS)
    root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        names = set(os.listdir(root))
        for name in [MANIFEST, *(f"{table}.json" for table in TABLES)]:
            if name in names:
                members[name] = _one(root, name, name, budget)
        for folder in ("files", "commands"):
            if folder in names:
                members.update(_walk(root, folder, folder, budget))
    finally:
        os.close(root)
    return members


def _walk(parent: int, name: str, shown: str, budget: _Budget) -> Iterator[tuple[str, Member]]:
    try:
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise SnapshotError(shown, Message("a directory is expected, not a link or a file")) from None
        raise SnapshotError(shown, system_error_text(error)) from None
    try:
        for one in sorted(os.listdir(folder)):
            full = _named(f"{shown}/{one}")
            if stat.S_ISDIR(os.lstat(one, dir_fd=folder).st_mode):
                budget.member(full)
                yield full, Folder()
                yield from _walk(folder, one, full, budget)
            else:
                yield full, _one(folder, one, full, budget)
    finally:
        os.close(folder)


def _one(folder: int, name: str, shown: str, budget: _Budget) -> Member:
    """Return a file or link of a directory; refuse anything else."""
    found = os.lstat(name, dir_fd=folder)
    if stat.S_ISLNK(found.st_mode) and shown.startswith("files/"):
        budget.member(shown)
        return Link(_named(os.readlink(name, dir_fd=folder), shown))
    if not stat.S_ISREG(found.st_mode):
        raise special(shown)
    budget.member(shown, found.st_size)
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        raise SnapshotError(shown, system_error_text(error)) from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise special(shown)
        data = file.read(found.st_size + 1)
    if len(data) > found.st_size:
        raise SnapshotError(shown, Message("it grows while it is read"))
    return data


def _named(name: str, shown: Optional[str] = None) -> str:
    """Return the name, if it is text."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise SnapshotError(f"{(shown or name)!a}", Message("a name that is not UTF-8")) from None
    return name


# ---------------------------------------------------------------------------------------------------- a file


def _from_file(path: str) -> dict[str, Member]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return _from_open_file(file)


def _from_open_file(file: IO[bytes]) -> dict[str, Member]:
    start = file.read(512)
    file.seek(0)
    if start.lstrip()[:1] == b"{":
        data = file.read(LIMITS.member + 1)
        if len(data) > LIMITS.member:
            raise too_large("", LIMITS.member)
        return {MANIFEST: data}
    budget = _Budget(LIMITS)
    return {name: _member(name, member) for name, member in read_archive(file, budget.member, LIMITS.total)}


def _member(name: str, member: Any) -> Member:
    if isinstance(member, bytes):
        return member
    if member is None:
        return Folder()
    if not name.startswith("files/") and "/files/" not in name:
        raise SnapshotError(name, Message("a link where a file is expected"))
    return Link(_named(member, posixpath.basename(name)))
