"""`SnapshotHost`: a recorded host that answers like a live one. The format is `envtune.snapshot/1`, docs/snapshot.md.

A snapshot is one mapping (`host, taken, uname, euid, cwd, environ, covered, files, commands, processes, listeners,
interfaces, disks, target`). The examples in the catalogue write it inline; `snapshot_file.py` reads it from a directory
or a tar.gz. What the mapping does not mention is absent where the recorder looked (`covered`), and `NotRecorded`
elsewhere; without `covered` the recorder is taken to have looked everywhere.
"""

from __future__ import annotations

import fnmatch
import io
import posixpath
import re
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

from envtune import collector
from envtune.errors import Denied, Missing, NotRecorded, SnapshotError, TimedOut, Unreadable
from envtune.host import command_result, decode
from envtune.model import CommandResult, Disk, FileStat, Interface, Listener, Process

Entry = Union[str, bytes, Mapping[str, Any]]
SCHEMA = "envtune.snapshot/1"
_KINDS = ("char", "block", "fifo", "socket")


class SnapshotHost:
    """A recorded host. `data` is the mapping described in docs/snapshot.md."""

    live = False

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self.uname: Mapping[str, str] = {
            "sysname": "Linux",
            "nodename": "recorded",
            "release": "",
            "machine": "",
            **data.get("uname", {}),
        }
        self.name = str(data.get("host") or self.uname["nodename"])
        self.euid = int(data.get("euid", 0))
        self.cwd = str(data.get("cwd", "/"))
        self.now = float(data.get("now", 0.0))
        self.environ: Mapping[str, str] = dict(data.get("environ", {}))
        self._covered: Optional[Sequence[str]] = data.get("covered")
        self._entries: dict[str, Optional[Entry]] = {}
        self._children: dict[str, set[str]] = {"/": set()}
        for path, entry in data.get("files", {}).items():
            self._add(path, entry)
        self._commands = {tuple(row["argv"]): row for row in command_rows(data.get("commands", {}))}

    # ------------------------------------------------------------------ the file tree

    def _add(self, path: str, entry: Optional[Entry]) -> None:
        if not path.startswith("/") or posixpath.normpath(path) != path:
            raise SnapshotError(f"{path}: a recorded path is absolute and has no `..` or `//`")
        self._entries[path] = entry
        if entry is None:
            return
        while path != "/":
            parent = posixpath.dirname(path)
            self._children.setdefault(parent, set()).add(posixpath.basename(path))
            path = parent

    def _locate(self, path: str, follow: bool = True) -> str:
        """The recorded path behind `path`, with the links of its directories (and its own, if `follow`) resolved."""
        done, hops = "/", 40
        parts = [p for p in path.split("/") if p not in ("", ".")]
        while parts:
            part = parts.pop(0)
            if part == "..":
                done = posixpath.dirname(done)
                continue
            step = posixpath.join(done, part)
            link = self._link(step) if parts or follow else None
            if link is None:
                done = step
                continue
            hops -= 1
            if hops < 0:
                raise Unreadable(path, "too many levels of symbolic links")
            done = "/" if link.startswith("/") else done
            parts = [p for p in link.split("/") if p not in ("", ".")] + parts
        return done

    def _link(self, path: str) -> Optional[str]:
        entry = self._entries.get(path)
        return entry.get("link") if isinstance(entry, Mapping) else None

    def _entry(self, path: str) -> Entry:
        """The entry at exactly `path`; raises what the recorder met there."""
        entry = self._entries.get(path)
        if entry is None:
            if path not in self._entries and path not in self._children:
                self._absent(path)
            if path in self._entries:
                raise Missing(path)
            return {"dir": sorted(self._children[path])}
        if isinstance(entry, Mapping) and "error" in entry:
            raise _recorded_error(str(entry["error"]), path)
        return entry

    def _absent(self, path: str) -> None:
        """Missing where the recorder looked, NotRecorded where it did not; below a closed directory, its error."""
        parent = path
        while parent != "/":
            parent = posixpath.dirname(parent)
            closed = self._entries.get(parent)
            if isinstance(closed, Mapping) and "error" in closed:
                raise _recorded_error(str(closed["error"]), path)
        if self._covered is None or any(covers(pattern, path) for pattern in self._covered):
            raise Missing(path)
        listing = self._entries.get(posixpath.dirname(path))
        if isinstance(listing, Mapping) and "dir" in listing and posixpath.basename(path) not in listing["dir"]:
            raise Missing(path)
        raise NotRecorded(path, "the snapshot does not say")

    def read_bytes(self, path: str) -> bytes:
        where = self._locate(path)
        entry = self._entry(where)
        if isinstance(entry, bytes):
            return entry
        if isinstance(entry, str):
            return entry.encode("utf-8")
        if "text" in entry:
            return str(entry["text"]).encode("utf-8")
        if "dir" in entry or any(kind in entry for kind in _KINDS):
            raise Unreadable(path, "not a regular file")
        raise NotRecorded(path, "its content was not recorded")

    def read(self, path: str) -> str:
        return decode(path, self.read_bytes(path))

    def head(self, path: str) -> bytes:
        entry = self._entry(self._locate(path))
        if isinstance(entry, Mapping) and "head" in entry:
            try:
                return bytes.fromhex(str(entry["head"]))
            except ValueError:
                raise Unreadable(path, "its recorded head is not hexadecimal") from None
        return self.read_bytes(path)[: collector.HEAD_SIZE]

    def stat(self, path: str, follow: bool = True) -> FileStat:
        entry = self._entry(self._locate(path, follow))
        if isinstance(entry, (str, bytes)):
            return FileStat("file", size=len(entry.encode("utf-8") if isinstance(entry, str) else entry))
        kind = "dir" if "dir" in entry else "link" if "link" in entry else "file"
        kind = next((k for k in _KINDS if k in entry), kind)
        size = entry.get("size", len(str(entry.get("text", "")).encode("utf-8")))
        mode = int(str(entry["mode"]), 8) if "mode" in entry else (0o755 if kind == "dir" else 0o644)
        return FileStat(
            kind, mode, int(entry.get("uid", 0)), int(entry.get("gid", 0)), int(size), float(entry.get("mtime", 0.0))
        )

    def readlink(self, path: str) -> str:
        entry = self._entry(self._locate(path, follow=False))
        if isinstance(entry, Mapping) and "link" in entry:
            return str(entry["link"])
        raise Unreadable(path, "not a symbolic link")

    def listdir(self, path: str) -> tuple[str, ...]:
        where = self._locate(path)
        entry = self._entry(where)
        if not isinstance(entry, Mapping) or "dir" not in entry:
            raise Unreadable(path, "not a directory")
        return tuple(sorted(set(entry["dir"]) | self._children.get(where, set())))

    def glob(self, pattern: str) -> tuple[str, ...]:
        found = list(self._glob("/", [p for p in pattern.split("/") if p]))
        if not found and self._covered is not None and not self._looked_for(pattern):
            raise NotRecorded(pattern, "the snapshot does not say")
        return tuple(sorted(found))

    def _glob(self, base: str, parts: list[str]) -> Iterator[str]:
        if not parts:
            yield base
            return
        head, rest = parts[0], parts[1:]
        if not re.search(r"[*?\[]", head):
            names: Sequence[str] = (head,)
        else:
            try:
                names = [n for n in self.listdir(base) if fnmatch.fnmatchcase(n, head) and not n.startswith(".")]
            except (Missing, Denied, NotRecorded, Unreadable):
                return
        for name in names:
            step = posixpath.join(base, name)
            try:
                self.stat(step, follow=bool(rest))
            except (Missing, NotRecorded):
                continue
            except (Denied, Unreadable, TimedOut):
                if rest:
                    continue
            yield from self._glob(step, rest)

    def _looked_for(self, pattern: str) -> bool:
        return any(pattern == c or covers(c, pattern.replace("*", "x").replace("?", "x")) for c in self._covered or ())

    def record_digest(self, path: str) -> str:
        where = self._locate(path)
        entry = self._entry(where)
        if isinstance(entry, Mapping) and "record_digest" in entry:
            return str(entry["record_digest"])
        try:
            if path.endswith(".whl"):
                return collector.record_digest(collector.wheel_record(io.BytesIO(self.read_bytes(where))))
            return collector.record_digest(self.read(where))
        except OSError as error:
            raise error if isinstance(error, (Missing, NotRecorded)) else Unreadable(path, str(error)) from None

    # ------------------------------------------------------------------ the tables

    def run(self, argv: Sequence[str], timeout: float = 5.0) -> CommandResult:
        row = self._commands.get(tuple(argv))
        if row is None:
            if any(known[:1] == tuple(argv[:1]) and "error" in r for known, r in self._commands.items()):
                raise Missing(" ".join(argv), "command not found")
            raise NotRecorded(" ".join(argv), "the snapshot does not hold this command")
        return command_result(row)

    def processes(self) -> tuple[Process, ...]:
        return tuple(Process(**_tuples(row)) for row in self._table("processes"))

    def listeners(self) -> tuple[Listener, ...]:
        return tuple(Listener(row["address"], int(row["port"])) for row in self._table("listeners"))

    def owner(self, listener: Listener) -> Listener:
        for row in self._table("listeners"):
            if row["address"] == listener.address and int(row["port"]) == listener.port:
                return Listener(listener.address, listener.port, row.get("pid"), str(row.get("process", "")))
        return listener

    def interfaces(self) -> tuple[Interface, ...]:
        return tuple(Interface(**_tuples(row)) for row in self._table("interfaces"))

    def disk(self, path: str) -> Disk:
        """The recorded file system with the longest prefix of `path`."""
        rows = sorted(self._table("disks"), key=lambda row: len(row["path"]), reverse=True)
        for row in rows:
            if covers(row["path"].rstrip("/") + "/**", path) or row["path"] == path:
                return Disk(path, int(row["total"]), int(row["free"]))
        raise NotRecorded(path, "its file system was not recorded")

    def _table(self, name: str) -> Sequence[Mapping[str, Any]]:
        table = self.data.get(name)
        if table is None:
            raise NotRecorded(name, "the snapshot does not hold this table")
        if isinstance(table, Mapping):  # {"error": "EACCES"}
            raise _recorded_error(str(table.get("error")), name)
        return list(table)


def covers(pattern: str, path: str) -> bool:
    """Whether a covered pattern speaks of `path`: segments match one by one, a final `**` covers everything below."""
    want, have = pattern.strip("/").split("/"), path.strip("/").split("/")
    if want[-1] == "**":
        want, have = want[:-1], have[: len(want) - 1]
    return len(want) == len(have) and all(fnmatch.fnmatchcase(h, w) for h, w in zip(have, want))


def command_rows(commands: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]]) -> Iterator[Mapping[str, Any]]:
    """Rows of the full form, or of the short one: `{"npu-smi info": "text"}` or `{..: {rc: 1}}`."""
    if not isinstance(commands, Mapping):
        yield from commands
        return
    for line, result in commands.items():
        row = {"stdout": result} if isinstance(result, str) else dict(result)
        yield {"argv": line.split(), **({} if "error" in row else {"rc": 0}), **row}


def _recorded_error(code: str, path: str) -> Exception:
    if code in ("EACCES", "EPERM"):
        return Denied(path)
    if code in ("ENOENT", "missing"):
        return Missing(path)
    if code in ("ETIMEDOUT", "timeout", "ESTALE"):
        return TimedOut(path, "no answer when the snapshot was taken")
    return Unreadable(path, code)


def _tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
