"""Regular and kernel files: read, compare, replace in one step, remove; with owner, mode and attributes kept."""

import base64
import errno
import fcntl
import hashlib
import os
import stat
import time
from typing import List, Optional, Union

from .common import Record, failpoint, fsync_directory, with_path
from .problems import FailedError, Problem, RefusedError, errno_problem

KERNEL_DIRECTORIES = ("/sys/", "/proc/")  # written in place: these files cannot be renamed over
_GET_FLAGS, _IMMUTABLE, _APPEND_ONLY = 0x80086601, 0x10, 0x20  # FS_IOC_GETFLAGS and two of its bits


def digest(data: Optional[bytes]) -> str:
    """Return `absent`, or the SHA-256 of the content."""
    return "absent" if data is None else "sha256:" + hashlib.sha256(data).hexdigest()


def read_content(path: str) -> Optional[bytes]:
    """Return the bytes of a regular file, None when there is none. Refuses links, devices and directories."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RefusedError("symbolic-link", path=path) from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RefusedError("not-a-regular-file", path=path)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        os.close(descriptor)


def is_kernel_file(path: str) -> bool:
    """Return whether the file is one of /proc or /sys, which is written in place: it cannot be renamed over."""
    return path.startswith(KERNEL_DIRECTORIES)


def normalized(path: str, data: Optional[bytes]) -> Optional[bytes]:
    """Return what is compared.

    Kernel files answer with a newline, and tabs between numbers, whatever was written; those that list their choices
    (`always [madvise] never`) are their choice.
    """
    if data is None or not is_kernel_file(path):
        return data
    words = data.split()
    chosen = [word for word in words if word.startswith(b"[") and word.endswith(b"]")]
    return chosen[0][1:-1] if len(chosen) == 1 and len(words) > 1 else b" ".join(words)


def file_metadata(path: str) -> Record:
    """Return owner, mode, times, number of links and extended attributes (the SELinux context is one) of a file."""
    status = os.lstat(path)
    attributes = {}
    if not is_kernel_file(path):
        for name in _attribute_names(path):
            value = os.getxattr(path, name, follow_symlinks=False)
            attributes[name] = base64.b64encode(value).decode("ascii")
    return {
        "mode": stat.S_IMODE(status.st_mode),
        "uid": status.st_uid,
        "gid": status.st_gid,
        "atime_ns": status.st_atime_ns,
        "mtime_ns": status.st_mtime_ns,
        "links": status.st_nlink,
        "xattrs": attributes,
    }


def _attribute_names(file: Union[str, int]) -> List[str]:
    """Return the extended attributes to carry over; the kernel makes the signatures of IMA and EVM itself."""
    try:
        names = os.listxattr(file)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOSYS):
            return []
        raise
    return [name for name in names if name not in ("security.ima", "security.evm")]


def write_file(path: str, data: bytes, metadata: Record, temporary: str, times: bool = False) -> None:
    """Replace `path` by `data` in one step (kernel files: write in place), with the owner, mode and attributes given.

    Other names of the same file (hard links) keep the old content. Raises FailedError, OSError for kernel files.
    """
    if is_kernel_file(path):
        _write_kernel_file(path, data)
        return
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                failpoint("temporary-created")
                file.write(data)
                file.flush()
                _apply_metadata(descriptor, metadata, times)
                os.fsync(descriptor)
            failpoint("temporary-written")
            os.rename(temporary, path)
        except BaseException:
            if os.path.lexists(temporary):
                os.unlink(temporary)
            raise
        failpoint("renamed")
        fsync_directory(os.path.dirname(path))
    except OSError as error:
        raise write_error(error, path) from error


def _write_kernel_file(path: str, data: bytes) -> None:
    """Write at once, as the kernel wants it; try again for a moment while the file is busy."""
    for pause in (0.05, 0.2, 0.5, None):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
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
    """Remove an old tail where an ordinary file stands in for one of the kernel, which has no length.

    After the write and not by O_TRUNC, which would empty such a file although the write is refused.
    """
    try:
        os.ftruncate(descriptor, length)
    except OSError:
        pass


def _apply_metadata(descriptor: int, metadata: Record, times: bool) -> None:
    """Give an open file the owner, mode, attributes and (on undo) times of `metadata`; what it leaves out stays."""
    status = os.fstat(descriptor)
    owner = (
        status.st_uid if metadata.get("uid") is None else metadata["uid"],
        status.st_gid if metadata.get("gid") is None else metadata["gid"],
    )
    if (status.st_uid, status.st_gid) != owner:
        os.fchown(descriptor, *owner)
    if "xattrs" in metadata:
        wanted = {name: base64.b64decode(value) for name, value in metadata["xattrs"].items()}
        current = {name: os.getxattr(descriptor, name) for name in _attribute_names(descriptor)}
        for name in sorted(set(current) - set(wanted)):  # such as an access list inherited from the directory
            os.removexattr(descriptor, name)
        for name in sorted(wanted):
            if current.get(name) != wanted[name]:
                os.setxattr(descriptor, name, wanted[name])
    os.fchmod(descriptor, metadata["mode"])
    if times:
        os.utime(descriptor, ns=(metadata["atime_ns"], metadata["mtime_ns"]))


def remove_file(path: str) -> None:
    """Remove a file, and have that on disk. Raises FailedError."""
    try:
        os.unlink(path)
        failpoint("removed")
        fsync_directory(os.path.dirname(path))
    except OSError as error:
        raise write_error(error, path) from error


def missing_parents(path: str) -> List[str]:
    """Return the parent directories that have to be made, outermost first."""
    missing = []
    parent = os.path.dirname(path)
    while not os.path.isdir(parent):
        if os.path.lexists(parent):
            raise RefusedError("not-a-directory", path=parent)
        missing.append(parent)
        parent = os.path.dirname(parent)
    return missing[::-1]


def make_directory(path: str) -> None:
    """Make a directory that everybody may read, and have it on disk; one that is there stays as it is."""
    try:
        os.mkdir(path, 0o755)
        os.chmod(path, 0o755 | stat.S_IMODE(os.stat(path).st_mode) & 0o7000)  # the caller's umask is not the host's
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    except OSError as error:
        raise write_error(error, path) from error
    failpoint("directory-made")
    fsync_directory(os.path.dirname(path))


def write_error(error: OSError, path: str) -> FailedError:
    """Return the error about `path`, naming the flag of chattr that explains a refusal even root gets."""
    reason = errno_problem(error)
    if error.errno in (errno.EPERM, errno.EACCES):
        for place in (path, os.path.dirname(path)):
            flags = _inode_flags(place)
            if flags & (_IMMUTABLE | _APPEND_ONLY):
                reason = Problem("chattr", reason=reason, path=place, attribute="i" if flags & _IMMUTABLE else "a")
    return FailedError("os-error", path=path, reason=reason)


def _inode_flags(path: str) -> int:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return int.from_bytes(fcntl.ioctl(descriptor, _GET_FLAGS, bytes(8))[:4], "little")
        finally:
            os.close(descriptor)
    except OSError:
        return 0
