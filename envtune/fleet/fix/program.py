"""What is sent to a host: the executor as one Python program on standard input, and the request for it."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any, Mapping, Optional

from envtune.assemble import PROLOGUE, shipped
from envtune.fleet.frame import FrameState, find_frame

KILL_AFTER = 60  # seconds after the timeout in which the current change is reverted
REQUEST = "@REQUEST@"  # placeholder for the request of a host
MAX_ANSWER = 1 << 20  # bytes, unpacked
_PROGRAM = """\
{prologue}
import base64, io, zlib
sys.argv = ["executor.py", "fleet", "-"]
sys.stdin = io.StringIO(zlib.decompress(base64.b64decode("{request}")).decode("ascii"))
exec(compile(zlib.decompress(base64.b64decode({packed!r})), "executor.py", "exec"))
"""


def executor_program() -> bytes:
    """Return the executor as a program that is read from standard input; REQUEST is replaced by a host's request."""
    packed = base64.b64encode(zlib.compress(shipped("executor").encode("utf-8"), 9))
    return _PROGRAM.format(prologue=PROLOGUE.strip(), request=REQUEST, packed=packed).encode("ascii")


def packed_request(request: Mapping[str, Any]) -> bytes:
    """Return a request in the form that is inserted into the program."""
    return base64.b64encode(zlib.compress(json.dumps(request).encode("ascii"), 9))


def remote_command(seconds: int, become: bool) -> str:
    """Return the command for the host's shell; SIGTERM after `seconds` makes the executor revert what it has begun."""
    command = f"timeout -k {KILL_AFTER} {seconds} python3 -I -"
    return f"sudo -n {command}" if become else command


def read_answer(output: bytes) -> Optional[dict[str, Any]]:
    """Return the executor's answer; None if the output contains no complete answer."""
    frame = find_frame(output)
    if frame.state is not FrameState.COMPLETE:
        return None
    unpacker = zlib.decompressobj()
    try:
        data = json.loads(unpacker.decompress(frame.snapshot, MAX_ANSWER))
    except (ValueError, zlib.error, RecursionError):
        return None
    valid = isinstance(data, dict) and isinstance(data.get("state"), str) and isinstance(data.get("runs"), list)
    return data if valid else None
