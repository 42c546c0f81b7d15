"""Wheels: where they come from, which files they install, and whether these exist."""

import glob
import hashlib
import os
import re
from typing import Iterator, List, Optional, Tuple

from ...trust.ownership import who_can_change
from ..common import Record, private_opener
from ..files import read_content
from ..problems import FailedError, RefusedError
from .trees import is_covered


def wheel_path(pattern: str) -> str:
    """Return the one file of that name or shell pattern."""
    found = [pattern] if os.path.isfile(pattern) else sorted(glob.glob(pattern))
    matches = [path for path in found if os.path.isfile(path)]  # opening a FIFO would block
    if not matches:
        raise FailedError("no-such-file", pattern=pattern)
    if len(matches) > 1:
        raise FailedError("several-files", pattern=pattern, files=", ".join(matches))
    return matches[0]


def pin_wheels(wheels: List[str], work: str) -> List[Record]:
    """Write `requirements.txt` with the wheels and their hashes into the work directory; return names and hashes.

    What pip then installs with `--require-hashes` is what was examined here. Raises RefusedError for a wheel that
    others can change, OSError.
    """
    from urllib.request import pathname2url

    pinned = []
    lines = []
    for wheel in wheels:
        exposure = who_can_change(os.path.abspath(wheel))
        if exposure is not None:
            raise RefusedError("wheel-of-others", wheel=wheel, path=exposure.path, user=exposure.uid)
        with open(wheel, "rb") as file:
            checksum = hashlib.sha256(file.read()).hexdigest()
        pinned.append({"name": os.path.basename(wheel), "sha256": checksum})
        lines.append("file://%s --hash=sha256:%s\n" % (pathname2url(os.path.abspath(wheel)), checksum))
    with open(os.path.join(work, "requirements.txt"), "w", encoding="utf-8", opener=private_opener) as text:
        text.writelines(lines)
    return pinned


_FETCHED = re.compile(
    r"(?m)^\s*(Looking in (?:indexes|links): .*|(?:Downloading|Using cached|Processing|Building wheel for) \S+)"
)
_DEFAULT_INDEX = "Looking in indexes: https://pypi.org/simple"  # pip prints every other one


def fetched(output: str, uses_index: bool) -> List[str]:
    """Return pip's output about its sources, and what it downloaded and built, without credentials in URLs."""
    lines = list(dict.fromkeys(_FETCHED.findall(output)))
    if uses_index and not any(line.startswith("Looking in indexes") for line in lines):
        lines.insert(0, _DEFAULT_INDEX)
    return [re.sub(r"(://)[^/@\s]*@|[?#][^\s,]*", r"\1", line) for line in lines]


def require_covered(wheels: List[str], site: str, names: List[str]) -> None:
    """Refuse wheels that would write outside of what was saved: that could not be undone."""
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
    """Yield (path below the root, member) of every file; no member if the installer changes the bytes."""
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
                # pip recompiles: some wheels (numpy 1.26) contain bytecode
                compiled = name.endswith(".pyc") and parts[-2:-1] == ["__pycache__"]
                changed = compiled or name.endswith(".dist-info/RECORD")
                yield (site + "/" + name if site else name), (None if changed else member)
            elif scheme in ("scripts", "data"):
                yield ("bin/" if scheme == "scripts" else "") + name, None
            else:
                raise RefusedError("wheel-member-unknown", wheel=wheel, member=member)
