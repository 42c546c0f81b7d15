"""Read the files of a data set as a data loader does, in the order of their names, not from the page cache.

    python storage.py DIRECTORY

Prints the seconds that 256 MiB of it took as JSON. The kernel is asked to drop the files first; on a file system that
ignores this, the speed of the memory is measured.
"""

import json
import os
import sys
import time
from typing import Any, Dict, Iterator

MOST = 256 << 20
BLOCK = 1 << 20


def files(directory: str) -> Iterator[str]:
    """Yield the files below a directory by name."""
    for base, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(base, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def chosen(directory: str) -> Dict[str, int]:
    """Return the files to read, with how much of each."""
    left, found = MOST, {}  # type: int, Dict[str, int]
    for path in files(directory):
        found[path] = min(os.path.getsize(path), left)
        left -= found[path]
        if left <= 0:
            break
    return found


def main(directory: str) -> Dict[str, Any]:
    """Return the result to print."""
    paths = chosen(directory)
    if not sum(paths.values()):
        sys.exit("no file to read in " + directory)
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    start = time.monotonic()
    for path, size in paths.items():
        with open(path, "rb", buffering=0) as file:
            while size > 0:
                block = file.read(min(BLOCK, size))
                if not block:
                    break
                size -= len(block)
    seconds = time.monotonic() - start
    return {"seconds": seconds, "about": f"{sum(paths.values()) >> 20} MiB in {len(paths)} files"}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:])))
