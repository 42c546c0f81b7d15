"""Open the host and the job that a verb is about: the starting point of everything that reads a host."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar, Union

from envtune.context import Context
from envtune.context.worker import Worker, no_answer
from envtune.errors import HostError, Missing, UsageError, failure_text, missing_text
from envtune.host import Host, LocalHost
from envtune.job.environment import read_environment
from envtune.job.interpreter import find_python
from envtune.job.target import THIS_SHELL, JobEnvironment, PythonTarget, Target, TargetOptions
from envtune.messages import Message, Text
from envtune.model import Expectation, Source

UNNAMED = TargetOptions()
DEADLINE = 20.0  # seconds in which the job must be read, as for a check
T = TypeVar("T")
Expectations = Mapping[str, Sequence[Expectation]]
NO_EXPECTATIONS: Expectations = {}


def open_host(snapshot: Optional[Path]) -> Host:
    """Return this machine, or the recorded one; raises SnapshotError."""
    if snapshot is None:
        return LocalHost()
    from envtune.snapshot.open import open_snapshot

    return open_snapshot(snapshot)


def resolve_target(host: Host, options: TargetOptions = UNNAMED) -> TargetOptions:
    """Return the job to check on `host`, paths made absolute: the named one, else the one the snapshot was taken for.

    An env file named for a recorded host is read from this machine: the user's file is judged against the recording.
    Raises UsageError for a file or process that does not exist: a typing error would make every check unknown.
    """
    if options.probe and not host.live:
        raise UsageError(Message("--probe connects to the job's hosts, which is not possible for a recorded host"))
    if options._replace(peers=(), probe=False) == UNNAMED:
        recorded = _recorded_target(host)
        return recorded._replace(peers=options.peers or recorded.peers, probe=options.probe)
    options = options._replace(script=_absolute(options.script), env_file=_absolute(options.env_file))
    if options.env_file is not None and not host.live:
        _give_file(host, "--env-file", options.env_file)
    for option, path in (("--script", options.script), ("--env-file", options.env_file)):
        reason = None if path is None else _answer(partial(_why_no_text, host, path))
        if reason is not None:
            raise UsageError(Message("{option} {path}: {reason}", option=option, path=path, reason=reason))
    if options.pid is not None and _answer(partial(_is_missing, host, f"/proc/{options.pid}")):
        raise UsageError(Message("--pid {pid}: no such process", pid=options.pid))
    if options.python is not None and _answer(partial(_is_missing_program, host, options)):
        raise UsageError(Message("--python {python}: no such program", python=options.python))
    return options


def _give_file(host: Host, option: str, path: str) -> None:
    """Make a recorded host return this machine's content for a file; raises UsageError."""
    from envtune.collector.files import FILE_LIMIT
    from envtune.host.text_file import read_file
    from envtune.snapshot.host import SnapshotHost

    if isinstance(host, SnapshotHost):
        host.give(path, read_file(option, Path(path), FILE_LIMIT))


def _recorded_target(host: Host) -> TargetOptions:
    if host.live:
        return UNNAMED
    from envtune.snapshot.host import SnapshotHost

    return recorded_options(host.data.get("target") or {}) if isinstance(host, SnapshotHost) else UNNAMED


def _absolute(path: Optional[str]) -> Optional[str]:
    return None if path is None else str(Path(path).absolute())


def _why_no_text(host: Host, path: str) -> Optional[Text]:
    """Return why `path` cannot be a text file; None if it is one, or cannot be read."""
    try:
        if host.stat(path).kind == "dir":
            return Message("is a directory")
        return Message("not a text file") if b"\0" in host.head(path) else None
    except Missing:
        return missing_text()
    except HostError:
        return None


def _is_missing(host: Host, path: str, program: bool = False) -> bool:
    """Return whether `path` does not exist (or is no program); what cannot be read may exist."""
    try:
        return host.stat(path).kind == "dir" and program
    except Missing:
        return True
    except HostError:
        return False


def _is_missing_program(host: Host, options: TargetOptions) -> bool:
    """Return whether `--python` names nothing; a bare name is looked up later if the job has its own PATH."""
    name = options.python or ""
    if "/" in name:
        path = os.path.join(host.cwd, name)
        return _is_missing(host, path, program=True)
    folders = [folder for folder in host.environ.get("PATH", "").split(":") if folder.startswith("/")]
    return not options.named and bool(folders) and all(_is_missing(host, f"{folder}/{name}") for folder in folders)


def _answer(read: Callable[[], T]) -> Optional[T]:
    """Return what is read about the job; None if a file system does not answer before the deadline."""
    worker = Worker()
    try:
        return worker.call(read, DEADLINE)
    finally:
        worker.end()


def open_context(host: Host, options: TargetOptions = UNNAMED, expectations: Expectations = NO_EXPECTATIONS) -> Context:
    """Return the context of one run. Reads only what names the job; everything else is read when a check asks.

    A job that cannot be read within the deadline is unknown. `expectations` are those of the catalog about single
    variables (Catalogue.expectations).
    """
    if isinstance(host, LocalHost):
        host.name_readers(options._asdict())
    environment = _read_or_reason(partial(read_environment, host, options))
    if isinstance(environment, Text):
        environment = JobEnvironment(None, options.script or options.env_file or THIS_SHELL, environment)
    found = _read_or_reason(partial(_python_of, host, options, environment))
    python, reason = (None, found) if isinstance(found, Text) else (found, None)
    return Context(host, Target(options, python, reason, environment), expectations=expectations)


def _read_or_reason(read: Callable[[], Union[T, Text]]) -> Union[T, Text]:
    """Return what is read about the job, or why it is unknown: a failure affects only this, not the report."""
    try:
        found = _answer(read)
    except Exception as error:
        return failure_text(error)
    return no_answer(DEADLINE) if found is None else found


def _python_of(host: Host, options: TargetOptions, environment: JobEnvironment) -> Union[PythonTarget, Text]:
    """Find the job's interpreter by its own PATH; a script or env file judged on its own gets the user's."""
    known = environment.variables
    if known is not None and options.python is None and options.pid is None:
        reason = environment.why_unknown("PATH")
        if reason is not None:
            return reason
        if "PATH" not in known and "PATH" in host.environ:
            known = {**known, "PATH": host.environ["PATH"]}
    return find_python(host, options, known)


def recorded_options(target: Mapping[str, Any]) -> TargetOptions:
    """Return the options a snapshot was taken with (its `target` mapping); `peers` if an example names them."""
    names = ("python", "pid", "script", "env_file")
    named = {name: target[name] for name in names if target.get(name) is not None}
    return TargetOptions(**named, peers=tuple(target.get("peers", ())))


def describe_target(target: Target) -> dict[str, Source]:
    """Return the target as a report shows it."""
    description: dict[str, Source] = {"environment": target.environment.source}
    reason = target.environment.reason
    if target.environment.variables is None and reason is not None:
        description["environment_reason"] = reason
    python = target.python
    if python is not None:
        description.update(python=python.path, python_real=python.real, python_version=python.version)
        description.update(python_kind=python.kind, python_chosen=python.chosen)
    elif target.python_reason is not None:
        description["python_reason"] = target.python_reason
    return description
