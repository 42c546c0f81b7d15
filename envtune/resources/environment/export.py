"""Variables for the jobs to come: one env file, /etc/profile.d, or a block in a launch script.

A file changes no running process and no shell that is open. What a setting fixes is not assumed: the file as it would
be is read again as a job would read it, and the checks are judged on that.
"""

from __future__ import annotations

import posixpath
import re
from typing import Iterable, Iterator, NamedTuple, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import Skipped
from envtune.host import Host
from envtune.job.environment import env_file_environment, is_for_a_shell, parse_env_file, shell_environment
from envtune.job.script import text_environment
from envtune.job.target import JobEnvironment
from envtune.messages import Message, Text, clauses
from envtune.model import Change, Check, Finding, FixOptions
from envtune.resources.environment.managed_block import UnclosedBlockError, docker_lines, merged, split, variants
from envtune.resources.environment.path_settings import advice as path_advice
from envtune.resources.environment.profile import Setting, Unchanged, train
from envtune.resources.environment.render import bash_lines
from envtune.resources.environment.search_paths import HDF5_ENTRIES, SEARCHED
from envtune.resources.environment.simulate import Judge, attribute, environment_after, fixed_checks, values
from envtune.resources.files.change import content, file_operation, needs_root, written_path

PROFILE_D = "/etc/profile.d/"
SEARCH_PATHS = {*SEARCHED, *HDF5_ENTRIES}


class EnvFile(NamedTuple):
    """The file that is written: `kind` is script, file (sourced by a shell) or docker (`KEY=VALUE` lines)."""

    path: str
    kind: str
    text: Optional[str]


class Draft(NamedTuple):
    """The file as it would be, what a job would get from it, and which checks that fixes."""

    text: str
    environment: JobEnvironment
    fixes: tuple[str, ...]


@action("environment.export", formerly="env.export")
def export(context: Context, findings: Sequence[Finding], *, options: FixOptions, judge: Judge) -> Iterable[Change]:
    """Write the variables that fix the findings where the job will read them."""
    checks = tuple({finding.id: finding.check for finding in findings}.values())
    settings, unchanged = _settings(context, checks, judge)
    if not settings:
        raise Skipped(_nothing(findings, unchanged))
    file = _file(context, options)
    try:
        best = _best(context, file, settings, checks, judge)
    except UnclosedBlockError as error:
        raise Skipped(
            Message(
                "{path}: the block that begins at line {line} has no end mark; mend it by hand",
                path=file.path,
                line=error.line,
            )
        ) from None
    if best.text == (file.text or ""):
        raise Skipped(_unread(file, context))
    if not best.fixes:
        raise Skipped(_overridden(file, best, settings))
    return [_change(context, file, best, settings, unchanged)]


def _nothing(findings: Sequence[Finding], unchanged: Sequence[Unchanged]) -> Text:
    """Say why no variable is set: it is left on purpose, or a person has to choose it."""
    if unchanged:
        return clauses(Message("{name}: {reason}", name=row.name, reason=row.reason) for row in unchanged)
    remedy = findings[0].check.remedy or Message("see the check")
    return Message("which value is right cannot be told here. {remedy}", remedy=remedy)


def _settings(
    context: Context, checks: Sequence[Check], judge: Judge
) -> tuple[tuple[Setting, ...], tuple[Unchanged, ...]]:
    """Return what helps to fix these checks, and what of the profile is left on purpose."""
    advice = train(context)
    every = attribute(context, (*path_advice(context), *advice.settings), checks, judge)
    helpful = [setting for setting in every if setting.checks]
    frozen = {setting.name: setting for setting in helpful if _would_freeze(context, setting)}
    left = (Unchanged(name, str(setting.value), _not_frozen(context, name)) for name, setting in frozen.items())
    return tuple(setting for setting in helpful if setting.name not in frozen), (*advice.unchanged, *left)


def _not_frozen(context: Context, name: str) -> Text:
    place = context.target.environment.places.get(name)
    if place is not None:
        return Message("{place} puts it together with what the shell has: correct it there", place=place)
    return Message(
        'it comes from the shell that starts the job: correct it where that shell sets it; here: eval "$(envtune env)"'
    )


def _would_freeze(context: Context, setting: Setting) -> bool:
    """Return whether a file would hold this shell's whole search path: every job that reads it would get that one."""
    if setting.value is None or setting.prefixes or setting.name not in SEARCH_PATHS:
        return False
    inherited = context.host.environ.get(setting.name, "")
    own = setting.name in context.target.environment.places
    whole = (context.target.environment.variables or {}).get(setting.name, "")
    return not own or bool(inherited and inherited in whole)


# ---------------------------------------------------------------------- where


def _file(context: Context, options: FixOptions) -> EnvFile:
    host = context.host
    script = context.target.options.script
    path = script or options.env_file or default_file(host)
    try:
        path = written_path(host, path)
    except FileNotFoundError:
        path = posixpath.normpath(path)
    data = content(host, path)
    text = None if data is None else data.decode("utf-8", "surrogateescape")
    if script is not None:
        return EnvFile(path, "script", text)
    docker = bool(text) and not is_for_a_shell(text or "") and bool(parse_env_file(text or "", path)[0])
    return EnvFile(path, "docker" if docker else "file", text)


def default_file(host: Host) -> str:
    """Return $XDG_CONFIG_HOME/envtune/env.sh, or ~/.config/envtune/env.sh."""
    config = host.environ.get("XDG_CONFIG_HOME") or posixpath.join(host.environ.get("HOME") or "/root", ".config")
    return posixpath.join(config, "envtune", "env.sh")


def launchers(path: str, kind: str) -> Text:
    """Say which launchers see what is in the file."""
    if kind == "script":
        return Message("every job that this script starts gets it, whoever starts the script; other jobs do not")
    if kind == "docker":
        return Message("containers started with --env-file get it; shells, ssh, systemd and Slurm jobs do not")
    if path.startswith(PROFILE_D):
        return Message(
            "login shells get it, and what sbatch or srun submits from one; commands over ssh, systemd services, "
            "cron and containers do not"
        )
    return Message(
        "jobs get it from scripts and shells that source it (`. {path}`); Slurm passes a shell's variables on, "
        "systemd and docker do not read it (envtune env --format systemd, docker)",
        path=path,
    )


# ---------------------------------------------------------------------- what


def _best(context: Context, file: EnvFile, settings: Sequence[Setting], checks: Sequence[Check], judge: Judge) -> Draft:
    """Return the way to put the settings into the file that fixes the most; the first of equals."""
    best: Optional[Draft] = None
    for text in _texts(context, file, settings):
        environment = _read_again(context, file, text)
        draft = Draft(text, environment, fixed_checks(context, checks, environment, judge))
        if best is None or len(draft.fixes) > len(best.fixes):
            best = draft
        if len(best.fixes) == len(checks):
            break
    if best is None:
        raise Skipped(
            Message(
                "{path} cannot be followed; put the variables in by hand (envtune env --script {path})", path=file.path
            )
        )
    return best


def _texts(context: Context, file: EnvFile, settings: Sequence[Setting]) -> Iterator[str]:
    present = file.text or ""
    inside = split(present)[1] or ""
    lang = "zh" if _locale(context.host).startswith("zh") else "en"
    if file.kind == "docker":
        single = values(settings, environment_after(context, settings))
        writable = [s for s in single if s.value is not None and "\n" not in s.value]
        yield from variants(present, merged(inside, writable, lang, docker_lines), False)
    else:
        yield from variants(present, merged(inside, settings, lang, bash_lines), file.kind == "script")


def _locale(host: Host) -> str:
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    return next((host.environ[name].lower() for name in names if host.environ.get(name)), "")


def _read_again(context: Context, file: EnvFile, text: str) -> JobEnvironment:
    """Return what a job gets if the file holds `text`, read as job/environment.py reads it."""
    host, options = context.host, context.target.options
    base = shell_environment(host)
    if file.kind == "script":
        if options.env_file is not None:
            named = content(host, options.env_file)
            base = env_file_environment(host, options.env_file, (named or b"").decode("utf-8", "replace"), base)
        return text_environment(host, file.path, text, base)
    return env_file_environment(host, file.path, text, base)


def _unread(file: EnvFile, context: Context) -> Text:
    if context.target.options.named:
        return Message("{path} holds it already, and something sets the variables again behind it", path=file.path)
    return Message("{path} holds it already; this shell has not sourced it: . {path}", path=file.path)


def _overridden(file: EnvFile, best: Draft, settings: Sequence[Setting]) -> Text:
    """Say where the variables are set again behind our block."""
    again = {best.environment.place(s.name): s.name for s in settings if s.name in best.environment.places}
    where = ", ".join(f"{name} ({at})" for at, name in again.items()) or ", ".join(s.name for s in settings)
    reason: Text = Message(
        "{path} sets them itself where no block can undo it; change it there: {where}", path=file.path, where=where
    )
    for setting in settings:
        why = best.environment.why_unknown(setting.name) if setting.name else None
        if why is not None:
            return Message("{reason} ({why})", reason=reason, why=why)
    return reason


def _change(
    context: Context, file: EnvFile, best: Draft, settings: Sequence[Setting], unchanged: Sequence[Unchanged]
) -> Change:
    note = launchers(file.path, file.kind)
    for row in unchanged:
        note = Message("{seen}; {name} {reason}", seen=note, name=row.name, reason=row.reason)
    return Change(
        finding=best.fixes[0],
        subject=", ".join(dict.fromkeys(s.name or s.script for s in settings)),
        playbook="",
        action="environment.export",
        target=file.path,
        before=_printable(file.text or ""),
        after=_printable(best.text),
        scope="job",
        operations=(file_operation(context.host, file.path, best.text),),
        safety="confirm" if any(s.needs_consent for s in settings) else "safe",
        root=needs_root(context.host, file.path),
        note=note,
        fixes=best.fixes[1:],
        verify={"script" if file.kind == "script" else "env_file": file.path},
    )


def _printable(text: str) -> str:
    return re.sub("[\udc80-\udcff]", "\ufffd", text)
