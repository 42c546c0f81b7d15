"""Probes over the compatibility matrix: torch stack with CANN (CANN009), driver with CANN (CANN101)."""

from __future__ import annotations

from typing import Iterable, Optional

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import NotApplicable
from envtune.messages import Bilingual, Message
from envtune.model import Evidence, Reading
from envtune.resources.cann import compatibility as compat
from envtune.resources.cann.driver import Package, read_package
from envtune.resources.cann.installs import active_install
from envtune.resources.cann.tree import Install
from envtune.resources.cann.version_files import lists_product, matches_row, product_number, same_version


@probe("cann.torch_compatibility", formerly="compat_probes.torch")
def torch(context: Context) -> Iterable[Reading]:
    """torch_npu with CANN, with torch and with Python, one reading each. Source: porting guide 003:3044 for the demand,
    the row's own source for each verdict."""
    facts = context.facts
    torch_version, torch_npu = facts["torch"], facts["torch_npu"]
    for fact in (torch_version, torch_npu):
        if fact.value is None:
            reason = fact.reason or Message("its version cannot be told")
            return [Reading(fact.name, None, Evidence(fact.source), reason=reason)]
    adapter = str(torch_npu.value)
    if adapter == "none":
        adapter = compat.released_as(str(torch_version.value)) or "none"
    if adapter == "none":
        raise NotApplicable(Message("torch_npu is none in the target Python"), torch_npu.source)
    return _stack(context, adapter, str(torch_version.value))


def _stack(context: Context, adapter: str, torch_version: str) -> Iterable[Reading]:
    cann = active_install(context)
    carried = (
        context.facts.value("torch_npu") == "none"
    )  # this torch carries the NPU itself: there is no second package
    name = f"torch {torch_version}" if carried else f"torch_npu {adapter}"
    python = context.target.interpreter().version
    if cann.version is None:
        yield Reading("torch_npu", None, Evidence(cann.real), reason=cann.told.reason)
    else:
        pair = Message("{name} with CANN {version}", name=name, version=cann.version)
        yield compat.pair_reading("torch_npu", pair, compat.judge_cann(adapter, cann.version))
    if torch_version != "none" and not carried:
        pair = Message("{name} with torch {torch_version}", name=name, torch_version=torch_version)
        yield compat.pair_reading("torch", pair, compat.judge_torch(adapter, torch_version))
    pair = Message("{name} with Python {python}", name=name, python=python)
    yield compat.pair_reading("python", pair, compat.judge_python(adapter, torch_version, python))


@probe("cann.driver_compatibility", formerly="compat_probes.driver")
def driver(context: Context) -> Iterable[Reading]:
    """Whether the driver serves the active CANN.

    One of two voices is enough: the driver's compatible_version list names the CANN's product number (V100R001Cxx), or
    a row of the matrix pairs the two. Both refusing is a failure. One refusing alone is not: the lists are known to be
    too narrow (driver 25.0.rc1.1 lists C17-C21, the release notes pair it with CANN 8.2.RC1, which is C22).
    """
    return [judge_driver(context.cached(read_package, "driver"), active_install(context))]


def judge_driver(package: Package, cann: Install) -> Reading:
    """The verdict over a driver and a CANN: match, mismatch, or not told."""
    number, by_list = _by_list(package, cann)
    by_matrix, rows = _by_matrix(package, cann.version)
    words = {True: Message("accepts"), False: Message("refuses"), None: Message("is silent")}
    first, second = words[by_list], words[by_matrix]
    inner = f" ({number})" if number else ""
    version = cann.version or "?"
    shown = Message(
        "driver {shown}, CANN {version}{inner}: the driver's list {first}, the matrix {second}",
        shown=package.shown,
        version=version,
        inner=inner,
        first=first,
        second=second,
    )
    drivers = " | ".join(dict.fromkeys(name for _, name in rows))
    listed = package.products or "-"
    expected = Bilingual(
        f"a CANN in the driver's list {listed}" + (f", or driver {drivers}" if drivers else ""),
        f"CANN 在驱动列表 {listed} 内" + (f"，或驱动为 {drivers}" if drivers else ""),
    )
    text = "\n".join([f"[driver]\n{package.text}", f"[CANN]\n{cann.told.text}", *(r.text for r, _ in rows[:6])])
    evidence = Evidence(f"{package.path}, {cann.told.source}", text)
    if by_list or by_matrix:
        return Reading("driver", "match", evidence, shown, expected)
    if by_list is False and by_matrix is False:
        return Reading("driver", "mismatch", evidence, shown, expected)
    return Reading("driver", None, evidence, shown, expected, reason=shown)


def _by_list(package: Package, cann: Install) -> tuple[str, Optional[bool]]:
    """(the product number of the CANN, whether the driver's list names it)."""
    number = product_number(cann.told.inner) or product_number(_known_prefix(cann.version))
    if number is None:
        return "", None
    name = f"V{number[0]}R{number[1]:03d}C{number[2]:02d}"
    if not package.products:
        return name, None
    try:
        return name, lists_product(number, package.products)
    except ValueError:
        return name, None


def _known_prefix(cann: Optional[str]) -> str:
    """The product number that the matrix gives for a CANN version; empty when it gives none."""
    for row in compat.matrix():
        if cann and row.cann_inner_prefix and same_version(row.cann, cann):
            return row.cann_inner_prefix
    return ""


def _by_matrix(package: Package, cann: Optional[str]) -> tuple[Optional[bool], list[tuple[compat.Row, str]]]:
    rows = list(compat.hdk_rows(cann)) if cann else []
    versions = [version for version in (package.bundle, package.version) if version]
    accepting = [(row, name) for row, name in rows if any(matches_row(version, name) for version in versions)]
    if accepting:
        return True, accepting
    return (False, rows) if rows else (None, [])
