"""Which Pillow to install in the job's Python: pillow-simd if the CPU has SSE4.1 or AVX2, else native pillow.

Every release of pillow-simd is named after the Pillow it is based on (9.5.0.post2), so the chosen one is as close as
possible to what the job's code expects. Sources: porting guide 003:1431-1454; releases: PyPI's list for pillow-simd;
Pythons: Pillow's installation page, "Python support".
"""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Iterable, Iterator, NamedTuple, Optional, Sequence

from envtune.collector.paths import on_path
from envtune.collector.python.distributions import normal_name
from envtune.context import Context
from envtune.context.registry import action
from envtune.errors import HostError, Skipped, Undetermined
from envtune.messages import N_, Message, Text, clauses, enumerated
from envtune.model import Change, Finding, FixOptions, VersionChange
from envtune.ranges import checked_int
from envtune.resources.images.build_requirements import header_folders
from envtune.resources.images.pillow import (
    NATIVE,
    RELEASES,
    SIMD,
    Imported,
    best_variant,
    cpu_flags,
    fits,
    imported_pillow,
    no_release,
)
from envtune.resources.python.distributions import environment, every, interpreter, locate
from envtune.resources.python.install import Installation, binary, replacements, sources
from envtune.resources.python.metadata import metadata_file
from envtune.resources.python.site import is_own, main_entry, user_site

# Runs the vector code, which an import alone does not: on a CPU without it the process crashes here, not in the job.
SMOKE = (
    "from PIL import Image; "
    "small = Image.new('RGB', (97, 61), (9, 8, 7)).resize((31, 17), Image.BICUBIC); "
    "assert small.size == (31, 17) and small.getpixel((5, 5)) == (9, 8, 7)"
)


class Source(NamedTuple):
    """A file in the directory of wheels: a wheel that fits the interpreter, or the sources."""

    path: str
    version: str
    wheel: bool


@action("images.install_pillow", formerly="python.install", formerly_with={"what": "pillow"})
def install_pillow(
    context: Context,
    findings: Sequence[Finding],
    *,
    build_checks: Annotated[Sequence[str], N_("Checks that must pass before pillow-simd is built from source.")] = (),
    options: FixOptions,
) -> Iterable[Change]:
    """Replace the Pillow that the job imports by the build that fits the CPU.

    `build_checks` are the checks for build requirements; they are named if something is missing.
    """
    return replacements(context, findings, options, partial(choose, build_checks=build_checks))


def choose(
    context: Context, findings: Sequence[Finding], wheels: Optional[str], build_checks: Sequence[str] = ()
) -> Iterable[Installation]:
    """Return the one installation that fixes the findings."""
    found = imported_pillow(context)
    if not found.rows:
        raise Skipped(Message("{path} was not installed by pip", path=found.path))
    place = locate(context, "PIL")
    entry = place.rpartition("/")[0] if place else found.rows[0].entry
    if not any(row.entry == entry for row in found.rows):
        entry = found.rows[0].entry
    rows = tuple(row for row in found.rows if row.entry == entry)
    ids = tuple(dict.fromkeys(f.id for f in findings))
    draft = Installation(entry, rows, (), (NATIVE, SIMD), ("PIL",), "", ids, "PIL", smoke=SMOKE)
    draft = _for_this_user(context, draft)
    variant = _variant(context)
    if variant is None:
        return [_native(draft, wheels)]
    draft = _simd(context, found, draft, variant, wheels)
    return [draft._replace(note=_note(context, draft, build_checks))]


def _variant(context: Context) -> Optional[str]:
    if context.facts.value("arch") != "x86_64":
        return None
    return best_variant(cpu_flags(context.host))


def _for_this_user(context: Context, draft: Installation) -> Installation:
    """Choose a directory that is imported earlier if that of the draft belongs to another user or the base."""
    python, host = interpreter(context), context.host
    if len({row.name for row in draft.remove}) > 1:
        return draft
    if python.kind == "venv" and not is_own(python, draft.entry) and draft.entry in python.sites:
        words = Message(
            "{entry} keeps its pillow; the virtual environment gets its own, which is imported first", entry=draft.entry
        )
        return draft._replace(entry=main_entry(context), remove=(), note=words)
    own = user_site(context)
    if python.kind == "system" and own and host.euid != 0 and host.stat(draft.entry).uid == 0:
        words = Message("{entry} belongs to root: this installs for the current user only (--user)", entry=draft.entry)
        return draft._replace(entry=own, remove=(), note=words)
    return draft


def _native(draft: Installation, wheels: Optional[str]) -> Installation:
    """Reinstall the current version of native pillow, the right one without vector instructions and on aarch64."""
    version = next((row.version for row in draft.remove if row.name == NATIVE), "")
    if not version:
        raise Skipped(
            Message("this CPU needs native pillow, and no native pillow is installed whose version could be kept")
        )
    requirement = f"pillow=={version}"
    return draft._replace(
        requirements=(requirement,),
        after=f"pillow {version}",
        prepare=(binary(wheels, requirement),),
        wheels=("{work}/wheels/*.whl",),
    )


def _simd(context: Context, found: Imported, draft: Installation, variant: str, wheels: Optional[str]) -> Installation:
    version = next((row.version for row in found.rows if row.name == NATIVE), found.version or found.rows[0].version)
    version = version.partition(".post")[0]
    python = interpreter(context).version
    if wheels is None:
        base = nearest(version, python, RELEASES)
        requirement, source = f"pillow-simd=={base}.*", None
    else:
        source = _from_directory(context, wheels, version, python)
        base, requirement = source.version.partition(".post")[0], f"pillow-simd=={source.version}"
    _refuse_downgrade(context, version, base)
    versions = (VersionChange("Pillow", version, base),)
    draft = draft._replace(after=f"{requirement.replace('==', ' ')} ({variant})", versions=versions)
    if source is not None and source.wheel:
        after = f"pillow-simd {source.version} ({source.path})"
        return draft._replace(requirements=(source.path,), wheels=(source.path,), after=after)
    compiler = _compiler(context)
    isolation = () if source is None else _without_isolation(context, source)
    words = ("wheel", "--no-deps", "--no-cache-dir", "--use-pep517", "--no-binary", "pillow-simd", *isolation)
    return draft._replace(
        requirements=(requirement,),
        prepare=((*words, "--wheel-dir", "{work}/wheels", *sources(wheels), requirement),),
        wheels=("{work}/wheels/*.whl",),
        environ={"CC": f"{compiler} -mavx2"} if variant == "AVX2" else {},
    )


def nearest(version: str, python: str, known: Iterable[str]) -> str:
    """Return the pillow-simd release for code that runs with Pillow `version`; raises Skipped if none fits that Python.

    The same minor release, else the newest before it, else the oldest after it.
    """
    fitting = sorted((base for base in known if fits(python, base)), key=_numbers)
    if not fitting:
        raise Skipped(no_release(python))
    wanted = _numbers(version)
    same = [base for base in fitting if _numbers(base)[:2] == wanted[:2]]
    before = [base for base in fitting if _numbers(base) <= wanted]
    return (same or before or fitting[:1])[-1]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(checked_int(part) for part in re.findall(r"\d+", version.partition(".post")[0]))


def _from_directory(context: Context, folder: str, version: str, python: str) -> Source:
    files = list(offered(context.host.listdir(folder), folder, SIMD, python, context.facts.value("arch") or ""))
    if not files:
        raise Skipped(
            Message(
                "{folder} has no pillow-simd for Python {python}; build the wheel on a host like this one",
                folder=folder,
                python=python,
            )
        )
    base = nearest(version, python, {file.version.partition(".post")[0] for file in files})
    fitting = [file for file in files if file.version.partition(".post")[0] == base]
    return max(fitting, key=lambda file: (file.wheel, file.version))


def offered(names: Iterable[str], folder: str, distribution: str, python: str, machine: str) -> Iterator[Source]:
    """Yield the files in a directory that pip could install as `distribution` into that interpreter."""
    tag = "cp" + python.replace(".", "")
    for name in names:
        if name.endswith(".whl"):
            parts = name[:-4].split("-")
            if len(parts) < 5 or normal_name(parts[0]) != distribution:
                continue
            pythons, platform = parts[-3].split("."), parts[-1]
            if (tag in pythons or "py3" in pythons) and (platform == "any" or platform.endswith("_" + machine)):
                yield Source(f"{folder}/{name}", parts[1], True)
        else:
            found = re.fullmatch(r"(.+)-([0-9][^-]*)\.(?:tar\.gz|zip)", name)
            if found and normal_name(found[1]) == distribution:
                yield Source(f"{folder}/{name}", found[2], False)


def _without_isolation(context: Context, source: Source) -> tuple[str, ...]:
    """Build with the target's setuptools: without an index pip cannot download them for an isolated build."""
    missing = [name for name in ("setuptools", "wheel") if not every(context, name)]
    if missing:
        words = " and ".join(missing)
        raise Skipped(
            Message(
                "{path} has to be built, and {interpreter_path} has no {words}: provide a wheel",
                path=source.path,
                interpreter_path=interpreter(context).path,
                words=words,
            )
        )
    return ("--no-build-isolation",)


def _compiler(context: Context) -> str:
    host = context.host
    command = host.environ.get("CC") or "cc"
    program = command.split()[0]
    try:
        found = program if "/" in program else on_path(host, host.environ, host.cwd, program)
    except HostError:
        return command  # not recorded: the build will show it
    if found is None:
        raise Skipped(
            Message(
                "{program} is not on PATH: pillow-simd has to be built (or provide a wheel with --wheels DIR)",
                program=program,
            )
        )
    return command


def _refuse_downgrade(context: Context, version: str, base: str) -> None:
    """Refuse a pillow-simd older than the Pillow in use if an installed package requires a newer one."""
    if _numbers(base) >= _numbers(version):
        return
    asking = sorted(_asking_for_more(context, base))
    if asking:
        listed = enumerated(asking)
        raise Skipped(
            Message(
                "the nearest pillow-simd is based on Pillow {base}, but a newer version is required by {listed}",
                base=base,
                listed=listed,
            )
        )


def _asking_for_more(context: Context, base: str) -> Iterator[str]:
    from packaging.requirements import InvalidRequirement, Requirement

    for rows in environment(context).found.values():
        path = metadata_file(context.host, rows[0]) if rows[0].metadata.endswith(".dist-info") else None
        try:
            text = context.host.read_bytes(path).decode("utf-8", "replace") if path else ""
        except HostError:
            continue  # damage is reported by another check
        for line in re.findall(r"(?mi)^Requires-Dist:\s*(pillow\b.*)$", text.split("\n\n", 1)[0]):
            try:
                wanted = Requirement(line)
            except InvalidRequirement:
                continue
            extra = wanted.marker is not None and not wanted.marker.evaluate({"extra": ""})
            if normal_name(wanted.name) == NATIVE and not extra and not wanted.specifier.contains(base):
                yield f"{rows[0].name} {rows[0].version} ({line.strip()})"


def _note(context: Context, draft: Installation, build_checks: Sequence[str]) -> Text:
    notes = [] if draft.note is None else [draft.note]
    notes.append(
        Message("pip check will then report that pillow is missing: pillow-simd replaces it under another name")
    )
    missing = sorted(_missing_headers(context))
    if missing:
        headers, checks = enumerated(missing), enumerated(build_checks)
        first: Text = Message("building needs {headers} first", headers=headers)
        notes.append(Message("{what} ({checks})", what=first, checks=checks) if build_checks else first)
    return clauses(notes)


def _missing_headers(context: Context) -> Iterator[str]:
    for name in ("jpeglib.h", "zlib.h", "Python.h"):
        try:
            if not any(_is_file(context, f"{folder}/{name}") for folder in header_folders(context, name)):
                yield name
        except (HostError, Undetermined):
            continue  # the build will show it


def _is_file(context: Context, path: str) -> bool:
    try:
        context.host.stat(path)
    except FileNotFoundError:
        return False
    return True
