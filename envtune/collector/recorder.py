"""The recorder: reads a machine through the interface of a host and keeps every answer."""

import errno
import json
import os
from contextlib import contextmanager
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from .excerpts import excerpt, program_excerpt
from .files import FILE_LIMIT, Stat, clean_name, error_name
from .glob import glob_paths
from .owners import job_users, writers_of
from .paths import resolve
from .redact import KERNEL_TREES, redact_file, redact_row
from .sources.images import DPKG_STATUS

ELF = b"\x7fELF"
RECORD_LIMIT = 1024 * 1024  # bytes of one recorded file; beyond it only the size is kept
ROOM = 24 * 1024 * 1024  # characters of all entries as JSON, so that envtune accepts it and its cost is bounded
ENTRY_SIZE = 64  # characters of an entry without its path and content


class Recorder:
    """Reads like a host and keeps what it has read: `files` in the form of docs/snapshot.md.

    Every call returns what the live machine returns, errors included, and the answer is kept, even "not there". So code
    that takes a host (`find_interpreter`) records exactly what it reads when run on a recorder.
    """

    def __init__(self, machine: Any, target: Mapping[str, Any], environ: Optional[Mapping[str, str]] = None) -> None:
        self.machine = machine
        self.target = target
        self.environ: Mapping[str, str] = dict(os.environ if environ is None else environ)
        self.variables = dict(self.environ)  # of the job; record_job adds to it
        self.identity = machine.identity()
        self.uname = self.identity["uname"]
        self.cwd: str = self.identity["cwd"]
        self.files: Dict[str, Any] = {}
        self.commands: Dict[Tuple[str, ...], Dict[str, Any]] = {}
        self.covered: List[str] = []
        self.programs: Set[str] = set()  # programs of which only the lines that checks read are kept
        self.followed: List[str] = []  # launch scripts, once for each time they were encountered
        self.assigned = 0  # characters of values assigned in launch scripts
        self._room = ROOM
        self._known: Set[str] = set()
        # the users who decide what is read: they own what names the job
        self.users: FrozenSet[int] = job_users(target, machine.mounts.guard, machine.root)
        self._way: FrozenSet[int] = frozenset()  # owners of the links that the last path led through
        self._gathers = False  # whether owners of what is read are added to `users`: it names what is read next
        self._stats: Dict[str, Any] = {}
        self._names: Dict[str, Any] = {}

    @contextmanager
    def following(self, *paths: str) -> Iterator[None]:
        """Read inside as those who could write `paths` and whatever is read or followed: each names what is next."""
        before = self.users, self._gathers
        try:
            self._gathers = True
            for path in paths:
                self.users |= writers_of(self.machine.root + path)
            yield
        finally:
            self.users, self._gathers = before

    def _gather(self, *users: int) -> None:
        if self._gathers:
            self.users |= frozenset(users) - {0}

    # ------------------------------------------------------------------ the questions of a host

    def stat(self, path: str, follow: bool = True) -> Stat:
        """Keep kind, mode, owner and size; raises OSError."""
        real = self._walk(path, follow)
        status = self._status(real, follow)
        self._note(real, status)
        return status

    def readlink(self, path: str) -> str:
        """Keep the target of a symbolic link; raises OSError, EINVAL for anything else."""
        real = self._walk(path, False)
        status = self._lstat(real)
        if status.kind != "link":
            raise OSError(errno.EINVAL, "not a symbolic link", path)
        self._gather(status.uid)
        target = self._attempt(real, lambda: clean_name(self.machine.readlink(real)))
        self.files[real] = {"link": target}
        return str(target)

    def listdir(self, path: str) -> List[str]:
        """Keep the sorted names in a directory; raises OSError."""
        real = self._walk(path)
        names = self._list(real)
        self._spend(real, sum(len(name) + 4 for name in names))
        self.files[real] = dict(_extras("dir", self._status(real)), dir=names)
        return names

    def read_bytes(self, path: str) -> bytes:
        """Keep the content of a regular file, redacted and for some files as an excerpt, and return what is kept.

        Raises OSError: EINVAL for anything else, EFBIG for more than RECORD_LIMIT bytes.
        """
        real = self._walk(path)
        status = self._status(real)
        if status.kind != "file":
            self._note(real, status)
            raise OSError(errno.EINVAL, "not a regular file", path)
        if status.size > RECORD_LIMIT and real != DPKG_STATUS:  # an excerpt of it is kept
            self._note(real, status)
            raise OSError(errno.EFBIG, "larger than a recording keeps", path)
        limit = FILE_LIMIT if real == DPKG_STATUS else RECORD_LIMIT
        self.machine.users = self.users | self._way
        data = self._attempt(real, lambda: self.machine.read_bytes(real, limit), status)
        long = program_excerpt(bytes(data)) if real in self.programs else excerpt(real, bytes(data))
        kept = redact_file(real, long, self.target.get("pid"), self._is_env_file(path))
        if kept is None:
            self._attempt(real, lambda: _refuse(path), status)
        self._gather(status.uid, *self._way)
        content = _content(kept or b"")
        self._note(real, status)
        self._spend(real, len(json.dumps(content)))
        self.files[real] = content
        return kept or b""

    def _is_env_file(self, path: str) -> bool:
        named = self.target.get("env_file")
        return bool(named) and os.path.join(self.cwd, path) == os.path.normpath(os.path.join(self.cwd, str(named)))

    def read(self, path: str) -> str:
        """Keep the content like `read_bytes` and return it as text; raises OSError, EILSEQ if it is not UTF-8."""
        try:
            return self.read_bytes(path).decode("utf-8")
        except UnicodeDecodeError as error:
            raise OSError(errno.EILSEQ, "not text: %s" % error.reason, path) from None

    def glob(self, pattern: str) -> List[str]:
        """Return the sorted paths that match, each kept like `stat`; the pattern is added to `covered`.

        If too much matches, none are returned, and the pattern is not covered.
        """
        try:
            paths = glob_paths(_Unlisted(self), pattern)
        except OSError:  # too much matches
            return []
        if self._room < 0:  # some matches may have been left out: the recording says nothing about them
            return []
        if pattern not in self.covered:
            self.covered.append(pattern)
        return paths

    def head(self, path: str) -> bytes:
        """Keep the first bytes of a file, as hexadecimal."""
        return bytes.fromhex(self._add(path, "head", self._head))

    def _head(self, real: str) -> str:
        self.machine.users = self.users | self._way
        data = bytes(self.machine.read_head(real))
        return (data if data.startswith(ELF) else data[: len(ELF)]).hex()  # nothing of a text that could be a secret

    def record_digest(self, path: str) -> str:
        """Keep only the digest; raises OSError if there is none."""
        return self._add(path, "record_digest", lambda real: str(self.machine.record_digest(real)))

    def runtime_versions(self, path: str) -> str:
        """Keep which versions of the C and C++ runtime a library needs and provides; raises OSError."""
        return self._add(path, "runtime_versions", self._runtime_versions)

    def _runtime_versions(self, real: str) -> str:
        self.machine.users = self.users | self._way
        return str(self.machine.runtime_versions(real))

    def tree_size(self, path: str) -> str:
        """Keep the size of a directory tree, without the names; raises OSError."""
        return self._add(path, "tree_size", self._tree_size)

    def _tree_size(self, real: str) -> str:
        self.machine.users = self.users | self._way
        return str(self.machine.tree_size(real))

    def run(self, argv: Sequence[str], timeout: float = 5.0) -> Dict[str, Any]:
        """Return the row of `argv`, run once; a row with `error` if there is no result."""
        key = tuple(argv)
        if key not in self.commands:
            row = self.machine.run(argv, timeout)
            if row is None:
                return {"argv": list(argv), "error": "notrecorded"}
            self.commands[key] = redact_row(row)
        return self.commands[key]

    # ------------------------------------------------------------------ how it is kept

    def _walk(self, path: str, follow: bool = True) -> str:
        """Return `path` without links; every link on it is recorded, and so is the place where resolving stops."""

        def link_at(step: str, last: bool) -> Optional[str]:
            status = self._lstat(step)
            if status.kind == "link" and status.uid:
                self._way |= {status.uid}
            if status.kind == "link" and not (step.startswith(KERNEL_TREES) and not self.machine.root):
                entry = self.files.get(step)
                if entry is None or "link" not in entry:
                    entry = self.files[step] = {"link": clean_name(self.machine.readlink(step))}
                return str(entry["link"])
            if not last and status.kind not in ("dir", "link"):
                self._note(step, status)
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            return None

        self._way = frozenset()
        return resolve(path, link_at, follow, self._known)

    def _status(self, real: str, follow: bool = True) -> Stat:
        """Return the status of `real`; of its target if it is a link in a kernel tree."""
        status = self._lstat(real)
        return self._asked(real, self.machine.stat, "followed ") if status.kind == "link" and follow else status

    def _lstat(self, path: str) -> Stat:
        return self._asked(path, self.machine.lstat)

    def _asked(self, path: str, ask: Callable[[str], Stat], prefix: str = "") -> Stat:
        """Return what `ask` returned for `path` the first time, or raise what it raised."""
        if prefix + path not in self._stats:
            self._spend(path, ENTRY_SIZE + len(path))
            try:
                self._stats[prefix + path] = ask(path)
            except OSError as error:
                self._stats[prefix + path] = error
                absent = error.errno in (errno.ENOENT, errno.ENOTDIR)
                self.files.setdefault(path, None if absent else {"error": error_name(error)})
        answer = self._stats[prefix + path]
        if isinstance(answer, OSError):
            raise answer.with_traceback(None)
        return answer  # type: ignore[no-any-return]

    def names(self, path: str) -> List[str]:
        """Return the names in a directory and keep only errors."""
        return self._list(self._walk(path))

    def _list(self, real: str) -> List[str]:
        if real not in self._names:
            status = self._status(real)
            if status.kind != "dir":  # a pattern passed through a file, whose content may already be kept
                self._note(real, status)
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), real)
            self.machine.users = self.users | self._way
            names = self._attempt(real, lambda: self.machine.listdir(real), status)
            self._spend(real, len(names))
            self._names[real] = sorted(clean_name(name) for name in names)
        return list(self._names[real])

    def _spend(self, path: str, size: int) -> None:
        """Count the size of an answer; raises OSError, EDQUOT if the recording has no room for it."""
        self._room -= size
        if self._room < 0:
            raise OSError(errno.EDQUOT, "the recording is full", path)

    def _add(self, path: str, key: str, read: Callable[[str], str]) -> str:
        """Add the result of `read` to the entry of a file, unless its content is already kept."""
        real = self._walk(path)
        status = self._status(real)
        value: str = self._attempt(real, lambda: read(real), status)
        if not isinstance(self.files.get(real), str):
            self._note(real, status)
            self.files[real] = dict(self.files[real], **{key: value})
        return value

    def _attempt(self, real: str, read: Callable[[], Any], status: Optional[Stat] = None) -> Any:
        """Return the result of `read`; if it fails, keep the error with the entry."""
        try:
            return read()
        except OSError as error:
            self.files.pop(real, None)
            if status is not None:
                self._note(real, status)  # it exists all the same
            self.files[real] = dict(self.files.get(real, {}), error=error_name(error))
            raise

    def _note(self, path: str, status: Stat) -> None:
        """Keep the result of lstat, unless more is already kept."""
        if path in self.files:
            return
        if status.kind == "dir":
            self.files[path] = dict(_extras("dir", status), dir=None)
        elif status.kind == "file":
            self.files[path] = dict(_extras("file", status), size=status.size)
        elif status.kind == "link":
            self.readlink(path)
        else:
            ownership = {"mode": "%04o" % status.mode, "uid": status.uid, "gid": status.gid}
            self.files[path] = dict({status.kind: True}, **ownership)


class _Unlisted:
    """A recorder for a glob: matches are kept, the directory listings it reads are not (`covered` has the pattern)."""

    def __init__(self, recorder: Recorder) -> None:
        self.stat = recorder.stat
        self.listdir = recorder.names


def _extras(kind: str, status: Stat) -> Dict[str, Any]:
    """Return mode and owner if they are not the usual ones."""
    extras: Dict[str, Any] = {}
    if status.mode != (0o755 if kind == "dir" else 0o644) and not (kind == "dir" and status.mode == 0o555):
        extras["mode"] = "%04o" % status.mode
    if status.uid:
        extras["uid"] = status.uid
    if status.gid:
        extras["gid"] = status.gid
    return extras


def _refuse(path: str) -> None:
    raise OSError(errno.EILSEQ, "not text, which cannot be searched for secrets", path)


def _content(data: bytes) -> Any:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(data).decode("ascii")}
