"""The writing end: takes a plan, journals, writes, re-reads, takes back. Decides nothing.

Standard library only, Python 3.6 syntax, imports nothing of envtune, so that a plan can travel to a host on which
nothing is installed. It is one module above the usual size because it travels as one file.

Every operation is written ahead: its intent, with everything needed to take it back (bytes, owner, mode, times,
extended attributes), is on disk and fsynced before the first byte of the host changes. A run that was killed is
therefore always one of: not begun, done, or begun with the original at hand; `interrupted` finds it, `resume` or `undo`
end it.



Layout of the state directory (root: /var/lib/envtune, else $XDG_STATE_HOME/envtune):

    lock                      flock held by the one run that may write
    runs/<run>/journal.jsonl  one JSON object a line, `{"crc": ..., "record": {...}}`; a torn last line is ignored
    runs/<run>/NNNN.orig      the bytes that were there before operation NNNN
"""

import base64
import binascii
import errno
import fcntl
import hashlib
import json
import os
import stat
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

SCHEMA = "envtune.journal/1"
Record = Dict[str, Any]


class Refused(Exception):
    """The operation was not begun: what is there is not what the plan expected, or it is not allowed."""


class Failed(Exception):
    """The operation was begun and did not work; the original was put back, or the message says what is left."""


class Locked(Exception):
    """Another run holds the lock; the message says who."""


def boundary(name: str) -> None:
    """Called between any two steps that a crash could separate; tests replace it to kill the process there."""


# ---------------------------------------------------------------------------------------------------- journal


class Journal:
    """One run's journal, open for appending. `directory` is runs/<run>."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.path = os.path.join(directory, "journal.jsonl")
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        _end_torn_line(self._descriptor, self.path)
        fsync_directory(directory)

    def append(self, record: Record) -> None:
        """Write one record and have it on disk before returning."""
        text = json.dumps(record, sort_keys=True, ensure_ascii=True)
        line = json.dumps(
            {"crc": binascii.crc32(text.encode("ascii")) & 0xFFFFFFFF, "record": record},
            sort_keys=True,
            ensure_ascii=True,
        )
        data = (line + "\n").encode("ascii")
        while data:
            data = data[os.write(self._descriptor, data) :]
        os.fsync(self._descriptor)
        boundary("journal:" + str(record.get("type")))

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _end_torn_line(descriptor: int, path: str) -> None:
    """A run that was killed inside a line left it open: close it, so that the next record stands on its own."""
    size = os.fstat(descriptor).st_size
    if size:
        with open(path, "rb") as file:
            file.seek(size - 1)
            if file.read(1) != b"\n":
                os.write(descriptor, b"\n")


def read_journal(path: str) -> Tuple[List[Record], List[int]]:
    """The records of a journal and the numbers of the lines whose checksum is wrong (a torn tail is one)."""
    records, damaged = [], []
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                outer = json.loads(line.decode("ascii"))
                text = json.dumps(outer["record"], sort_keys=True, ensure_ascii=True)
                if outer["crc"] != binascii.crc32(text.encode("ascii")) & 0xFFFFFFFF:
                    raise ValueError("checksum")
                records.append(outer["record"])
            except (ValueError, KeyError, TypeError):
                damaged.append(number)
    return records, damaged


def state_directory() -> str:
    """/var/lib/envtune for root, $XDG_STATE_HOME/envtune (~/.local/state/envtune) otherwise."""
    if os.geteuid() == 0:
        return "/var/lib/envtune"
    home = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "envtune")


class Lock:
    """The right to write, held by one run at a time; released by the kernel however that run ends."""

    def __init__(self, state: str, wait: float = 0.0) -> None:
        os.makedirs(os.path.join(state, "runs"), mode=0o700, exist_ok=True)
        self._descriptor = os.open(os.path.join(state, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        end = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() >= end:
                    holder = os.read(self._descriptor, 200).decode("utf-8", "replace").strip()
                    os.close(self._descriptor)
                    raise Locked("another envtune run holds the lock: %s" % (holder or "unknown"))
                time.sleep(0.1)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, ("pid %d since %s\n" % (os.getpid(), now())).encode("ascii"), 0)

    def release(self) -> None:
        """Let the next run in."""
        os.close(self._descriptor)


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
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refused("%s is not a regular file" % path)
        return file.read()


def is_kernel_file(path: str) -> bool:
    """A file of /proc or /sys is written in place: it cannot be renamed over."""
    return path.startswith(("/sys/", "/proc/"))


def describe_file(path: str) -> Record:
    """Owner, mode, times and extended attributes (the SELinux context is one) of a file."""
    found = os.lstat(path)
    attributes = {}
    if not is_kernel_file(path):
        for name in os.listxattr(path, follow_symlinks=False):
            value = os.getxattr(path, name, follow_symlinks=False)
            attributes[name] = base64.b64encode(value).decode("ascii")
    return {
        "mode": stat.S_IMODE(found.st_mode),
        "uid": found.st_uid,
        "gid": found.st_gid,
        "atime_ns": found.st_atime_ns,
        "mtime_ns": found.st_mtime_ns,
        "xattrs": attributes,
    }


def write_file(path: str, data: bytes, like: Record, temporary: str, times: bool = False) -> None:
    """Replace `path` by `data` in one step (kernel files: write in place). `like` gives owner, mode, attributes."""
    if is_kernel_file(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
        boundary("kernel-written")
        return
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


def _dress(descriptor: int, like: Record, times: bool) -> None:
    """Give an open file the owner, mode, attributes and (on undo) times of `like`."""
    found = os.fstat(descriptor)
    if (found.st_uid, found.st_gid) != (like["uid"], like["gid"]):
        os.fchown(descriptor, like["uid"], like["gid"])
    os.fchmod(descriptor, like["mode"])
    for name, value in like.get("xattrs", {}).items():
        try:
            os.setxattr(descriptor, name, base64.b64decode(value))
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EPERM) or name != "security.selinux":
                raise
    if times:
        os.utime(descriptor, ns=(like["atime_ns"], like["mtime_ns"]))


def remove_file(path: str) -> None:
    """Remove a file, and have that on disk."""
    os.unlink(path)
    boundary("removed")
    fsync_directory(os.path.dirname(path))


# ---------------------------------------------------------------------------------------------------- operations
#
# An operation is a mapping with `op`: file, run, swap or signal. Each kind has
#   look(operation)             what is there now, as text that can be compared: Refused when it may not be touched
#   keep(operation, store)      everything needed to take it back, as a record; bytes go to `store`
#   do(operation, kept)         the write itself; raises OSError or Failed
#   done(operation, kept)       whether the host is now as the operation wants it
#   revert(operation, kept)     the way back
#   reverted(operation, kept)   whether the host is as it was


class Store:
    """Where the originals of one run lie."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._number = len([n for n in os.listdir(directory) if n.endswith(".orig")])

    def put(self, data: bytes) -> str:
        """Keep bytes, on disk before this returns; the name to `get` them by."""
        self._number += 1
        name = "%04d.orig" % self._number
        with open(os.path.join(self.directory, name), "xb", opener=_private) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fsync_directory(self.directory)
        boundary("original-kept")
        return name

    def get(self, name: str) -> bytes:
        """The bytes kept under that name."""
        with open(os.path.join(self.directory, os.path.basename(name)), "rb") as file:
            return file.read()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class FileOperation:
    """`{op: file, path, expect, content|null, mode, uid, gid}`: one regular or kernel file; content null removes it.

    `expect` is the digest of what must be there now. A new file gets mode (default 0644) and the caller's owner unless
    `uid`/`gid` are given; an existing one keeps its own.
    """

    def look(self, operation: Record) -> str:
        path = operation["path"]
        if path != os.path.normpath(path) or not path.startswith("/"):
            raise Refused("%s is not a plain absolute path" % path)
        return digest(normal(path, read_content(path)))

    def keep(self, operation: Record, store: Store) -> Record:
        path = operation["path"]
        data = read_content(path)
        kept: Record = {"temporary": "%s.envtune-%d" % (path, os.getpid())}
        if data is not None:
            kept.update(original=store.put(data), was=digest(normal(path, data)), meta=describe_file(path))
        else:
            kept.update(was="absent", missing=_missing_parents(path))
        return kept

    def do(self, operation: Record, kept: Record, store: Store) -> None:
        path, content = operation["path"], operation["content"]
        if content is None:
            remove_file(path)
            return
        like = kept.get("meta")
        if like is None:
            for parent in kept["missing"]:
                if not os.path.isdir(parent):
                    os.mkdir(parent, 0o755)
            like = {
                "mode": operation.get("mode", 0o644),
                "uid": operation.get("uid", os.geteuid()),
                "gid": operation.get("gid", os.getegid()),
            }
        write_file(path, base64.b64decode(content), like, kept["temporary"])

    def done(self, operation: Record, kept: Record) -> bool:
        return self.look(operation) == self.wanted(operation)

    def wanted(self, operation: Record) -> str:
        """The digest of what the operation writes."""
        content = operation["content"]
        return digest(None if content is None else normal(operation["path"], base64.b64decode(content)))

    def revert(self, operation: Record, kept: Record, store: Store) -> None:
        path = operation["path"]
        if kept["was"] == "absent":
            if read_content(path) is not None:
                remove_file(path)
            for parent in reversed(kept["missing"]):
                try:
                    os.rmdir(parent)
                except OSError:
                    break  # somebody uses it now
        else:
            write_file(path, store.get(kept["original"]), kept["meta"], kept["temporary"], times=True)

    def reverted(self, operation: Record, kept: Record) -> bool:
        return bool(self.look(operation) == kept["was"])

    def tidy(self, operation: Record, kept: Record) -> None:
        """Remove what a killed run left beside the file."""
        if os.path.lexists(kept["temporary"]):
            os.unlink(kept["temporary"])


def normal(path: str, data: Optional[bytes]) -> Optional[bytes]:
    """What is compared: kernel files answer with a newline, and tabs between numbers, whatever was written."""
    return b" ".join(data.split()) if data is not None and is_kernel_file(path) else data


def _missing_parents(path: str) -> List[str]:
    """The parent directories that have to be made, outermost first."""
    missing = []
    parent = os.path.dirname(path)
    while not os.path.isdir(parent):
        missing.append(parent)
        parent = os.path.dirname(parent)
    return missing[::-1]


class RunOperation:
    """`{op: run, argv, check: {argv, contains?}, undo?: {argv, find?: {argv, pattern}}, timeout, env?}`: one command.

    `check` tells whether its effect is there: exit 0 and, with `contains`, that text in its output. `find` fills named
    groups of `pattern` in the output of a command into the undo command (`{handle}`), so that the way back names the
    very rule that was added.
    """

    def look(self, operation: Record) -> str:
        return "applied" if _holds(operation["check"], operation.get("env")) else "not-applied"

    def keep(self, operation: Record, store: Store) -> Record:
        return {"was": self.look(operation)}

    def do(self, operation: Record, kept: Record, store: Store) -> None:
        code, tail = run_logged(operation["argv"], operation.get("timeout", 600), operation.get("env"), store.directory)
        boundary("command-ended")
        if code != 0:
            raise Failed("%s ended with %s: %s" % (" ".join(operation["argv"]), code, tail))

    def done(self, operation: Record, kept: Record) -> bool:
        return self.look(operation) == "applied"

    def wanted(self, operation: Record) -> str:
        """A command's effect is there or not."""
        return "applied"

    def revert(self, operation: Record, kept: Record, store: Store) -> None:
        undo = operation.get("undo")
        if kept["was"] == "applied" or self.look(operation) == "not-applied":
            return
        if not undo:
            raise Refused("%s has no way back" % " ".join(operation["argv"]))
        argv = list(undo["argv"])
        if "find" in undo:
            import re

            text = _output(undo["find"]["argv"], operation.get("env"))
            found = re.search(undo["find"]["pattern"], text)
            if found is None:
                raise Failed("%s: not found any more: %s" % (" ".join(argv), undo["find"]["pattern"]))
            argv = [part.format(**found.groupdict()) if "{" in part else part for part in argv]
        code, tail = run_logged(argv, operation.get("timeout", 600), operation.get("env"), store.directory)
        if code != 0:
            raise Failed("%s ended with %s: %s" % (" ".join(argv), code, tail))

    def reverted(self, operation: Record, kept: Record) -> bool:
        return bool(self.look(operation) == kept["was"])

    def tidy(self, operation: Record, kept: Record) -> None:
        """Nothing is left beside a command."""


def _environment(extra: Optional[Dict[str, str]]) -> Dict[str, str]:
    env = dict(os.environ, LC_ALL="C")
    env.update(extra or {})
    return env


def _output(argv: List[str], env: Optional[Dict[str, str]]) -> str:
    import subprocess

    found = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(env),
        timeout=60,
    )
    return found.stdout.decode("utf-8", "replace")


def _holds(check: Record, env: Optional[Dict[str, str]]) -> bool:
    import subprocess

    try:
        found = subprocess.run(
            check["argv"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(env),
            timeout=60,
        )
    except OSError:
        return False
    except subprocess.TimeoutExpired:
        raise Failed("%s did not answer within 60 s" % " ".join(check["argv"]))
    return found.returncode == 0 and check.get("contains", "") in found.stdout.decode("utf-8", "replace")


OUTPUT = None  # type: Optional[Callable[[str], None]]  # where the lines of long commands go while they run


def run_logged(argv: List[str], timeout: float, env: Optional[Dict[str, str]], directory: str) -> Tuple[int, str]:
    """Run a long command: every line to the run's output.log and to OUTPUT. (exit status, last lines).

    At the deadline its whole process group is killed.
    """
    import signal
    import subprocess
    import threading

    tail: List[str] = []
    child = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=_environment(env),
        start_new_session=True,
    )
    timer = threading.Timer(timeout, lambda: os.killpg(child.pid, signal.SIGKILL))
    timer.start()
    try:
        with open(os.path.join(directory, "output.log"), "ab", opener=_private) as log:
            log.write(("$ %s\n" % " ".join(argv)).encode("utf-8", "replace"))
            assert child.stdout is not None
            for line in child.stdout:
                log.write(line)
                text = line.decode("utf-8", "replace").rstrip("\n")
                tail = tail[-19:] + [text]
                if OUTPUT is not None:
                    OUTPUT(text)
        return child.wait(), " | ".join(tail[-5:])
    finally:
        timer.cancel()


class SwapOperation:
    """`{op: swap, root, touches: [names], steps: [argv], verify: [argv], timeout, env?}`: replace trees by commands.

    `touches` names everything below `root` that the commands may create, change or remove. All of it is kept in one
    archive first; if a step or a verification fails, it is put back. The way back needs no network.
    """

    def look(self, operation: Record) -> str:
        state = hashlib.sha256()
        for name in sorted(operation["touches"]):
            for path in _walk(os.path.join(operation["root"], _plain(name))):
                state.update(path.encode("utf-8", "surrogateescape") + b"\0")
                if os.path.islink(path):
                    state.update(os.readlink(path).encode("utf-8", "surrogateescape"))
                elif os.path.isfile(path) and not path.endswith(".pyc"):
                    with open(path, "rb") as file:
                        state.update(hashlib.sha256(file.read()).digest())
        return "sha256:" + state.hexdigest()

    def keep(self, operation: Record, store: Store) -> Record:
        import io
        import tarfile

        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name in operation["touches"]:
                path = os.path.join(operation["root"], _plain(name))
                if os.path.lexists(path):
                    archive.add(path, arcname=name)
        return {"was": self.look(operation), "original": store.put(buffer.getvalue())}

    def do(self, operation: Record, kept: Record, store: Store) -> None:
        for argv in list(operation["steps"]) + list(operation["verify"]):
            code, tail = run_logged(argv, operation.get("timeout", 1800), operation.get("env"), store.directory)
            boundary("swap-step")
            if code != 0:
                raise Failed("%s ended with %s: %s" % (" ".join(argv), code, tail))

    def done(self, operation: Record, kept: Record) -> bool:
        for argv in operation["verify"]:
            if not _holds({"argv": argv}, operation.get("env")):
                return False
        return bool(self.look(operation) != kept["was"])

    def wanted(self, operation: Record) -> str:
        """What the trees will look like is known only afterwards; the journal's `done` record holds it."""
        return ""

    def revert(self, operation: Record, kept: Record, store: Store) -> None:
        import io
        import shutil
        import tarfile

        for name in operation["touches"]:
            path = os.path.join(operation["root"], _plain(name))
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            elif os.path.lexists(path):
                os.unlink(path)
        boundary("swap-cleared")
        with tarfile.open(fileobj=io.BytesIO(store.get(kept["original"])), mode="r") as archive:
            for member in archive:
                _plain(member.name)
                archive.extract(member, operation["root"], numeric_owner=True)
        boundary("swap-restored")

    def reverted(self, operation: Record, kept: Record) -> bool:
        return bool(self.look(operation) == kept["was"])

    def tidy(self, operation: Record, kept: Record) -> None:
        """Nothing is left beside the trees."""


def _plain(name: str) -> str:
    if name.startswith("/") or ".." in name.split("/"):
        raise Refused("%s leaves the directory" % name)
    return name


def _walk(path: str) -> Iterator[str]:
    if not os.path.lexists(path):
        return
    yield path
    if os.path.isdir(path) and not os.path.islink(path):
        for name in sorted(os.listdir(path)):
            if name != "__pycache__":
                for below in _walk(os.path.join(path, name)):
                    yield below


class SignalOperation:
    """`{op: signal, pid, started, uid, grace, kill}`: TERM one process, KILL it after `grace` s if `kill` is true.

    `started` (clock ticks since boot) and `uid` name the process; another one under the same number is never touched.
    """

    def look(self, operation: Record) -> str:
        pid = operation["pid"]
        row = process_identity(pid)
        if row is None or row[0] != operation["started"]:
            return "gone"
        if row[1] != operation["uid"]:
            raise Refused("process %d belongs to user %d now" % (pid, row[1]))
        if pid in _ancestors(os.getpid()):
            raise Refused("process %d is envtune itself or started it" % pid)
        return "running"

    def keep(self, operation: Record, store: Store) -> Record:
        return {"was": self.look(operation)}

    def do(self, operation: Record, kept: Record, store: Store) -> None:
        import signal

        signals = [(signal.SIGTERM, operation["grace"])] + ([(signal.SIGKILL, 5.0)] if operation.get("kill") else [])
        for number, patience in signals:
            if not self._send(operation, number):
                return
            end = time.monotonic() + patience
            while time.monotonic() < end:
                if self._gone(operation["pid"], operation["started"]):
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

    @staticmethod
    def _gone(pid: int, started: int) -> bool:
        row = process_identity(pid)
        return row is None or row[0] != started or row[2] == "Z"

    def done(self, operation: Record, kept: Record) -> bool:
        return self._gone(operation["pid"], operation["started"])

    def wanted(self, operation: Record) -> str:
        """A signalled process is gone."""
        return "gone"

    def revert(self, operation: Record, kept: Record, store: Store) -> None:
        if kept["was"] == "running" and self.done(operation, kept):
            raise Refused("an ended process cannot be brought back")

    def reverted(self, operation: Record, kept: Record) -> bool:
        return bool(kept["was"] == "gone") or not self.done(operation, kept)

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


OPERATIONS: Dict[str, Any] = {
    "file": FileOperation(),
    "run": RunOperation(),
    "swap": SwapOperation(),
    "signal": SignalOperation(),
}


# ---------------------------------------------------------------------------------------------------- runs


class Run:
    """One journalled run. `say(event, record)` is told what happens, for progress."""

    def __init__(self, state: str, name: str, say: Optional[Callable[[str, Record], None]] = None) -> None:
        self.name = name
        self.directory = os.path.join(state, "runs", name)
        if not os.path.isdir(self.directory):
            os.mkdir(self.directory, 0o700)
            fsync_directory(os.path.dirname(self.directory))
        self.journal = Journal(self.directory)
        self.store = Store(self.directory)
        self.say = say or (lambda event, record: None)

    def note(self, kind: str, **fields: Any) -> None:
        """Journal one record and report it."""
        record = dict(fields, type=kind, time=now())
        self.journal.append(record)
        self.say(kind, record)

    def apply(self, change: Record) -> Record:
        """All operations of one change, or none: a failed one takes its predecessors back. The result record."""
        finished: List[Tuple[int, Record, Record]] = []
        result = {"change": change["id"], "status": "done", "error": None}
        for number, operation in enumerate(change["operations"]):
            try:
                kept = self._perform(change, number, operation)
                finished.append((number, operation, kept))
            except (Refused, Failed, OSError, ValueError, KeyError) as error:
                status = "refused" if isinstance(error, Refused) else "failed"
                result = {"change": change["id"], "status": status, "error": describe_error(error)}
                for back in reversed(finished):
                    self._take_back(change["id"], *back)
                break
        self.note("change", **result)
        return result

    def _perform(self, change: Record, number: int, operation: Record) -> Record:
        kind = OPERATIONS[operation["op"]]
        found = kind.look(operation)
        expected = operation.get("expect")
        if expected is not None and found != expected:
            raise Refused(
                "%s is not what the plan expected (found %s, planned for %s)" % (change["target"], found, expected)
            )
        kept = kind.keep(operation, self.store)
        self.note("intent", change=change["id"], number=number, operation=operation, kept=kept)
        try:
            kind.do(operation, kept, self.store)
            if not kind.done(operation, kept):
                raise Failed("%s does not hold what was written" % change["target"])
        except BaseException as error:
            if isinstance(error, (Refused, Failed, OSError, ValueError)):
                self._take_back(change["id"], number, operation, kept)
            raise
        self.note("done", change=change["id"], number=number, now=kind.look(operation))
        return kept  # type: ignore[no-any-return]

    def _take_back(self, change: str, number: int, operation: Record, kept: Record) -> None:
        kind = OPERATIONS[operation["op"]]
        try:
            kind.tidy(operation, kept)
            if not kind.reverted(operation, kept):
                kind.revert(operation, kept, self.store)
            if not kind.reverted(operation, kept):
                raise Failed("what was there before could not be put back")
            self.note("reverted", change=change, number=number)
        except (Refused, Failed, OSError) as error:
            self.note("stuck", change=change, number=number, error=describe_error(error))


def describe_error(error: BaseException) -> str:
    """The error in one line, with the path where there is one."""
    if isinstance(error, OSError) and error.strerror:
        return "%s: %s" % (error.filename, error.strerror) if error.filename else error.strerror
    return "%s" % error or type(error).__name__


def apply_plan(
    plan: Record, state: str, say: Optional[Callable[[str, Record], None]] = None, wait: float = 0.0
) -> Tuple[str, List[Record]]:
    """Carry out every change of `plan`: (run name, one result per change). Raises Locked."""
    lock = Lock(state, wait)
    try:
        name = _new_name(state)
        run = Run(state, name, say)
        run.note("begin", schema=SCHEMA, plan=plan, pid=os.getpid(), uid=os.geteuid())
        results = [run.apply(change) for change in plan["changes"]]
        run.note("end", results=results)
        run.journal.close()
        return name, results
    finally:
        lock.release()


def _new_name(state: str) -> str:
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    number = 0
    while True:
        name = stamp if number == 0 else "%s-%d" % (stamp, number)
        if not os.path.exists(os.path.join(state, "runs", name)):
            return name
        number += 1


class Past:
    """What the journal of one run says. `steps` maps (change, number) to its latest records."""

    def __init__(self, state: str, name: str) -> None:
        self.name = name
        self.directory = os.path.join(state, "runs", name)
        self.records, self.damaged = read_journal(os.path.join(self.directory, "journal.jsonl"))
        begins = [r for r in self.records if r["type"] == "begin"]
        self.begin: Record = begins[0] if begins else {}
        self.ended = any(r["type"] in ("end", "undone") for r in self.records)
        self.steps: Dict[Tuple[str, int], Record] = {}
        for record in self.records:
            if record["type"] in ("intent", "done", "reverted", "stuck"):
                step = self.steps.setdefault((record["change"], record["number"]), {})
                step["state"] = record["type"]
                if record["type"] == "intent":
                    step.update(operation=record["operation"], kept=record["kept"])
                if record["type"] == "done":
                    step["now"] = record["now"]

    @property
    def plan(self) -> Record:
        """The plan of the run; empty when it was killed before it was journalled."""
        return self.begin.get("plan", {"changes": []})  # type: ignore[no-any-return]

    def results(self) -> List[Record]:
        """The result of every change that was finished."""
        return [r for r in self.records if r["type"] == "change"]

    def open_steps(self, change: Optional[str] = None) -> List[Tuple[str, int]]:
        """The steps whose effect is (or may be) on the host, the latest first."""
        live = [key for key, step in self.steps.items() if step["state"] in ("intent", "done", "stuck")]
        return [key for key in reversed(live) if change is None or key[0] == change]


def history(state: str) -> List[Past]:
    """Every run, the oldest first."""
    folder = os.path.join(state, "runs")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [Past(state, n) for n in names if os.path.exists(os.path.join(folder, n, "journal.jsonl"))]


def interrupted(state: str) -> List[Past]:
    """The runs that were killed: neither ended nor undone."""
    return [past for past in history(state) if past.begin and not past.ended]


def resume(state: str, name: str, say: Optional[Callable[[str, Record], None]] = None) -> List[Record]:
    """Finish a killed run: what is done stays, what was begun is ended, what was not begun is done. Raises Locked."""
    lock = Lock(state)
    try:
        past = Past(state, name)
        run = Run(state, name, say)
        finished = {r["change"] for r in past.results()}
        results = past.results()
        for change in past.plan["changes"]:
            if change["id"] in finished:
                continue
            for key in past.open_steps(change["id"]):  # back to where the change began, then the whole change again
                step = past.steps[key]
                run._take_back(change["id"], key[1], step["operation"], step["kept"])
            results.append(run.apply(change))
        run.note("end", results=results)
        run.journal.close()
        return results
    finally:
        lock.release()


def undo(
    state: str,
    name: str,
    change: Optional[str] = None,
    force: bool = False,
    say: Optional[Callable[[str, Record], None]] = None,
) -> List[Record]:
    """Take back a run, or one change of it, the latest step first. One result per step. Raises Locked.

    A step is refused where somebody changed the thing since; with `force` what is there now is kept in the run's
    directory first.
    """
    lock = Lock(state)
    try:
        past = Past(state, name)
        run = Run(state, name, say)
        results = [_undo_step(run, past.steps[key], key, force) for key in past.open_steps(change)]
        if change is None and all(r["status"] == "undone" for r in results):
            run.note("undone")
        run.journal.close()
        return results
    finally:
        lock.release()


def _undo_step(run: Run, step: Record, key: Tuple[str, int], force: bool) -> Record:
    operation, kept = step["operation"], step["kept"]
    kind = OPERATIONS[operation["op"]]
    result = {"change": key[0], "number": key[1], "status": "undone", "error": None}
    try:
        kind.tidy(operation, kept)
        if not kind.reverted(operation, kept):
            found = kind.look(operation)
            known = {step.get("now"), kind.wanted(operation)} if step["state"] == "done" else {kind.wanted(operation)}
            changed = operation["op"] in ("file", "swap") and found not in known
            if changed and step["state"] != "done" and operation["op"] == "swap":
                changed = False  # killed in the middle: a half-done swap is ours
            if changed and not force:
                raise Refused("somebody changed it since: found %s, we left %s" % (found, step.get("now")))
            if changed and operation["op"] == "file":
                run.note(
                    "set-aside",
                    change=key[0],
                    number=key[1],
                    copy=run.store.put(read_content(operation["path"]) or b""),
                )
            kind.revert(operation, kept, run.store)
            if not kind.reverted(operation, kept):
                raise Failed("what was there before could not be put back")
        run.note("reverted", change=key[0], number=key[1])
    except (Refused, Failed, OSError) as error:
        result.update(status="refused" if isinstance(error, Refused) else "failed", error=describe_error(error))
    return result


def main(argv: Optional[List[str]] = None) -> int:
    """`python3 executor.py apply PLAN.json | undo RUN [CHANGE] | resume RUN | pending`: the writing end by itself."""
    import sys

    words = sys.argv[1:] if argv is None else argv
    state = os.environ.get("ENVTUNE_STATE") or state_directory()
    try:
        if words[:1] == ["apply"] and len(words) == 2:
            with sys.stdin if words[1] == "-" else open(words[1], encoding="utf-8") as file:
                name, results = apply_plan(json.load(file), state)
            sys.stdout.write(json.dumps({"run": name, "results": results}) + "\n")
        elif words[:1] == ["undo"] and len(words) in (2, 3):
            results = undo(state, words[1], words[2] if len(words) == 3 else None)
            sys.stdout.write(json.dumps({"run": words[1], "results": results}) + "\n")
        elif words[:1] == ["resume"] and len(words) == 2:
            results = resume(state, words[1])
            sys.stdout.write(json.dumps({"run": words[1], "results": results}) + "\n")
        elif words == ["pending"]:
            results = []
            sys.stdout.write(json.dumps([past.name for past in interrupted(state)]) + "\n")
        else:
            sys.stderr.write((main.__doc__ or "") + "\n")
            return 2
    except (Locked, Refused, OSError, ValueError) as error:
        sys.stderr.write("envtune executor: %s\n" % describe_error(error))
        return 2
    return 0 if all(r["status"] in ("done", "undone") for r in results) else 1


if __name__ == "__main__":
    raise SystemExit(main())
