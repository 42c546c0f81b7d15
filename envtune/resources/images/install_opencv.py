"""Which of several OpenCV distributions to keep: they all install the package cv2, overwriting each other's files.

The order of preference: the recommended 3.4.10 (porting guide 003:1466), the version that is imported now, a variant
with the contributed modules (`contrib`), a variant with windows (not `headless`).
"""

from __future__ import annotations

import re
from typing import Iterable, Mapping, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import HostError, Skipped
from envtune.host import Host
from envtune.messages import Message, Text, enumerated
from envtune.model import Change, Finding, FixOptions, VersionChange
from envtune.resources.images.opencv import OPENCV
from envtune.resources.python.distributions import Distribution, every, locate
from envtune.resources.python.install import Installation, binary, replacements

RECOMMENDED = "3.4.10"


@action("images.install_opencv", formerly="python.install", formerly_with={"what": "opencv"})
def install_opencv(context: Context, findings: Sequence[Finding], *, options: FixOptions) -> Iterable[Change]:
    """Keep one of several OpenCV distributions in each directory that holds several."""
    return replacements(context, findings, options, choose)


def choose(context: Context, findings: Sequence[Finding], wheels: Optional[str]) -> Iterable[Installation]:
    """Yield one installation for each directory that holds several."""
    ids = tuple(dict.fromkeys(f.id for f in findings))
    for entry, here in _shared_directories(context).items():
        imported = _imported_version(context, entry)
        keep = best(here, imported)
        requirement = f"{keep.name}=={keep.version}"
        dropped = [row.name for row in here if row.name != keep.name]
        yield Installation(
            entry=entry,
            remove=here,
            requirements=(requirement,),
            names=OPENCV,
            modules=("cv2",),
            after=f"{keep.name} {keep.version}",
            findings=ids,
            subject="cv2",
            prepare=(binary(wheels, requirement),),
            wheels=("{work}/wheels/*.whl",),
            smoke="import cv2",
            note=_note(dropped, keep),
            versions=_versions(here, keep, imported),
        )


def _shared_directories(context: Context) -> Mapping[str, tuple[Distribution, ...]]:
    """Return the directories with more than one OpenCV package, and the packages; raises Skipped if there is none."""
    found: dict[str, tuple[Distribution, ...]] = {}
    for row in (row for name in OPENCV for row in every(context, name)):
        found[row.entry] = (*found.get(row.entry, ()), row)
    shared = {entry: rows for entry, rows in found.items() if len({row.name for row in rows}) > 1}
    if not shared:
        raise Skipped(Message("no directory has more than one OpenCV package any more"))
    return shared


def best(rows: Sequence[Distribution], imported: str) -> Distribution:
    """Return the one to keep of several."""
    if not rows:
        raise Skipped(Message("no OpenCV installed"))
    return max(
        rows,
        key=lambda row: (
            re.match(re.escape(RECOMMENDED) + r"(\.|$)", row.version) is not None,
            bool(imported) and row.version.startswith(imported),
            "contrib" in row.name,
            "headless" not in row.name,
        ),
    )


def _versions(rows: Sequence[Distribution], keep: Distribution, imported: str) -> tuple[VersionChange, ...]:
    """Return the version change of the job's cv2: from the imported version if known, else from each installed one."""
    before = (imported,) if imported else tuple(row.version for row in rows)
    return tuple(VersionChange("OpenCV", version, keep.version) for version in dict.fromkeys(before))


def _imported_version(context: Context, entry: str) -> str:
    place = locate(context, "cv2")
    return version_of(context.host, place) if place == f"{entry}/cv2" else ""


def version_of(host: Host, place: str) -> str:
    """Return the version in the package's own version.py, empty if there is none."""
    try:
        found = re.search(r"^opencv_version\s*=\s*['\"]([^'\"]+)", host.read(f"{place}/version.py"), re.M)
    except HostError:
        return ""
    return found[1] if found else ""


def _note(dropped: Sequence[str], keep: Distribution) -> Text:
    listed = enumerated(dropped)
    return Message(
        "pip check will report packages that require {listed} by name; cv2 itself comes from {name}",
        listed=listed,
        name=keep.name,
    )
