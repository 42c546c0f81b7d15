"""Read what a wheel holds, and reduce a RECORD to one digest."""

import errno
from typing import Any, List

from .files import FILE_LIMIT


def record_digest(record: str) -> str:
    """Return one digest over what a RECORD lists: the sorted (path, hash) pairs without metadata and bytecode.

    Two wheels of the same version with other content differ here; the same content installed by another pip does not.
    """
    import csv
    import hashlib

    pairs = []
    for row in csv.reader(record.splitlines()):
        if len(row) < 2 or not row[1] or ".dist-info/" in row[0] or row[0].endswith(".pyc") or row[0].startswith(".."):
            continue
        pairs.append("%s,%s" % (row[0], row[1]))
    if not pairs:
        raise OSError(errno.EINVAL, "the RECORD lists no hashed file")
    return "sha256:" + hashlib.sha256("\n".join(sorted(pairs)).encode("utf-8")).hexdigest()


def wheel_record(data: Any) -> str:
    """Return the RECORD text inside a wheel (a path or a file object); raises OSError when it is not a wheel."""
    import zipfile

    try:
        with zipfile.ZipFile(data) as archive:
            names = [n for n in archive.namelist() if n.endswith(".dist-info/RECORD") and n.count("/") == 1]
            if len(names) != 1:
                raise OSError(errno.EINVAL, "no single RECORD in the wheel")
            if archive.getinfo(names[0]).file_size > FILE_LIMIT:
                raise OSError(errno.EFBIG, "RECORD larger than %d bytes" % FILE_LIMIT)
            return archive.read(names[0]).decode("utf-8")
    except (zipfile.BadZipFile, UnicodeDecodeError, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        raise OSError(errno.EINVAL, "not a readable wheel: %s" % error) from error


def wheel_top_level(data: bytes) -> List[str]:
    """Return the packages and modules at the top of a wheel; raises OSError when it is not one."""
    import io
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [name.split("/")[0] for name in archive.namelist()]
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        raise OSError(errno.EINVAL, "not a readable wheel: %s" % error) from error
    return sorted({name for name in names if not name.endswith((".dist-info", ".data"))})
