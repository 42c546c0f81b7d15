"""`SnapshotHost`: a recorded host with a live one's interface. The format is `envtune.snapshot/1`, docs/snapshot.md.

A snapshot is one mapping (`host, taken, now, uname, euid, cwd, environ, target, covered, files, commands, processes,
listeners, interfaces, disks`). The examples in the catalog write it inline; `snapshot_file.py` reads it from a
directory, a tar.gz or a JSON file. What the mapping does not mention is absent where the recorder looked (`covered`),
and `NotRecorded` elsewhere; without `covered` the recorder is assumed to have looked everywhere. An absent table is
`NotRecorded`.
"""

from __future__ import annotations

import io
from typing import Any, Mapping, Optional, Sequence

from envtune.collector.files import HEAD_SIZE
from envtune.collector.wheels import record_digest, wheel_record
from envtune.errors import NO_COMMAND, Denied, HostError, Missing, NotRecorded, TimedOut, Unreadable
from envtune.host import command_result, decode
from envtune.model import CommandResult, Disk, FileStat, Interface, Listener, Process
from envtune.snapshot.schema import KINDS, normalised
from envtune.snapshot.tree import Tree, recorded_error
from envtune.trust.programs import SYSTEM_DIRECTORIES

SYSTEM_FOLDERS = frozenset(SYSTEM_DIRECTORIES)


class SnapshotHost:
    """A recorded host. `data` is the mapping described in docs/snapshot.md; raises SnapshotError if it is not one."""

    live = False

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data = normalised(data)
        names = {"sysname": "Linux", "nodename": data["host"] or "recorded", "release": "", "machine": ""}
        self.uname: Mapping[str, str] = {**names, **data["uname"]}
        self.name: str = data["host"] or self.uname["nodename"]
        self.euid: int = data["euid"]
        self.cwd: str = data["cwd"]
        self.now: float = data["now"]
        self.environ: Mapping[str, str] = data["environ"]
        self._commands: Mapping[tuple[str, ...], Any] = {tuple(row["argv"]): row for row in data.get("commands") or ()}
        absent = (argv[0] for argv, row in self._commands.items() if row.get("error") == "missing")
        self._absent: Mapping[str, bool] = dict.fromkeys(absent, True)
        files = data["files"]
        if data["covered"] is None:
            files = {**{path: {"size": 0, "mode": "0755"} for path in self._programs(files)}, **files}
        self._tree = Tree(files, data["covered"])
        self._processes: Optional[tuple[Process, ...]] = None
        self._given: dict[str, bytes] = {}

    def give(self, path: str, data: bytes) -> None:
        """Use this content for the file at `path`, whatever was recorded: it is the user's own file."""
        self._given[path] = data

    def _programs(self, files: Mapping[str, Any]) -> set[str]:
        """Return the locations of programs with recorded output, for a hand-written host that does not give them."""
        found = set()
        for argv, row in self._commands.items():
            if "error" not in row and "/" not in argv[0]:
                places = {f"{folder}/{argv[0]}" for folder in SYSTEM_FOLDERS}
                if not places & set(files):
                    found.add(f"/usr/bin/{argv[0]}")
        return found

    # ------------------------------------------------------------------ the file tree

    def read_bytes(self, path: str) -> bytes:
        """Return the recorded content; raises NotRecorded if only the size was kept."""
        return self._given[path] if path in self._given else self._tree.content(path)

    def read(self, path: str) -> str:
        """Return the recorded content as text; raises Unreadable if it is not UTF-8."""
        return decode(path, self.read_bytes(path))

    def head(self, path: str) -> bytes:
        """Return the first 64 bytes, recorded alone or with the content."""
        if path in self._given:
            return self._given[path][:HEAD_SIZE]
        entry = self._tree.entry(self._tree.locate(path))
        if isinstance(entry, Mapping) and "head" in entry:
            return bytes.fromhex(entry["head"])
        return self.read_bytes(path)[:HEAD_SIZE]

    def stat(self, path: str, follow: bool = True) -> FileStat:
        """Return the recorded status; defaults are owner root, mode 0644 (directories 0755) and the content's size."""
        if path in self._given:
            return FileStat("file", size=len(self._given[path]))
        where = self._tree.locate(path, follow)
        entry = self._tree.entry(where)
        if isinstance(entry, (str, bytes)):
            return FileStat("file", size=len(entry.encode("utf-8") if isinstance(entry, str) else entry))
        kind = "dir" if "dir" in entry else "link" if "link" in entry else "file"
        kind = next((k for k in KINDS if k in entry), kind)
        size = entry.get("size")
        if size is None:
            size = len(self.read_bytes(where)) if "text" in entry or "base64" in entry else 0
        mode = int(entry["mode"], 8) if "mode" in entry else (0o755 if kind == "dir" else 0o644)
        return FileStat(kind, mode, entry.get("uid", 0), entry.get("gid", 0), size, entry.get("mtime", 0.0))

    def readlink(self, path: str) -> str:
        """Return the recorded target of a symbolic link; raises Unreadable for anything else."""
        entry = self._tree.entry(self._tree.locate(path, follow=False))
        if isinstance(entry, Mapping) and "link" in entry:
            return str(entry["link"])
        raise Unreadable(path, "not a symbolic link")

    def listdir(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a recorded directory."""
        return self._tree.names(path)

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Return the sorted recorded paths that match a shell pattern."""
        return self._tree.matches(pattern)

    def record_digest(self, path: str) -> str:
        """Return the recorded digest, or compute it from the recorded wheel or RECORD file."""
        where = self._tree.locate(path)
        entry = self._tree.entry(where)
        if isinstance(entry, Mapping) and "record_digest" in entry:
            return str(entry["record_digest"])
        try:
            if path.endswith(".whl"):
                return record_digest(wheel_record(io.BytesIO(self.read_bytes(where))))
            return record_digest(self.read(where))
        except OSError as error:
            raise error if isinstance(error, (Missing, NotRecorded)) else Unreadable(path, str(error)) from None

    def runtime_versions(self, path: str) -> str:
        """Return the recorded `runtime_versions` of a library; raises NotRecorded if only its presence is known."""
        entry = self._tree.entry(self._tree.locate(path))
        if isinstance(entry, Mapping) and "runtime_versions" in entry:
            return str(entry["runtime_versions"])
        if isinstance(entry, Mapping) and "error" in entry:
            raise recorded_error(entry["error"], path)
        raise NotRecorded(path, "the versions it needs were not recorded")

    def tree_size(self, path: str) -> str:
        """Return the recorded `tree_size` of a directory; raises NotRecorded if only its presence is known."""
        entry = self._tree.entry(self._tree.locate(path))
        if isinstance(entry, Mapping) and "tree_size" in entry:
            return str(entry["tree_size"])
        if isinstance(entry, Mapping) and "error" in entry:
            raise recorded_error(entry["error"], path)
        raise NotRecorded(path, "the size of what is in it was not recorded")

    # ------------------------------------------------------------------ the tables

    def run(self, argv: Sequence[str], timeout: float = 5.0) -> CommandResult:
        """Return the recorded result; raises Missing for a program not found, NotRecorded for unknown commands."""
        row = self._commands.get(tuple(argv))
        if row is None:
            if argv[0] in self._absent:
                raise Missing(" ".join(argv), NO_COMMAND)
            raise NotRecorded(" ".join(argv), "the snapshot does not hold this command")
        return command_result(row)

    def processes(self) -> tuple[Process, ...]:
        """Return the recorded process table."""
        if self._processes is None:
            self._processes = tuple(Process(**row) for row in self._table("processes"))
        return self._processes

    def listeners(self) -> tuple[Listener, ...]:
        """Return the recorded listening TCP sockets, without owners."""
        return tuple(Listener(row["address"], row["port"]) for row in self._table("listeners"))

    def owner(self, listener: Listener) -> Listener:
        """Return the same socket with its recorded owner, if it has one."""
        for row in self._table("listeners"):
            if row["address"] == listener.address and row["port"] == listener.port:
                return Listener(**row)
        return listener

    def interfaces(self) -> tuple[Interface, ...]:
        """Return the recorded network interfaces and their addresses."""
        return tuple(Interface(**row) for row in self._table("interfaces"))

    def disk(self, path: str) -> Disk:
        """Return the recorded file system with the longest prefix of `path`; Missing and Denied as on a host.

        If a hand-written snapshot does not mention `path`, the directory is assumed to exist.
        """
        try:
            self.stat(path)
        except (Denied, TimedOut):
            raise
        except Missing:
            if self.data["covered"] is not None or path in self.data["files"]:
                raise
        except HostError:
            pass  # what is not recorded may exist
        rows = sorted(self._table("disks"), key=lambda row: len(row["path"]), reverse=True)
        for row in rows:
            if f"{path}/".startswith(row["path"].rstrip("/") + "/"):
                return Disk(path, row["total"], row["free"], row.get("inodes"), row.get("free_inodes"))
        raise NotRecorded(path, "its file system was not recorded")

    def _table(self, name: str) -> Sequence[Mapping[str, Any]]:
        table: Optional[Any] = self.data.get(name)
        if table is None:
            raise NotRecorded(name, "the snapshot does not hold this table")
        if isinstance(table, Mapping):  # {"error": "EACCES"}
            raise recorded_error(table["error"], name)
        return list(table)
