"""The environment that `envtune run` gives its command: this process's own, with the profile of this host applied."""

from __future__ import annotations

import os
import re
import shlex
from typing import TYPE_CHECKING, Iterator, Mapping, NamedTuple, Optional, Sequence

from envtune.messages import Literal, Message, Text

if TYPE_CHECKING:
    from envtune.context import Context
    from envtune.job.target import JobEnvironment
    from envtune.model import Expectation
    from envtune.resources.environment.profile import Setting

# Set by launchers for each process of a node, counted from 0. Sources: torchrun (torch.distributed.run), mpirun(1) of
# Open MPI, Hydra and Intel MPI (MPI_LOCALRANKID), MVAPICH2, srun(1), PALS (intro_pals(7)), flux-run(1).
LOCAL_RANKS = (
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "SLURM_LOCALID",
    "PALS_LOCAL_RANKID",
    "FLUX_TASK_LOCAL_ID",
)
_PYTHON = re.compile(r"python\d*(\.\d+)?$")


class Applied(NamedTuple):
    """The command's environment, the messages about it, and the context for the preflight checks."""

    variables: Mapping[str, str]
    notes: tuple[Text, ...]
    context: Context


def later_rank(environ: Mapping[str, str]) -> bool:
    """Return whether a launcher started this process as any but the first of its node."""
    return any(environ.get(name, "0").strip() not in ("", "0") for name in LOCAL_RANKS)


def apply_profile(
    argv: Sequence[str], profile: str, keep: Sequence[str], expectations: Mapping[str, Sequence[Expectation]]
) -> Applied:
    """Apply the profile to this process's environment, in memory; change nothing on a host without Ascend components.

    The environment is known even under sudo and ssh: envtune passes it on itself (docs/adr/0008).
    """
    from envtune.context.open import open_context
    from envtune.host import LocalHost
    from envtune.job.target import THIS_SHELL, JobEnvironment, TargetOptions
    from envtune.resources.environment.simulate import with_environment

    host = LocalHost()
    own = JobEnvironment(dict(os.environ), THIS_SHELL)
    options = TargetOptions(python=interpreter(argv, os.environ))
    context = with_environment(open_context(host, options, expectations), own)
    given, notes = child_environment(context, profile, keep)
    return Applied(given.variables or {}, notes, with_environment(context, _of_the_job(context, argv, given)))


def child_environment(context: Context, profile: str, keep: Sequence[str]) -> tuple[JobEnvironment, tuple[Text, ...]]:
    """Return the environment with the profile applied, and a line for each variable that differs or is left alone."""
    from envtune.resources.environment.simulate import environment_after

    before = context.target.environment
    if profile == "none" or context.facts.value("ascend") != "true":
        return before, ()
    settings, left = _settings(context, profile, keep)
    after = environment_after(context, settings)
    changes = _changes(before, after, settings)
    return after, (*changes, *(_left(before.variables or {}, name, reason) for name, reason in left))


def _settings(
    context: Context, profile: str, keep: Sequence[str]
) -> tuple[tuple[Setting, ...], tuple[tuple[str, Text], ...]]:
    """Return what the profile sets, and what it leaves alone: deliberate settings, or what `--keep` names."""
    from envtune.resources.environment.path_settings import advice as path_advice
    from envtune.resources.environment.profile import debug, train
    from envtune.resources.environment.simulate import without_unread

    known = context.target.environment.variables or {}
    advice = debug(context) if profile == "debug" else train(context)
    left = [(row.name, row.reason) for row in advice.unchanged]
    settings: list[Setting] = []
    paths, _ = without_unread(context, path_advice(context))  # CANN001 and CANN002 say what cannot be read
    for one in (*_added(paths, known), *advice.settings):
        if one.name in keep:
            left.append((one.name, Literal("--keep")))
        elif one.needs_consent:
            left.append((one.name, one.reason))
        elif one.name != "MASTER_ADDR" or not any(name in known for name in LOCAL_RANKS):
            settings.append(one)
    return tuple(settings), tuple(left)


def _added(paths: Sequence[Setting], known: Mapping[str, str]) -> Iterator[Setting]:
    """Add to search paths what they lack, and remove another CANN's entries.

    Other cleanup is left to the user's own files (envtune fix): the command, or a library, may be found through an
    entry that should not be there.
    """
    for one in paths:
        if one.script or one.value is None or one.other_install:
            yield one
        elif one.prefixes:
            there = known.get(one.name)
            yield one._replace(value=":".join([*one.prefixes, *([there] if there else [])]))


def _changes(before: JobEnvironment, after: JobEnvironment, settings: Sequence[Setting]) -> Iterator[Text]:
    """Return a line for each variable that differs, and for each that a script sets to an unknown value."""
    old, new = before.variables or {}, after.variables or {}
    named = {one.name: one.reason for one in settings if one.name}
    sourced = {one.script: one.reason for one in settings if one.script}
    for name in sorted({*old, *new}):
        if old.get(name) == new.get(name):
            continue
        reason = named.get(name) or sourced.get(after.places.get(name, "").partition(":")[0])
        yield _change(name, old.get(name), new.get(name), reason or Literal("-"))
    for name in sorted(set(after.unknown) - set(before.unknown)):
        yield _left(old, name, after.unknown[name])


def _left(known: Mapping[str, str], name: str, reason: Text) -> Text:
    shown = f"{name}={_short(known[name])}" if name in known else name
    return Message("{shown} left unchanged: {reason}", shown=shown, reason=reason)


def _change(name: str, old: Optional[str], new: Optional[str], reason: Text) -> Text:
    if new is None:
        was = _short(old or "")
        return Message("{name} not set (was {was}): {reason}", name=name, was=was, reason=reason)
    if old and new.endswith(f":{old}"):
        added = _short(new[: -len(old) - 1])
        return Message("{name}: {added} added at the front: {reason}", name=name, added=added, reason=reason)
    if old is None:
        return Message("{name}={new}: {reason}", name=name, new=_short(new), reason=reason)
    was = _short(old)
    return Message("{name}={new} (was {was}): {reason}", name=name, new=_short(new), was=was, reason=reason)


def _short(value: str) -> str:
    text = value if value.isprintable() else repr(value)
    return text if len(text) <= 120 else text[:57] + "[...]" + text[-57:]


def _of_the_job(context: Context, argv: Sequence[str], given: JobEnvironment) -> JobEnvironment:
    """Return what the job itself gets, read from `env A=1 python` and from a launch script that is the command."""
    from envtune.job.script import text_environment

    line = " ".join(shlex.quote(word) for word in argv)
    read = text_environment(context.host, os.path.join(os.getcwd(), "command line"), line, given)
    return read._replace(source=Message("this shell and the command")) if read != given else given


def interpreter(argv: Sequence[str], environ: Mapping[str, str]) -> Optional[str]:
    """Return the Python that the command line names, or that a script such as torchrun names in its first line."""
    import shutil

    for word in argv:
        if _PYTHON.fullmatch(os.path.basename(word)):
            return shutil.which(word, path=environ.get("PATH"))
    found = shutil.which(argv[0], path=environ.get("PATH"))
    try:
        with open(found or "", "rb") as file:
            first = file.readline(256).decode("utf-8", "replace")
    except OSError:
        return None
    words = first[2:].split() if first.startswith("#!") else []
    return words[0] if words and _PYTHON.fullmatch(os.path.basename(words[0])) else None
