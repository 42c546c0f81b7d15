"""The result of collecting a snapshot from one host, independent of its checks."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Mapping, Optional

from envtune.messages import Message, Text, in_context
from envtune.records import NamedTuple

if TYPE_CHECKING:
    from envtune.fleet.frame import Frame

MAX_DETAIL = 300  # characters of what a program printed


class Collection(enum.Enum):
    """The collection verdict of a host."""

    OK = "ok"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    DNS = "dns"
    HOSTKEY = "hostkey"
    AUTH = "auth"
    NO_PYTHON = "no_python"
    GARBAGE = "garbage"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"
    TOO_OLD = "too_old"


WORDS: Mapping[Collection, Text] = {
    Collection.OK: in_context("collection", "collected"),
    Collection.REFUSED: Message("connection refused or closed"),
    Collection.TIMEOUT: Message("no response in time"),
    Collection.DNS: Message("host name does not resolve"),
    Collection.HOSTKEY: Message("host key unknown or changed"),
    Collection.AUTH: Message("login or sudo refused"),
    Collection.NO_PYTHON: Message("no python3"),
    Collection.GARBAGE: Message("no snapshot in the output"),
    Collection.TRUNCATED: Message("output incomplete"),
    Collection.CORRUPT: Message("damaged snapshot"),
    Collection.TOO_OLD: Message("Python older than 3.6"),
}
SSH_FAILED = 255  # exit status of ssh if there is no connection
_NOT_RUN = (126, 127)  # exit statuses of a shell: not executable, not found
_ENDED = (124, 137)  # of timeout(1): ended after its time, killed after that
_KEY_CHANGED = re.compile(r"REMOTE HOST IDENTIFICATION HAS CHANGED")
# What OpenSSH prints if there is no connection (ssh.c, sshconnect.c, packet.c), the first that matches.
_OF_SSH = (
    (_KEY_CHANGED, Collection.HOSTKEY),
    (
        re.compile(r"Host key verification failed|No [\w-]+ host key is known|host key for .* has changed"),
        Collection.HOSTKEY,
    ),
    (re.compile(r"Could not resolve hostname|Name or service not known"), Collection.DNS),
    (re.compile(r"Permission denied|Too many authentication failures|No more authentication methods"), Collection.AUTH),
    (re.compile(r"timed out|No route to host|Network is unreachable|Host is down|not responding"), Collection.TIMEOUT),
    (re.compile(r"[Rr]efused|Connection closed|Connection reset|kex_exchange_identification"), Collection.REFUSED),
)
_OF_SUDO = re.compile(r"^sudo: |^sudo-rs: |is not in the sudoers file", re.MULTILINE)


class Answer(NamedTuple):
    """The answer of a host. `status` is the exit status, None if time was up."""

    output: bytes
    errors: bytes
    status: Optional[int]
    seconds: float


class Verdict(NamedTuple):
    """The collection verdict of a host, the snapshot if there is one, and otherwise the output."""

    collection: Collection
    snapshot: bytes = b""
    detail: str = ""


def collection_verdict(answer: Answer, frame: Frame) -> Verdict:
    """Return the collection result of an answer; `frame` is what was found in its output."""
    from envtune.fleet.frame import FrameState

    errors = answer.errors.decode("utf-8", "replace")
    detail = _last_line(errors) or _last_line(answer.output[-4 * MAX_DETAIL :].decode("utf-8", "replace"))
    if _KEY_CHANGED.search(errors):  # even if the site's ssh continued
        return Verdict(Collection.HOSTKEY, detail="REMOTE HOST IDENTIFICATION HAS CHANGED")
    if frame.state is FrameState.COMPLETE:
        return Verdict(Collection.OK, frame.snapshot)
    return Verdict(_without_snapshot(answer, frame, errors), detail=detail)


def _without_snapshot(answer: Answer, frame: Frame, errors: str) -> Collection:
    from envtune.fleet.frame import FrameState

    if frame.state is FrameState.TOO_OLD:
        return Collection.TOO_OLD
    if answer.status is None or answer.status in _ENDED:
        return Collection.TIMEOUT
    if frame.state is not FrameState.NONE:
        return Collection.TRUNCATED if frame.state is FrameState.TRUNCATED else Collection.CORRUPT
    if answer.status == SSH_FAILED:
        return next((found for pattern, found in _OF_SSH if pattern.search(errors)), Collection.GARBAGE)
    if _OF_SUDO.search(errors):
        return Collection.AUTH
    return Collection.NO_PYTHON if answer.status in _NOT_RUN else Collection.GARBAGE


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:MAX_DETAIL] if lines else ""
