"""Regular and kernel files: read, compare, replace atomically, remove; keeping owner, mode and attributes."""

import base64
import errno
import fcntl
import os
import stat
import time
from typing import Callable, Dict, Iterable, List, Optional, Tuple

from .common import Record, failpoint, with_path
from .directories import Directory, open_directory, parent_of, set_owner
from .problems import ExecutorError, FailedError, Problem, RefusedError, errno_problem

KERNEL_DIRECTORIES = ("/sys/", "/proc/")  # written in place: these files cannot be replaced by rename
_GET_FLAGS, _IMMUTABLE, _APPEND_ONLY = 0x80086601, 0x10, 0x20  # FS_IOC_GETFLAGS and two of its bits


def digest(data: Optional[bytes]) -> str:
    """Return `absent`, or the SHA-256 of the content."""
    if data is None:
        return "absent"
    import hashlib  # loads a library in 6 ms, which a check of what can be fixed rarely needs

    return "sha256:" + hashlib.sha256(data).hexdigest()


def read_content(path: str) -> Optional[bytes]:
    """Return the bytes of a regular file, None if there is none. Refuses links, devices and directories."""
    try:
        with parent_of(path) as parent:
            found = read_file(parent, path)
    except FileNotFoundError:
        return None
    return None if found is None else found[0]


def read_file(parent: Directory, path: str) -> Optional[Tuple[bytes, Record]]:
    """Return the bytes and the metadata of the same regular file in its open directory, None if there is none."""
    try:
        descriptor = parent.open(os.path.basename(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RefusedError("symbolic-link", path=path) from None
        raise with_path(error, path) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RefusedError("not-a-regular-file", path=path)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(), file_metadata(descriptor, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        os.close(descriptor)


def is_kernel_file(path: str) -> bool:
    """Return whether the file is in /proc or /sys and so written in place: it cannot be replaced by rename."""
    return path.startswith(KERNEL_DIRECTORIES)


def normalized(path: str, data: Optional[bytes]) -> Optional[bytes]:
    """Return the normalized content that is compared.

    Kernel files return a newline, and tabs between numbers, whatever was written; for those that list choices (`always
    [madvise] never`) it is the current choice.
    """
    if data is None or not is_kernel_file(path):
        return data
    words = data.split()
    chosen = [word for word in words if word.startswith(b"[") and word.endswith(b"]")]
    return chosen[0][1:-1] if len(chosen) == 1 and len(words) > 1 else b" ".join(words)


def file_metadata(descriptor: int, path: str) -> Record:
    """Return owner, mode, times, number of links and extended attributes (the SELinux context is one) of a file."""
    status = os.fstat(descriptor)
    attributes = {} if is_kernel_file(path) else read_attributes(descriptor)
    encoded = {name: base64.b64encode(value).decode("ascii") for name, value in attributes.items()}
    return {**status_metadata(status), "links": status.st_nlink, "xattrs": encoded}


def status_metadata(status: os.stat_result) -> Record:
    """Return owner, mode and times to restore, which is all that a symbolic link has."""
    return {
        "mode": stat.S_IMODE(status.st_mode),
        "uid": status.st_uid,
        "gid": status.st_gid,
        "atime_ns": status.st_atime_ns,
        "mtime_ns": status.st_mtime_ns,
    }


def read_attributes(descriptor: int) -> Dict[str, bytes]:
    """Return the extended attributes to carry over; the kernel creates the IMA and EVM signatures itself."""
    try:
        names = os.listxattr(descriptor)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOSYS):
            return {}
        raise
    return {name: os.getxattr(descriptor, name) for name in names if name not in ("security.ima", "security.evm")}


def write_file(
    parent: Directory, path: str, data: bytes, metadata: Record, temporary: str, restored: bool = False
) -> None:
    """Replace `path` by `data` atomically (kernel files: in place), with the owner, mode and attributes given.

    Other names of the same file (hard links) keep the old content. If `restored`, it also gets its times, and on a full
    disk the existing file is removed first. Raises FailedError, OSError for kernel files.
    """
    if is_kernel_file(path):
        _write_kernel_file(parent, path, data)
        return

    def fill(descriptor: int) -> None:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        apply_metadata(descriptor, metadata, restored)

    try:
        replace_name(parent, os.path.basename(path), temporary, fill, restored)
        parent.sync()
    except OSError as error:
        raise write_error(error, path, parent) from error


def replace_name(
    parent: Directory, name: str, temporary: str, fill: Callable[[int], None], expendable: bool = False
) -> None:
    """Replace a name atomically by a new file written by `fill`; nothing is left behind on failure.

    The existing file is removed first if it is `expendable` and the disk has no room for both.
    """
    while True:
        try:
            _replace_once(parent, name, temporary, fill)
            return
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not expendable or parent.status(name) is None:
                raise
        parent.unlink(name)
        failpoint("room-made")


def _replace_once(parent: Directory, name: str, temporary: str, fill: Callable[[int], None]) -> None:
    try:
        descriptor = parent.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            failpoint("temporary-created")
            fill(descriptor)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        failpoint("temporary-written")
        parent.rename(temporary, name)
    except BaseException:
        parent.unlink(temporary)
        raise
    failpoint("renamed")


def _write_kernel_file(parent: Directory, path: str, data: bytes) -> None:
    """Write with a single call, as the kernel requires; retry briefly while the file is busy."""
    for pause in (0.05, 0.2, 0.5, None):
        try:
            descriptor = parent.open(os.path.basename(path), os.O_WRONLY)
            try:
                written = os.write(descriptor, data)
                _truncate(descriptor, written)
            finally:
                os.close(descriptor)
            if written != len(data):
                raise FailedError("kernel-short-write", path=path, written=written, length=len(data))
            break
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.EAGAIN) or pause is None:
                raise with_path(error, path) from error
            time.sleep(pause)
    failpoint("kernel-written")


def _truncate(descriptor: int, length: int) -> None:
    """Truncate the old tail of an ordinary file used in place of a kernel file, which has no length.

    After the write and not by O_TRUNC, which would empty such a file even if the write is refused.
    """
    try:
        os.ftruncate(descriptor, length)
    except OSError:
        pass


def apply_metadata(descriptor: int, metadata: Record, times: bool) -> None:
    """Give an open file the owner, mode, attributes and (on undo) times of `metadata`; the rest is unchanged."""
    status = os.fstat(descriptor)
    owner = (
        status.st_uid if metadata.get("uid") is None else metadata["uid"],
        status.st_gid if metadata.get("gid") is None else metadata["gid"],
    )
    if (status.st_uid, status.st_gid) != owner:
        set_owner(descriptor, *owner)
    if "xattrs" in metadata:
        wanted = {name: base64.b64decode(value) for name, value in metadata["xattrs"].items()}
        current = read_attributes(descriptor)
        for name in sorted(set(current) - set(wanted)):  # such as an ACL inherited from the directory
            os.removexattr(descriptor, name)
        for name in sorted(wanted):
            if current.get(name) != wanted[name]:
                os.setxattr(descriptor, name, wanted[name])
    os.fchmod(descriptor, metadata["mode"])
    if times:
        os.utime(descriptor, ns=(metadata["atime_ns"], metadata["mtime_ns"]))


def remove_file(parent: Directory, path: str) -> None:
    """Remove a file and flush that to disk. Raises FailedError."""
    try:
        os.unlink(os.path.basename(path), dir_fd=parent.descriptor)
        failpoint("removed")
        parent.sync()
    except OSError as error:
        raise write_error(error, path, parent) from error


def missing_parents(path: str) -> List[str]:
    """Return the parent directories that have to be created, outermost first."""
    missing: List[str] = []
    parent = os.path.dirname(path)
    while True:
        try:
            with open_directory(parent):
                return missing[::-1]
        except FileNotFoundError:
            missing.append(parent)
            parent = os.path.dirname(parent)
        except NotADirectoryError:
            raise RefusedError("not-a-directory", path=parent) from None


def make_directories(paths: Iterable[str]) -> None:
    """Create directories, the outermost first. Raises FailedError."""
    for directory in paths:
        try:
            make_directory(directory)
        except OSError as error:
            with parent_of(directory) as parent:
                raise write_error(error, directory, parent) from error


def make_directory(path: str, mode: int = 0o755) -> None:
    """Create a directory with that mode and flush it to disk; an existing one is left unchanged."""
    name = os.path.basename(path)
    with parent_of(path) as parent:
        try:
            os.mkdir(name, mode, dir_fd=parent.descriptor)
            descriptor = parent.open(name, os.O_RDONLY | os.O_DIRECTORY)
            try:  # the caller's umask must not apply
                os.fchmod(descriptor, mode | stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o7000)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except FileExistsError:
            status = parent.status(name)
            if status is None or not stat.S_ISDIR(status.st_mode):
                raise RefusedError("not-a-directory", path=path) from None
        except OSError as error:
            raise with_path(error, path) from error
        failpoint("directory-made")
        parent.sync()


def remove_directory(path: str) -> bool:
    """Remove an empty directory; return whether it is gone."""
    try:
        with parent_of(path) as parent:
            os.rmdir(os.path.basename(path), dir_fd=parent.descriptor)
    except FileNotFoundError:
        pass  # a run was killed before it was created
    except (ExecutorError, OSError):
        return False  # it is in use now
    return True


def write_error(error: OSError, path: str, parent: Directory) -> FailedError:
    """Return the error about `path`, naming the chattr flag if that explains why even root is refused."""
    locked = locked_by_flag(parent, path) if error.errno in (errno.EPERM, errno.EACCES) else None
    return FailedError("os-error", path=path, reason=locked or errno_problem(error))


def locked_by_flag(parent: Directory, path: str) -> Optional[Problem]:
    """Return the chattr attribute that protects a file or its directory, None if there is none."""
    for name, place in ((os.path.basename(path), path), (".", os.path.dirname(path))):
        attribute = locking_attribute(parent, name)
        if attribute:
            return _flag_problem(place, attribute)
    return None


def locking_attribute(parent: Directory, name: str) -> str:
    """Return `i` (immutable), `a` (append-only) or nothing, as lsattr shows it."""
    try:
        descriptor = parent.open(name)
    except OSError:
        return ""
    try:
        return _attribute_of(descriptor)
    finally:
        os.close(descriptor)


def require_no_flag(descriptor: int, path: str) -> None:
    """Refuse an open file or directory that is protected by chattr."""
    attribute = _attribute_of(descriptor)
    if attribute:
        raise RefusedError("os-error", path=path, reason=_flag_problem(path, attribute))


def _flag_problem(path: str, attribute: str) -> Problem:
    refusal = errno_problem(OSError(errno.EPERM, os.strerror(errno.EPERM)))  # the error of any attempt to change it
    return Problem("chattr", reason=refusal, path=path, attribute=attribute)


def _attribute_of(descriptor: int) -> str:
    try:
        flags = int.from_bytes(fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8))[:4], "little")
    except OSError:
        return ""
    return "i" if flags & _IMMUTABLE else "a" if flags & _APPEND_ONLY else ""
