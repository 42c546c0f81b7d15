"""Replace distributions of the job's Python without a gap: shared by the installing actions.

The wheels are prepared first, built or downloaded below the run's own directory; what is replaced is saved completely
before the first file changes; afterwards every file must be the wheel's, and the target must import it. Nothing here
starts the interpreter: the plan says what the executor will start.
"""

from __future__ import annotations

import posixpath
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Optional, Sequence

from envtune.context import Context
from envtune.errors import HostError, Missing, NotApplicable, Skipped
from envtune.executor.files import digest
from envtune.messages import Message, Text
from envtune.model import Change, Finding, FixOptions, VersionChange
from envtune.resources.python.distributions import Distribution, interpreter
from envtune.resources.python.site import SitePackages, find_site_packages, refuse_exposed

LISTED = ("RECORD", "METADATA", "INSTALLER")  # any of them shows that a distribution is still the one in the plan


class Installation(NamedTuple):
    """What to replace by what in one directory of the import path."""

    entry: str
    remove: tuple[Distribution, ...]
    requirements: tuple[str, ...]  # what the wheels must contain: requirements or their paths; none: only remove
    names: tuple[str, ...]  # the distributions concerned, normalized
    modules: tuple[str, ...]  # the top-level names they contain
    after: str
    findings: tuple[str, ...]  # check ids; the first one is the change's own
    subject: str
    prepare: tuple[tuple[str, ...], ...] = ()  # pip arguments that put the wheels into {work}/wheels
    wheels: tuple[str, ...] = ()  # where they are afterwards
    environ: Mapping[str, str] = {}
    smoke: str = ""  # a line of Python that verifies that it works in the target
    note: Optional[Text] = None
    other_owners: tuple[Text, ...] = ()
    versions: tuple[VersionChange, ...] = ()
    below_root: tuple[str, ...] = ()  # what else the wheels write, below the root: bin/isympy


Chooser = Callable[[Context, Sequence[Finding], Optional[str]], Iterable[Installation]]


def replacements(
    context: Context, findings: Sequence[Finding], options: FixOptions, choose: Chooser
) -> tuple[Change, ...]:
    """Return one change per directory of the import path that `choose` names; raises Skipped if not applicable."""
    if options.wheels is not None:
        refuse_exposed(context.host, options.wheels, (options.wheels,))
    try:
        return tuple(change(context, wanted) for wanted in choose(context, findings, options.wheels))
    except NotApplicable as verdict:
        raise Skipped(verdict.reason) from None


def binary(wheels: Optional[str], requirement: str) -> tuple[str, ...]:
    """Return the pip arguments that put one ready wheel into {work}/wheels, from the index or the given directory."""
    words = ("download", "--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--dest", "{work}/wheels")
    return (*words, *sources(wheels), requirement)


def sources(wheels: Optional[str]) -> tuple[str, ...]:
    """Return where pip may look: the index its own configuration names, or only the given directory."""
    return () if wheels is None else ("--no-index", "--find-links", wheels)


def change(context: Context, wanted: Installation) -> Change:
    """Return the installation as one change that is applied completely or not at all."""
    place = find_site_packages(context, wanted.entry)
    _refuse_without_record(wanted.remove)
    before = " + ".join(f"{row.name} {row.version}" for row in wanted.remove) or "not installed"
    return Change(
        finding=wanted.findings[0],
        subject=wanted.subject,
        playbook="",
        action="",
        target=place.entry,
        before=before,
        after=wanted.after,
        scope="job",
        operations=(_swap(context, place, wanted),),
        safety="confirm",
        disruption="job",
        root=place.needs_root,
        other_owners=wanted.other_owners + _conda(context, wanted.remove),
        note=wanted.note,
        fixes=wanted.findings[1:],
        versions=wanted.versions,
    )


def _swap(context: Context, place: SitePackages, wanted: Installation) -> dict[str, Any]:
    steps = []
    names = sorted({row.name for row in wanted.remove})
    if names:
        steps.append(place.pip("uninstall", "-y", *names))
    if wanted.requirements:
        own = ["--user"] if place.user else []
        words = ["--no-deps", "--no-cache-dir", "--force-reinstall", *own, "--no-index", "--require-hashes"]
        steps.append(place.pip("install", *words, "--requirement", "{work}/requirements.txt"))
    swap: dict[str, Any] = {
        "op": "swap",
        "root": place.root,
        "touches": touches(context, place, wanted),
        "prepare": [place.pip(*words) for words in wanted.prepare],
        "steps": steps,
        "verify": [place.start("-c", wanted.smoke)] if wanted.smoke else [],
        "holds": _holds(context, place, wanted.remove),
        "env": {**place.variables, **wanted.environ},
        "timeout": 1800,
    }
    if wanted.wheels:
        swap.update(wheels=list(wanted.wheels), site=place.site)
    return swap


def touches(context: Context, place: SitePackages, wanted: Installation) -> list[str]:
    """Return all that the steps may create, change or remove below the root, with leftovers of a stopped pip (`~`)."""
    names: dict[str, None] = dict.fromkeys(wanted.below_root)
    for row in wanted.remove:
        names.update(dict.fromkeys(_recorded(context, place, row)))
    for module in wanted.modules:
        names.update(dict.fromkeys(f"{place.site}/{name}" for name in (module, "~" + module[1:])))
    for name in sorted({*wanted.names, *(row.name for row in wanted.remove)}):
        for pattern in (any_case(name) + "-*.dist-info", any_case(name) + "-*.egg-info", any_case(name) + ".libs"):
            names[f"{place.site}/{pattern}"] = None
            names[f"{place.site}/~{pattern[pattern.index(']') + 1 :]}"] = None
    return _without_children(names)


def any_case(name: str) -> str:
    """Return a shell pattern for the spellings of a distribution: `Pillow_SIMD` and `pillow-simd` are one (PEP 503)."""
    return "".join("[-_.]" if c == "-" else f"[{c.upper()}{c}]" if c.isalpha() else c for c in name)


def _without_children(names: Iterable[str]) -> list[str]:
    plain = {name for name in names if "*" not in name and "[" not in name}
    return sorted(n for n in names if not any(n.startswith(parent + "/") for parent in plain))


def _recorded(context: Context, place: SitePackages, row: Distribution) -> Iterable[str]:
    """Yield the places a distribution's RECORD names: the top of each tree, scripts one by one."""
    try:
        text = context.host.read(row.metadata + "/RECORD")
    except Missing:
        return
    for line in text.splitlines():
        path = line.partition(",")[0].strip('"')
        below = posixpath.normpath(posixpath.join(place.site, path))
        if not path or posixpath.isabs(path) or below.startswith(".."):
            raise Skipped(
                Message(
                    "{metadata}/RECORD lists {path}, outside {root}",
                    metadata=row.metadata,
                    path=path,
                    root=place.root,
                )
            )
        inside = below[len(place.site) + 1 :] if below.startswith(place.site + "/") else ""
        if inside.startswith("__pycache__/"):
            yield f"{place.site}/__pycache__/{inside[12:].split('.')[0]}.*"
        else:
            yield f"{place.site}/{inside.split('/')[0]}" if inside else below


def _holds(context: Context, place: SitePackages, rows: Iterable[Distribution]) -> dict[str, str]:
    """Return what must still exist when the plan is carried out: the RECORDs of what is replaced.

    A recording keeps only parts of these files, so for it only their existence counts.
    """
    found = {}
    for row in rows:
        for name in LISTED:
            path = f"{row.metadata}/{name}"
            try:
                data = context.host.read_bytes(path)
            except HostError:
                continue
            below = posixpath.relpath(path, place.root)
            found[below] = digest(data) if context.host.live else "present"
            break
    return found


def _refuse_without_record(rows: Iterable[Distribution]) -> None:
    for row in rows:
        if not row.metadata.endswith(".dist-info"):
            raise Skipped(
                Message(
                    "{name} {version} was not installed by pip ({metadata}): pip cannot replace it",
                    name=row.name,
                    version=row.version,
                    metadata=row.metadata,
                )
            )


def _conda(context: Context, rows: Iterable[Distribution]) -> tuple[Text, ...]:
    """Name the packages in the list that conda keeps of what it installed."""
    python = interpreter(context)
    if python.kind != "conda":
        return ()
    try:
        names = context.host.listdir(python.prefix + "/conda-meta")
    except HostError:
        return ()
    owned = sorted(n for n in names for row in rows if n.startswith(f"{row.name}-{row.version}-"))
    return tuple(
        Message(
            "conda ({prefix}/conda-meta/{name}): its next update may put its own package back",
            prefix=python.prefix,
            name=name,
        )
        for name in owned
    )
