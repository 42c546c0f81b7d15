"""The metadata that pip, setuptools and conda install with a package: its forms, and what can be read from each."""

from __future__ import annotations

import re
from typing import Iterable, Mapping, Optional

from envtune.collector.python.distributions import distribution_of
from envtune.host import Host, is_dir
from envtune.records import NamedTuple

MAPPING_LIMIT = 65536  # characters of the mapping in the finder of an editable installation
METADATA = (".dist-info", ".egg-info", ".egg-link")  # an egg is on the path itself


class Distribution(NamedTuple):
    """One installed distribution. `name` is normalized; `metadata` the path of its dist-info, egg-info or egg.

    A tuple instead of a dataclass: an environment may have two thousand of them.
    """

    name: str
    version: str
    metadata: str
    entry: str  # the import path entry that contains it


def named_in(entry: str, listing: Iterable[str]) -> Iterable[Distribution]:
    """Yield the distributions in an import path entry; an egg on the path is one itself."""
    own = entry.rpartition("/")[2]
    if own.endswith(".egg"):
        egg = distribution_of(own)
        if egg is not None:
            yield Distribution(egg[0], egg[1], entry + "/EGG-INFO", entry)
    for name in listing:
        if name.endswith(METADATA) and name[0] != "~":
            parsed = distribution_of(name)
            if parsed is not None:
                yield Distribution(parsed[0], parsed[1], f"{entry}/{name}", entry)


def metadata_file(host: Host, row: Distribution) -> Optional[str]:
    """Return the file with Name and Version; None for a zipped egg."""
    path = row.metadata
    if path.endswith(".dist-info"):
        return path + "/METADATA"
    if path.endswith("/EGG-INFO"):
        return path + "/PKG-INFO" if is_dir(host, row.entry) else None
    if path.endswith(".egg-link"):
        folder = host.read(path).split("\n", 1)[0].strip()
        for name in host.listdir(folder):
            parsed = distribution_of(name)
            if parsed is not None and parsed[0] == row.name:
                return f"{folder}/{name}/PKG-INFO"
        return f"{folder}/{row.name.replace('-', '_')}.egg-info/PKG-INFO"
    return path + "/PKG-INFO" if is_dir(host, path) else path


def parse_metadata(data: bytes) -> Mapping[str, str]:
    """Return the header fields of METADATA or PKG-INFO, keys in lower case; only the first of each.

    Old packages have an author in Latin-1 there, so a byte that is not UTF-8 only affects its own field.
    """
    fields: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        if not line.strip():
            break  # the description follows
        key, mark, value = line.partition(":")
        if mark and not line[0].isspace():
            fields.setdefault(key.strip().lower(), value.strip())
    return fields


def parse_requirements(data: bytes) -> tuple[str, ...]:
    """Return the value of every Requires-Dist header of METADATA or PKG-INFO."""
    lines = data.decode("utf-8", "replace").replace("\r\n", "\n").partition("\n\n")[0].splitlines()
    rows = (line.partition(":") for line in lines)
    return tuple(value.strip() for key, mark, value in rows if mark and key.strip().lower() == "requires-dist")


def parse_finder(text: str) -> Mapping[str, str]:
    """Return the MAPPING of a setuptools editable finder: top-level name -> path; empty if it has none."""
    import ast

    found = re.search(r"^MAPPING[ \t]*(?::[^=\n]+)?=[ \t]*\{", text, re.M)
    end = text.find("}", found.end()) if found else -1
    if found is None or not 0 <= end - found.end() < MAPPING_LIMIT:
        return {}
    try:
        mapping = ast.literal_eval(text[found.end() - 1 : end + 1])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return {str(key): str(value) for key, value in mapping.items()} if isinstance(mapping, dict) else {}
