"""Why something was refused or failed: codes with fields, their English sentences, and the exceptions that carry them.

envtune translates the templates; the stand-alone executor uses English.
"""

import errno
import signal
from typing import Any, Dict

from .common import Record


def N_(template: str) -> str:  # the name that gettext's extractors look for
    """Mark a template as translatable."""
    return template


TEMPLATES: Dict[str, str] = {
    # the state directory and its lock
    "parent-writable-by-others": N_("{path}, above the state directory, can be written by users other than root"),
    "not-a-directory": N_("{path} is not a directory"),
    "owned-by-another-user": N_("{path} belongs to user {owner}, not to user {user}"),
    "writable-by-others": N_("{path} can be written by others (mode {mode}); chmod 700 it"),
    "locked": N_("another envtune run holds the lock: {holder}"),
    "lock-holder": N_("pid {pid}, since {since}, run {run}"),
    "lock-holder-without-run": N_("pid {pid}, since {since}"),
    "lock-holder-just-begun": N_("it has just started"),
    "host-lock-holder": N_("another run of root on this host, {holder}"),
    # plans
    "malformed-plan": N_("malformed plan: {fault}"),
    "at-member": N_("{member}: {fault}"),
    "missing": N_("missing"),
    "unknown-member": N_("unknown"),
    "not-allowed": N_("not allowed"),
    "value-not-allowed": N_("not allowed: {value}"),
    "not-a-mapping": N_("not a mapping"),
    "occurs-twice": N_("duplicate id {id}"),
    "unknown-operation": N_("unknown kind of operation: {kind}"),
    "not-as-planned": N_("{subject} is not what the plan expected (found {found}, planned for {planned})"),
    "precondition-changed": N_(
        "the output of `{command}` has changed since the plan was made (found {found}, planned for {planned})"
    ),
    # requests of a fleet
    "npu-in-use": N_("processes have NPUs open: {processes}"),
    "npu-use-unknown": N_("whether processes have NPUs open is unknown: not all can be looked at without root"),
    # files
    "symbolic-link": N_("{path} is a symbolic link; name the file it points to"),
    "not-a-regular-file": N_("{path} is not a regular file"),
    "kernel-short-write": N_("{path}: the kernel accepted {written} of {length} bytes"),
    "changed-meanwhile": N_("{path} was changed by another process in the meantime"),
    "not-as-written": N_("{subject} does not contain what was written"),
    "backup-failed": N_("{path}: the original could not be saved: {reason}"),
    "backup-damaged": N_("the original of {path} kept in {backup} is damaged"),
    # directories that others can change
    "link-of-others": N_(
        "{path} is a symbolic link that users other than root can replace (in {directory}): name its target"
    ),
    "directory-of-several-users": N_(
        "{path} belongs to user {owner}, but user {user} can replace it (in {directory}): root writes nothing below it"
    ),
    "below-a-directory-of-others": N_(
        "{path} is in {directory}, which users other than root can change: root writes nothing below it"
    ),
    "directory-writable-by-others": N_("{path} can be written by users other than root: root writes nothing there"),
    "file-of-another-user": N_(
        "{path} belongs to user {owner} and its directory to user {user}, as whom it cannot be replaced"
    ),
    "directory-exchanged": N_("{path} is not the directory to which this run wrote"),
    "cannot-act-as": N_("{path} belongs to user {user}, as whom root cannot write here: {reason}"),
    "tree-of-another-user": N_(
        "{path} belongs to user {user}: as root nothing is installed there; run envtune as that user"
    ),
    # commands and processes
    "no-answer": N_("{command} did not respond within {seconds} s"),
    "command-failed": N_("{command} ended with {status}: {output}"),
    "command-timed-out": N_("{command} did not end within {seconds} s: {output}"),
    "command-not-undoable": N_("{command} cannot be undone"),
    "program-of-another-user": N_("{program} is not run: {path} belongs to user {user}, who could change it"),
    "program-writable-by-others": N_("{program} is not run: others can write {path} (mode {mode}, owner {user})"),
    "variable-not-allowed": N_("an operation may not set the variable {name}, or not to this value"),
    "undo-argument-not-found": N_("{command}: not found any more: {pattern}"),
    "command-still-running": N_("a command of run {run} is still running: process {processes}; wait for it or end it"),
    "process-of-another-user": N_("process {pid} belongs to user {user} now"),
    "process-is-envtune": N_("process {pid} is envtune itself or one of its parent processes"),
    "process-still-running": N_("process {pid} is still running"),
    "process-not-restorable": N_("process {pid} has ended and cannot be restored"),
    "packages-unfinished": N_("packages are not completely installed: {packages}; continue with: {commands}"),
    "packages-upgraded": N_("these packages stay upgraded: {packages}"),
    # trees and wheels
    "archive-damaged": N_("the archive {archive} with the original content is damaged"),
    "no-such-file": N_("{pattern}: no such file"),
    "several-files": N_("{pattern}: several files: {files}"),
    "wheel-of-others": N_("{wheel} is not installed: others can change {path} (owner {user})"),
    "wheel-writes-elsewhere": N_("{wheel} would write {path}, which the plan does not list"),
    "wheel-member-outside": N_("{wheel} contains a file outside its own tree: {member}"),
    "wheel-member-unknown": N_("{wheel} contains {member}, whose install location is unknown"),
    "wheel-not-installed": N_("{path} differs from the content of {wheel}"),
    # runs
    "run-interrupted": N_("run {run} was interrupted; finish or undo it first"),
    "run-not-interrupted": N_("run {run} was not interrupted"),
    "not-a-run-name": N_("{run} is not the name of a run"),
    "no-such-run": N_("no run {run}"),
    "no-such-change": N_("run {run} has no change {change}"),
    "run-of-another-version": N_("run {run} is from another version ({version})"),
    "journal-damaged": N_("damaged lines in {journal}: {lines}; undo the run instead"),
    "damaged-lines-not-undone": N_("damaged lines in {journal}: {lines}; the changes they recorded were not undone"),
    "intent-damaged": N_("the journal line with the original content is damaged"),
    "changed-since": N_("{subject} was changed since (found {found}, this run left {recorded})"),
    "not-restored": N_("the original could not be restored"),
    "stopped": N_("stopped by the user"),
    "stopped-by-signal": N_("stopped by {signal}"),
    "not-begun": N_("not started"),
    # of the system
    "os-error": N_("{path}: {reason}"),
    "chattr": N_("{reason} ({path} has the attribute {attribute} of chattr)"),
    "errno": "{text}",
    "exception": "{type}: {text}",
}


class Problem:
    """A code of TEMPLATES and the values for its template, which may be problems themselves."""

    def __init__(self, code: str, **fields: Any) -> None:
        self.code = code
        self.fields = fields

    def __str__(self) -> str:
        return TEMPLATES[self.code].format(**self.fields)

    def to_wire(self) -> Record:
        """Return the problem as plain data, for journals and results."""
        fields = {name: value.to_wire() if isinstance(value, Problem) else value for name, value in self.fields.items()}
        return {"code": self.code, "fields": fields}


class ExecutorError(Exception):
    """Base class of what the executor raises on purpose; `problem` says why."""

    def __init__(self, code: str, **fields: Any) -> None:
        self.problem = Problem(code, **fields)
        super().__init__(str(self.problem))


class RefusedError(ExecutorError):
    """The operation was not begun: the state is not what the plan expected, or it is not allowed."""


class FailedError(ExecutorError):
    """The operation was begun and did not work; the original was restored, or the message says what is left."""


class LockedError(ExecutorError):
    """Another run holds the lock; the message says which."""


class StoppedError(KeyboardInterrupt):
    """SIGINT, SIGTERM or SIGHUP (`number`): the current step is reverted, and no further one is begun."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__()


class JournalError(ExecutorError):
    """The journal can no longer be written: the run stops where it is, and will be found as interrupted."""


def errno_problem(error: OSError) -> Problem:
    """Return the system's error message, without the path."""
    return Problem("errno", name=errno.errorcode.get(error.errno or 0, ""), text=error.strerror or str(error))


def problem_of(error: BaseException) -> Problem:
    """Return the problem of an exception, in one line, with the path if there is one."""
    if isinstance(error, ExecutorError):
        return error.problem
    if isinstance(error, StoppedError) and error.number != signal.SIGINT:
        return Problem("stopped-by-signal", signal=signal.Signals(error.number).name)
    if isinstance(error, KeyboardInterrupt):
        return Problem("stopped")
    if isinstance(error, OSError) and error.strerror:
        reason = errno_problem(error)
        return Problem("os-error", path=str(error.filename), reason=reason) if error.filename else reason
    return Problem("exception", type=type(error).__name__, text=str(error))


def failure(problem: Problem) -> Record:
    """Return the members of a result for a problem: the English sentence, and the same as data."""
    return {"error": str(problem), "problems": [problem.to_wire()]}
