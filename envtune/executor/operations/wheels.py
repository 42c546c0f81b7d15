"""Wheels: which files they install, and whether these are there."""

import glob
import os
from typing import Iterator, List, Optional, Tuple

from ..files import read_content
from ..problems import FailedError, RefusedError
from .trees import is_covered


def wheel_path(pattern: str) -> str:
    """Return the one file of that name or shell pattern."""
    found = [pattern] if os.path.isfile(pattern) else sorted(glob.glob(pattern))
    matches = [path for path in found if os.path.isfile(path)]  # a FIFO would wait for its other end
    if not matches:
        raise FailedError("no-such-file", pattern=pattern)
    if len(matches) > 1:
        raise FailedError("several-files", pattern=pattern, files=", ".join(matches))
    return matches[0]


def require_covered(wheels: List[str], site: str, names: List[str]) -> None:
    """Refuse wheels that would write outside of what was kept: that could not be undone."""
    for wheel in wheels:
        for path, _ in _installed_paths(wheel, site):
            if not is_covered(path, names):
                raise RefusedError("wheel-writes-elsewhere", wheel=wheel, path=path)


def require_installed(wheels: List[str], site: str) -> None:
    """Fail unless every file of the wheels is in `site`, with the bytes it has in the wheel."""
    import zipfile

    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name, member in _installed_paths(wheel, ""):
                if member is not None and read_content(os.path.join(site, name)) != archive.read(member):
                    raise FailedError("wheel-not-installed", path=os.path.join(site, name), wheel=wheel)


def _installed_paths(wheel: str, site: str) -> Iterator[Tuple[str, Optional[str]]]:
    """Yield (path below the root, member) of every file; no member where the installer changes the bytes."""
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            parts = member.split("/")
            if member.endswith("/"):
                continue
            if ".." in parts or member.startswith("/"):
                raise RefusedError("wheel-member-outside", wheel=wheel, member=member)
            scheme = parts[1] if parts[0].endswith(".data") and len(parts) > 2 else "purelib"
            name = "/".join(parts[2:] if parts[0].endswith(".data") else parts)
            if scheme in ("purelib", "platlib"):
                changed = name.endswith(".dist-info/RECORD")
                yield (site + "/" + name if site else name), (None if changed else member)
            elif scheme in ("scripts", "data"):
                yield ("bin/" if scheme == "scripts" else "") + name, None
            else:
                raise RefusedError("wheel-member-unknown", wheel=wheel, member=member)
