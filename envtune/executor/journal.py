"""The journal of one run: records appended and fsynced one by one, each with its checksum."""

import binascii
import errno
import json
import os
import stat
from typing import IO, List, Tuple

from .common import Record, failpoint, fsync_directory, with_path
from .problems import JournalError, errno_problem

JOURNAL, RESERVE = "journal.jsonl", "reserve"  # files of a run's directory


class Journal:
    """One run's journal, open for appending. `directory` is runs/<run>; `reserve` bytes are kept for its end."""

    def __init__(self, directory: str, reserve: int = 65536) -> None:
        self.directory = directory
        self.path = os.path.join(directory, JOURNAL)
        self._reserve_path = os.path.join(directory, RESERVE)
        self._reserve_space(reserve)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._end_torn_line()
        fsync_directory(directory)

    def _reserve_space(self, size: int) -> None:
        """Reserve disk space for the last records; if that fails, the disk is full before anything has changed."""
        descriptor = os.open(self._reserve_path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            if error.errno == errno.ENOSPC and os.path.exists(self.path):
                return  # a continued run: what it reserved when it began must be enough
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # a file system that cannot reserve space
                os.unlink(self._reserve_path)
                raise with_path(error, self.directory) from error
        finally:
            os.close(descriptor)

    def _end_torn_line(self) -> None:
        """Terminate the line that a killed run left unfinished, and record its number: it does not count as damage."""
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            with open(self.path, "rb") as file:
                number = sum(1 for _ in file)
            self._write(b"\n" + encode_record({"type": "torn", "line": number}))

    def append(self, record: Record, closing: bool = False) -> None:
        """Write one record and flush it to disk before returning.

        A `closing` record ends something that was begun: it may use the reserved space. Raises JournalError if even
        that is used up; OSError, with nothing written, if the disk is full for a record that begins something.
        """
        data = encode_record(record)
        failpoint("before-journal:" + str(record.get("type")))
        try:
            self._write(data)
        except OSError as error:
            if not closing:
                raise with_path(error, self.path) from error
            self.release_reserve()
            try:
                self._write(data)
            except OSError as again:
                raise JournalError("os-error", path=self.path, reason=errno_problem(again)) from again
        failpoint("journal:" + str(record.get("type")))

    def _write(self, data: bytes) -> None:
        start = os.fstat(self._descriptor).st_size
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            failpoint("journal-written")
            os.fsync(self._descriptor)
        except BaseException:
            os.ftruncate(self._descriptor, start)  # half a line would corrupt the next one
            raise

    def release_reserve(self) -> None:
        """Free the reserved disk space."""
        if os.path.lexists(self._reserve_path):
            os.unlink(self._reserve_path)

    def close(self, keep_reserve: bool = False) -> None:
        """Close the file; the reserve of a run that can be undone is kept, so that undo works on a full disk."""
        if not keep_reserve:
            self.release_reserve()
        os.close(self._descriptor)


def encode_record(record: Record) -> bytes:
    """Return the line of a record, with its checksum."""
    line = json.dumps({"crc": _checksum(record), "record": record}, sort_keys=True, ensure_ascii=True) + "\n"
    return line.encode("ascii")


def _checksum(record: Record) -> int:
    return binascii.crc32(json.dumps(record, sort_keys=True, ensure_ascii=True).encode("ascii")) & 0xFFFFFFFF


def open_journal(path: str) -> IO[bytes]:
    """Open a journal for reading; OSError for anything but a regular file, which might never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    return open(descriptor, "rb")


def read_journal(path: str) -> Tuple[List[Record], List[int]]:
    """Return the records of a journal, and the numbers of the damaged lines.

    A line that a killed run left unfinished is not damage: what it would have recorded was not begun.
    """
    records: List[Record] = []
    damaged = []
    with open_journal(path) as file:
        for number, line in enumerate(file, 1):
            try:
                records.append(_decode_record(line))
            except (ValueError, KeyError, TypeError):
                if line.endswith(b"\n"):
                    damaged.append(number)
    torn = {record.get("line") for record in records if record["type"] == "torn"}
    return records, [number for number in damaged if number not in torn]


def first_record(path: str) -> Record:
    """Return the first record of a journal; an empty one if it is missing or damaged."""
    try:
        with open_journal(path) as file:
            return _decode_record(file.readline())
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _decode_record(line: bytes) -> Record:
    outer = json.loads(line.decode("ascii"))
    record: Record = outer["record"]
    if outer["crc"] != _checksum(record) or not isinstance(record["type"], str):
        raise ValueError("not a record")
    return record
