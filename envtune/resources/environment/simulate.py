"""What a job would get with the settings, and which failing checks they would fix: judged, never assumed.

The judging function is passed in (`Judge`): a check is judged in the future environment in the same way as before.
"""

from __future__ import annotations

from typing import Callable, Iterable, Mapping, Sequence

from envtune.collector.sources.cann import INSTALL_VARIABLES
from envtune.context import Context
from envtune.errors import HostError, host_error_text
from envtune.job.script import script_environment
from envtune.job.target import JobEnvironment, Target
from envtune.messages import Message, Text
from envtune.model import Check, Finding, Outcome
from envtune.resources.environment.profile import Setting
from envtune.resources.environment.search_paths import LISTS

Judge = Callable[[Check, Context], Iterable[Finding]]
Subjects = Mapping[str, frozenset[str]]  # id of a check -> the subjects it fails on; empty if it does not fail
_BAD = (Outcome.FAIL, Outcome.UNKNOWN, Outcome.ERROR)  # unknown does not count as fixed
# Facts that follow from the job's variables; the others are the host's and need not be read again.
_FACTS_OF_THE_JOB = ("python", "torch", "torch_npu", "cann", "cann_generation", "ascend")


def environment_after(context: Context, settings: Iterable[Setting]) -> JobEnvironment:
    """Return the job's environment after applying the settings, one after the other."""
    environment = context.target.environment
    if environment.variables is None:  # judged by the settings alone
        environment = JobEnvironment({}, environment.source)
    for setting in settings:
        if setting.script:
            environment = _after_script(context, setting.script, environment)
            continue
        known = dict(environment.variables or {})
        unknown = {name: why for name, why in environment.unknown.items() if name != setting.name}
        unset = environment.unset - {setting.name}
        known.pop(setting.name, None)
        if setting.value is not None:
            known[setting.name] = setting.value
        else:
            unset = unset | {setting.name}
        environment = environment._replace(variables=known, unknown=unknown, unset=unset)
    return environment


def _after_script(context: Context, script: str, before: JobEnvironment) -> JobEnvironment:
    """Return the environment after a script; one that cannot be read may change any variable."""
    after = script_environment(context.host, script, before)
    if after.variables is not None:
        return after
    return JobEnvironment({}, before.source, unknown_by_default=after.reason)


def without_unread(context: Context, settings: Sequence[Setting]) -> tuple[tuple[Setting, ...], tuple[Text, ...]]:
    """Return the settings without scripts that cannot be read, and a note for each of these.

    The variables that are unset before such a script stay, too: whether it sets them again is unknown.
    """
    unread = unread_scripts(context, settings)
    if not unread:
        return tuple(settings), ()
    left = [s for s in settings if s.script not in unread and (s.value is not None or s.name not in INSTALL_VARIABLES)]
    notes = (Message("{note}; CANN's variables are left as they are", note=note) for note in unread.values())
    return tuple(left), tuple(notes)


def unread_scripts(context: Context, settings: Iterable[Setting]) -> Mapping[str, Text]:
    """Return the scripts among the settings that cannot be read (a snapshot need not hold them), each with a note."""
    found: dict[str, Text] = {}
    for setting in settings:
        if setting.script:
            try:
                context.host.read_bytes(setting.script)
            except HostError as error:
                reason = host_error_text(error)
                found[setting.script] = Message("{reason}; what it sets is unknown", reason=reason)
    return found


def with_environment(context: Context, environment: JobEnvironment) -> Context:
    """Return the context with another environment: the same host and interpreter."""
    old = context.target
    facts = {name: fact for name, fact in context.facts.read().items() if name not in _FACTS_OF_THE_JOB}
    target = Target(old.options, old.python, old.python_reason, environment)
    return Context(context.host, target, facts, context.expectations)


def fixed_checks(
    context: Context, checks: Iterable[Check], environment: JobEnvironment, judge: Judge
) -> tuple[str, ...]:
    """Return the ids of those failed checks that would not fail in that environment."""
    after = _bad_subjects(with_environment(context, environment), checks, judge)
    return tuple(id_ for id_, subjects in after.items() if not subjects)


def attribute(
    context: Context, settings: Sequence[Setting], checks: Sequence[Check], judge: Judge
) -> tuple[Setting, ...]:
    """Return the settings, each with the ids of the failed checks that it helps to fix.

    A setting helps if fewer subjects fail with it alone, or, if no single setting helps, if more fail without it than
    with all of them.
    """
    before = _bad_subjects(context, checks, judge)
    helped: list[set[str]] = []
    for setting in settings:
        alone = _bad_subjects(with_environment(context, environment_after(context, [setting])), checks, judge)
        helped.append({id_ for id_ in before if alone[id_] < before[id_]})
    rest = [check for check in checks if not any(check.id in ids for ids in helped)]
    if rest:
        _attribute_together(context, settings, rest, judge, helped)
    order = [check.id for check in checks]
    return tuple(setting._replace(checks=tuple(sorted(ids, key=order.index))) for setting, ids in zip(settings, helped))


def _attribute_together(
    context: Context, settings: Sequence[Setting], checks: Sequence[Check], judge: Judge, helped: Sequence[set[str]]
) -> None:
    """Add to `helped` the checks that only several settings together fix."""

    def subjects(chosen: Sequence[Setting]) -> Subjects:
        return _bad_subjects(with_environment(context, environment_after(context, chosen)), checks, judge)

    before, together = _bad_subjects(context, checks, judge), subjects(settings)
    if all(together[check.id] >= before[check.id] for check in checks):
        return
    for number, ids in enumerate(helped):
        without = subjects([*settings[:number], *settings[number + 1 :]])
        ids.update(id_ for id_ in together if together[id_] < without[id_])


def _bad_subjects(context: Context, checks: Iterable[Check], judge: Judge) -> Subjects:
    # Whether a check applies has been judged before; variables do not change it.
    return {
        check.id: frozenset(
            subject
            for finding in judge(check._replace(applies={}), context)
            if finding.outcome in _BAD
            for subject in finding.subject.split(", ")
        )
        for check in checks
    }


def values(settings: Sequence[Setting], before: JobEnvironment, after: JobEnvironment) -> tuple[Setting, ...]:
    """Return the settings one by one, for forms that cannot source a script: each variable once, with its final value.

    `before` and `after` are the job's environment without and with all of them.
    """
    single: dict[str, Setting] = {}
    for setting in settings:
        for one in [setting] if not setting.script else _of_the_script(setting, after):
            single.pop(one.name, None)
            single[one.name] = _in_the_end(one, before, after)
    return tuple(single.values())


def _of_the_script(setting: Setting, after: JobEnvironment) -> list[Setting]:
    """Return what a script would set here."""
    known = after.variables or {}
    names = [name for name in sorted(known) if after.places.get(name, "").partition(":")[0] == setting.script]
    return [setting._replace(name=name, value=known[name], script="", unless=(), tidied=()) for name in names]


def _in_the_end(setting: Setting, before: JobEnvironment, after: JobEnvironment) -> Setting:
    known = after.variables or {}
    value = setting.value if after.why_unknown(setting.name) is not None else known.get(setting.name)
    if value is None or not is_search_path(setting.name):
        return setting._replace(value=value)
    entries = [entry for entry in value.split(":") if entry]
    old = [entry for entry in (before.variables or {}).get(setting.name, "").split(":") if entry]
    front = entries[: len(entries) - len(old)]
    prefixes = tuple(front) if [*front, *old] == entries else ()
    return setting._replace(value=":".join(entries), prefixes=prefixes)


def is_search_path(name: str) -> bool:
    """Return whether an empty entry of the variable means the current directory; in MANPATH it means the defaults."""
    return name.endswith("PATH") and name not in ("MANPATH", "INFOPATH")


def repeatable(context: Context, settings: Sequence[Setting]) -> tuple[Setting, ...]:
    """Return the settings with what makes sourcing a script idempotent: see `Setting.unless`, `tidied`."""
    found: list[Setting] = []
    settings = _whole_paths_last(context, settings)
    for number, setting in enumerate(settings):
        if setting.script:
            before = environment_after(context, settings[:number]).variables or {}
            after = environment_after(context, settings[: number + 1]).variables or {}
            setting = setting._replace(unless=_marks(before, after), tidied=_untidy(before, after))
        found.append(setting)
    return tuple(found)


def _whole_paths_last(context: Context, settings: Sequence[Setting]) -> Sequence[Setting]:
    """Return the settings with each search path that is set as a whole moved after the scripts, with its final value.

    In front of them it would take out, the second time, what the script then does not put in again. A script that
    cannot be read is sourced every time, and what it adds is unknown: the path stays in front of it.
    """
    if unread_scripts(context, settings):
        return settings
    whole = [s for s in settings if s.name in LISTS and s.value is not None and not s.prefixes]
    if not whole or not any(setting.script for setting in settings):
        return settings
    before, after = context.target.environment, environment_after(context, settings)
    last = [_in_the_end(setting, before, after)._replace(prefixes=()) for setting in whole]
    return [*(setting for setting in settings if setting not in whole), *last]


def _marks(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return (variable, entry) of the first entry that a script adds to each search path; else what it sets."""
    lists, single = [], []
    for name in sorted(after):
        old, new = before.get(name, ""), after[name]
        added = [entry for entry in new.split(":") if entry and entry not in old.split(":")]
        if added and name in LISTS:
            lists.append((name, added[0]))
        elif old != new and ":" not in new:
            single.append((name, new))
    return tuple(lists or single)


def _untidy(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return the search paths that a script leaves with an empty entry (`X=/new:$X` where X is not set)."""
    return tuple(n for n in sorted(after) if is_search_path(n) and after[n] != before.get(n) and _has_gap(after[n]))


def _has_gap(value: str) -> bool:
    return "" in value.split(":")
