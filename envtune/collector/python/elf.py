"""Which versions of the C and C++ runtime a library needs, and which it provides, from its ELF headers.

Nothing is loaded: only the headers, the dynamic section and the two version sections of an ELF file are read, each
piece bounded. Source: System V gABI, chapters 4 and 5; LSB, "Symbol Versioning" (.gnu.version_r, .gnu.version_d).
"""

import errno
import os
import re
import struct
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

PT_LOAD, PT_DYNAMIC = 1, 2
DT_STRTAB, DT_VERDEF, DT_VERNEED = 5, 0x6FFFFFFC, 0x6FFFFFFE
ENTRIES = 2000  # per table: headers, dynamic entries, versions; libstdc++ defines about 60
NAME = 128  # bytes of a version's name
READS = 20000  # per file; a library takes some hundred
RUNTIME = ("GLIBC", "GLIBCXX", "CXXABI")
_VERSION = re.compile(r"(%s)_(\d+(?:\.\d+)*)$" % "|".join(RUNTIME))

ElfSegment = NamedTuple("ElfSegment", [("kind", int), ("offset", int), ("address", int), ("size", int)])


def runtime_versions(read_at: Callable[[int, int], bytes]) -> str:
    """Return words such as `needs:GLIBC_2.28 provides:GLIBC_2.38`: the highest of each name in RUNTIME.

    `read_at(offset, size)` reads the file. Raises OSError, EINVAL for what is no 64-bit little-endian ELF library.
    """
    left = iter(range(READS))

    def counted(offset: int, size: int) -> bytes:
        if next(left, None) is None:
            raise ValueError("more than %d reads" % READS)
        return read_at(offset, size)

    try:
        return _versions(counted)
    except (struct.error, ValueError, OverflowError) as error:
        raise OSError(errno.EINVAL, "not a readable ELF file: %s" % error) from None


def file_versions(descriptor: int) -> str:
    """Return `runtime_versions` of an open file, and close it."""
    try:
        return runtime_versions(lambda offset, size: os.pread(descriptor, size, offset))
    finally:
        os.close(descriptor)


def _versions(read_at: Callable[[int, int], bytes]) -> str:
    head = read_at(0, 64)
    if head[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not 64-bit little-endian ELF")
    start, size, count = struct.unpack("<32xQ14xHH6x", head[:64])
    if size != 56 or count > ENTRIES:
        raise ValueError("program headers of another form")
    table = read_at(start, size * count)
    segments = [ElfSegment(*_segment(table[n * size : (n + 1) * size])) for n in range(count)]
    dynamic = _dynamic(read_at, segments)
    found = {}  # type: Dict[str, List[str]]
    names = _offset(segments, dynamic.get(DT_STRTAB))
    for word, tag, read in (("needs", DT_VERNEED, _needed), ("provides", DT_VERDEF, _defined)):
        place = _offset(segments, dynamic.get(tag))
        if names is not None and place is not None:
            found[word] = _highest(_name(read_at, names + at) for at in read(read_at, place))
    return " ".join("%s:%s" % (word, name) for word in sorted(found) for name in found[word])


def _segment(row: bytes) -> Tuple[int, int, int, int]:
    kind, offset, address, size = struct.unpack("<I4xQQ8xQ16x", row)
    return kind, offset, address, size


def _dynamic(read_at: Callable[[int, int], bytes], segments: List[Any]) -> Dict[int, int]:
    """Return tag -> value of the dynamic section, the first of each."""
    values = {}  # type: Dict[int, int]
    for segment in segments:
        if segment.kind == PT_DYNAMIC:
            data = read_at(segment.offset, min(segment.size, 16 * ENTRIES))
            for tag, value in struct.iter_unpack("<QQ", data[: len(data) // 16 * 16]):
                if tag == 0:
                    break
                values.setdefault(tag, value)
    return values


def _offset(segments: List[Any], address: Optional[int]) -> Optional[int]:
    """Return the file offset of an address."""
    if address is None:
        return None
    for segment in segments:
        if segment.kind == PT_LOAD and segment.address <= address < segment.address + segment.size:
            return int(segment.offset + address - segment.address)
    return None


def _needed(read_at: Callable[[int, int], bytes], place: int) -> Iterator[int]:
    """Yield the offset of each needed version's name in the string table."""
    for _ in range(ENTRIES):
        count, first, following = struct.unpack("<2xH4xII", read_at(place, 16))
        at = place + first
        for _ in range(min(count, ENTRIES)):
            name, step = struct.unpack("<8xII", read_at(at, 16))
            yield name
            if not step:
                break
            at += step
        if not following:
            return
        place += following


def _defined(read_at: Callable[[int, int], bytes], place: int) -> Iterator[int]:
    """Yield the offset of each provided version's name; the first of an entry's names is its own."""
    for _ in range(ENTRIES):
        first, following = struct.unpack("<12xII", read_at(place, 20))
        yield struct.unpack("<I4x", read_at(place + first, 8))[0]
        if not following:
            return
        place += following


def _name(read_at: Callable[[int, int], bytes], offset: int) -> str:
    return read_at(offset, NAME).split(b"\0", 1)[0].decode("ascii", "replace")


def _highest(names: Iterator[str]) -> List[str]:
    """Return the highest version of each name in RUNTIME."""
    best = {}  # type: Dict[str, Tuple[Tuple[int, ...], str]]
    for name in names:
        found = _VERSION.match(name)
        if found:
            number = tuple(int(part[:9]) for part in found.group(2).split("."))
            best[found.group(1)] = max(best.get(found.group(1), ((), "")), (number, name))
    return [best[key][1] for key in sorted(best)]
