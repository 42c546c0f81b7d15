"""The folder of a run: what Ansible reads, and each host's answers; it survives a killed controller.

lock        flock held by the envtune process that rolls out the run
stop        exists once no further host may be begun
program     the executor program that is sent
command     what starts it on a host
requests/   HOST: the request of that host
shown/      HOST: the files that it would write, for --diff
before/     HOST: the packed snapshot on which its plan is based
begun/      HOST: created before anything is sent to it
output/     HOST: what it printed
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, Mapping, Optional

from envtune.errors import UsageError, system_error_text
from envtune.fleet.fix.program import read_answer
from envtune.fleet.fix.stages import BEGUN, PLANNED, UNREACHABLE
from envtune.messages import Message
from envtune.records import NamedTuple
from envtune.trust.characters import visible

PARTS = ("requests", "shown", "before", "begun", "output")
NAME = "fleet-fix"
MAX_DETAIL = 300
_NOT_RUN = (126, 127)  # exit statuses of a shell: not executable, not found
# Output of ssh without a connection yet (sshconnect.c), and of sudo if it starts nothing: nothing was sent.
_NOT_CONNECTED = re.compile(
    r"ssh: connect to host|Could not resolve hostname|Host key verification failed|Permission denied \("
)
_OF_SUDO = re.compile(r"^sudo(-rs)?: ", re.MULTILINE)


class Answer(NamedTuple):
    """What is known about a host: its state, the name of its run there, the unsuccessful results, and why."""

    state: str
    run: str = ""
    results: tuple[Mapping[str, Any], ...] = ()
    detail: str = ""


class RunFolder:
    """The folder of one run, next to the store."""

    def __init__(self, store: Path, name: str) -> None:
        self.path = store.absolute().parent / NAME / name
        self._lock: Optional[int] = None

    def make(self) -> None:
        """Create it, and lock it. Raises UsageError."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.mkdir(mode=0o700, exist_ok=True)
            for part in PARTS:
                (self.path / part).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise UsageError(
                Message("{path}: {reason}", path=str(self.path), reason=system_error_text(error))
            ) from None
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        (self.path / "stop").unlink(missing_ok=True)

    def release(self) -> None:
        """Release it: nothing more is sent to any host."""
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None

    @property
    def in_use(self) -> bool:
        """Whether a running envtune holds the lock."""
        try:
            descriptor = os.open(self.path / "lock", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def write(self, name: str, data: bytes) -> None:
        """Write a file in it."""
        path = self.path / name
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)

    def before(self, host: str) -> bytes:
        """Return the snapshot on which a host's plan is based; empty if there is none."""
        try:
            return (self.path / "before" / host).read_bytes()
        except OSError:
            return b""

    def clear(self) -> None:
        """Remove the answers of hosts, before they are asked for something else."""
        for part in ("begun", "output"):
            shutil.rmtree(self.path / part, ignore_errors=True)
            (self.path / part).mkdir(mode=0o700)

    def stop(self) -> None:
        """Prevent any further host from being begun."""
        self.write("stop", b"")

    def answered(self) -> int:
        """Return how many hosts have answered."""
        return sum(not name.endswith(".new") for name in os.listdir(self.path / "output"))

    def answer(self, host: str) -> Answer:
        """Return what is known about a host from its output; BEGUN if nothing was heard from it since."""
        place = self.path / "output" / host
        if not place.exists():
            return Answer(BEGUN if (self.path / "begun" / host).exists() else PLANNED)
        output, errors, status = json.loads(place.read_text("utf-8"))
        found = read_answer(str(output).encode("utf-8", "replace"))
        if found is None:
            detail = visible(_last_line(str(errors)) or _last_line(str(output)))[:MAX_DETAIL]
            nothing_ran = status in _NOT_RUN or _NOT_CONNECTED.search(str(errors)) or _OF_SUDO.search(str(errors))
            return Answer(UNREACHABLE if nothing_ran else BEGUN, detail=detail)
        return answer_of(found)


def answer_of(found: Mapping[str, Any]) -> Answer:
    """Return the content of the executor's answer."""
    runs = [str(run) for run in found["runs"]]
    results = tuple(row for row in found.get("results") or () if isinstance(row, dict) and "change" in row)
    errors = [found.get("error"), *(row.get("error") for row in results)]
    detail = next((visible(str(error))[:MAX_DETAIL] for error in errors if error), "")
    return Answer(visible(str(found["state"]))[:40], visible(runs[-1])[:40] if runs else "", results, detail)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
