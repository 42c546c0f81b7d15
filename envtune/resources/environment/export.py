"""Variables for the jobs to come: one env file, /etc/profile.d, or a block in a launch script.

A file changes no running process and no shell that is open. What a setting cures is not assumed: the file as it would
be is read again as a job would read it, and the checks are judged on that.
"""

from __future__ import annotations

import posixpath
import re
from typing import Iterable, Iterator, NamedTuple, Optional, Sequence

from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import Skipped
from envtune.host import Host, realpath
from envtune.job.environment import env_file_environment, is_for_a_shell, parse_env_file, shell_environment
from envtune.job.script import text_environment
from envtune.job.target import JobEnvironment
from envtune.messages import Bilingual, Message, Text
from envtune.model import Change, Check, Finding, FixOptions
from envtune.resources.environment.managed_block import Unclosed, docker_lines, merged, split, variants
from envtune.resources.environment.path_settings import advice as path_advice
from envtune.resources.environment.profile import Left, Setting, train
from envtune.resources.environment.render import bash_lines
from envtune.resources.environment.search_paths import HDF5_ENTRIES, SEARCHED
from envtune.resources.environment.simulate import cured, environment_after, values
from envtune.resources.files.change import content, file_operation, needs_root

PROFILE_D = "/etc/profile.d/"
SEARCH_PATHS = {*SEARCHED, *HDF5_ENTRIES}


class Place(NamedTuple):
    """The file that is written: `kind` is script, file (sourced by a shell) or docker (`KEY=VALUE` lines)."""

    path: str
    kind: str
    text: Optional[str]


class Draft(NamedTuple):
    """The file as it would be, what a job would get from it, and which checks that cures."""

    text: str
    environment: JobEnvironment
    cures: tuple[str, ...]


@action("environment.export", formerly="env.export")
def export(context: Context, findings: Sequence[Finding], *, options: FixOptions) -> Iterable[Change]:
    """Write the variables that cure the findings where the job will read them."""
    checks = {finding.id: finding.check for finding in findings}
    settings, left = _settings(context, tuple(checks))
    if not settings:
        raise Skipped(_nothing(findings, left))
    place = _place(context, options)
    try:
        best = _best(context, place, settings, tuple(checks.values()))
    except Unclosed as mark:
        words = f"{place.path}: the block that begins at {mark} has no end mark; mend it by hand"
        raise Skipped(Bilingual(words, f"{place.path}：{mark} 开始的 envtune 块缺少结束标记，请手动修复")) from None
    if best.text == (place.text or ""):
        raise Skipped(_unread(place, context))
    if not best.cures:
        raise Skipped(_overridden(place, best, settings))
    return [_change(context, place, best, settings, left)]


def _nothing(findings: Sequence[Finding], left: Sequence[Left]) -> Text:
    """Why no variable is set: it is left on purpose, or a person has to choose it."""
    if left:
        en, zh = (
            "; ".join(f"{one.name}: {one.reason.en}" for one in left),
            "；".join(f"{one.name}：{one.reason.zh}" for one in left),
        )
        return Bilingual(en, zh)
    remedy = findings[0].check.remedy or Message("see the check")
    return Message("which value is right cannot be told here. {remedy}", remedy=remedy)


def _settings(context: Context, ids: Sequence[str]) -> tuple[tuple[Setting, ...], tuple[Left, ...]]:
    """What cures these findings, and what of the profile is left on purpose."""
    found = train(context)
    every = [s for s in (*path_advice(context), *found.settings) if set(s.checks) & set(ids)]
    frozen = {s.name: s for s in every if _would_freeze(context, s)}
    left = (*found.left, *(Left(name, str(s.value), _not_frozen(context, name)) for name, s in frozen.items()))
    return tuple(s for s in every if s.name not in frozen), left


def _not_frozen(context: Context, name: str) -> Text:
    place = context.target.environment.places.get(name)
    if place is not None:
        return Message("{place} puts it together with what the shell has: correct it there", place=place)
    return Message(
        'it comes from the shell that starts the job: correct it where that shell sets it; here: eval "$(envtune env)"'
    )


def _would_freeze(context: Context, setting: Setting) -> bool:
    """Whether a file would hold this shell's whole search path: every job that reads it would get that one."""
    if setting.value is None or setting.prefixes or setting.name not in SEARCH_PATHS:
        return False
    inherited = context.host.environ.get(setting.name, "")
    own = setting.name in context.target.environment.places
    whole = (context.target.environment.variables or {}).get(setting.name, "")
    return not own or bool(inherited and inherited in whole)


# ---------------------------------------------------------------------- where


def _place(context: Context, options: FixOptions) -> Place:
    host = context.host
    script = context.target.options.script
    path = script or options.env_file or default_file(host)
    try:
        path = realpath(host, path)
    except FileNotFoundError:
        path = posixpath.normpath(path)
    data = content(host, path)
    text = None if data is None else data.decode("utf-8", "surrogateescape")
    if script is not None:
        return Place(path, "script", text)
    docker = bool(text) and not is_for_a_shell(text or "") and bool(parse_env_file(text or "", path)[0])
    return Place(path, "docker" if docker else "file", text)


def default_file(host: Host) -> str:
    """$XDG_CONFIG_HOME/envtune/env.sh, or ~/.config/envtune/env.sh."""
    config = host.environ.get("XDG_CONFIG_HOME") or posixpath.join(host.environ.get("HOME") or "/root", ".config")
    return posixpath.join(config, "envtune", "env.sh")


def launchers(path: str, kind: str) -> Text:
    """Which launchers see what is in the file."""
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


def _best(context: Context, place: Place, settings: Sequence[Setting], checks: Sequence[Check]) -> Draft:
    """The way to put the settings into the file that cures the most; the first of equals."""
    best: Optional[Draft] = None
    for text in _texts(context, place, settings):
        environment = _read_again(context, place, text)
        draft = Draft(text, environment, cured(context, checks, environment))
        if best is None or len(draft.cures) > len(best.cures):
            best = draft
        if len(best.cures) == len(checks):
            break
    if best is None:
        words = f"{place.path} cannot be followed; put the variables in by hand (envtune env --script {place.path})"
        raise Skipped(Bilingual(words, f"{place.path} 无法解析；请手动加入变量（envtune env --script {place.path}）"))
    return best


def _texts(context: Context, place: Place, settings: Sequence[Setting]) -> Iterator[str]:
    there = place.text or ""
    inside = split(there)[1] or ""
    lang = "zh" if _locale(context.host).startswith("zh") else "en"
    if place.kind == "docker":
        single = values(settings, environment_after(context, settings))
        own = [s for s in single if s.value is not None and "\n" not in s.value]
        yield from variants(there, merged(inside, own, lang, docker_lines), False)
    else:
        yield from variants(there, merged(inside, settings, lang, bash_lines), place.kind == "script")


def _locale(host: Host) -> str:
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    return next((host.environ[name].lower() for name in names if host.environ.get(name)), "")


def _read_again(context: Context, place: Place, text: str) -> JobEnvironment:
    """What a job gets if the file holds `text`: as job_environment.py reads it."""
    host, given = context.host, context.target.options
    under = shell_environment(host)
    if place.kind == "script":
        if given.env_file is not None:
            named = content(host, given.env_file)
            under = env_file_environment(host, given.env_file, (named or b"").decode("utf-8", "replace"), under)
        return text_environment(host, place.path, text, under)
    return env_file_environment(host, place.path, text, under)


def _unread(place: Place, context: Context) -> Text:
    if context.target.options.named:
        words = f"{place.path} holds it already, and something sets the variables again behind it"
        return Bilingual(words, f"{place.path} 中已有这些设置，但其后又被改回")
    words = f"{place.path} holds it already; this shell has not sourced it: . {place.path}"
    return Bilingual(words, f"{place.path} 中已有这些设置；当前 shell 尚未 source：. {place.path}")


def _overridden(place: Place, best: Draft, settings: Sequence[Setting]) -> Text:
    """Where the variables are set again behind our block."""
    again = {best.environment.place(s.name): s.name for s in settings if s.name in best.environment.places}
    where = ", ".join(f"{name} ({at})" for at, name in again.items()) or ", ".join(s.name for s in settings)
    untold = [why for s in settings for why in [best.environment.untold_reason(s.name)] if s.name and why is not None]
    en = f"{place.path} sets them itself where no block can undo it; change it there: {where}"
    zh = f"{place.path} 自行设置了这些变量，追加的块无法覆盖；请在该处修改：{where}"
    if untold:
        en, zh = f"{en} ({untold[0].en})", f"{zh}（{untold[0].zh}）"
    return Bilingual(en, zh)


def _change(context: Context, place: Place, best: Draft, settings: Sequence[Setting], left: Sequence[Left]) -> Change:
    seen = launchers(place.path, place.kind)
    for one in left:
        seen = Message("{seen}; {name} {reason}", seen=seen, name=one.name, reason=one.reason)
    return Change(
        finding=best.cures[0],
        subject=", ".join(dict.fromkeys(s.name or s.script for s in settings)),
        playbook="",
        action="environment.export",
        target=place.path,
        before=_printable(place.text or ""),
        after=_printable(best.text),
        view="job",
        operations=(file_operation(context.host, place.path, best.text),),
        safety="confirm" if any(s.grave for s in settings) else "safe",
        root=needs_root(context.host, place.path),
        note=seen,
        cures=best.cures[1:],
        verify={"script" if place.kind == "script" else "env_file": place.path},
    )


def _printable(text: str) -> str:
    return re.sub("[\udc80-\udcff]", "\ufffd", text)
