"""What the job's Python can import, told from its own site directories without starting it.

Distributions are named by their metadata directories (PEP 376, PEP 427; names compared as in PEP 503); the content of
METADATA is read only for those a check asks for. Damage is a named problem, never skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterable, Mapping, Optional, Union

from envtune import collector
from envtune.errors import HostError, Missing, NotApplicable, Undetermined, Unreadable
from envtune.host import Host, exists, is_dir
from envtune.model import Evidence, Fact, Reading, Text
from envtune.resources import Scene, probe
from envtune.target import PythonTarget

NONE = "none"  # the value of a fact about something that is not installed


@dataclass(frozen=True)
class Distribution:
    """One installed distribution. `name` is normalised; `metadata` the path of its dist-info, egg-info or egg."""

    name: str
    version: str
    metadata: str
    entry: str  # the import path entry that holds it


@dataclass(frozen=True)
class Problem:
    """Something in a site directory that is damaged, and what."""

    path: str
    what: Text


@dataclass(frozen=True)
class Environment:
    """Everything on the import path of the job's Python, the current and the script's directory left out."""

    python: PythonTarget
    entries: tuple[str, ...]
    names: Mapping[str, frozenset[str]]  # entry -> what lies in it
    found: Mapping[str, tuple[Distribution, ...]]  # normalised name -> in import order
    problems: tuple[Problem, ...]
    closed: Mapping[str, HostError] = field(default_factory=dict)  # entries that could not be listed


def environment(scene: Scene) -> Environment:
    """The job's Python as it lies on disk, scanned once per run; Undetermined when it is not known which Python."""
    return scene.once(_scan)


def _scan(scene: Scene) -> Environment:
    host, python = scene.host, scene.target.interpreter()
    variables = scene.target.environment.variables or {}
    entries, damaged = collector.import_path(host, variables, host.cwd, python.sites)
    problems = [Problem(path, Text(f"unreadable: {why}", f"无法读取：{why}")) for path, why in damaged]
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
        for distribution in _named_in(entry, listing):
            found.setdefault(distribution.name, []).append(distribution)
        problems += _leftovers(entry, listing)
    return Environment(
        python, tuple(entries), names, {name: tuple(rows) for name, rows in found.items()}, tuple(problems), closed
    )


def _listing(host: Host, entry: str) -> Optional[tuple[str, ...]]:
    """The names in an import path entry; none in an archive (known by its own name), None when it is not there."""
    try:
        return host.listdir(entry)
    except (Missing, Unreadable):
        if entry.endswith((".egg", ".zip")) and exists(host, entry):
            return ()
        if exists(host, entry) and is_dir(host, entry):
            raise
        return None


def _named_in(entry: str, listing: Iterable[str]) -> Iterable[Distribution]:
    """The distributions an import path entry holds; an egg on the path is one itself."""
    own = entry.rpartition("/")[2]
    if own.endswith(".egg"):
        egg = collector.distribution_of(own)
        if egg is not None:
            yield Distribution(egg[0], egg[1], entry + "/EGG-INFO", entry)
    for name in listing:
        parsed = collector.distribution_of(name) if not name.startswith("~") else None
        if parsed is not None and not name.endswith(".egg"):
            yield Distribution(parsed[0], parsed[1], f"{entry}/{name}", entry)


def _leftovers(entry: str, listing: Iterable[str]) -> Iterable[Problem]:
    """What an interrupted pip leaves: directories whose first letter is `~` (pip's AdjacentTempDirectory)."""
    for name in listing:
        if name.startswith("~"):
            yield Problem(
                f"{entry}/{name}",
                Text("left behind by an interrupted pip install or uninstall", "pip 安装或卸载中断后遗留的目录"),
            )
        elif name.endswith(".dist-info") and "-" not in name[: -len(".dist-info")]:
            yield Problem(f"{entry}/{name}", Text("its name has no version", "目录名中没有版本号"))


def installed(scene: Scene, name: str) -> Optional[Distribution]:
    """The distribution of that name which the job's Python sees first, with the version its metadata gives.

    None when it is not installed. Undetermined when its metadata is damaged or when one directory holds two versions;
    the host's error when a directory that may hold it could not be listed.
    """
    return scene.once(_installed, collector.normal_name(name))


def _installed(scene: Scene, name: str) -> Optional[Distribution]:
    known = environment(scene)
    rows = known.found.get(name, ())
    if not rows:
        for error in known.closed.values():
            raise error
        return None
    first = _described(scene.host, rows[0])
    for row in rows[1:]:
        if row.entry != first.entry:
            break
        other = _described(scene.host, row)
        if other.version != first.version:
            raise Undetermined(
                Text(
                    f"{first.entry} holds {name} {first.version} and {other.version} at once",
                    f"{first.entry} 中同时存在 {name} {first.version} 和 {other.version}",
                ),
                first.entry,
                f"{first.metadata}\n{other.metadata}",
            )
    return first


def every(scene: Scene, name: str) -> tuple[Distribution, ...]:
    """Every distribution of that name in import order, as their directories are called."""
    return environment(scene).found.get(collector.normal_name(name), ())


def _described(host: Host, row: Distribution) -> Distribution:
    """The distribution with the name and version of its metadata file."""
    path = metadata_file(host, row)
    if path is None:  # an archive
        return row
    try:
        fields = parse_metadata(host.read_bytes(path))
    except Missing:
        raise _damaged(row, path, Text("it has no metadata file", "缺少元数据文件")) from None
    name, version = fields.get("name", ""), fields.get("version", "")
    if not name or not version:
        lacks = "Name" if not name else "Version"
        raise _damaged(row, path, Text(f"its metadata has no {lacks}", f"元数据中没有 {lacks}"))
    if collector.normal_name(name) != row.name:
        raise _damaged(row, path, Text(f"its metadata says it is {name}", f"元数据中的名称为 {name}"))
    return Distribution(row.name, version, row.metadata, row.entry)


def metadata_file(host: Host, row: Distribution) -> Optional[str]:
    """The file with Name and Version; None for a zipped egg."""
    path = row.metadata
    if path.endswith(".dist-info"):
        return path + "/METADATA"
    if path.endswith("/EGG-INFO"):
        return path + "/PKG-INFO" if is_dir(host, row.entry) else None
    if path.endswith(".egg-link"):
        folder = host.read(path).split("\n", 1)[0].strip()
        for name in host.listdir(folder):
            parsed = collector.distribution_of(name)
            if parsed is not None and parsed[0] == row.name:
                return f"{folder}/{name}/PKG-INFO"
        return f"{folder}/{row.name.replace('-', '_')}.egg-info/PKG-INFO"
    return path + "/PKG-INFO" if is_dir(host, path) else path


def parse_metadata(data: bytes) -> Mapping[str, str]:
    """The header fields of METADATA or PKG-INFO, keys in lower case; only the first of each.

    Old packages have an author in Latin-1 there, so a byte that is no UTF-8 spoils its own field and no other.
    """
    fields: dict[str, str] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        if not line.strip():
            break  # the description follows
        key, mark, value = line.partition(":")
        if mark and not line[0].isspace():
            fields.setdefault(key.strip().lower(), value.strip())
    return fields


def _damaged(row: Distribution, path: str, what: Text) -> Undetermined:
    return Undetermined(Text(f"{row.metadata} is damaged: {what.en}", f"{row.metadata} 已损坏：{what.zh}"), path)


def locate(scene: Scene, name: str) -> Optional[str]:
    """Where `import name` would find it: a package directory or a module file; None when nowhere.

    Like importlib: per entry a package, then an extension module, then a source file; a directory without `__init__`
    (a namespace) only when no entry has more; last the finders of editable installs.
    """
    return scene.once(_locate, name)


def _locate(scene: Scene, name: str) -> Optional[str]:
    known = environment(scene)
    namespace: Optional[str] = None
    for entry in known.entries:
        if entry in known.closed:
            raise known.closed[entry]
        listing = known.names.get(entry, frozenset())
        if name in listing and is_dir(scene.host, f"{entry}/{name}"):
            if _is_package(scene.host, f"{entry}/{name}"):
                return f"{entry}/{name}"
            namespace = namespace or f"{entry}/{name}"
        modules = [n for n in listing if n.startswith(name + ".") and n.endswith((".so", ".py", ".pyc"))]
        modules = [n for n in modules if n.endswith(".so") or n in (name + ".py", name + ".pyc")]
        if modules:
            return f"{entry}/{min(modules, key=lambda n: ('.so', '.py', '.pyc').index('.' + n.rpartition('.')[2]))}"
    return namespace or _editable(scene.host, known, name)


def _is_package(host: Host, folder: str) -> bool:
    if exists(host, folder + "/__init__.py"):
        return True
    return any(n.startswith("__init__.") and n.endswith((".so", ".pyc")) for n in host.listdir(folder))


def _editable(host: Host, known: Environment, name: str) -> Optional[str]:
    """The place that a setuptools editable finder maps `name` to."""
    for entry, listing in known.names.items():
        for finder in sorted(n for n in listing if re.fullmatch(r"__editable___.*_finder\.py", n)):
            mapped = parse_finder(host.read(f"{entry}/{finder}")).get(name)
            if mapped is not None:
                return mapped
    return None


def parse_finder(text: str) -> Mapping[str, str]:
    """The MAPPING of a setuptools editable finder: top-level name -> path; empty when it has none."""
    import ast

    found = re.search(r"^MAPPING(?:\s*:[^=\n]+)?\s*=\s*(\{.*?\})", text, re.M | re.S)
    try:
        mapping = ast.literal_eval(found[1]) if found else {}
    except (ValueError, SyntaxError):
        return {}
    return {str(key): str(value) for key, value in mapping.items()} if isinstance(mapping, dict) else {}


def module_version(scene: Scene, path: str) -> Optional[str]:
    """The `__version__ = "..."` of a source file that a wheel writes; None when it has none or is not there."""
    try:
        text = scene.host.read(path)
    except Missing:
        return None
    found = re.search(r"^__version__\s*(?::\s*\w+\s*)?=\s*['\"]([^'\"]+)['\"]", text, re.M)
    return found[1] if found else None


def need(scene: Scene, name: str) -> Distribution:
    """The installed distribution; NotApplicable naming it when the job's Python has none."""
    found = installed(scene, name)
    if found is None:
        raise absent(scene, name)
    return found


def absent(scene: Scene, name: str) -> NotApplicable:
    """The statement that the job's Python has no such package."""
    python = environment(scene).python
    return NotApplicable(
        Text(f"{name} is {NONE} in {python.path}", f"{python.path} 中未安装 {name}（{NONE}）"),
        "; ".join(environment(scene).entries) or python.prefix,
    )


def fact_python(scene: Scene) -> Fact:
    """Path and X.Y version of the job's Python."""
    python = scene.target.interpreter()
    return Fact("python", f"{python.path} ({python.version})", python.real)


def fact_torch(scene: Scene) -> Fact:
    """Version of the job's torch, `none` without one."""
    return package_fact(scene, "torch", "torch")


def fact_torch_npu(scene: Scene) -> Fact:
    """Version of the job's torch_npu, `none` without one."""
    return package_fact(scene, "torch_npu", "torch_npu")


def package_fact(scene: Scene, name: str, module: str) -> Fact:
    """Version by metadata; by the package's own version.py where the metadata does not settle it."""
    try:
        found: Union[Distribution, Undetermined, None] = installed(scene, name)
    except Undetermined as unsettled:
        found = unsettled
    if isinstance(found, Distribution):
        return Fact(name, found.version, found.metadata)
    place = locate(scene, module)
    version = module_version(scene, place + "/version.py") if place else None
    if version is not None:
        return Fact(name, version, f"{place}/version.py")
    if isinstance(found, Undetermined):
        raise found
    if place is not None and exists(scene.host, place + "/__init__.py"):
        reason = Text(f"{place} has neither metadata nor a version.py", f"{place} 既没有元数据也没有 version.py")
        return Fact(name, None, place, reason)
    return Fact(name, NONE, ", ".join(environment(scene).entries) or environment(scene).python.prefix)


@probe("python_env.damage")
def damage(scene: Scene, *, names: Iterable[str]) -> Iterable[Reading]:
    """Per site directory of the job's Python what is damaged; the metadata of `names` is read as well."""
    known = environment(scene)
    yield from (
        Reading(entry, None, Evidence(entry), reason=_why(error), right=_right(error))
        for entry, error in known.closed.items()
    )
    broken: dict[str, list[Text]] = {}
    for problem in known.problems:
        place = problem.path.rpartition("/")
        broken.setdefault(place[0], []).append(Text(f"{place[2]}: {problem.what.en}", f"{place[2]}：{problem.what.zh}"))
    for name in names:
        try:
            installed(scene, name)
        except Undetermined as unsettled:
            folder = next(row.entry for row in every(scene, name))
            broken.setdefault(folder, []).append(unsettled.reason)
        except HostError:
            continue  # reported above, by its directory
    for entry, listing in known.names.items():
        texts = broken.get(entry, [])
        shown = Text("; ".join(t.en for t in texts), "；".join(t.zh for t in texts)) if texts else None
        evidence = Evidence(entry, "\n".join(t.en for t in texts) or f"{len(listing)} entries")
        yield Reading(entry, len(texts), evidence, shown=shown or Text("undamaged", "完好"))


def _why(error: HostError) -> Text:
    from envtune.facts import host_error_text

    return host_error_text(error)


def _right(error: HostError) -> bool:
    return isinstance(error, PermissionError)
