"""A snapshot as a few lines of text that can be found among banners and other output: a frame.

    @@ENVTUNE/1 <bytes of the payload> <first 16 digits of its SHA-256>
    <base64 of the tar.gz>
    @@END

The payload has at most FRAME_LIMIT bytes. If a snapshot is larger, entries are left out, the largest first, and marked
as too large to read, so that what needs them is unknown.
"""

import json
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from .snapshot import pack

FRAME_LIMIT = 48 * 1024
TOO_LARGE = "EFBIG"
COMMAND_TOO_LARGE = "E2BIG"
TABLES_BY_NEED = ("processes", "listeners", "disks", "interfaces")


def framed(data: bytes) -> bytes:
    """Return a packed snapshot as a frame."""
    import base64
    import hashlib

    payload = base64.b64encode(data)
    digest = hashlib.sha256(payload).hexdigest()[:16]
    return b"\n@@ENVTUNE/1 %d %s\n%s\n@@END\n" % (len(payload), digest.encode("ascii"), payload)


def packed_for_frame(snapshot: Mapping[str, Any], limit: int = FRAME_LIMIT) -> bytes:
    """Return the packed snapshot, without what is too large for a frame."""
    room = limit * 3 // 4 - 2  # base64 writes three bytes as four
    left: Dict[str, Any] = dict(snapshot)
    data = pack(left)
    parts: Optional[List[Tuple[int, str, Any]]] = None
    while len(data) > room:
        if parts is None:
            parts = sorted(_snapshot_parts(left), key=lambda part: part[0])
        excess = 2 * (len(data) - room)  # of text, which compresses
        if not parts:
            break
        while parts and excess > 0:
            size, table, key = parts.pop()
            _leave_out(left, table, key)
            excess -= size
        data = pack(left)
    return data


def _snapshot_parts(snapshot: Mapping[str, Any]) -> Iterator[Tuple[int, str, Any]]:
    """Yield (characters, table, key) of each entry that can be left out."""
    for path, entry in snapshot.get("files", {}).items():
        yield len(json.dumps(entry)), "files", path
    for number, row in enumerate(snapshot.get("commands", ())):
        yield len(json.dumps(row)), "commands", number
    for name in TABLES_BY_NEED:
        if isinstance(snapshot.get(name), list):
            yield len(json.dumps(snapshot[name])), name, None


def _leave_out(snapshot: Dict[str, Any], table: str, key: Any) -> None:
    if table == "files":
        snapshot["files"] = dict(snapshot["files"])
        snapshot["files"][key] = {"error": TOO_LARGE}
    elif table == "commands":
        rows = list(snapshot["commands"])
        rows[key] = {"argv": rows[key]["argv"], "error": COMMAND_TOO_LARGE}
        snapshot["commands"] = rows
    else:
        snapshot[table] = {"error": TOO_LARGE}


def find_job(name: str, rows: Sequence[Mapping[str, Any]]) -> Optional[int]:
    """Return the process of that name, or one that runs such a program: one with NPUs first, then the oldest."""
    found = []
    for row in rows:
        argv = [str(word).rpartition("/")[2] for word in row.get("argv") or ()]
        named = [word for before, word in zip([""] + argv, argv) if before != "--job"]  # the audit looking for it
        if name == row.get("name") or name in named:
            found.append((not row.get("devices"), row.get("started", 0.0), row["pid"]))
    return min(found)[2] if found else None
