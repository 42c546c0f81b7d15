"""What the job's Python can import, read from its own site directories without starting it.

Distributions are named by their metadata directories (PEP 376, PEP 427; names compared as in PEP 503); the content of
METADATA is read only for those a check needs. Damage is reported, never skipped.
"""

from __future__ import annotations

import re
from typing import Annotated, Iterable, Mapping, Optional, Union

from envtune.collector.paths import on_path, search_path
from envtune.collector.python.distributions import import_path, normal_name
from envtune.context import Context
from envtune.context.registry import fact, probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined, Unreadable, host_error_text
from envtune.host import Host, exists, is_dir
from envtune.job.target import PythonTarget
from envtune.messages import N_, Message, Text, clauses, enumerated
from envtune.model import Evidence, Fact, Reading
from envtune.records import NamedTuple
from envtune.resources.python.metadata import Distribution as Distribution
from envtune.resources.python.metadata import metadata_file, named_in, parse_finder, parse_metadata, parse_requirements

NONE = "none"  # the value of a fact about something that is not installed


class Problem(NamedTuple):
    """Something damaged in a site directory, with the kind of damage."""

    path: str
    what: Text


class Environment(NamedTuple):
    """Everything on the import path of the job's Python, except the current and the script's directory."""

    python: PythonTarget
    entries: tuple[str, ...]
    names: Mapping[str, frozenset[str]]  # entry -> names in it
    found: Mapping[str, tuple[Distribution, ...]]  # normalized name -> in import order
    problems: tuple[Problem, ...]
    closed: Mapping[str, HostError] = {}  # entries that could not be listed


def environment(context: Context) -> Environment:
    """Return the job's Python as installed on disk, scanned once per run.

    Raises NotApplicable if there is none on PATH, Undetermined if it is unknown which Python it is.
    """
    return context.cached(_scan)


def _scan(context: Context) -> Environment:
    host, python = context.host, interpreter(context)
    variables = context.target.environment.variables or {}
    entries, damaged = import_path(host, variables, host.cwd, python.sites)
    problems = [Problem(path, Message("unreadable: {why}", why=why)) for path, why in damaged]
    names: dict[str, frozenset[str]] = {}
    closed: dict[str, HostError] = {}
    found: dict[str, list[Distribution]] = {}
    for entry in entries:
        try:
            listing = _listing(host, entry)
        except HostError as error:
            closed[entry] = error
            continue
        if listing is None:
            continue
        names[entry] = frozenset(listing)
        for distribution in named_in(entry, listing):
            found.setdefault(distribution.name, []).append(distribution)
        problems += _leftovers(entry, listing)
    return Environment(
        python, tuple(entries), names, {name: tuple(rows) for name, rows in found.items()}, tuple(problems), closed
    )


def interpreter(context: Context) -> PythonTarget:
    """Return the job's Python; raises NotApplicable if none was named and PATH has none."""
    target = context.target
    variables = target.environment.variables
    named = target.options.python is not None or target.options.pid is not None
    if target.python is None and variables is not None and not named:
        host = context.host
        if not any(on_path(host, variables, host.cwd, name) for name in ("python3", "python")):
            path = ":".join(search_path(variables, host.cwd))
            raise NotApplicable(Message("no python3 on PATH"), path)
    return target.interpreter()


def _listing(host: Host, entry: str) -> Optional[tuple[str, ...]]:
    """Return the names in an import path entry; none in an archive (judged by its name), None if it does not exist."""
    try:
        return host.listdir(entry)
    except (Missing, Unreadable):
        if entry.endswith((".egg", ".zip")) and exists(host, entry):
            return ()
        if exists(host, entry) and is_dir(host, entry):
            raise
        return None


def _leftovers(entry: str, listing: Iterable[str]) -> Iterable[Problem]:
    """Yield what an interrupted pip leaves: directories whose first letter is `~` (pip's AdjacentTempDirectory)."""
    for name in listing:
        if name.startswith("~"):
            yield Problem(
                f"{entry}/{name}",
                Message("left behind by an interrupted pip install or uninstall"),
            )
        elif name.endswith(".dist-info") and "-" not in name[:-10]:
            yield Problem(f"{entry}/{name}", Message("its name has no version"))


def installed(context: Context, name: str) -> Optional[Distribution]:
    """Return the distribution of that name which the job's Python sees first, with the version its metadata gives.

    None if it is not installed. Raises Undetermined if its metadata is damaged or one directory has two versions; the
    host's error if a directory that may contain it could not be listed.
    """
    return context.cached(_installed, normal_name(name))


def _installed(context: Context, name: str) -> Optional[Distribution]:
    known = environment(context)
    rows = known.found.get(name, ())
    if not rows:
        for error in known.closed.values():
            raise error
        return None
    first = _described(context.host, rows[0])
    for row in rows[1:]:
        if row.entry != first.entry:
            break
        other = _described(context.host, row)
        if other.version != first.version:
            raise Undetermined(
                Message(
                    "{entry} has {name} {version} and {other_version} at the same time",
                    entry=first.entry,
                    name=name,
                    version=first.version,
                    other_version=other.version,
                ),
                first.entry,
                f"{first.metadata}\n{other.metadata}",
            )
    return first


def every(context: Context, name: str) -> tuple[Distribution, ...]:
    """Return every distribution of that name in import order, as named by their directories."""
    return environment(context).found.get(normal_name(name), ())


def _described(host: Host, row: Distribution) -> Distribution:
    """Return the distribution with the name and version of its metadata file."""
    path = metadata_file(host, row)
    if path is None:  # an archive
        return row
    try:
        fields = parse_metadata(host.read_bytes(path))
    except Missing:
        raise _damaged(row, path, Message("it has no metadata file")) from None
    name, version = fields.get("name", ""), fields.get("version", "")
    if not name or not version:
        lacks = "Name" if not name else "Version"
        raise _damaged(row, path, Message("its metadata has no {lacks}", lacks=lacks))
    if normal_name(name) != row.name:
        raise _damaged(row, path, Message("its metadata names it {name}", name=name))
    return Distribution(row.name, version, row.metadata, row.entry)


def requirements(context: Context, name: str) -> tuple[str, ...]:
    """Return the Requires-Dist lines of the installed distribution, none if it is not installed."""
    row = installed(context, name)
    path = metadata_file(context.host, row) if row is not None else None
    return parse_requirements(context.host.read_bytes(path)) if path is not None else ()


def _damaged(row: Distribution, path: str, what: Text) -> Undetermined:
    return Undetermined(Message("{metadata} is damaged: {what}", metadata=row.metadata, what=what), path)


def locate(context: Context, name: str) -> Optional[str]:
    """Return where `import name` would find it: a package directory or a module file; None if nowhere.

    Like importlib: per entry a package, then an extension module, then a source file; a directory without `__init__` (a
    namespace) only if no entry has more; finally the finders of editable installs.
    """
    return context.cached(_locate, name)


def _locate(context: Context, name: str) -> Optional[str]:
    known = environment(context)
    namespace: Optional[str] = None
    for entry in known.entries:
        if entry in known.closed:
            raise known.closed[entry]
        listing = known.names.get(entry, frozenset())
        if name in listing and is_dir(context.host, f"{entry}/{name}"):
            if _is_package(context.host, f"{entry}/{name}"):
                return f"{entry}/{name}"
            namespace = namespace or f"{entry}/{name}"
        modules = [n for n in listing if n.startswith(name + ".") and n.endswith((".so", ".py", ".pyc"))]
        modules = [n for n in modules if n.endswith(".so") or n in (name + ".py", name + ".pyc")]
        if modules:
            return f"{entry}/{min(modules, key=lambda n: ('.so', '.py', '.pyc').index('.' + n.rpartition('.')[2]))}"
    return namespace or _editable(context.host, known, name)


def _is_package(host: Host, folder: str) -> bool:
    if exists(host, folder + "/__init__.py"):
        return True
    return any(n.startswith("__init__.") and n.endswith((".so", ".pyc")) for n in host.listdir(folder))


def _editable(host: Host, known: Environment, name: str) -> Optional[str]:
    """Return the place that a setuptools editable finder maps `name` to."""
    for entry, listing in known.names.items():
        for finder in sorted(n for n in listing if n.startswith("__editable___") and n.endswith("_finder.py")):
            mapped = parse_finder(host.read(f"{entry}/{finder}")).get(name)
            if mapped is not None:
                return mapped
    return None


def module_version(context: Context, path: str) -> Optional[str]:
    """Return the `__version__ = "..."` of a source file in a wheel; None if there is none."""
    try:
        text = context.host.read(path)
    except Missing:
        return None
    found = re.search(r"^__version__\s*(?::\s*\w+\s*)?=\s*['\"]([^'\"]+)['\"]", text, re.M)
    return found[1] if found else None


def need(context: Context, name: str) -> Distribution:
    """Return the installed distribution; raises NotApplicable naming it if the job's Python does not have it."""
    found = installed(context, name)
    if found is None:
        raise absent(context, name)
    return found


def absent(context: Context, name: str) -> NotApplicable:
    """Return the statement that the job's Python has no such package."""
    python = environment(context).python
    return NotApplicable(
        Message("{name} is not installed in {path}", name=name, path=python.path),
        "; ".join(environment(context).entries) or python.prefix,
    )


@probe("python.damage", formerly="python_damage.found")
def damage(
    context: Context, *, names: Annotated[Iterable[str], N_("Packages whose metadata is checked as well.")]
) -> Iterable[Reading]:
    """Number of broken packages in each site-packages directory of the job's Python."""
    known = environment(context)
    yield from (
        Reading(
            entry,
            None,
            Evidence(entry),
            reason=host_error_text(error),
            needs_privilege=isinstance(error, PermissionError),
        )
        for entry, error in known.closed.items()
    )
    broken: dict[str, list[Text]] = {}
    for problem in known.problems:
        folder, _, name = problem.path.rpartition("/")
        broken.setdefault(folder, []).append(Message("{name}: {what}", name=name, what=problem.what))
    for name in names:
        try:
            installed(context, name)
        except Undetermined as unsettled:
            folder = next(row.entry for row in every(context, name))
            broken.setdefault(folder, []).append(unsettled.reason)
        except HostError:
            continue  # reported above, by its directory
    for entry, listing in known.names.items():
        texts = broken.get(entry, [])
        evidence = Evidence(entry, "\n".join(t.en for t in texts) or f"{len(listing)} entries")
        yield Reading(entry, len(texts), evidence, clauses(texts) if texts else Message("undamaged"))


@fact("python")
def fact_python(context: Context) -> Fact:
    """Path and version (X.Y) of the job's Python."""
    try:
        python = interpreter(context)
    except NotApplicable as verdict:
        return Fact("python", NONE, verdict.source)
    return Fact("python", f"{python.path} ({python.version})", python.real)


@fact("torch")
def fact_torch(context: Context) -> Fact:
    """Version of torch in the job's Python; `none` if torch is not installed."""
    return package_fact(context, "torch", "torch")


@fact("torch_npu")
def fact_torch_npu(context: Context) -> Fact:
    """Version of torch_npu in the job's Python; `none` if torch_npu is not installed."""
    return package_fact(context, "torch_npu", "torch_npu")


def package_fact(context: Context, name: str, module: str) -> Fact:
    """Return the version from the metadata, or from the package's own version.py if the metadata is inconclusive."""
    try:
        found: Union[Distribution, Undetermined, None] = installed(context, name)
    except Undetermined as unsettled:
        found = unsettled
    except NotApplicable as verdict:
        return Fact(name, NONE, verdict.source)
    if isinstance(found, Distribution):
        return Fact(name, found.version, found.metadata)
    place = locate(context, module)
    version = module_version(context, place + "/version.py") if place else None
    if version is not None:
        return Fact(name, version, f"{place}/version.py")
    if isinstance(found, Undetermined):
        raise found
    if place is not None and exists(context.host, place + "/__init__.py"):
        reason = Message("{place} has neither metadata nor a version.py", place=place)
        return Fact(name, None, place, reason)
    return Fact(name, NONE, enumerated(environment(context).entries) or environment(context).python.prefix)
