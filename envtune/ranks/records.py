"""What the caller passes in (sources and notes) and gets back (processes, links, the verdict)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping, NamedTuple, Optional

OWN, WAIT, AFTER, UNSURE = "own", "wait", "after", "unsure"  # what an error line means, see errors.py


class Note(NamedTuple):
    """A relevant line: `kind` of lines.py, or `error`, or `seen` (at the head or the tail of its file).

    Two notes of a file have the same number only if they are the same line; that of a line `seen` is negative.
    """

    kind: str
    path: str
    number: int
    time: Optional[float]
    text: str
    fields: Mapping[str, str] = {}

    @property
    def place(self) -> tuple[str, int]:
        """The file and the line."""
        return self.path, self.number


class Source(NamedTuple):
    """A log file; `host` is the label of its directory if the caller knows it, times are those of its ends."""

    path: str
    host: str = ""
    first: Optional[float] = None
    last: Optional[float] = None


@dataclass(eq=False)
class Process:
    """One process of the job, or one that others name; unknown values are None or empty."""

    host: str = ""  # label: a directory, a host name or an address
    rank: Optional[int] = None
    device: Optional[int] = None  # physical if the logs give it, else logical
    pid: Optional[int] = None
    local_rank: Optional[int] = None
    logic: Optional[int] = None
    server: str = ""  # address of its host
    addresses: set[str] = field(default_factory=set)  # of its device
    communicators: dict[str, int] = field(default_factory=dict)  # name -> rank in it
    root_of: set[str] = field(default_factory=set)
    files: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    first: Optional[float] = None  # time of its first and last line
    last: Optional[float] = None

    @property
    def has_log(self) -> bool:
        """Whether it printed anything that was read."""
        return bool(self.files)


class Link(NamedTuple):
    """One process waited for another; `why` is a kind of waiting (notify, socket, p2p, topo, lost, cqe)."""

    waiter: Process
    peer: Process
    why: str
    note: Note


class Root(NamedTuple):
    """The process that failed first. `why` is a code of root.py; `note` the line that shows it, if any."""

    process: Process
    why: str
    note: Optional[Note] = None

    @property
    def file(self) -> Optional[str]:
        """Where to continue reading: the file of the line, else a file of the process."""
        own = self.note is not None and self.note.path in self.process.files
        return self.note.path if own and self.note is not None else next(iter(self.process.files), None)


class Verdict(NamedTuple):
    """Who failed first, as far as the logs tell. `root` is None if they do not: see the candidates."""

    root: Optional[Root] = None
    candidates: tuple[Root, ...] = ()
    waiters: tuple[Process, ...] = ()
    missing: tuple[int, ...] = ()  # ranks that did not connect, or that have no log
    links: tuple[Link, ...] = ()
    processes: tuple[Process, ...] = ()
    clocks_decide: bool = True  # False: candidates are on hosts whose clocks cannot be compared
