"""The exceptions that envtune raises on purpose.

    EnvtuneError
    +-- CatalogError        a YAML file is wrong: every diagnostic with file:line:column (exit 2)
    +-- SnapshotError       a snapshot is malformed or hostile, with the member's name (exit 2)
    +-- UsageError          an option names something that does not exist (exit 2)
    |   +-- MissingPackageError   a Python package is not installed (exit 2)
    +-- HostError           reading the host failed; probes let these propagate, the engine turns them into outcomes
    |   +-- Missing         the path or command is not there
    |   +-- Denied          the right to read it is missing
    |   +-- TimedOut        it did not answer within its deadline
    |   +-- Unreadable      it is there and makes no sense (not text, not a regular file)
    |   |   +-- ReadFailed      the system could not read it (I/O error)
    |   +-- NotRecorded     the snapshot does not say whether it is there
    |   +-- Elsewhere       it is on another machine, of which nothing was read
    +-- PlanError           a plan file is malformed or asks for what envtune never does (exit 2)
    +-- Skipped             an action has nothing to propose, and why
    +-- Verdict             a probe's own statement about its check
        +-- NotApplicable   the check does not concern this host, and which fact says so
        +-- Undetermined    the probe could not tell, and why

`Missing`, `Denied` and the other host errors are also `OSError`s, so that code shared with the stdlib-only collector
handles a live and a recorded host with the same `except OSError`.
"""

from __future__ import annotations

import errno
import importlib
import os
import shlex
import sys
from typing import Mapping, Optional, Sequence, Union

from envtune.messages import N_, Joined, Literal, Message, Text
from envtune.ranges import NumberTooLongError


class EnvtuneError(Exception):
    """Root of the tree; `message` says what is wrong in both languages."""

    def __init__(self, message: Text) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message.en

    def to(self, lang: str) -> str:
        """Return the message in `lang`."""
        return self.message.to(lang)


class CatalogError(EnvtuneError):
    """Catalog files are wrong; `diagnostics` holds one line `file:line:column: message` each, in English."""

    def __init__(self, diagnostics: Sequence[Text]) -> None:
        super().__init__(Joined(diagnostics, "\n"))
        self.diagnostics = tuple(line.en for line in diagnostics)


class PolicyError(CatalogError):
    """A site's policy file is wrong; one line per problem, as for a catalog file."""


class SnapshotError(EnvtuneError):
    """A snapshot cannot be trusted or understood; `where` names the member and the place in it."""

    def __init__(self, where: str, reason: Text) -> None:
        super().__init__(Message("{where}: {reason}", where=where, reason=reason) if where else reason)
        self.where, self.reason = where, reason

    def below(self, place: str) -> SnapshotError:
        """Return the same error for a member of `place`."""
        return SnapshotError(f"{place}: {self.where}" if self.where else place, self.reason)


class UsageError(EnvtuneError):
    """The command line names something that does not exist."""


# Third-party packages by import name: the package, and the extra of envtune that installs it.
PACKAGES: Mapping[str, tuple[str, str]] = {
    "ClusterShell": ("ClusterShell", "fleet"),
    "distro": ("distro", ""),
    "jinja2": ("Jinja2", "html"),
    "markupsafe": ("MarkupSafe", "html"),
    "packaging": ("packaging", ""),
    "psutil": ("psutil", ""),
    "typer": ("typer", ""),
    "yaml": ("PyYAML", ""),
}


class MissingPackageError(UsageError):
    """A Python package is not installed; the message names it, and the command that installs it."""

    def __init__(self, module: str) -> None:
        package, extra = PACKAGES[module]
        from_archive = not os.path.isdir(os.path.dirname(os.path.abspath(__file__)))  # then pip does not know envtune
        wanted = package if from_archive or not extra else f"envtune[{extra}]"
        command = shlex.join([sys.executable or "python3", "-m", "pip", "install", wanted])
        super().__init__(
            Message("the Python package {package} is missing; install it: {command}", package=package, command=command)
        )


def require_package(module: str) -> None:
    """Raise MissingPackageError if the package imported by that name is not installed."""
    try:
        importlib.import_module(module)
    except ImportError:
        raise MissingPackageError(module) from None


def missing_package(error: BaseException) -> Optional[MissingPackageError]:
    """Return the error to report if an import failed because a package of PACKAGES is not installed, else None."""
    module = error.name.partition(".")[0] if isinstance(error, ModuleNotFoundError) and error.name else ""
    return MissingPackageError(module) if module in PACKAGES else None


class InterruptedRun(KeyboardInterrupt):
    """Ctrl-C when changes had been made; `left` says which, and how they are undone."""

    def __init__(self, left: Text) -> None:
        super().__init__()
        self.left = left


class PlanError(EnvtuneError):
    """A plan cannot be trusted, understood or carried out here; `member` names the part."""

    def __init__(self, member: str, reason: Text) -> None:
        super().__init__(Message("{where}: {reason}", where=member, reason=reason) if member else reason)
        self.member = member


class HostError(EnvtuneError, OSError):
    """Reading `path` (a path or a command line) from the host failed."""

    def __init__(self, path: str, detail: str = "") -> None:
        super().__init__(Literal(f"{path}: {detail}" if detail else path))
        self.path = path
        self.detail = detail


class Missing(HostError, FileNotFoundError):
    """Not there."""


NO_COMMAND = "command not found"


class Denied(HostError, PermissionError):
    """It exists, but this user may not read it; a command is also denied if others can change `detail`."""


class TimedOut(HostError):
    """No answer within the deadline."""


class Unreadable(HostError):
    """It exists, but is not what it should be."""


class ReadFailed(Unreadable):
    """The system could not read it (EIO, a device that is gone); `detail` is what it says."""


BEGINNING_ONLY = "only its beginning was recorded"


class NotRecorded(HostError):
    """The snapshot does not say."""


class Elsewhere(HostError):
    """On a machine that was not read: the one where the job of a launch file will run."""


class Skipped(EnvtuneError):
    """An action cannot or must not repair this finding; the reason is shown in the plan."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason)
        self.reason = reason


class Verdict(EnvtuneError):
    """A statement of a probe about its whole check; `source` is the path or command it rests on."""

    def __init__(self, reason: Text, source: Union[str, Text] = "", text: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.source = source
        self.text = text


class NotApplicable(Verdict):
    """The check does not concern this host; the reason names the fact."""


class Undetermined(Verdict):
    """The probe cannot tell; `needs_privilege`: only because this user lacks a privilege."""

    def __init__(
        self, reason: Text, source: Union[str, Text] = "", text: str = "", *, needs_privilege: bool = False
    ) -> None:
        super().__init__(reason, source, text)
        self.needs_privilege = needs_privilege


NOT_RECORDED = N_("{path} is not in the snapshot")


def is_not_recorded(reason: Text) -> bool:
    """Return whether something is unknown only because the snapshot does not contain it."""
    return isinstance(reason, Message) and reason.template == NOT_RECORDED


def host_error_text(error: HostError) -> Text:
    """Return what a host error means, in words a person can act on."""
    path = error.path
    if isinstance(error, Missing):
        return _missing_text(error)
    if isinstance(error, Denied) and error.detail:
        return Message("{command} was not run: others can change {place}", command=path, place=error.detail)
    if isinstance(error, Denied):
        return Message("{path} cannot be read by this user", path=path)
    if isinstance(error, TimedOut):
        return Message("{path} did not respond ({detail})", path=path, detail=error.detail)
    if isinstance(error, NotRecorded) and error.detail == BEGINNING_ONLY:
        return Message("only the beginning of {path} is in the snapshot", path=path)
    if isinstance(error, NotRecorded):
        return Message(NOT_RECORDED, path=path)
    if isinstance(error, Elsewhere):
        return Message("{path} is on the job's host, which was not read", path=path)
    return _unreadable_text(path, error.detail, isinstance(error, ReadFailed))


def _unreadable_text(path: str, detail: str, is_read_error: bool) -> Text:
    if detail in errno.errorcode.values():  # a live host's errors are kept in words, a recording's by their names
        return Message("{path} could not be read when recorded ({detail})", path=path, detail=detail)
    template = N_("{path} cannot be read: {detail}") if is_read_error else N_("{path} cannot be parsed: {detail}")
    return Message(template, path=path, detail=detail)


def _missing_text(error: Missing) -> Text:
    if error.detail == NO_COMMAND:
        return Message("{command} not found", command=error.path.split(" ")[0])
    return Message("{path} does not exist", path=error.path)


def long_number_text(error: NumberTooLongError) -> Text:
    """Return the error for a number of thousands of digits."""
    return Message("a number of {digits} digits is neither a version nor a count", digits=error.digits)


def internal_error_text(error: Exception) -> Text:
    """Return the message for a failure of envtune itself after which the run continues."""
    return Message("envtune itself failed here: {kind}: {error}", kind=type(error).__name__, error=error)


NO_MEMORY = Message("not enough memory to read it")


def failure_text(error: Exception) -> Text:
    """Return why something is unknown, from whatever was raised while it was read."""
    if isinstance(error, HostError):
        return host_error_text(error)
    if isinstance(error, Verdict):
        return error.reason
    if isinstance(error, NumberTooLongError):
        return long_number_text(error)
    if isinstance(error, MemoryError):
        return NO_MEMORY
    return internal_error_text(error)


_MISSING = N_("No such file or directory")
_NO_DIRECTORY = N_("Not a directory")
SYSTEM_ERRORS: Mapping[str, str] = {  # what the system says, by the name of errno
    "EACCES": N_("Permission denied"),
    "EPERM": N_("Operation not permitted"),
    "EROFS": N_("Read-only file system"),
    "ENOSPC": N_("No space left on device"),
    "EDQUOT": N_("Disk quota exceeded"),
    "EBUSY": N_("Device or resource busy"),
    "EINVAL": N_("Invalid argument"),
    "EIO": N_("Input/output error"),
    "ENOENT": _MISSING,
    "ENOTDIR": _NO_DIRECTORY,
    "EISDIR": N_("Is a directory"),
}


def missing_text() -> Text:
    """Return the system's error message for a path that does not exist."""
    return Message(_MISSING)


def no_directory_text(path: str) -> Optional[Text]:
    """Return the system's error message for a path that has to be a directory; None if it is one."""
    if os.path.isdir(path):
        return None
    return Message(_NO_DIRECTORY) if os.path.lexists(path) else missing_text()


def missing_parent_text(path: str) -> Optional[Text]:
    """Return the message that the directory of a file to be written does not exist; None if it exists."""
    parent = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(parent):
        return None
    template = N_("{path} is not a directory") if os.path.lexists(parent) else N_("the directory {path} does not exist")
    return Message(template, path=parent)


class InputError(OSError):
    """A file or pipe that the user named is none that is read, or not to its end; `reason` says why."""

    def __init__(self, reason: Text, number: int = errno.EIO) -> None:
        super().__init__(number, reason.en)
        self.reason = reason


def system_error_text(error: OSError) -> Text:
    """Return what the operating system says, without the path; or what envtune says of an input."""
    if isinstance(error, InputError):
        return error.reason
    template = SYSTEM_ERRORS.get(errno.errorcode.get(error.errno or 0, ""))
    return Literal(error.strerror or str(error)) if template is None else Message(template)
