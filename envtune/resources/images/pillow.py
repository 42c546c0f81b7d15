"""Which Pillow the job's Python imports, and whether it suits the CPU.

pillow and pillow-simd are two distributions that both install the package PIL. The version of the imported one is in
PIL/_version.py: every release of pillow-simd is named after the Pillow it is based on, with a `.postN` (porting guide
003:1431-1454).
"""

from __future__ import annotations

import re
from typing import Iterable, Mapping, Optional

from envtune.collector.sources.images import RECORDED_PILLOW_FILES
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined
from envtune.host import Host, exists
from envtune.messages import Literal, Message, Text, enumerated, in_context
from envtune.model import Evidence, Reading
from envtune.ranges import checked_int
from envtune.records import NamedTuple
from envtune.resources.python.distributions import Distribution, absent, every, interpreter, locate

NATIVE = "pillow"
SIMD = "pillow-simd"
BROKEN = "broken"
# The instruction sets pillow-simd is built for, the best first; the guide's decision table, 003:1446-1454.
VARIANTS = (("avx2", "AVX2"), ("sse4_1", "SSE4"))
# Pillow that pillow-simd is based on -> oldest and newest Python of that Pillow
RELEASES: Mapping[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "9.5.0": ((3, 7), (3, 11)),
    "9.4.0": ((3, 7), (3, 11)),
    "9.3.0": ((3, 7), (3, 11)),
    "9.2.0": ((3, 7), (3, 10)),
    "9.1.1": ((3, 7), (3, 10)),
    "9.0.0": ((3, 7), (3, 10)),
    "8.4.0": ((3, 6), (3, 10)),
    "8.3.2": ((3, 6), (3, 10)),
    "8.2.0": ((3, 6), (3, 9)),
    "8.1.2": ((3, 6), (3, 9)),
    "8.0.1": ((3, 6), (3, 9)),
    "7.2.0": ((3, 5), (3, 8)),
    "7.1.2": ((3, 5), (3, 8)),
    "7.0.0": ((3, 5), (3, 8)),
    "6.2.2": ((3, 5), (3, 8)),
    "6.1.0": ((3, 5), (3, 7)),
    "6.0.0": ((3, 5), (3, 7)),
    "5.4.1": ((3, 4), (3, 7)),
    "5.3.0": ((3, 4), (3, 7)),
}


class Imported(NamedTuple):
    """The Pillow that `import PIL` gets: `kind` is pillow, pillow-simd or broken (metadata without a package)."""

    kind: str
    version: str
    path: str  # the file that shows it
    rows: tuple[Distribution, ...]  # every pillow and pillow-simd, in import order

    def words(self) -> str:
        """Return kind and version in the usual notation."""
        return f"{self.kind} {self.version}".strip()


def imported_pillow(context: Context) -> Imported:
    """Return what `import PIL` gets in the job's Python; raises NotApplicable if it has no Pillow."""
    return context.cached(_imported)


def _imported(context: Context) -> Imported:
    rows = every(context, NATIVE) + every(context, SIMD)
    place = locate(context, "PIL")
    if place is None and not rows:
        raise absent(context, NATIVE)
    if place is None or not exists(context.host, place + "/__init__.py"):
        row = rows[0] if rows else None
        return Imported(BROKEN, "", row.metadata if row else str(place), rows)
    version, path = pillow_version(context.host, place)
    if version is None:
        if len(rows) != 1 or rows[0].entry != place.rpartition("/")[0]:
            raise Undetermined(Message("{place} does not show its version", place=place), place)
        return Imported(rows[0].name, rows[0].version, rows[0].metadata, rows)
    return Imported(SIMD if ".post" in version else NATIVE, version, path, rows)


def pillow_version(host: Host, place: str) -> tuple[Optional[str], str]:
    """Return (version, file) of the package PIL; it moved from __init__.py to _version.py around Pillow 5."""
    for name in ("_version.py", "version.py", "__init__.py"):
        try:
            text = host.read(f"{place}/{name}")
        except Missing:
            continue
        found = re.search(r"^(?:PILLOW_VERSION|__version__)(?:\s*=\s*__version__)?\s*=\s*['\"]([^'\"]+)", text, re.M)
        if found:
            return found[1], f"{place}/{name}"
    return None, f"{place}/__init__.py"


def cpu_flags(host: Host) -> frozenset[str]:
    """Return the `flags` of /proc/cpuinfo that every x86 CPU of the host has; raises Undetermined if it lists none."""
    path = "/proc/cpuinfo"
    rows = [set(found.split()) for found in re.findall(r"^flags[ \t]*:(.*)$", host.read(path), re.M)]
    if not rows or not rows[0]:
        raise Undetermined(Message("{path} lists no CPU flags", path=path), path)
    return frozenset(set.intersection(*rows))


def best_variant(flags: Iterable[str]) -> Optional[str]:
    """Return AVX2 or SSE4, None if the CPU has neither."""
    known = set(flags)
    return next((name for flag, name in VARIANTS if flag in known), None)


@probe("images.pillow_imported", formerly="pillow.imported")
def imported(context: Context) -> Iterable[Reading]:
    """Pillow that the job's Python imports: `pillow`, `pillow-simd` or `broken`."""
    found = imported_pillow(context)
    if best_variant(cpu_flags(context.host)) is None:
        raise NotApplicable(
            Message("the CPU has neither AVX2 nor SSE4.1 (/proc/cpuinfo): use native pillow"),
            "/proc/cpuinfo",
        )
    python = interpreter(context).version
    if found.kind == NATIVE and not any(fits(python, base) for base in RELEASES):
        raise NotApplicable(no_release(python), found.path)
    yield Reading("PIL", found.kind, Evidence(found.path, found.words()), shown=_shown(found))


def no_release(python: str) -> Message:
    """Return the text that no pillow-simd was released for this Python."""
    return Message(
        "pillow-simd has no release for Python {python} (the newest, 9.5.0, is for 3.7 to 3.11)", python=python
    )


def fits(python: str, base: str) -> bool:
    """Return whether the pillow-simd based on Pillow `base` is for that Python; an unknown release counts as such."""
    own = tuple(checked_int(part) for part in python.split(".")[:2] if part.isdecimal())
    return base not in RELEASES or RELEASES[base][0] <= own <= RELEASES[base][1]


def _shown(found: Imported) -> Text:
    if found.kind == BROKEN:
        names = enumerated(f"{row.name} {row.version}" for row in found.rows) or "PIL"
        return Message("metadata of {names}, but no package PIL", names=names)
    return Literal(found.words())


@probe("images.pillow_variant", formerly="pillow.variant")
def variant(context: Context) -> Iterable[Reading]:
    """Whether the CPU can run the Pillow that the job's Python imports."""
    flags = cpu_flags(context.host)
    best = best_variant(flags)
    try:
        found = imported_pillow(context)
    except NotApplicable:  # nothing installed yet: only the CPU decides
        words = Message("the {best} build of pillow-simd fits", best=best)
        shown = words if best else Message("native pillow fits")
        yield Reading("PIL", True, Evidence("/proc/cpuinfo", "flags: " + " ".join(sorted(flags))[:500]), shown, shown)
        return
    named = [flag for flag, _ in VARIANTS if flag in flags]
    evidence = Evidence("/proc/cpuinfo", "flags: " + (" ".join(named) or "neither avx2 nor sse4_1"))
    if best is None:
        suits = found.kind != SIMD
        words = Message("neither AVX2 nor SSE4.1; {words} is installed", words=found.words())
        yield Reading("PIL", suits, evidence, words, Message("native pillow on this CPU"))
        return
    if best == "SSE4" and found.kind == SIMD:
        raise Undetermined(
            Message("the CPU has no AVX2, and the files do not show whether this pillow-simd was built for AVX2"),
            evidence.source,
            evidence.text,
        )
    words = Message("the {best} build of pillow-simd fits", best=best)
    yield Reading("PIL", True, evidence, words, words)


@probe("images.pillow_side_by_side", formerly="pillow.side_by_side")
def side_by_side(context: Context) -> Iterable[Reading]:
    """Number of Pillow packages (pillow, pillow-simd) in each directory; two overwrite each other's files."""
    found = imported_pillow(context)
    if not found.rows:
        yield Reading("PIL", 1, Evidence(found.path, found.words()), Literal(found.words()))
    for entry in dict.fromkeys(row.entry for row in found.rows):
        rows = [row for row in found.rows if row.entry == entry]
        names = sorted({row.name for row in rows})
        evidence = Evidence(entry, "\n".join([row.metadata for row in rows] + [f"{found.path}: {found.version}"]))
        listed = Literal(" + ".join(f"{row.name} {row.version}" for row in rows))
        if len(names) < 2:
            yield Reading("PIL", 1, evidence, listed)
            continue
        owner = _owners(context.host, entry, rows)
        mixed = Message("; files of both are mixed") if len(owner) > 1 else Literal("")
        words = Message("{listed}; imported: {words}{mixed}", listed=listed, words=found.words(), mixed=mixed)
        yield Reading("PIL", len(names), evidence, words, in_context("pillow", "only one of them"))


def _owners(host: Host, entry: str, rows: Iterable[Distribution]) -> set[str]:
    """Return the distributions whose RECORD has the sizes of the files on disk; the last installed wrote them."""
    owners: set[str] = set()
    recorded = {row.name: _sizes(host, row) for row in rows}
    for path in sorted({path for sizes in recorded.values() for path in sizes}):
        try:
            size = host.stat(f"{entry}/{path}").size
        except HostError:
            continue
        owning = {name for name, sizes in recorded.items() if sizes.get(path) == size}
        if len(owning) == 1:
            owners |= owning
    return owners


def _sizes(host: Host, row: Distribution) -> dict[str, int]:
    """Return {path: size} of the distinguishing files in a distribution's RECORD; empty if it has none."""
    try:
        text = host.read(row.metadata + "/RECORD")
    except HostError:
        return {}
    found = {}
    for line in text.splitlines():
        path, size = line.partition(",")[0], line.rpartition(",")[2]
        if re.search(RECORDED_PILLOW_FILES, path) and size.isdecimal():
            found[path] = checked_int(size)
    return found
