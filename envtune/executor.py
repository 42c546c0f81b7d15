"""The writing end: takes a plan, journals, writes, re-reads, takes back. Decides nothing.

Standard library only, Python 3.6 syntax, imports nothing of envtune, so that a plan can travel to a host on which
nothing is installed. It is one module above the usual size because it travels as one file.

Every operation is written ahead: its intent, with everything needed to take it back (bytes, owner, mode, times,
extended attributes), is on disk and fsynced before the first byte of the host changes. A run that was killed is
therefore always one of: not begun, done, or begun with the original at hand; `interrupted` finds it, `resume` or `undo`
end it. Nothing else takes anything back, except the change that fails itself.

Layout of the state directory (root: /var/lib/envtune, else $XDG_STATE_HOME/envtune; $ENVTUNE_STATE wins):

    lock                      flock held by the one run that may write; its text says who
    runs/<run>/journal.jsonl  one JSON object a line, `{"crc": ..., "record": {...}}`; a torn last line is ignored
    runs/<run>/NNNN.orig      the bytes that were there before an operation
    runs/<run>/output.log     what commands printed
    runs/<run>/reserve        room on the disk that the journal falls back on when the disk is full

Records of a journal: begin (plan), then for every operation intent, done or same (nothing to write), reverting,
reverted, stuck (could not be taken back); change (the result of one change), end; undo-begin, set-aside, undo-end;
torn (a line that a killed run left unfinished).
"""

import base64
import binascii
import errno
import fcntl
import hashlib
import json
import os
import re
import select
import stat
import time
from typing import IO, Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

SCHEMA = "envtune.journal/1"
KERNEL = ("/sys/", "/proc/")  # written in place: these files cannot be renamed over
Record = Dict[str, Any]
Say = Callable[[str, Record], None]


class Refused(Exception):
    """The operation was not begun: what is there is not what the plan expected, or it is not allowed."""


class Failed(Exception):
    """The operation was begun and did not work; the original was put back, or the message says what is left."""


class Locked(Exception):
    """Another run holds the lock; the message says who."""


class JournalLost(Exception):
    """The journal cannot be written any more: the run stops where it is, and is found as interrupted."""


def boundary(name: str) -> None:
    """Called between any two steps that a crash could separate; tests replace it to kill the process there."""


# ---------------------------------------------------------------------------------------------------- journal


class Journal:
    """One run's journal, open for appending. `directory` is runs/<run>; `room` bytes are set aside for its end."""

    def __init__(self, directory: str, room: int = 65536) -> None:
        self.directory = directory
        self.path = os.path.join(directory, "journal.jsonl")
        self._reserve = os.path.join(directory, "reserve")
        self._set_aside(room)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._end_torn_line()
        fsync_directory(directory)

    def _set_aside(self, room: int) -> None:
        """Have room for the last records of this run; a disk without it is full before anything has changed."""
        descriptor = os.open(self._reserve, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, room)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # a file system that cannot set room aside
                os.unlink(self._reserve)
                raise _about(error, self.directory)
        finally:
            os.close(descriptor)

    def _end_torn_line(self) -> None:
        """A run that was killed inside a line left it open: close it and say which, so that it is no damage."""
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            with open(self.path, "rb") as file:
                number = sum(1 for _ in file)
            self._write(b"\n" + _line({"type": "torn", "line": number}))

    def append(self, record: Record, last: bool = False) -> None:
        """Write one record and have it on disk before returning.

        `last` says that it ends something that was begun: it may use the room set aside. Raises JournalLost when even
        that is gone; OSError, with nothing written, when the disk is full for a record that begins something.
        """
        data = _line(record)
        boundary("before-journal:" + str(record.get("type")))
        try:
            self._write(data)
        except OSError as error:
            if not last:
                raise _about(error, self.path)
            self.release()
            try:
                self._write(data)
            except OSError as still:
                raise JournalLost("%s: %s" % (self.path, still.strerror))
        boundary("journal:" + str(record.get("type")))

    def _write(self, data: bytes) -> None:
        start = os.fstat(self._descriptor).st_size
        try:
            left = data
            while left:
                left = left[os.write(self._descriptor, left) :]
            boundary("journal-written")
            os.fsync(self._descriptor)
        except BaseException:
            os.ftruncate(self._descriptor, start)  # half a line would spoil the next one
            raise

    def release(self) -> None:
        """Give the room back to the disk."""
        if os.path.lexists(self._reserve):
            os.unlink(self._reserve)

    def close(self) -> None:
        """Close the file."""
        self.release()
        os.close(self._descriptor)


def _line(record: Record) -> bytes:
    text = json.dumps(record, sort_keys=True, ensure_ascii=True)
    crc = binascii.crc32(text.encode("ascii")) & 0xFFFFFFFF
    return (json.dumps({"crc": crc, "record": record}, sort_keys=True, ensure_ascii=True) + "\n").encode("ascii")


def read_journal(path: str) -> Tuple[List[Record], List[int]]:
    """The records of a journal, and the numbers of the damaged lines.

    A line that a killed run left unfinished is no damage: what it would have told was not begun.
    """
    records = []  # type: List[Record]
    damaged = []
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                outer = json.loads(line.decode("ascii"))
                text = json.dumps(outer["record"], sort_keys=True, ensure_ascii=True)
                if outer["crc"] != binascii.crc32(text.encode("ascii")) & 0xFFFFFFFF:
                    raise ValueError("checksum")
                if not isinstance(outer["record"]["type"], str):
                    raise ValueError("type")
                records.append(outer["record"])
            except (ValueError, KeyError, TypeError):
                if line.endswith(b"\n"):
                    damaged.append(number)
    torn = {record.get("line") for record in records if record["type"] == "torn"}
    return records, [number for number in damaged if number not in torn]


# ---------------------------------------------------------------------------------------------------- state, lock


def state_directory() -> str:
    """$ENVTUNE_STATE, else /var/lib/envtune for root and $XDG_STATE_HOME/envtune (~/.local/state/envtune) otherwise."""
    named = os.environ.get("ENVTUNE_STATE")
    if named:
        return os.path.abspath(named)
    if os.geteuid() == 0:
        return "/var/lib/envtune"
    home = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(home):  # the XDG specification: a relative path is to be ignored
        home = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "envtune")


def open_state(state: str) -> None:
    """Make the state directory if it is missing, and refuse one that others could write: undo writes what lies there.

    Raises Refused, or OSError when it cannot be made.
    """
    os.makedirs(os.path.dirname(state) or "/", exist_ok=True)
    for path in (state, os.path.join(state, "runs")):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode):
            raise Refused("%s is not a directory" % path)
        if found.st_uid != os.geteuid():
            raise Refused("%s belongs to user %d, not to user %d" % (path, found.st_uid, os.geteuid()))
        if found.st_mode & 0o022:
            raise Refused("%s can be written by others (mode %o); chmod 700 it" % (path, stat.S_IMODE(found.st_mode)))
    if os.geteuid() == 0:
        _above_is_ours(os.path.realpath(state))


def _above_is_ours(path: str) -> None:
    """Whoever may rename a directory above root's state could put another one in its place."""
    while path != "/":
        path = os.path.dirname(path)
        found = os.stat(path)
        others = found.st_mode & (0o002 if found.st_gid == 0 else 0o022)
        if found.st_uid != 0 or (others and not found.st_mode & stat.S_ISVTX):
            raise Refused("%s, above the state directory, can be written by others than root" % path)


class Lock:
    """The right to write, held by one run at a time; released by the kernel however that run ends."""

    def __init__(self, state: str, wait: float = 0.0) -> None:
        open_state(state)
        self._descriptor = os.open(os.path.join(state, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        end = time.monotonic() + wait
        while not _try_lock(self._descriptor):
            if time.monotonic() >= end:
                who = os.pread(self._descriptor, 200, 0).decode("utf-8", "replace").strip()
                os.close(self._descriptor)
                raise Locked("another envtune run holds the lock: %s" % (who or "it has just begun"))
            time.sleep(0.1)
        self.tell("")
        for name in os.listdir(os.path.join(state, "runs")):  # room that killed runs hold; a journal takes its own
            reserve = os.path.join(state, "runs", name, "reserve")
            if os.path.lexists(reserve):
                os.unlink(reserve)

    def tell(self, run: str) -> None:
        """Say who holds the lock."""
        text = "pid %d, since %s%s\n" % (os.getpid(), now(), ", run " + run if run else "")
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode("ascii"), 0)

    def release(self) -> None:
        """Let the next run in."""
        os.close(self._descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False


def holder(state: str) -> str:
    """Who holds the lock now, in words; empty when nobody does."""
    try:
        descriptor = os.open(os.path.join(state, "lock"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if _try_lock(descriptor):
            return ""
        return os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "it has just begun"
    finally:
        os.close(descriptor)


def now() -> str:
    """UTC time as text."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def fsync_directory(path: str) -> None:
    """Have the directory's entries on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EROFS):  # kernel file systems have nothing to sync
            raise
    finally:
        os.close(descriptor)


def _about(error: OSError, path: str) -> OSError:
    """The same error with the path it is about."""
    return OSError(error.errno, error.strerror, error.filename or path)


# ---------------------------------------------------------------------------------------------------- files


def digest(data: Optional[bytes]) -> str:
    """`absent`, or the SHA-256 of the content."""
    return "absent" if data is None else "sha256:" + hashlib.sha256(data).hexdigest()


def read_content(path: str) -> Optional[bytes]:
    """The bytes of a regular file, None when there is none. Refuses links, devices and directories."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Refused("%s is a symbolic link; name the file it points to" % path)
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refused("%s is not a regular file" % path)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    except OSError as error:
        raise OSError(error.errno, error.strerror, path)
    finally:
        os.close(descriptor)


def is_kernel_file(path: str) -> bool:
    """A file of /proc or /sys is written in place: it cannot be renamed over."""
    return path.startswith(KERNEL)


def normal(path: str, data: Optional[bytes]) -> Optional[bytes]:
    """What is compared. Kernel files answer with a newline, and tabs between numbers, whatever was written; those that
    list their choices (`always [madvise] never`) are their choice."""
    if data is None or not is_kernel_file(path):
        return data
    words = data.split()
    chosen = [word for word in words if word.startswith(b"[") and word.endswith(b"]")]
    return chosen[0][1:-1] if len(chosen) == 1 and len(words) > 1 else b" ".join(words)


def describe_file(path: str) -> Record:
    """Owner, mode, times, number of names and extended attributes (the SELinux context is one) of a file."""
    found = os.lstat(path)
    attributes = {}
    if not is_kernel_file(path):
        for name in _attribute_names(path):
            value = os.getxattr(path, name, follow_symlinks=False)
            attributes[name] = base64.b64encode(value).decode("ascii")
    return {
        "mode": stat.S_IMODE(found.st_mode),
        "uid": found.st_uid,
        "gid": found.st_gid,
        "atime_ns": found.st_atime_ns,
        "mtime_ns": found.st_mtime_ns,
        "links": found.st_nlink,
        "xattrs": attributes,
    }


def _attribute_names(file: Any) -> List[str]:
    """The extended attributes that are carried over; the kernel makes the signatures of IMA and EVM itself."""
    try:
        names = os.listxattr(file)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOSYS):
            return []
        raise
    return [name for name in names if name not in ("security.ima", "security.evm")]


def write_file(path: str, data: bytes, like: Record, temporary: str, times: bool = False) -> None:
    """Replace `path` by `data` in one step (kernel files: write in place). `like` gives owner, mode, attributes.

    Other names of the same file (hard links) keep the old content.
    """
    if is_kernel_file(path):
        _write_kernel_file(path, data)
        return
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                boundary("temporary-created")
                file.write(data)
                file.flush()
                _dress(descriptor, like, times)
                os.fsync(descriptor)
            boundary("temporary-written")
            os.rename(temporary, path)
        except BaseException:
            if os.path.lexists(temporary):
                os.unlink(temporary)
            raise
        boundary("renamed")
        fsync_directory(os.path.dirname(path))
    except OSError as error:
        raise _explained(error, path)


def _write_kernel_file(path: str, data: bytes) -> None:
    """One write, as the kernel wants it; tried again for a moment while the knob is busy."""
    for patience in (0.05, 0.2, 0.5, None):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                written = os.write(descriptor, data)
                _cut(descriptor, written)
            finally:
                os.close(descriptor)
            if written != len(data):
                raise Failed("%s: the kernel took %d of %d bytes" % (path, written, len(data)))
            break
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.EAGAIN) or patience is None:
                raise _about(error, path)
            time.sleep(patience)
    boundary("kernel-written")


def _cut(descriptor: int, length: int) -> None:
    """The kernel's own files have no length; where a file system stands in their place, an old tail must not stay.

    After the write and not by O_TRUNC, which would empty such a file although the write is refused.
    """
    try:
        os.ftruncate(descriptor, length)
    except OSError:
        pass


def _dress(descriptor: int, like: Record, times: bool) -> None:
    """Give an open file the owner, mode, attributes and (on undo) times of `like`; what it leaves out stays."""
    found = os.fstat(descriptor)
    owner = (
        found.st_uid if like.get("uid") is None else like["uid"],
        found.st_gid if like.get("gid") is None else like["gid"],
    )
    if (found.st_uid, found.st_gid) != owner:
        os.fchown(descriptor, *owner)
    if "xattrs" in like:
        wanted = {name: base64.b64decode(value) for name, value in like["xattrs"].items()}
        there = {name: os.getxattr(descriptor, name) for name in _attribute_names(descriptor)}
        for name in sorted(set(there) - set(wanted)):  # such as an access list that the directory hands down
            os.removexattr(descriptor, name)
        for name in sorted(wanted):
            if there.get(name) != wanted[name]:
                os.setxattr(descriptor, name, wanted[name])
    os.fchmod(descriptor, like["mode"])
    if times:
        os.utime(descriptor, ns=(like["atime_ns"], like["mtime_ns"]))


def remove_file(path: str) -> None:
    """Remove a file, and have that on disk."""
    try:
        os.unlink(path)
        boundary("removed")
        fsync_directory(os.path.dirname(path))
    except OSError as error:
        raise _explained(error, path)


GET_FLAGS, IMMUTABLE, APPEND_ONLY = 0x80086601, 0x10, 0x20  # FS_IOC_GETFLAGS and two of its bits


def _explained(error: OSError, path: str) -> OSError:
    """The error about `path`, naming the flag of chattr that explains a refusal even root gets."""
    words = error.strerror or str(error)
    if error.errno in (errno.EPERM, errno.EACCES):
        for place in (path, os.path.dirname(path)):
            flags = _flags(place)
            if flags & (IMMUTABLE | APPEND_ONLY):
                words += " (%s has the attribute %s of chattr)" % (place, "i" if flags & IMMUTABLE else "a")
    return OSError(error.errno, words, path)


def _flags(path: str) -> int:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return int.from_bytes(fcntl.ioctl(descriptor, GET_FLAGS, bytes(8))[:4], "little")
        finally:
            os.close(descriptor)
    except OSError:
        return 0


# ---------------------------------------------------------------------------------------------------- operations
#
# An operation is a mapping with `op`: file, run, swap or signal. Each kind has
#   look(operation)             what is there now, as text that can be compared: Refused when it may not be touched
#   wanted(operation)           what `look` says when it is done; empty when that cannot be known before
#   keep(operation, store)      everything needed to take it back, as a record; bytes go to `store`
#   do(operation, kept)         the write itself; raises OSError or Failed
#   done(operation, kept)       whether the host is now as the operation wants it
#   foreign(operation, kept, step)  what is there now, when it is neither what was there nor what we left, else empty
#   copy(operation, store)      keep what is there now; the name of the copy, or None
#   revert(operation, kept)     the way back
#   reverted(operation, kept)   whether the host is as it was
#   tidy(operation, kept)       remove what a killed run left beside it
# Everything from `foreign` on may be called again and again, after a crash at any point of it.


class Store:
    """Where the originals of one run lie."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def put(self, data: bytes) -> str:
        """Keep bytes, on disk before this returns; the name to `open` them by."""
        return self.fill(lambda file: file.write(data))

    def fill(self, write: Callable[[IO[bytes]], Any]) -> str:
        """Keep what `write` writes to a file; nothing is left of it when that fails."""
        numbers = [int(n[:-5]) for n in os.listdir(self.directory) if n.endswith(".orig") and n[:-5].isdigit()]
        name = "%04d.orig" % (max(numbers + [0]) + 1)
        path = os.path.join(self.directory, name)
        try:
            with open(path, "xb", opener=_private) as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            fsync_directory(self.directory)
        except OSError as error:
            if os.path.lexists(path):
                os.unlink(path)
            raise OSError(error.errno, "the original could not be kept: %s" % error.strerror, path)
        boundary("original-kept")
        return name

    def open(self, name: str) -> IO[bytes]:
        """What is kept under that name."""
        return open(os.path.join(self.directory, os.path.basename(name)), "rb")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


class FileOperation:
    """`{op: file, path, content|null, expect?, mode?, uid?, gid?}`: one regular or kernel file; null removes it.

    `content` is base64; `expect` is the digest of what must be there now. A new file gets mode (default 0644) and the
    writer's owner unless `uid`/`gid` are given; an existing one keeps its own. Missing directories are made (0755).
    """

    def look(self, operation: Record) -> str:
        return digest(normal(operation["path"], read_content(operation["path"])))

    def wanted(self, operation: Record) -> str:
        """The digest of what the operation writes."""
        content = operation["content"]
        return digest(None if content is None else normal(operation["path"], base64.b64decode(content)))

    def keep(self, operation: Record, store: Store) -> Record:
        path = operation["path"]
        kept = {"temporary": os.path.join(os.path.dirname(path), ".envtune-%d" % os.getpid())}  # type: Record
        data = read_content(path)
        if data is None:
            kept.update(was="absent", missing=_missing_parents(path))
        else:
            kept.update(original=store.put(data), was=digest(normal(path, data)), meta=describe_file(path))
        return kept

    def do(self, operation: Record, kept: Record, store: Store) -> None:
        path, content = operation["path"], operation["content"]
        if self.look(operation) != kept["was"]:
            raise Refused("%s was changed by somebody else at this moment" % path)
        if content is None:
            remove_file(path)
            return
        like = kept.get("meta")
        if like is None:
            for parent in kept["missing"]:
                _make_directory(parent)
            like = {"mode": operation.get("mode", 0o644), "uid": operation.get("uid"), "gid": operation.get("gid")}
        write_file(path, base64.b64decode(content), like, kept["temporary"])

    def done(self, operation: Record, kept: Record) -> bool:
        return bool(self.look(operation) == self.wanted(operation))

    def foreign(self, operation: Record, kept: Record, step: Record) -> str:
        found = self.look(operation)
        if is_kernel_file(operation["path"]) and step["state"] != "done":
            return ""  # the kernel may have made something else of what was written
        return "" if found in (kept["was"], self.wanted(operation), step.get("now")) else found

    def copy(self, operation: Record, store: Store) -> Optional[str]:
        data = read_content(operation["path"])
        return None if data is None else store.put(data)

    def revert(self, operation: Record, kept: Record, store: Store) -> None:
        path = operation["path"]
        if kept["was"] == "absent":
            if read_content(path) is not None:
                remove_file(path)
            return
        with store.open(kept["original"]) as file:
            data = file.read()
        if digest(normal(path, data)) != kept["was"]:
            raise Failed("the original of %s kept in %s is damaged" % (path, kept["original"]))
        if is_kernel_file(path):
            data = (normal(path, data) or b"") + b"\n"
        for parent in _missing_parents(path):
            _make_directory(parent)
        write_file(path, data, kept["meta"], kept["temporary"], times=True)

    def reverted(self, operation: Record, kept: Record) -> bool:
        return bool(self.look(operation) == kept["was"])

    def tidy(self, operation: Record, kept: Record) -> None:
        """Remove the temporary file, and the directories that were made for a file which is not there."""
        if os.path.lexists(kept["temporary"]):
            os.unlink(kept["temporary"])
        if kept["was"] == "absent" and not os.path.lexists(operation["path"]):
            for parent in reversed(kept["missing"]):
                try:
                    os.rmdir(parent)
                except FileNotFoundError:
                    continue  # the run was killed before it was made
                except OSError:
                    break  # somebody uses it now


def _missing_parents(path: str) -> List[str]:
    """The parent directories that have to be made, outermost first."""
    missing = []
    parent = os.path.dirname(path)
    while not os.path.isdir(parent):
        if os.path.lexists(parent):
            raise Refused("%s is not a directory" % parent)
        missing.append(parent)
        parent = os.path.dirname(parent)
    return missing[::-1]


def _make_directory(path: str) -> None:
    try:
        os.mkdir(path, 0o755)
        os.chmod(path, 0o755 | stat.S_IMODE(os.stat(path).st_mode) & 0o7000)  # the caller's umask is not the host's
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    except OSError as error:
        raise _explained(error, path)
    boundary("directory-made")
    fsync_directory(os.path.dirname(path))


class RunOperation:
    """`{op: run, argv, check: {argv, contains?}, undo?: {argv, find?}, given?, census?, timeout?, env?}`.

    `check` tells whether its effect is there: exit 0 and, with `contains`, that text in its output.
    `find: {argv, pattern}` fills named groups of `pattern` in the output of a command into the undo command
    (`{handle}`), so that the way back names the very rule that was added. Without `undo` there is no way back.

    `given: {argv, pattern, ignore?, digest}` is what the command rests on (the rules among which it places one by a
    number): what `matching` finds in the output of `argv` must have that digest, or nothing begins.

    `census: {argv, pattern}` lists things (the installed packages), one for every match of the pattern's group; the
    word `{new}` of the undo command becomes those that the command added and that are still there.
    """

    def look(self, operation: Record) -> str:
        return "applied" if _holds(operation["check"], operation.get("env")) else "not-applied"

    def wanted(self, operation: Record) -> str:
        """A command's effect is there."""
        return "applied"

    def unmet(self, operation: Record) -> str:
        """Why it must not begin: what the command rests on is something else now; empty when all is as expected."""
        given = operation.get("given")
        if given is None:
            return ""
        found = digest(
            matching(_output(given["argv"], operation.get("env")), given["pattern"], given.get("ignore", ""))
        )
        if found == given["digest"]:
            return ""
        line = " ".join(given["argv"])
        return "`%s` tells something else than when the plan was made (found %s, planned for %s)" % (
            line,
            found,
            given["digest"],
        )

    def keep(self, operation: Record, store: Store) -> Record:
        unmet = self.unmet(operation)
        if unmet:
            raise Refused(unmet)
        kept = {"was": self.look(operation)}
        if "census" in operation:
            name = store.put("\n".join(sorted(self._census(operation))).encode("utf-8"))
            kept["census"] = os.path.join(store.directory, name)
        return kept

    def do(self, operation: Record, kept: Record, store: Store) -> None:
        _run_or_fail(operation["argv"], operation, 600, store.directory)
        boundary("command-ended")
        if "census" in kept:
            added = sorted(self._census(operation) - _lines(kept["census"]))
            with open(kept["census"] + ".new", "wb", opener=_private) as file:
                file.write("\n".join(added).encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())

    def _census(self, operation: Record) -> Set[str]:
        env = operation.get("env")
        return set(re.findall(operation["census"]["pattern"], _output(operation["census"]["argv"], env)))

    def _added(self, operation: Record, kept: Record) -> List[str]:
        """What the command added and is still there; after a kill all that was not there before it."""
        there = self._census(operation)
        if os.path.exists(kept["census"] + ".new"):
            return sorted(there & _lines(kept["census"] + ".new"))
        return sorted(there - _lines(kept["census"]))

    def done(self, operation: Record, kept: Record) -> bool:
        return self.look(operation) == "applied"

    def foreign(self, operation: Record, kept: Record, step: Record) -> str:
        return ""  # the effect is there or not

    def copy(self, operation: Record, store: Store) -> Optional[str]:
        return None

    def revert(self, operation: Record, kept: Record, store: Store) -> None:
        undo = operation.get("undo")
        if kept["was"] == "applied" or self.reverted(operation, kept):
            return
        if not undo:
            raise Refused("%s has no way back" % " ".join(operation["argv"]))
        argv = list(undo["argv"])
        if "find" in undo:
            text = _output(undo["find"]["argv"], operation.get("env"))
            found = re.search(undo["find"]["pattern"], text)
            if found is None:
                raise Failed("%s: not found any more: %s" % (" ".join(argv), undo["find"]["pattern"]))
            for name, value in found.groupdict().items():
                argv = [part.replace("{%s}" % name, value or "") for part in argv]
        if "census" in kept:
            added = self._added(operation, kept)
            argv = [word for part in argv for word in (added if part == "{new}" else [part])]
        _run_or_fail(argv, operation, 600, store.directory)
        boundary("undo-command-ended")

    def reverted(self, operation: Record, kept: Record) -> bool:
        if "census" in kept:
            return not self._added(operation, kept)
        return bool(self.look(operation) == kept["was"])

    def tidy(self, operation: Record, kept: Record) -> None:
        """Nothing is left beside a command."""


def matching(text: str, pattern: str, ignore: str = "") -> bytes:
    """All matches of `pattern` in a text, a line each; before that everything that matches `ignore` is taken out."""
    rest = re.sub(ignore, "", text) if ignore else text
    return "\n".join(found.group() for found in re.finditer(pattern, rest)).encode("utf-8", "replace")


def _lines(path: str) -> Set[str]:
    with open(path, "rb") as file:
        return {line for line in file.read().decode("utf-8").split("\n") if line}


def _environment(extra: Optional[Dict[str, str]]) -> Dict[str, str]:
    env = dict(os.environ, LC_ALL="C")
    env.update(extra or {})
    return env


def _ask(argv: List[str], env: Optional[Dict[str, str]]) -> Tuple[int, str]:
    """(exit status, output) of a command that only reads."""
    import subprocess

    try:
        found = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(env),
            timeout=60,
        )
    except subprocess.TimeoutExpired:
        raise Failed("%s did not answer within 60 s" % " ".join(argv))
    return found.returncode, found.stdout.decode("utf-8", "replace")


def _output(argv: List[str], env: Optional[Dict[str, str]]) -> str:
    return _ask(argv, env)[1]


def _holds(check: Record, env: Optional[Dict[str, str]]) -> bool:
    try:
        code, text = _ask(check["argv"], env)
    except OSError:
        return False  # a program that is not there has done nothing
    return code == 0 and check.get("contains", "") in text


OUTPUT = None  # type: Optional[Callable[[str], None]]  # where the lines of long commands go while they run
PATIENCE = 5.0  # seconds for a command of a killed run to end by itself
MARK = "ENVTUNE_RUN"  # in the environment of every command: the run it belongs to


def _run_or_fail(argv: List[str], operation: Record, timeout: float, directory: str) -> None:
    code, tail = run_logged(argv, operation.get("timeout", timeout), operation.get("env"), directory)
    if code != 0:
        raise Failed("%s ended with %s: %s" % (" ".join(argv), code, tail))


def run_logged(argv: List[str], timeout: float, env: Optional[Dict[str, str]], directory: str) -> Tuple[int, str]:
    """Run a long command: every line to the run's output.log and to OUTPUT. (exit status, last lines).

    At the deadline, and when this run is stopped, its whole process group is killed. Raises Failed at the deadline.
    """
    import signal
    import subprocess

    marked = dict(_environment(env), **{MARK: directory})
    child = None
    log = _Log(os.path.join(directory, "output.log"), argv)
    try:
        with _Undisturbed():  # a command that was started is always known, so that it can be ended
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=marked,
                cwd="/",  # `python -m` looks for modules in the current directory first
                start_new_session=True,
            )
        assert child.stdout is not None
        boundary("command-started")
        if not _follow(child, child.stdout.fileno(), log, time.monotonic() + timeout):
            raise Failed("%s did not end within %g s: %s" % (" ".join(argv), timeout, log.tail()))
        return child.wait(), log.tail()
    finally:
        if child is not None:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            if child.stdout is not None:
                child.stdout.close()
        log.close()


class _Undisturbed:
    """Ctrl-C inside of the block is raised at its end."""

    def __enter__(self) -> None:
        import signal

        self._pressed = False
        self._before = None  # type: Any
        try:
            self._before = signal.signal(signal.SIGINT, self._press)
        except ValueError:
            pass  # not the main thread: Ctrl-C does not come here

    def _press(self, number: int, frame: Any) -> None:
        self._pressed = True

    def __exit__(self, *error: Any) -> None:
        import signal

        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self._pressed:
            raise KeyboardInterrupt


def _follow(child: Any, descriptor: int, log: "_Log", end: float) -> bool:
    """Log what the command prints until it ends; False at the deadline. Does not wait for daemons it leaves behind."""
    import subprocess

    while True:
        ended = child.poll() is not None
        ready, _, _ = select.select([descriptor], [], [], 0.1)
        data = os.read(descriptor, 65536) if ready else b""
        log.write(data)
        if ended and not data:
            return True
        if ready and not data:  # it closed its output: it ended, or goes on without a word
            try:
                child.wait(0.1)
            except subprocess.TimeoutExpired:
                pass
        if not ended and time.monotonic() > end:
            return child.poll() is not None


class _Log:
    """The output of a command: to a file, to OUTPUT, and its last lines at hand."""

    def __init__(self, path: str, argv: List[str]) -> None:
        self._lines = []  # type: List[str]
        self._file = open(path, "ab", 0, opener=_private)  # noqa: SIM115 (closed by close)
        self._rest = b""
        self._keep(("$ %s\n" % " ".join(argv)).encode("utf-8", "replace"))

    def _keep(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError:
            pass  # a full disk is no reason to stop the command

    def write(self, data: bytes) -> None:
        self._keep(data)
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            self._tell(line)

    def _tell(self, line: bytes) -> None:
        global OUTPUT
        text = line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2]
        self._lines = self._lines[-19:] + [text]
        if OUTPUT is not None:
            try:
                OUTPUT(text)
            except OSError:
                OUTPUT = None  # nobody reads any more

    def tail(self) -> str:
        return " | ".join(line for line in self._lines[-5:] if line)

    def close(self) -> None:
        if self._rest:
            self._tell(self._rest)
        self._file.close()


def left_behind(directory: str) -> List[int]:
    """The commands of a killed run that are still running: their environment names the run's directory."""
    mark = os.fsencode("%s=%s" % (MARK, directory))
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open("/proc/%s/environ" % name, "rb") as file:
                    row = process_identity(int(name))
                    if mark in file.read().split(b"\0") and row is not None and row[2] != "Z":
                        found.append(int(name))
            except OSError:
                continue
    return sorted(found)


class SwapOperation:
    """`{op: swap, root, touches, steps, verify, prepare?, holds?, wheels?, site?, timeout?, env?}`: replace trees.

    `touches` names everything below `root` that the commands may create, change or remove; the last part of a name may
    be a shell pattern (`Pillow-*`). All of it is kept in one archive first; if a step or a verification fails, it is
    put back. The way back needs no network.

    `prepare` runs before and writes only below `{work}`, an empty directory of this run (also in `env`, `steps` and
    `wheels`). `holds` maps names below `root` to the digest they must have for anything to begin (`absent`, or
    `present` for any content). `wheels` are the paths or patterns of the wheels that the steps install into `site`
    (below `root`): nothing is replaced unless all their files lie in `touches`, and afterwards each must be there with
    the bytes it has in the wheel.
    """

    def look(self, operation: Record) -> str:
        state = hashlib.sha256()
        for name in _expand(operation["root"], operation["touches"]):
            for path in _walk(os.path.join(operation["root"], name)):
                state.update(path.encode("utf-8", "surrogateescape") + b"\0")
                if os.path.islink(path):
                    state.update(os.readlink(path).encode("utf-8", "surrogateescape"))
                elif os.path.isfile(path) and not path.endswith(".pyc"):
                    with open(path, "rb") as file:
                        state.update(_file_digest(file))
        return "sha256:" + state.hexdigest()

    def wanted(self, operation: Record) -> str:
        """What the trees will look like is known only afterwards; the journal's `done` record holds it."""
        return ""

    def unmet(self, operation: Record) -> str:
        """Why it must not begin: a file that the plan rests on is another one now; empty when all are as expected."""
        for name, expected in sorted(operation.get("holds", {}).items()):
            path = os.path.join(operation["root"], name)
            found = digest(read_content(path))
            if found != expected and not (expected == "present" and found != "absent"):
                return "%s is not what the plan expected (found %s, planned for %s)" % (path, found, expected)
        return ""

    def keep(self, operation: Record, store: Store) -> Record:
        self._must_hold(operation)
        work = _new_directory(os.path.join(store.directory, "work"))
        try:
            self._commands(operation, operation.get("prepare", []), work, store)
            self._covered(operation, self._wheels(operation, work))
            self._must_hold(operation)  # preparing may take minutes
            was = self.look(operation)
            name = self.copy(operation, store)
        except BaseException:
            _remove_tree(work)
            raise
        with store.open(str(name)) as file:
            sum_ = _file_digest(file).hex()
        temporary = os.path.join(operation["root"], ".envtune-%d" % os.getpid())
        return {"was": was, "original": name, "sha256": sum_, "temporary": temporary, "work": work}

    def _must_hold(self, operation: Record) -> None:
        unmet = self.unmet(operation)
        if unmet:
            raise Refused(unmet)

    def copy(self, operation: Record, store: Store) -> Optional[str]:
        import tarfile

        def fill(file: IO[bytes]) -> None:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
                for name in _expand(operation["root"], operation["touches"]):
                    archive.add(os.path.join(operation["root"], name), arcname=name)

        return store.fill(fill)

    def do(self, operation: Record, kept: Record, store: Store) -> None:
        work = kept["work"]
        before = os.umask(0o022)  # what is installed is for others, too, whatever root's umask is
        try:
            self._commands(operation, operation["steps"], work, store)
            site = os.path.join(operation["root"], operation.get("site", ""))
            _compare_wheels(site, self._wheels(operation, work))
            self._commands(operation, operation["verify"], work, store)
        finally:
            os.umask(before)
            _remove_tree(work)
        for name in _expand(operation["root"], operation["touches"]):
            _settle(os.path.join(operation["root"], name))

    def _commands(self, operation: Record, commands: List[List[str]], work: str, store: Store) -> None:
        env = {name: value.replace("{work}", work) for name, value in operation.get("env", {}).items()}
        for argv in commands:
            words = [word.replace("{work}", work) for word in argv]
            _run_or_fail(words, dict(operation, env=env), 1800, store.directory)
            boundary("swap-step")

    def _wheels(self, operation: Record, work: str) -> List[str]:
        return [_one_file(pattern.replace("{work}", work)) for pattern in operation.get("wheels", [])]

    def _covered(self, operation: Record, wheels: List[str]) -> None:
        """Refuse wheels that would write beside what was kept: that could not be taken back."""
        for wheel in wheels:
            for place, _ in _wheel_places(wheel, operation.get("site", "")):
                if not _is_touched(place, operation["touches"]):
                    raise Refused("%s would write %s, which the plan does not name" % (wheel, place))

    def done(self, operation: Record, kept: Record) -> bool:
        return bool(self.look(operation) != kept["was"])  # `do` has run the verification

    def foreign(self, operation: Record, kept: Record, step: Record) -> str:
        found = self.look(operation)
        return found if step["state"] == "done" and found not in (kept["was"], step["now"]) else ""

    def revert(self, operation: Record, kept: Record, store: Store) -> None:
        import shutil
        import tarfile

        root, touches = operation["root"], operation["touches"]
        with store.open(kept["original"]) as file:
            if _file_digest(file).hex() != kept["sha256"]:
                raise Failed("the archive %s of what was there is damaged" % kept["original"])
            file.seek(0)
            new, old = os.path.join(kept["temporary"], "new"), os.path.join(kept["temporary"], "old")
            os.makedirs(new, 0o700)
            os.mkdir(old, 0o700)
            with tarfile.open(fileobj=file, mode="r") as archive:
                if hasattr(tarfile, "fully_trusted_filter"):
                    archive.extraction_filter = tarfile.fully_trusted_filter
                archive.extractall(new, numeric_owner=True)
        boundary("swap-unpacked")
        for number, name in enumerate(sorted(set(_expand(root, touches)) | set(_expand(new, touches)))):
            path, source = os.path.join(root, name), os.path.join(new, name)
            if os.path.lexists(path):
                os.rename(path, os.path.join(old, str(number)))
                boundary("swap-cleared")
            if os.path.lexists(source):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                os.rename(source, path)
                boundary("swap-restored")
            _settle(path)
        shutil.rmtree(kept["temporary"])

    def reverted(self, operation: Record, kept: Record) -> bool:
        return bool(self.look(operation) == kept["was"])

    def tidy(self, operation: Record, kept: Record) -> None:
        """Remove the half of a way back that a killed run left; the archive still holds everything."""
        import shutil

        _remove_tree(kept.get("work", ""))
        if os.path.lexists(kept["temporary"]):
            shutil.rmtree(kept["temporary"])


def _expand(root: str, names: List[str]) -> List[str]:
    """The names below `root` that are there; the last part of a name may be a shell pattern."""
    import fnmatch

    found = set()
    for name in names:
        folder, _, last = name.rpartition("/")
        if not any(mark in last for mark in "*?["):
            found |= {name} if os.path.lexists(os.path.join(root, name)) else set()
        elif os.path.isdir(os.path.join(root, folder)):
            for one in fnmatch.filter(os.listdir(os.path.join(root, folder)), last):
                found.add(folder + "/" + one if folder else one)
    return sorted(found)


def _is_touched(place: str, names: List[str]) -> bool:
    """Whether a path below the root is one of the names or lies below one."""
    import fnmatch

    for name in names:
        depth = name.count("/") + 1
        if fnmatch.fnmatchcase("/".join(place.split("/")[:depth]), name):
            return True
    return False


def _new_directory(path: str) -> str:
    """An empty directory of our own of that name, with a place for temporary files in it."""
    _remove_tree(path)
    os.mkdir(path, 0o700)
    os.mkdir(os.path.join(path, "tmp"), 0o700)
    return path


def _remove_tree(path: str) -> None:
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def _one_file(pattern: str) -> str:
    import glob

    found = [pattern] if os.path.isfile(pattern) else glob.glob(pattern)
    if len(found) != 1:
        raise Failed("%s: %s" % (pattern, "no such file" if not found else "several files: " + ", ".join(found)))
    return found[0]


def _wheel_places(wheel: str, site: str) -> Iterator[Tuple[str, Optional[str]]]:
    """(path below the root, member) of every file a wheel installs; no member where the installer changes the bytes."""
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            parts = member.split("/")
            if member.endswith("/"):
                continue
            if ".." in parts or member.startswith("/"):
                raise Refused("%s holds a file outside of its own tree: %s" % (wheel, member))
            kind = parts[1] if parts[0].endswith(".data") and len(parts) > 2 else "purelib"
            rest = "/".join(parts[2:] if parts[0].endswith(".data") else parts)
            if kind in ("purelib", "platlib"):
                changed = rest.endswith(".dist-info/RECORD")
                yield (site + "/" + rest if site else rest), (None if changed else member)
            elif kind in ("scripts", "data"):
                yield ("bin/" if kind == "scripts" else "") + rest, None
            else:
                raise Refused("%s holds %s, whose place is not known" % (wheel, member))


def _compare_wheels(site: str, wheels: List[str]) -> None:
    """Every file of the wheels is there, with the bytes it has in the wheel."""
    import zipfile

    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for place, member in _wheel_places(wheel, ""):
                if member is None:
                    continue
                found = read_content(os.path.join(site, place))
                if found != archive.read(member):
                    raise Failed("%s is not what %s holds" % (os.path.join(site, place), wheel))


def _file_digest(file: IO[bytes]) -> bytes:
    state = hashlib.sha256()
    for block in iter(lambda: file.read(1 << 20), b""):
        state.update(block)
    return state.digest()


def _walk(path: str) -> Iterator[str]:
    if not os.path.lexists(path):
        return
    yield path
    if os.path.isdir(path) and not os.path.islink(path):
        for name in sorted(os.listdir(path)):
            if name != "__pycache__":
                for below in _walk(os.path.join(path, name)):
                    yield below


def _settle(path: str) -> None:
    """Have a tree that commands wrote on disk."""
    for place in _walk(path):
        if os.path.isdir(place) and not os.path.islink(place):
            fsync_directory(place)
        elif os.path.isfile(place) and not os.path.islink(place):
            descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    if os.path.isdir(os.path.dirname(path)):
        fsync_directory(os.path.dirname(path))


class SignalOperation:
    """`{op: signal, pid, started, uid, grace, kill?}`: TERM one process, KILL it after `grace` s if `kill` is true.

    `started` (clock ticks since boot) and `uid` name the process; another one under the same number is never touched.
    """

    def look(self, operation: Record) -> str:
        pid = operation["pid"]
        row = process_identity(pid)
        if row is None or row[0] != operation["started"] or row[2] == "Z":
            return "gone"
        if row[1] != operation["uid"]:
            raise Refused("process %d belongs to user %d now" % (pid, row[1]))
        if pid in _ancestors(os.getpid()):
            raise Refused("process %d is envtune itself or started it" % pid)
        return "running"

    def wanted(self, operation: Record) -> str:
        """A signalled process is gone."""
        return "gone"

    def keep(self, operation: Record, store: Store) -> Record:
        return {"was": self.look(operation)}

    def do(self, operation: Record, kept: Record, store: Store) -> None:
        import signal

        signals = [(signal.SIGTERM, operation["grace"])] + ([(signal.SIGKILL, 5.0)] if operation.get("kill") else [])
        for number, patience in signals:
            if not self._send(operation, number):
                return
            boundary("signalled")
            end = time.monotonic() + patience
            while time.monotonic() < end:
                if self.look(operation) == "gone":
                    return
                time.sleep(0.05)
        raise Failed("process %d is still there" % operation["pid"])

    def _send(self, operation: Record, number: int) -> bool:
        """Signal exactly that process: open its descriptor, check the identity, then signal through it."""
        pid = operation["pid"]
        boundary("before-signal")
        if not hasattr(os, "pidfd_open"):  # before Python 3.9: check right before the signal
            if self.look(operation) == "gone":
                return False
            os.kill(pid, number)
            return True
        import signal

        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        try:
            boundary("pidfd-open")
            if self.look(operation) == "gone":
                return False
            signal.pidfd_send_signal(descriptor, number)
            return True
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)

    def done(self, operation: Record, kept: Record) -> bool:
        return self.look(operation) == "gone"

    def foreign(self, operation: Record, kept: Record, step: Record) -> str:
        return ""

    def copy(self, operation: Record, store: Store) -> Optional[str]:
        return None

    def revert(self, operation: Record, kept: Record, store: Store) -> None:
        raise Refused("process %d has ended and cannot be brought back" % operation["pid"])

    def reverted(self, operation: Record, kept: Record) -> bool:
        return bool(self.look(operation) == kept["was"])

    def tidy(self, operation: Record, kept: Record) -> None:
        """Nothing is left beside a signal."""


def process_identity(pid: int) -> Optional[Tuple[int, int, str]]:
    """(start in clock ticks since boot, uid, state letter) of a process, None when there is none."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[19]), os.stat("/proc/%d" % pid).st_uid, fields[0].decode("ascii")
    except (OSError, IndexError, ValueError):
        return None


def _ancestors(pid: int) -> List[int]:
    found = []
    while pid > 0:
        found.append(pid)
        try:
            with open("/proc/%d/stat" % pid, "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            break
    return found


OPERATIONS = {
    "file": FileOperation(),
    "run": RunOperation(),
    "swap": SwapOperation(),
    "signal": SignalOperation(),
}  # type: Dict[str, Any]


# ---------------------------------------------------------------------------------------------------- plans


def _is_path(value: Any) -> bool:
    return (
        isinstance(value, str)
        and value.startswith("/")
        and not value.startswith("//")
        and "\0" not in value
        and value == os.path.normpath(value)
        and value != "/"
    )


def _is_below(value: Any) -> bool:
    """A plain relative path that stays below its directory."""
    return isinstance(value, str) and not value.startswith("/") and _is_path("/" + value) and value != "."


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_argv(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_text(word) for word in value) and bool(value[0])


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e6


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_mode(value: Any) -> bool:
    return _is_count(value) and value <= 0o7777


def _is_pid(value: Any) -> bool:
    return _is_count(value) and value > 1


def _is_content(value: Any) -> bool:
    if value is None:
        return True
    try:
        return isinstance(value, str) and base64.b64decode(value, validate=True) is not None
    except ValueError:
        return False


def _is_env(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_text(k) and k and "=" not in k and _is_text(v) for k, v in value.items())


def _is_check(value: Any) -> bool:
    return _has(value, {"argv": _is_argv}, {"contains": _is_text})


def _is_find(value: Any) -> bool:
    return _has(value, {"argv": _is_argv, "pattern": _is_pattern}, {})


def _is_given(value: Any) -> bool:
    return _has(value, {"argv": _is_argv, "pattern": _is_pattern, "digest": _is_text}, {"ignore": _is_pattern})


def _is_pattern(value: Any) -> bool:
    try:
        return _is_text(value) and re.compile(value) is not None
    except re.error:
        return False


def _is_undo(value: Any) -> bool:
    return _has(value, {"argv": _is_argv}, {"find": _is_find})


def _has(value: Any, needed: Dict[str, Any], optional: Dict[str, Any]) -> bool:
    return isinstance(value, dict) and not _fault(value, needed, optional)


def _is_list(judge: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(judge(item) for item in value)


# kind -> (what an operation must have, what it may have)
FIELDS = {
    "file": ({"path": _is_path, "content": _is_content}, {"mode": _is_mode, "uid": _is_count, "gid": _is_count}),
    "run": (
        {"argv": _is_argv, "check": _is_check},
        {"undo": _is_undo, "given": _is_given, "census": _is_find, "timeout": _is_number, "env": _is_env},
    ),
    "swap": (
        {
            "root": _is_path,
            "touches": _is_list(_is_below),
            "steps": _is_list(_is_argv),
            "verify": _is_list(_is_argv),
        },
        {
            "prepare": _is_list(_is_argv),
            "holds": _is_env,
            "wheels": _is_list(_is_text),
            "site": _is_below,
            "timeout": _is_number,
            "env": _is_env,
        },
    ),
    "signal": (
        {"pid": _is_pid, "started": _is_count, "uid": _is_count, "grace": _is_number},
        {"kill": lambda value: isinstance(value, bool)},
    ),
}  # type: Dict[str, Tuple[Dict[str, Any], Dict[str, Any]]]


def operation_fault(operation: Any) -> str:
    """What is wrong with the shape of an operation, as `member: why`; empty when it is one of ours."""
    if not isinstance(operation, dict) or not isinstance(operation.get("op"), str):
        return "op: missing"
    if operation["op"] not in FIELDS:
        return "op: there is no kind of operation called %s" % operation["op"]
    needed, optional = FIELDS[operation["op"]]
    rest = {name: value for name, value in operation.items() if name != "op"}
    return _fault(rest, needed, dict(optional, expect=_is_text))


def _fault(found: Record, needed: Dict[str, Any], optional: Dict[str, Any]) -> str:
    for name in needed:
        if name not in found:
            return "%s: missing" % name
    for name, value in found.items():
        judge = needed.get(name) or optional.get(name)
        if judge is None:
            return "%s: unknown" % name
        if not judge(value):
            return "%s: not allowed: %s" % (name, json.dumps(value, default=repr)[:120])
    return ""


def plan_fault(plan: Any) -> str:
    """What is wrong with the shape of a plan, as `member: why`; empty when it can be carried out."""
    if not isinstance(plan, dict) or not isinstance(plan.get("changes"), list):
        return "changes: missing"
    seen = set()
    for number, change in enumerate(plan["changes"]):
        where = "changes[%d]" % number
        if not isinstance(change, dict):
            return "%s: not a mapping" % where
        if not isinstance(change.get("id"), str) or not re.match("[A-Za-z0-9._-]{1,40}$", change["id"]):
            return "%s.id: not allowed" % where
        if change["id"] in seen:
            return "%s.id: %s occurs twice" % (where, change["id"])
        seen.add(change["id"])
        if not isinstance(change.get("operations"), list):
            return "%s.operations: missing" % where
        for index, operation in enumerate(change["operations"]):
            fault = operation_fault(operation)
            if fault:
                return "%s.operations[%d].%s" % (where, index, fault)
    return ""


def stale(plan: Record) -> Dict[str, str]:
    """Change id -> why what is there now is not what the plan expected. Reads only.

    A later operation on the same thing is expected to find what the earlier one leaves, so only the first is judged.
    """
    found = {}  # type: Dict[str, str]
    seen = set()
    for change in plan["changes"]:
        for operation in change["operations"]:
            thing = (operation["op"], str(operation.get("path") or operation.get("root") or operation.get("argv")))
            if thing in seen or not {"expect", "holds", "given"} & set(operation):
                continue
            seen.add(thing)
            try:
                why = _stale(OPERATIONS[operation["op"]], operation)
            except (Refused, Failed, OSError) as error:
                why = describe_error(error)
            if why:
                found.setdefault(change["id"], why)
    return found


def _stale(kind: Any, operation: Record) -> str:
    if "holds" in operation:
        return str(kind.unmet(operation))
    there = kind.look(operation)
    if there == kind.wanted(operation):
        return ""
    if operation.get("expect", there) != there:
        return _unexpected(operation, there)
    return str(kind.unmet(operation)) if "given" in operation else ""


def _unexpected(operation: Record, there: str) -> str:
    thing = operation.get("path") or operation.get("root") or " ".join(operation.get("argv", [])) or operation["op"]
    return "%s is not what the plan expected (found %s, planned for %s)" % (thing, there, operation["expect"])


# ---------------------------------------------------------------------------------------------------- runs


class Run:
    """One journalled run. `say(event, record)` is told what happens, for progress."""

    def __init__(self, state: str, name: str, say: Optional[Say] = None, room: int = 65536) -> None:
        self.name = name
        self.directory = os.path.join(state, "runs", name)
        if not os.path.isdir(self.directory):
            os.mkdir(self.directory, 0o700)
            fsync_directory(os.path.dirname(self.directory))
        self.journal = Journal(self.directory, room)
        self.store = Store(self.directory)
        self._say = say

    def note(self, kind: str, last: bool = False, **fields: Any) -> None:
        """Journal one record and report it."""
        record = dict(fields, type=kind, time=now())
        self.journal.append(record, last)
        self.tell(kind, record)

    def tell(self, kind: str, record: Record) -> None:
        """Report something that is not journalled."""
        if self._say is not None:
            try:
                self._say(kind, record)
            except OSError:
                self._say = None  # nobody listens any more; that is no reason to stop

    def apply(self, change: Record, kept: Optional[Dict[int, Record]] = None) -> Record:
        """All operations of one change, or none: a failed one takes its predecessors back. The result record.

        `kept` holds the operations that a killed run had done already.
        """
        steps = dict(kept or {})  # type: Dict[int, Record]
        result = {"change": change["id"], "status": "done", "error": None}
        self.tell("start", change)
        try:
            for number, operation in enumerate(change["operations"]):
                if number not in steps:
                    self._perform(change, number, operation, steps)
        except (KeyboardInterrupt, Exception) as error:
            if isinstance(error, JournalLost):
                raise
            status = "refused" if isinstance(error, Refused) else "failed"
            status = "stopped" if isinstance(error, KeyboardInterrupt) else status
            result.update(status=status, error=describe_error(error))
            for number in sorted(steps, reverse=True):
                back = self.take_back((change["id"], number), steps[number])
                if back["error"]:
                    result["error"] = "%s; %s" % (result["error"], back["error"])
                    result["left"] = True
        self.note("change", last=True, **result)
        return result

    def _perform(self, change: Record, number: int, operation: Record, steps: Dict[int, Record]) -> None:
        kind = OPERATIONS[operation["op"]]
        found = kind.look(operation)
        if found == kind.wanted(operation):
            self.note("same", change=change["id"], number=number)
            return
        if operation.get("expect", found) != found:
            raise Refused(_unexpected(operation, found))
        kept = kind.keep(operation, self.store)
        self.note("intent", change=change["id"], number=number, operation=operation, kept=kept)
        steps[number] = {"state": "intent", "operation": operation, "kept": kept}
        kind.do(operation, kept, self.store)
        if not kind.done(operation, kept):
            raise Failed("%s does not hold what was written" % (operation.get("path") or change.get("target")))
        left = kind.look(operation)
        self.note("done", last=True, change=change["id"], number=number, now=left)
        steps[number].update(state="done", now=left)

    def take_back(self, key: Tuple[str, int], step: Record, force: bool = False) -> Record:
        """Take one step back; refused where somebody changed the thing since, unless `force`, which keeps a copy."""
        result = {"change": key[0], "number": key[1], "status": "undone", "error": None}  # type: Record
        if "operation" not in step:
            return dict(result, status="failed", error="the journal's line that says what was there is damaged")
        operation, kept = step["operation"], step["kept"]
        kind = OPERATIONS[operation["op"]]
        try:
            kind.tidy(operation, kept)
            if not kind.reverted(operation, kept):
                self._copy_foreign(kind, key, step, force, result)
                self.note("reverting", last=True, change=key[0], number=key[1])
                kind.revert(operation, kept, self.store)
                if not kind.reverted(operation, kept):
                    raise Failed("what was there before could not be put back")
            kind.tidy(operation, kept)
            self.note("reverted", last=True, change=key[0], number=key[1])
        except (Refused, Failed, OSError, ValueError) as error:
            result.update(status="refused" if isinstance(error, Refused) else "failed", error=describe_error(error))
            self.note("stuck", last=True, change=key[0], number=key[1], error=result["error"])
        return result

    def _copy_foreign(self, kind: Any, key: Tuple[str, int], step: Record, force: bool, result: Record) -> None:
        operation = step["operation"]
        foreign = kind.foreign(operation, step["kept"], step)
        if not foreign:
            return
        if not force:
            result["foreign"] = foreign
            thing = operation.get("path") or operation.get("root")
            raise Refused("%s was changed since (found %s, this run left %s)" % (thing, foreign, step.get("now")))
        copy = kind.copy(operation, self.store)
        if copy is not None:
            result["copy"] = os.path.join(self.directory, copy)
        self.note("set-aside", last=True, change=key[0], number=key[1], copy=copy)


def describe_error(error: BaseException) -> str:
    """The error in one line, with the path where there is one."""
    if isinstance(error, OSError) and error.strerror:
        return "%s: %s" % (error.filename, error.strerror) if error.filename else error.strerror
    if isinstance(error, KeyboardInterrupt):
        return "stopped by the user"
    if isinstance(error, (Refused, Failed, Locked, JournalLost)):
        return "%s" % error
    return "%s: %s" % (type(error).__name__, error)


def apply_plan(plan: Record, state: str, say: Optional[Say] = None, wait: float = 0.0) -> Tuple[str, List[Record]]:
    """Carry out every change of `plan`: (run name, one result per change).

    Ctrl-C takes the change in hand back and begins no further one. Raises Refused (the plan is malformed, or an earlier
    run was interrupted), Locked after `wait` seconds, JournalLost, OSError when there is no room for a journal.
    """
    fault = plan_fault(plan)
    if fault:
        raise Refused("malformed plan: %s" % fault)
    lock = Lock(state, wait)
    try:
        broken = interrupted(state)
        if broken:
            raise Refused("run %s was interrupted; finish or undo it first" % broken[0].name)
        name = _new_name(state)
        lock.tell(name)
        steps = sum(len(change["operations"]) for change in plan["changes"])
        run = Run(state, name, say, 16384 + 1024 * (steps + len(plan["changes"])))
        run.note("begin", schema=SCHEMA, plan=plan, pid=os.getpid(), uid=os.geteuid())
        results = []  # type: List[Record]
        _apply_all(run, plan["changes"], results)
        return name, results
    finally:
        lock.release()


def _apply_all(run: Run, changes: List[Record], results: List[Record]) -> None:
    for change in changes:
        if results and results[-1]["status"] == "stopped":
            results.append({"change": change["id"], "status": "stopped", "error": "not begun"})
        else:
            results.append(run.apply(change))
    run.note("end", last=True, results=results)
    run.journal.close()


def _new_name(state: str) -> str:
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    number = 0
    while True:
        name = stamp if number == 0 else "%s-%d" % (stamp, number)
        if not os.path.lexists(os.path.join(state, "runs", name)):
            return name
        number += 1


class Past:
    """What the journal of one run says. `steps` maps (change, number) to its latest records, in the order they began.

    `doing` is what was under way when the journal ends: apply, undo, or empty. `damaged` are lines that cannot be read.
    """

    def __init__(self, state: str, name: str) -> None:
        if not re.match("[0-9]{8}-[0-9]{6}(-[0-9]+)?$", name):
            raise Refused("%s is not the name of a run" % name)
        self.name = name
        self.directory = os.path.join(state, "runs", name)
        self.path = os.path.join(self.directory, "journal.jsonl")
        if not os.path.exists(self.path):
            raise Refused("there is no run %s" % name)
        self.records, self.damaged = read_journal(self.path)
        self.begin = {}  # type: Record
        self.undoing = {}  # type: Record
        self.doing = ""
        self.steps = {}  # type: Dict[Tuple[str, int], Record]
        for record in self.records:
            self._take(record)

    def _take(self, record: Record) -> None:
        kind = record["type"]
        if kind == "begin":
            self.begin, self.doing = record, "apply"
            if record.get("schema") != SCHEMA:
                raise Refused("run %s is of another version (%s)" % (self.name, record.get("schema")))
        elif kind == "end":
            self.doing = ""
        elif kind == "undo-begin":
            self.undoing, self.doing = dict(record, before=self.doing), "undo"
        elif kind == "undo-end":
            self.doing = self.undoing.get("before", "") if self.undoing.get("change") else ""
        elif kind in ("intent", "done", "reverting", "reverted", "stuck"):
            key = (record["change"], record["number"])
            if kind == "intent":
                self.steps.pop(key, None)  # begun again: it is the latest step now
            step = self.steps.setdefault(key, {})
            if not (kind == "stuck" and step.get("state") == "done"):
                step["state"] = kind
            step.update({name: record[name] for name in ("operation", "kept", "now") if name in record})

    @property
    def plan(self) -> Record:
        """The plan of the run; without changes when it was killed before it was journalled."""
        return self.begin.get("plan", {"changes": []})  # type: ignore[no-any-return]

    @property
    def status(self) -> str:
        """interrupted, applied, partly, failed, undone, partly-undone, or empty when nothing was begun."""
        if self.doing:
            return "interrupted"
        if self.steps and not self.open_steps():
            return "undone" if self.undoing else "failed"
        good = [result for result in self.results() if result["status"] == "done"]
        if not self.results():
            return "empty"
        if self.undoing:
            return "partly-undone"
        return "applied" if len(good) == len(self.plan["changes"]) else "partly" if good else "failed"

    def results(self) -> List[Record]:
        """The latest result of every change that was finished."""
        return list({r["change"]: r for r in self.records if r["type"] == "change"}.values())

    def open_steps(self, change: Optional[str] = None) -> List[Tuple[str, int]]:
        """The steps whose effect is (or may be) on the host, the latest first."""
        live = [key for key, step in self.steps.items() if step["state"] != "reverted"]
        return [key for key in reversed(live) if change is None or key[0] == change]


def history(state: str) -> List[Past]:
    """Every run, the oldest first; a run of another version is left out."""
    return _readable(state, lambda path: True)


def _readable(state: str, wanted: Callable[[str], bool]) -> List[Past]:
    folder = os.path.join(state, "runs")
    found = []
    for name in sorted(os.listdir(folder), key=_in_time) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name, "journal.jsonl")
        if os.path.exists(path) and not wanted(path):
            continue
        try:
            past = Past(state, name)
        except Refused:
            continue
        if past.records or past.damaged:
            found.append(past)
    return found


def _in_time(name: str) -> Tuple[str, int]:
    stamp, _, number = name.partition("-")[2].partition("-")
    return name[:9] + stamp, int(number) if number.isdigit() else 0


def interrupted(state: str) -> List[Past]:
    """The runs that were killed in the middle; not the one that is under way."""
    who = holder(state)
    found = [past for past in _readable(state, _is_open) if past.doing]
    return [past for past in found if not who.endswith("run " + past.name)]


def _is_open(path: str) -> bool:
    """False when the last line of a journal says that the run ended: then there is no need to read all of it."""
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 65536))
        lines = file.read().splitlines()
    try:
        return bool(json.loads(lines[-1].decode("ascii"))["record"]["type"] != "end")
    except (ValueError, KeyError, TypeError, IndexError):
        return True


def resume(state: str, name: str, say: Optional[Say] = None, wait: float = 0.0) -> List[Record]:
    """Finish a killed run: what is done stays, what was begun is ended, what was not begun is done.

    A run that was killed while it was undone is undone further. Raises Refused, Locked, JournalLost, OSError.
    """
    lock = Lock(state, wait)
    try:
        past = _past(state, name, lock)
        if not past.doing:
            raise Refused("run %s was not interrupted" % name)
        run = Run(state, name, say)
        if past.doing == "undo":
            return _undo(run, past, past.undoing.get("change"), past.undoing.get("force", False))
        if past.damaged or not past.begin:
            raise Refused("damaged lines in %s: %s; undo the run instead" % (past.path, past.damaged))
        results = past.results()
        finished = {result["change"] for result in results}
        rest = [change for change in past.plan["changes"] if change["id"] not in finished]
        ready = []
        for change in rest:
            kept, stuck = _rewind(run, past, change["id"])
            if stuck:
                results.append({"change": change["id"], "status": "failed", "error": stuck, "left": True})
                run.note("change", last=True, **results[-1])
            else:
                ready.append((change, kept))
        for change, kept in ready:
            results.append(run.apply(change, kept))
        run.note("end", last=True, results=results)
        run.journal.close()
        return results
    finally:
        lock.release()


def _rewind(run: Run, past: Past, change: str) -> Tuple[Dict[int, Record], Optional[str]]:
    """Take back what was only begun of a change: (the steps that are done, why it cannot be taken back)."""
    kept = {}
    for key in past.open_steps(change):
        step = past.steps[key]
        if step["state"] == "done":
            kept[key[1]] = step
            continue
        back = run.take_back(key, step)
        if back["error"] and step.get("operation", {}).get("op") not in ("run", "signal"):
            return {}, str(back["error"])  # a command without a way back is simply tried again
    return kept, None


def undo(
    state: str,
    name: str,
    change: Optional[str] = None,
    force: bool = False,
    say: Optional[Say] = None,
    wait: float = 0.0,
) -> List[Record]:
    """Take back a run, or one change of it, the latest step first. One result per step.

    A step is refused where somebody changed the thing since; with `force` what is there now is kept in the run's
    directory first (`copy` in the result). Raises Refused, Locked, JournalLost, OSError.
    """
    lock = Lock(state, wait)
    try:
        past = _past(state, name, lock)
        if change is not None and change not in {c["id"] for c in past.plan["changes"]} | {k[0] for k in past.steps}:
            raise Refused("run %s has no change %s" % (name, change))
        return _undo(Run(state, name, say), past, change, force)
    finally:
        lock.release()


def _undo(run: Run, past: Past, change: Optional[str], force: bool) -> List[Record]:
    run.note("undo-begin", change=change, force=force)
    results = [run.take_back(key, past.steps[key], force) for key in past.open_steps(change)]
    if past.damaged and change is None:
        words = "damaged lines in %s: %s; what they told was not undone" % (past.path, past.damaged)
        results.append({"change": "", "number": -1, "status": "failed", "error": words})
    for step in past.steps.values():  # directories that an earlier undo of one change had to leave
        if "operation" in step and step["operation"]["op"] == "file":
            OPERATIONS["file"].tidy(step["operation"], step["kept"])
    run.note("undo-end", last=True, results=results)
    run.journal.close()
    return results


def _past(state: str, name: str, lock: Lock) -> Past:
    """A run that may be continued now."""
    past = Past(state, name)
    end = time.monotonic() + PATIENCE
    while left_behind(past.directory) and time.monotonic() < end:
        time.sleep(0.1)
    running = left_behind(past.directory)
    if running:
        words = ", ".join(str(pid) for pid in running)
        raise Refused("a command of run %s is still running: process %s; wait for it or end it" % (name, words))
    lock.tell(name)
    return past


def main(argv: Optional[List[str]] = None) -> int:
    """`executor.py apply PLAN.json|- | undo RUN [CHANGE] | resume RUN | pending`: the writing end by itself."""
    import sys

    words = sys.argv[1:] if argv is None else argv
    state = state_directory()
    name = words[1] if len(words) > 1 else ""
    results = []  # type: List[Record]
    try:
        if words[:1] == ["apply"] and len(words) == 2:
            with sys.stdin if name == "-" else open(name, encoding="utf-8") as file:
                name, results = apply_plan(json.load(file), state)
        elif words[:1] == ["undo"] and len(words) in (2, 3):
            results = undo(state, name, words[2] if len(words) == 3 else None)
        elif words[:1] == ["resume"] and len(words) == 2:
            results = resume(state, name)
        elif words == ["pending"]:
            sys.stdout.write(json.dumps([past.name for past in interrupted(state)]) + "\n")
            return 0
        else:
            sys.stderr.write((main.__doc__ or "") + "\n")
            return 2
    except (Locked, Refused, JournalLost, OSError, ValueError) as error:
        sys.stderr.write("envtune executor: %s\n" % describe_error(error))
        return 2
    sys.stdout.write(json.dumps({"run": name, "results": results}) + "\n")
    return 0 if all(r["status"] in ("done", "undone") for r in results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
