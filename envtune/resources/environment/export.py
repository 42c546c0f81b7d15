"""Set variables for future jobs: one env file, /etc/profile.d, or a block in a launch script.

A file does not change running processes or open shells. What a setting fixes is not assumed: the future file is
interpreted as a job would read it, and the checks are judged on the result.
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
from envtune.job.finished import is_json
from envtune.job.foreign import not_for_a_shell
from envtune.job.language import foreign_language
from envtune.job.script import read_script, text_environment
from envtune.job.target import JobEnvironment
from envtune.messages import Message, Text, clauses, enumerated
from envtune.model import Change, Check, Finding, FixOptions
from envtune.resources.environment.managed_block import (
    UnclosedBlockError,
    docker_lines,
    line_in,
    merged,
    split,
    variants,
)
from envtune.resources.environment.path_settings import advice as path_advice
from envtune.resources.environment.profile import Setting, Unchanged, train
from envtune.resources.environment.render import bash_lines, typed
from envtune.resources.environment.search_paths import LISTS
from envtune.resources.environment.simulate import Judge, attribute, environment_after, fixed_checks, values
from envtune.resources.files.change import content, file_operation, needs_root, written_path

PROFILE_D = "/etc/profile.d/"
# `readonly A B=1`, `declare -rx A`, `typeset -r A`, up to the end of the command
_READONLY = re.compile(
    r"(?:^|[;&|({ \t])(?:readonly|(?:declare|typeset|local)[ \t]+-[a-zA-Z]*r[a-zA-Z]*)[ \t]+([^;&|#)]*)"
)


class EnvFile(NamedTuple):
    """The file that is written: `kind` is script, file (sourced by a shell) or docker (`KEY=VALUE` lines)."""

    path: str
    kind: str
    text: Optional[str]


class Draft(NamedTuple):
    """The future file, what a job would get from it, and which checks that fixes."""

    text: str
    environment: JobEnvironment
    fixes: tuple[str, ...]


@action("environment.export", formerly="env.export")
def export(context: Context, findings: Sequence[Finding], *, options: FixOptions, judge: Judge) -> Iterable[Change]:
    """Write the variables that fix the findings where the job will read them."""
    checks = tuple({finding.id: finding.check for finding in findings}.values())
    settings, unchanged = _settings(context, checks, judge)
    file = _file(context, options) if settings or context.target.options.script else None
    if file is None or not settings:
        raise Skipped(clauses([*_other_language(file), _nothing(findings, unchanged)]))
    settings, unchanged = _writable(context, file, settings, unchanged)
    try:
        best = _best(context, file, settings, checks, judge)
        needed = tuple(setting for setting in settings if {*setting.checks} & {*best.fixes})
        if needed and len(needed) < len(settings):  # the others help only with what stays unfixed here
            smaller = _best(context, file, needed, checks, judge)
            if {*smaller.fixes} >= {*best.fixes}:
                best, settings = smaller, needed
    except UnclosedBlockError as error:
        raise Skipped(
            Message(
                "{path}: the block that begins at line {line} has no end mark; fix it by hand",
                path=file.path,
                line=error.line,
            )
        ) from None
    if best.text == (file.text or ""):
        raise Skipped(_unread(file, context))
    if not best.fixes:
        raise Skipped(_overridden(context, file, best, settings) or _not_alone(findings, settings))
    return [_change(context, file, best, settings, unchanged)]


def _writable(
    context: Context, file: EnvFile, settings: tuple[Setting, ...], unchanged: tuple[Unchanged, ...]
) -> tuple[tuple[Setting, ...], tuple[Unchanged, ...]]:
    """Return the settings that a line in the file can express; raises Skipped if the file cannot contain such lines."""
    if file.kind != "script" or file.text is None:
        return settings, unchanged
    language = foreign_language(file.path, file.text)
    if language is not None:
        single = values(settings, context.target.environment, environment_after(context, settings))
        (reason,) = _other_language(file)
        raise Skipped(Message("{reason}; enter there: {lines}", reason=reason, lines=typed(single, language)))
    if "\r\n" in file.text:
        raise Skipped(
            Message(
                "{path} has Windows line endings, which a shell treats as part of each word: dos2unix {path}",
                path=file.path,
            )
        )
    frozen = _readonly(context, file)
    left = tuple(
        Unchanged(s.name, str(s.value), Message("readonly ({place}): change it there", place=frozen[s.name]))
        for s in settings
        if s.name in frozen
    )
    kept = tuple(setting for setting in settings if setting.name not in frozen)
    if left and not kept:
        raise Skipped(clauses(Message("{name}: {reason}", name=row.name, reason=row.reason) for row in left))
    return kept, (*unchanged, *left)


def _other_language(file: Optional[EnvFile]) -> list[Text]:
    """Return why a launch script's language cannot contain a block; nothing for a shell script."""
    language = foreign_language(file.path, file.text) if file is not None and file.text is not None else None
    return [] if file is None or language is None or file.kind != "script" else [not_for_a_shell(file.path, language)]


def _readonly(context: Context, file: EnvFile) -> dict[str, str]:
    """Return the variables that the script, or one that it sources, makes readonly anywhere, and where.

    A line that assigns to one ends sh, and bash under `set -e`.
    """
    text = file.text or ""
    found = dict(read_script(context.host, file.path, text, shell_environment(context.host)).readonly)
    for number, line in enumerate(text.split("\n"), 1):
        for words in _READONLY.findall(line):
            for word in words.split():
                found.setdefault(word.partition("=")[0], f"{file.path}:{number}")
    return found


def _nothing(findings: Sequence[Finding], unchanged: Sequence[Unchanged]) -> Text:
    """Return why no variable is set: it is left alone on purpose, or a person has to choose it."""
    if unchanged:
        return clauses(Message("{name}: {reason}", name=row.name, reason=row.reason) for row in unchanged)
    remedy = findings[0].check.remedy or Message("see the check")
    return Message("envtune cannot know the right value. {remedy}", remedy=remedy)


def _settings(
    context: Context, checks: Sequence[Check], judge: Judge
) -> tuple[tuple[Setting, ...], tuple[Unchanged, ...]]:
    """Return what helps to fix these checks, and what part of the profile is left alone on purpose."""
    advice = train(context)
    every = attribute(context, (*path_advice(context), *advice.settings), checks, judge)
    helpful = [setting for setting in every if setting.checks]
    frozen = {setting.name: setting for setting in helpful if _would_freeze(context, setting)}
    left = (Unchanged(name, str(setting.value), _not_frozen(context, name)) for name, setting in frozen.items())
    return tuple(setting for setting in helpful if setting.name not in frozen), (*advice.unchanged, *left)


def _not_frozen(context: Context, name: str) -> Text:
    place = context.target.environment.places.get(name)
    if place is not None:
        return Message("{place} combines it with the shell's value: correct it there", place=place)
    return Message(
        'it comes from the shell that starts the job: correct it where that shell sets it; here: eval "$(envtune env)"'
    )


def _would_freeze(context: Context, setting: Setting) -> bool:
    """Return whether a file would contain this shell's whole search path, which every job reading it would get."""
    if setting.value is None or setting.prefixes or setting.name not in LISTS:
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
    if is_json(text or ""):
        raise Skipped(
            Message("{path} records the variables of a finished job; name its launch script with --script", path=path)
        )
    docker = bool(text) and not is_for_a_shell(text or "") and bool(parse_env_file(text or "", path)[0])
    return EnvFile(path, "docker" if docker else "file", text)


def default_file(host: Host) -> str:
    """Return $XDG_CONFIG_HOME/envtune/env.sh, or ~/.config/envtune/env.sh."""
    config = host.environ.get("XDG_CONFIG_HOME") or posixpath.join(host.environ.get("HOME") or "/root", ".config")
    return posixpath.join(config, "envtune", "env.sh")


def launchers(path: str, kind: str) -> Text:
    """Return which launchers read the file."""
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
    """Return the placement of the settings in the file that fixes the most; the first of equals."""
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
                "{path} cannot be analyzed; add the variables by hand (envtune env --script {path})", path=file.path
            )
        )
    return best


def _texts(context: Context, file: EnvFile, settings: Sequence[Setting]) -> Iterator[str]:
    present = file.text or ""
    inside = split(present)[1] or ""
    lang = context.target.options.lang or ("zh" if _locale(context.host).startswith("zh") else "en")
    if file.kind == "docker":
        single = values(settings, context.target.environment, environment_after(context, settings))
        writable = [s for s in single if s.value is not None and "\n" not in s.value and _extends(context, s.name)]
        if not writable and any(setting.value is not None for setting in single):
            raise Skipped(Message("an env file for docker cannot extend what the image sets (envtune env -f docker)"))
        yield from variants(present, merged(inside, writable, lang, docker_lines), False)
    else:
        yield from variants(present, merged(inside, settings, lang, bash_lines), file.kind == "script")


def _extends(context: Context, name: str) -> bool:
    """Return whether an env file for docker may contain the variable: a search path only if it already has one."""
    return name not in LISTS or name in context.target.environment.places


def _locale(host: Host) -> str:
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    return next((host.environ[name].lower() for name in names if host.environ.get(name)), "")


def _read_again(context: Context, file: EnvFile, text: str) -> JobEnvironment:
    """Return what a job gets if the file contains `text`, interpreted as in job/environment.py."""
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
        return Message("{path} already contains it, and something sets the variables again after it", path=file.path)
    return Message("{path} already contains it; this shell has not sourced it: . {path}", path=file.path)


def _not_alone(findings: Sequence[Finding], settings: Sequence[Setting]) -> Text:
    names = enumerated(setting.name for setting in settings if setting.name)
    remedy = findings[0].check.remedy or Message("see the check")
    return Message("changing {names} alone does not fix it. {remedy}", names=names, remedy=remedy)


def _overridden(context: Context, file: EnvFile, best: Draft, settings: Sequence[Setting]) -> Optional[Text]:
    """Return where the variables are set again after our block; None where nothing there is in the way."""
    places = {setting.name: best.environment.places.get(setting.name) for setting in settings}
    again = {_own_place(file, best, place): name for name, place in places.items() if place is not None}
    names = [f"{name} ({at})" for at, name in again.items()] or [s.name for s in settings]
    reason: Text = Message(
        "{path} sets these variables where an added block cannot override it; change them there: {where}",
        path=file.path,
        where=enumerated(names),
    )
    for setting in settings:
        why = None
        if setting.name:  # the reason has the current file's line numbers if it is the same without a block
            why = context.target.environment.why_unknown(setting.name) or best.environment.why_unknown(setting.name)
        if why is not None:
            return Message("{reason} ({why})", reason=reason, why=why)
    return reason if again or file.text else None


def _own_place(file: EnvFile, best: Draft, place: str) -> str:
    """Return `file:line` in the current file; the place was found in a version with a tentative block."""
    path, _, number = place.rpartition(":")
    if path != file.path or not number.isdigit():
        return place
    line = line_in(file.text or "", best.text, int(number))
    return place if line is None else f"{path}:{line}"


def _change(
    context: Context, file: EnvFile, best: Draft, settings: Sequence[Setting], unchanged: Sequence[Unchanged]
) -> Change:
    note = launchers(file.path, file.kind)
    for row in unchanged:
        note = Message("{seen}; {name}: {reason}", seen=note, name=row.name, reason=row.reason)
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
