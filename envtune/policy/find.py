"""Which policy file is used, and whether it may be trusted.

The first of: `--policy FILE`, the variable ENVTUNE_POLICY, `envtune.yaml` in the working directory or the nearest
parent (never for root), /etc/envtune/policy.yaml. `none` instead of FILE means no policy. One file is used; files are
not combined.
"""

from __future__ import annotations

import os
import stat
from typing import Mapping, Optional

from envtune.catalog.layers import why_untrusted
from envtune.errors import PolicyError
from envtune.messages import Message, Text, clauses
from envtune.records import NamedTuple

OPTION, VARIABLE = "--policy", "ENVTUNE_POLICY"
PROJECT, SITE = "envtune.yaml", "/etc/envtune/policy.yaml"
NONE = "none"
_LIMIT = 1 << 20  # bytes that are read; the YAML reader accepts fewer, and says so


class Place(NamedTuple):
    """A policy file, and what selected it: an option, a variable, or its location."""

    path: str
    named_by: str


def find_policy(option: Optional[str], environ: Mapping[str, str], named_by: str = OPTION) -> Optional[Place]:
    """Return the policy file that is used, None where there is none; `named_by`: what `option` is the value of."""
    for name, path in ((named_by, option), (VARIABLE, environ.get(VARIABLE))):
        if path == NONE:
            return None
        if path:
            return Place(path, name)
    own = _nearest() if os.geteuid() != 0 else None
    if own is not None:
        return Place(own, PROJECT)
    return Place(SITE, SITE) if _exists(SITE) else None


def _nearest() -> Optional[str]:
    """Return `envtune.yaml` of the working directory or of the nearest parent that has one."""
    try:
        folder = os.getcwd()
    except OSError:  # it was removed
        return None
    while True:
        path = os.path.join(folder, PROJECT)
        if _exists(path):
            return path
        if folder in ("/", "//"):
            return None
        folder = os.path.dirname(folder)


def _exists(path: str) -> bool:
    """Return whether it exists; what cannot be examined counts as existing, so that it is not silently ignored."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def policy_content(place: Place) -> bytes:
    """Return the content of a policy file.

    Raises PolicyError if somebody else could have written it: for root anybody (as for overlays), for other users the
    owner of an `envtune.yaml` that was found, not named. Raises UsageError for a file that cannot be read.
    """
    from pathlib import Path

    from envtune.host.text_file import read_file

    problem = why_untrusted(place.path) if _exists(place.path) else None
    if problem is not None:
        way = Message("chown root and chmod go-w, or use {option} {none}", option=OPTION, none=NONE)
        raise _refused(place.path, Message("{reason}; refused when run as root: {way}", reason=problem, way=way))
    if place.named_by == PROJECT:
        _check_owner(place.path)
    name = "policy" if place.named_by in (PROJECT, SITE) else place.named_by
    return read_file(name, Path(place.path), _LIMIT)


def _check_owner(path: str) -> None:
    """Raise PolicyError for a file that was found and that belongs to neither the caller nor root."""
    try:
        status = os.stat(path)
    except OSError:
        return  # reading it reports why
    reason: Optional[Text] = None
    if status.st_uid not in (0, os.geteuid()):
        reason = Message("belongs to uid {uid}, neither to you nor to root", uid=status.st_uid)
    elif status.st_mode & stat.S_IWOTH:
        reason = Message("can be written by everybody")
    if reason is not None:
        way = Message("to use it: {option} {path}, to ignore it: {option} {none}", option=OPTION, path=path, none=NONE)
        raise _refused(path, clauses([reason, way]))


def _refused(path: str, reason: Text) -> PolicyError:
    return PolicyError([Message("{path}: {reason}", path=path, reason=reason)])
