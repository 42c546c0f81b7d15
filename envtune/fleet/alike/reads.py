"""A recorded host and a context that note what each fact and each check reads from the snapshot.

What is noted are the entries of the snapshot, not the requested paths: reading a file through a link notes the link and
the file, a missing file the directories above it. A check that read none of the entries in which two hosts differ has
the same result for both (`check.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager, suppress
from typing import Any, Callable, Iterator, TypeVar

from envtune.context import Context, Facts
from envtune.messages import Text
from envtune.model import Fact, FileStat, Process
from envtune.snapshot.host import SnapshotHost
from envtune.snapshot.tree import Tree

T = TypeVar("T")
Read = tuple[str, Any]  # a table, and the key in it; ALL if the whole table was read
ALL = "*"
FILES, DATA, MTIME = "files", "data", "mtime"
FACT, SHARED = "fact", "shared"
TARGET: Read = ("target", ALL)
EVERYTHING: Read = ("everything", ALL)  # reads that cannot be attributed
_SCALARS = ("name", "euid", "cwd", "now")
_APART = frozenset((FILES, "commands", "environ", "uname"))  # members of the data that are separate tables


def tables(host: SnapshotHost) -> dict[str, Mapping[Any, Any]]:
    """Return everything that can be read from a recorded host, as tables."""
    return {
        FILES: host._tree._entries,
        "names": host._tree._children,
        "commands": host._commands,
        "absent": host._absent,
        "environ": host.environ,
        "uname": host.uname,
        DATA: {name: value for name, value in host.data.items() if name not in _APART},
        "scalars": {name: getattr(host, name) for name in _SCALARS},
    }


class Notes:
    """The reads of the fact, shared reading or check that is currently evaluated."""

    def __init__(self) -> None:
        self._open: list[set[Read]] = [set()]

    def add(self, *reads: Read) -> None:
        """Note what was read."""
        self._open[-1].update(reads)

    @contextmanager
    def kept(self) -> Iterator[set[Read]]:
        """Collect reads separately inside the block."""
        own: set[Read] = set()
        self._open.append(own)
        try:
            yield own
        finally:
            self._open.pop()


class Table(Mapping[Any, Any]):
    """A table of a snapshot that notes every key it is asked for."""

    def __init__(self, name: str, rows: Mapping[Any, Any], notes: Notes) -> None:
        self._name, self._rows, self._notes = name, rows, notes

    def __getitem__(self, key: Any) -> Any:
        self._notes.add((self._name, key))
        return self._rows[key]

    def __iter__(self) -> Iterator[Any]:
        self._notes.add((self._name, ALL))
        return iter(self._rows)

    def __len__(self) -> int:
        self._notes.add((self._name, ALL))
        return len(self._rows)


class ReadTree(Tree):
    """The files of a host; notes every entry that an answer depends on, and therefore caches no paths."""

    def __init__(self, tree: Tree, files: Table, names: Table) -> None:
        self._entries = files
        self._children = names  # type: ignore[assignment]  # read-only use
        self._covered = tree._covered

    def locate(self, path: str, follow: bool = True) -> str:
        """Return the recorded path that `path` resolves to."""
        self._known = set()
        return self._resolved(path, follow)


class ReadStat(FileStat):
    """The status of a file; the time is noted only when it is used, because it differs on every host."""

    noted: Callable[[], None]

    @property
    def mtime(self) -> float:
        """When the file was changed."""
        self.noted()
        return float(self[5])


class ReadHost(SnapshotHost):
    """A recorded host that notes what is read from it."""

    def __init__(self, host: SnapshotHost, notes: Notes) -> None:
        self._notes = notes
        read = {name: Table(name, rows, notes) for name, rows in tables(host).items()}
        self._tree = ReadTree(host._tree, read[FILES], read["names"])
        files = Table(FILES, host.data[FILES], notes)
        self.data = Table(DATA, {**host.data, FILES: files}, notes)  # type: ignore[assignment]
        self._commands, self._absent = read["commands"], read["absent"]
        self.environ, self.uname, self._scalars = read["environ"], read["uname"], read["scalars"]
        self._given = {}

    def __getattr__(self, name: str) -> Any:
        if name in _SCALARS:
            return self._scalars[name]
        raise AttributeError(name)

    def stat(self, path: str, follow: bool = True) -> FileStat:
        """Return the recorded status."""
        found = ReadStat(*super().stat(path, follow))
        where = self._tree.locate(path, follow)
        found.noted = lambda: self._notes.add((MTIME, where))
        return found

    def processes(self) -> tuple[Process, ...]:
        """Return the recorded process table."""
        self._processes = None
        return super().processes()


class ReadFacts(Facts):
    """Facts; `units` says what each one was read from."""

    def __init__(self, context: ReadContext, notes: Notes) -> None:
        super().__init__(context, {})
        self._notes, self._units = notes, context.units

    def __getitem__(self, name: str) -> Fact:
        self._notes.add((FACT, name))
        if name not in self._known:
            with self._notes.kept() as own:
                found = super().__getitem__(name)
            self._units[FACT, name] = found, frozenset(own)
        return super().__getitem__(name)

    def read(self) -> Mapping[str, Fact]:
        """Return the facts that have been read so far, which depends on earlier calls."""
        self._notes.add(EVERYTHING)
        return super().read()


class ReadContext(Context):
    """The context of such a host. `units`: each fact and shared reading, and what it was read from, in order."""

    def __init__(self, context: Context, host: ReadHost, notes: Notes) -> None:
        self._notes = notes
        self._parts: dict[Any, frozenset[Read]] = {}
        self.units: dict[Read, tuple[Any, frozenset[Read]]] = {}
        super().__init__(host, context.target, {}, context.expectations)
        self.facts = ReadFacts(self, notes)

    def __getattribute__(self, name: str) -> Any:
        if name == "target":
            object.__getattribute__(self, "_notes").add(TARGET)
        return object.__getattribute__(self, name)

    def cached(self, read: Callable[..., T], *arguments: Any) -> T:
        """Return what checks share. The caller is noted as having read it, or its sources if no copy can be kept."""
        key = (read, arguments)
        if key not in self._parts:
            with self._notes.kept() as own, suppress(Exception):  # raised again below
                super().cached(read, *arguments)
            value, error = self._memory[key]
            self._parts[key] = frozenset(own)
            if error is None and is_plain(value) and is_plain(arguments):
                self.units[SHARED, key] = value, frozenset(own)
                self._parts[key] = frozenset([(SHARED, key)])
        self._notes.add(*self._parts[key])
        return super().cached(read, *arguments)


def is_plain(value: object) -> bool:
    """Return whether a value consists only of numbers and texts, and refers to no host."""
    if value is None or isinstance(value, (str, int, float, bytes)):
        return True
    if isinstance(value, Text):
        names = (name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))
        return not hasattr(value, "__dict__") and all(is_plain(getattr(value, name)) for name in names)
    if isinstance(value, (tuple, frozenset)):
        return not hasattr(value, "__dict__") and all(map(is_plain, value))
    return type(value) is dict and all(is_plain(key) and is_plain(one) for key, one in value.items())
