"""Scan files and directories: find the launch files, read each, and check what it gives the job."""

from __future__ import annotations

import posixpath
from functools import partial
from typing import Iterable, Iterator, NamedTuple, Optional, Sequence

from envtune.errors import HostError, Missing, failure_text
from envtune.host import Host, realpath
from envtune.job.foreign import not_for_a_shell
from envtune.job.language import foreign_language
from envtune.messages import Message, Text
from envtune.model import Evidence, Outcome, Severity
from envtune.scan.check import Rules, findings_of, key_of
from envtune.scan.docker.compose import service_jobs
from envtune.scan.docker.image import image_jobs
from envtune.scan.edit import Fixed, fix_text
from envtune.scan.kinds import COMPOSE, DOCKERFILE, KUBERNETES, MAX_SIZE, SLURM, is_candidate, kind_of
from envtune.scan.kubernetes.pods import pod_jobs
from envtune.scan.model import FileResult, Found, Jobs, Problem, ScanReport, Suppression
from envtune.scan.script import FilesBelow, script_jobs
from envtune.scan.slurm import slurm_jobs
from envtune.scan.suppressions import read_suppressions, suppression_for
from envtune.shell.machine import script_text

MAX_JOBS = 100  # of one file
MAX_FILES = 20_000  # examined below one directory
_LEFT_OUT = frozenset(("node_modules", "__pycache__", "site-packages"))  # and names that begin with a dot


class LaunchFile(NamedTuple):
    """One launch file: its path, its content, and what it starts."""

    path: str
    kind: str
    text: str
    root: str  # its scripts may refer to files below
    named: bool
    jobs: Jobs = Jobs()


class NearText(Text):
    """A text in which files below the current directory have relative paths."""

    __slots__ = ("_prefix", "_text")

    def __init__(self, text: Text, prefix: str) -> None:
        self._text, self._prefix = text, prefix

    def to(self, lang: str) -> str:
        """Return the text in `lang`."""
        return self._text.to(lang).replace(self._prefix, "")


def scan(host: Host, paths: Sequence[str], rules: Rules, known_ids: Iterable[str]) -> ScanReport:
    """Return what is wrong in the named launch files, or those in the named directories.

    `known_ids` are the checks that a suppression may name. Nothing is written, and nothing is run.
    """
    files: dict[str, LaunchFile] = {}
    problems: list[Problem] = []
    for path in paths:
        for one in _files(host, posixpath.normpath(posixpath.join(host.cwd, path))):
            if isinstance(one, Problem):
                problems.append(one)
            elif one.path not in files or one.named:
                files[one.path] = one
    read = [one._replace(jobs=_limited(one.path, jobs_of(host, one))) for one in files.values()]
    alone = [one for one in read if one.named or not _is_part_of_another(one, read)]
    accepted = _Accepted(host, frozenset(known_ids))
    results = [_result(one, rules, accepted) for one in alone]
    prefix = host.cwd.rstrip("/") + "/"
    shown = tuple(_shown(one, prefix) for one in _distinct(results, accepted))
    return ScanReport(shown, tuple(_of_here(one, prefix) for one in problems), tuple(rules.checks))


def jobs_of(host: Host, file: LaunchFile) -> Jobs:
    """Return what a launch file starts."""
    try:
        if file.kind == DOCKERFILE:
            return image_jobs(file.path, file.text)
        if file.kind == KUBERNETES:
            return pod_jobs(file.path, file.text)
        if file.kind == COMPOSE:
            return service_jobs(file.path, file.text)
        read = slurm_jobs if file.kind == SLURM else script_jobs
        return read(file.path, file.text, FilesBelow(host, file.root))
    except RecursionError:
        return Jobs((), (Problem(file.path, 0, Message("nested too deeply")),))


def _limited(path: str, jobs: Jobs) -> Jobs:
    if len(jobs.jobs) <= MAX_JOBS:
        return jobs
    problem = Problem(path, 0, Message("more than {limit} jobs; only the first were checked", limit=MAX_JOBS))
    return jobs._replace(jobs=jobs.jobs[:MAX_JOBS], problems=(*jobs.problems, problem))


def _is_part_of_another(file: LaunchFile, files: Iterable[LaunchFile]) -> bool:
    """Return whether another file sources it, and so determines its effect."""
    return any(
        file.path in one.jobs.sourced and one.path != file.path and one.path not in file.jobs.sourced for one in files
    )


# ------------------------------------------------------------------ files


def _files(host: Host, path: str) -> Iterator[LaunchFile | Problem]:
    """Yield the launch files at a path."""
    try:
        kind = host.stat(path).kind
    except HostError as error:
        yield Problem(path, 0, Message("no such file") if isinstance(error, Missing) else failure_text(error))
        return
    if kind != "dir":
        yield from _file(host, path, _root(host, path, posixpath.dirname(path)), named=True)
        return
    root = _root(host, path, path)
    seen: set[str] = set()
    for number, found in enumerate(_below(host, path)):
        if number >= MAX_FILES:
            yield Problem(path, 0, Message("more than {limit} files; only the first were looked at", limit=MAX_FILES))
            return
        if isinstance(found, Problem):
            yield found
        elif found not in seen:
            seen.add(found)
            yield from _file(host, found, root, named=False)


def _below(host: Host, path: str) -> Iterator[str | Problem]:
    """Yield the files below a directory that may be launch files, in order; links are followed to files within it."""
    left = [path]
    while left:
        folder = left.pop()
        try:
            names = host.listdir(folder)
        except HostError as error:
            yield Problem(folder, 0, failure_text(error))
            continue
        folders = []
        for name in names:
            full = posixpath.join(folder, name)
            kind = _kind(host, full)
            if kind == "dir" and not name.startswith(".") and name not in _LEFT_OUT:
                folders.append(full)
            elif kind == "file" and is_candidate(name) and not name.startswith("."):
                yield full
            elif kind == "link" and is_candidate(name):
                yield from _linked(host, full, path)
        left += reversed(folders)


def _kind(host: Host, path: str) -> str:
    try:
        return host.stat(path, follow=False).kind
    except HostError:
        return ""


def _linked(host: Host, link: str, top: str) -> Iterator[str]:
    """Yield the target file of a link, if it is below `top`."""
    try:
        real = realpath(host, link)
        if real.startswith(realpath(host, top).rstrip("/") + "/") and host.stat(real).kind == "file":
            yield top + real[len(realpath(host, top)) :]
    except HostError:
        return


def _root(host: Host, path: str, folder: str) -> str:
    """Return the directory whose files belong to the scan: the repository's, the current one, or the file's own."""
    if host.cwd != "/" and (folder + "/").startswith(host.cwd.rstrip("/") + "/"):
        folder = host.cwd
    above = folder
    while above != "/":
        if _kind(host, posixpath.join(above, ".git")):
            return above
        above = posixpath.dirname(above)
    return folder


def _file(host: Host, path: str, root: str, named: bool) -> Iterator[LaunchFile | Problem]:
    """Yield the launch file at a path, or why it cannot be read; nothing for other kinds of files."""
    has_ending = "." in posixpath.basename(path)
    try:
        status = host.stat(path)
        if status.kind != "file":
            reason: Text = Message("not a regular file")
        elif status.size > MAX_SIZE:
            reason = Message("larger than {limit} MiB", limit=MAX_SIZE >> 20)
        else:
            data = host.read_bytes(path)
            if b"\0" not in data:
                yield from _launch_file(path, script_text(path, data), root, named)
                return
            reason = Message("not a text file")
    except HostError as error:
        reason = failure_text(error)
    if named or has_ending:
        yield Problem(path, 0, reason)


def _launch_file(path: str, text: str, root: str, named: bool) -> Iterator[LaunchFile | Problem]:
    kind = kind_of(path, text, named)
    if kind is not None:
        yield LaunchFile(path, kind, text, root, named)
    elif named:
        language = foreign_language(path, text)
        other = Message(
            "neither a script for sh or bash, nor a Dockerfile, nor a Compose file, nor a Kubernetes object"
        )
        yield Problem(path, 0, other if language in (None, "YAML", "JSON") else not_for_a_shell(path, str(language)))


# ------------------------------------------------------------------ results


class _Accepted:
    """The suppressions of every file with a finding, and which of them were used."""

    def __init__(self, host: Host, known: frozenset[str]) -> None:
        self._host, self._known = host, known
        self._files: dict[str, tuple[tuple[Suppression, ...], tuple[Problem, ...]]] = {}
        self.used: set[Suppression] = set()

    def of(self, path: str, text: Optional[str] = None) -> tuple[tuple[Suppression, ...], tuple[Problem, ...]]:
        """Return the suppressions of a file, and what is wrong with others."""
        if path not in self._files:
            try:
                content = script_text(path, self._host.read_bytes(path)) if text is None else text
                found = read_suppressions(path, content, self._known)
                self._files[path] = found.all, found.problems
            except HostError:
                self._files[path] = (), ()
        return self._files[path]

    def accept(self, found: Found, lines: Sequence[int]) -> Found:
        """Return the finding, with the suppression that applies to it."""
        own = self.of(found.path)[0]
        suppression = suppression_for(own, found.finding.id, lines)
        if suppression is None and found.covered_by:
            suppression = suppression_for(own, found.covered_by, lines)
        if suppression is not None:
            self.used.add(suppression)
        return found._replace(suppression=suppression)


def _result(file: LaunchFile, rules: Rules, accepted: _Accepted) -> FileResult:
    suppressions, wrong = accepted.of(file.path, file.text)
    rows, passed, need_host = findings_of(file.path, file.jobs, rules)
    found = [accepted.accept(one, _lines(one, file.jobs)) for one in rows]
    found.sort(key=lambda one: (one.path != file.path, one.path, one.line, one.finding.id, one.finding.subject))
    ids = {check.id for check in rules.checks}
    own = tuple(one for one in suppressions if ids >= set(one.ids))  # a check that was not run might have a finding
    return FileResult(
        file.path, file.kind, len(file.jobs.jobs), tuple(found), (*file.jobs.problems, *wrong), own, passed, need_host
    )


def _lines(found: Found, jobs: Jobs) -> Sequence[int]:
    """Return the line of a finding, and those of its variables."""
    names = found.finding.subject.split(" / ")
    places = {f"{found.path}:{found.line}"}
    for job in jobs.jobs:
        places.update(job.environment.places.get(name, "") for name in names)
    rows = (place.rpartition(":") for place in places)
    return [int(line) for path, _, line in rows if path == found.path and line.isdecimal()]


def _distinct(results: Iterable[FileResult], accepted: _Accepted) -> Iterator[FileResult]:
    """Yield the results, with a finding in a file sourced by several others only once, and the unused suppressions."""
    seen: set[tuple[object, ...]] = set()
    for one in results:
        found = []
        for row in one.found:
            if key_of(row) not in seen:
                seen.add(key_of(row))
                found.append(row)
        yield one._replace(found=tuple(found), unused=tuple(row for row in one.unused if row not in accepted.used))


def _shown(result: FileResult, prefix: str) -> FileResult:
    """Return a result in which files below the current directory have relative paths."""
    return result._replace(
        path=result.path.removeprefix(prefix),
        found=tuple(_found_of_here(one, prefix) for one in result.found),
        problems=tuple(_of_here(one, prefix) for one in result.problems),
        unused=tuple(one._replace(path=one.path.removeprefix(prefix)) for one in result.unused),
    )


def _of_here(problem: Problem, prefix: str) -> Problem:
    return problem._replace(path=problem.path.removeprefix(prefix), reason=NearText(problem.reason, prefix))


def _found_of_here(found: Found, prefix: str) -> Found:
    finding, source = found.finding, found.finding.evidence.source
    place = source.removeprefix(prefix) if isinstance(source, str) else NearText(source, prefix)
    evidence = Evidence(place, finding.evidence.text)
    actual = None if finding.actual is None else NearText(finding.actual, prefix)
    reason = None if finding.reason is None else NearText(finding.reason, prefix)
    finding = finding._replace(actual=actual, reason=reason, evidence=evidence)
    return found._replace(path=found.path.removeprefix(prefix), finding=finding)


def exit_code(report: ScanReport, fail_on: Optional[Severity]) -> int:
    """Return 1 for findings at or above `fail_on`, 3 if something is unknown, else 0; 0 if it is None."""
    if fail_on is None:
        return 0
    counting = [one.finding for one in report.found if one.counts and one.finding.severity.rank >= fail_on.rank]
    if any(finding.outcome is Outcome.FAIL for finding in counting):
        return 1
    return 3 if counting or report.all_problems or not report.files else 0


def fixes(host: Host, report: ScanReport, rules: Rules) -> tuple[Fixed, ...]:
    """Return the files of a report with the lines changed whose findings can be fixed there; nothing is written."""
    wrong: dict[str, list[Found]] = {}
    for one in report.found:
        if one.counts and one.finding.outcome is Outcome.FAIL:
            wrong.setdefault(one.path, []).append(one)
    made: list[Fixed] = []
    for path, found in wrong.items():
        full = posixpath.normpath(posixpath.join(host.cwd, path))
        root = _root(host, full, posixpath.dirname(full))
        for file in _file(host, full, root, named=True):
            if isinstance(file, LaunchFile) and len(jobs_of(host, file).jobs) <= MAX_JOBS:
                made.append(fix_text(path, file.kind, file.text, found, partial(_remaining, host, file, rules)))
    return tuple(one for one in made if one.found)


def _remaining(host: Host, file: LaunchFile, rules: Rules, text: str) -> frozenset[tuple[int, str, str]]:
    """Return what would be wrong in a file with this text."""
    rows = findings_of(file.path, _limited(file.path, jobs_of(host, file._replace(text=text))), rules).found
    return frozenset(
        (one.line, one.finding.id, one.finding.subject)
        for one in rows
        if one.path == file.path and one.finding.outcome is Outcome.FAIL
    )
