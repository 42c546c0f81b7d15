"""Probes over the compatibility matrix: the torch stack with CANN, the driver with CANN."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Iterable, Iterator, Literal, Optional, Union

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable, Undetermined
from envtune.messages import Joined, Message, Text, alternatives, clauses, enumerated
from envtune.model import Command, Evidence, Reading
from envtune.resources.cann.compatibility import (
    MatrixRow,
    hdk_rows,
    judge_cann,
    judge_python,
    judge_torch,
    matrix,
    newer_cann,
    newer_driver,
    pair_reading,
    published,
    released_as,
)
from envtune.resources.cann.driver import DriverPackage, judge_firmware, read_package, running_package, same_driver
from envtune.resources.cann.installs import active_install
from envtune.resources.cann.tree import Install
from envtune.resources.cann.version_files import lists_product, matches_row, product_number, same_version
from envtune.resources.npu.devices import in_container, smi_output
from envtune.resources.python.distributions import requirements


@probe("cann.torch_compatibility", formerly="compat_probes.torch")
def torch(context: Context) -> Iterable[Reading]:
    """Compatibility of torch_npu with CANN, torch and Python: `matched`, `compatible` or `refused`.

    Source: porting guide 003:3044 for the demand, the row's own source for each verdict.
    """
    facts = context.facts
    torch_version, torch_npu = facts["torch"], facts["torch_npu"]
    for fact in (torch_version, torch_npu):
        if fact.value is None:
            reason = fact.reason or Message("its version is unknown")
            return [Reading(fact.name, None, Evidence(fact.source), reason=reason)]
    adapter = str(torch_npu.value)
    if adapter == "none":
        adapter = released_as(str(torch_version.value)) or "none"
    if adapter == "none":
        raise NotApplicable(Message("torch_npu is not installed in the target Python"), torch_npu.source)
    return _stack(context, adapter, str(torch_version.value))


def _stack(context: Context, adapter: str, torch_version: str) -> Iterable[Reading]:
    cann = active_install(context)
    built_in = context.facts.value("torch_npu") == "none"  # this torch has built-in NPU support: no second package
    name = f"torch {torch_version}" if built_in else f"torch_npu {adapter}"
    python = context.target.interpreter().version
    if cann.version is None:
        yield Reading("torch_npu", None, Evidence(cann.real), reason=cann.evidence.reason)
    else:
        pair = Message("{name} with CANN {version}", name=name, version=cann.version)
        yield pair_reading("torch_npu", pair, judge_cann(adapter, cann.version))
    if torch_version != "none" and not built_in:
        pair = Message("{name} with torch {torch_version}", name=name, torch_version=torch_version)
        yield pair_reading("torch", pair, judge_torch(adapter, torch_version, _required_torch(context)))
    pair = Message("{name} with Python {python}", name=name, python=python)
    yield pair_reading("python", pair, judge_python(adapter, torch_version, python))


def _required_torch(context: Context) -> str:
    """Return the Requires-Dist line about torch in torch_npu's metadata; empty if it has none."""
    try:
        lines = requirements(context, "torch_npu")
    except (HostError, Undetermined):
        return ""
    return next((line for line in lines if re.match(r"torch(?![\w.-])", line, re.I) and "extra" not in line), "")


@probe("cann.driver_compatibility", formerly="compat_probes.driver")
def driver(context: Context) -> Iterable[Reading]:
    """Whether the running driver supports the active CANN: `match` or `mismatch`.

    There are three sources. The driver's compatible_version list contains the CANN's product number (V100R001Cxx) or
    not, which is a refusal; the vendor's tables accept the pair, refuse it (an N in the grid CANN x HDK), or do not
    list it. Acceptance overrides the driver's list, which is known to be too narrow (driver 25.0.rc1.1 lists C17-C21,
    the release notes pair it with CANN 8.2.RC1, which is C22); an N in the grid overrides everything, because the grid
    is newer than the driver. A pair that is not listed is not refused.
    """
    files, running, cann = context.cached(read_package, "driver"), running_package(context), active_install(context)
    readings = [judge_driver(running, cann)]
    if running != files:
        readings.append(judge_driver(files, cann)._replace(subject="driver after the next boot"))
    return readings


Voice = Union[bool, Literal["unlisted"], None]
_ACCEPTS = {
    True: Message("accepts it"),
    False: Message("rejects it"),
    None: Message("does not mention it"),
    "unlisted": Message("does not list this pair"),
}


def judge_driver(package: DriverPackage, cann: Install) -> Reading:
    """Return the verdict on a driver and a CANN: match, mismatch, or unknown."""
    number, by_list = _by_list(package, cann)
    matrix_voice, rows = _by_matrix(package, cann.version)
    newer = (newer_cann(cann.version) if cann.version else None) or newer_driver(package.version or package.bundle)
    voices = _voices(by_list, matrix_voice)
    shown: Text = Message(
        "{verdict} (driver {driver}, CANN {cann})",
        driver=package.shown,
        cann=enumerated([cann.version or "?", *([number] if number else [])]),
        verdict=voices,
    )
    if newer is not None:
        shown = Message("{reason}; {newer}", reason=shown, newer=newer)
    expected = _expected(package, tuple(dict.fromkeys(name for _, name in rows)))
    matrix_text = (row.text for row, _ in rows[:6])
    text = "\n".join([f"[driver]\n{package.text}", f"[CANN]\n{cann.evidence.text}", *matrix_text])
    evidence = Evidence(enumerated((package.path, cann.evidence.source)), text)
    if matrix_voice is not False and (by_list or matrix_voice is True):
        return Reading("driver", "match", evidence, shown, expected)
    too_narrow = cann.version is not None and newer_cann(cann.version) is not None  # the list predates that CANN
    too_narrow = too_narrow or _serves_product(package, number)
    if matrix_voice is False or (by_list is False and not too_narrow):
        pair = {"driver": package.shown, "cann": cann.version or number}
        why = clauses([voices, number] if number else [voices])
        refused = Message("{driver} does not support CANN {cann} ({why})", **pair, why=why)
        return Reading("driver", "mismatch", evidence, refused, expected)
    reason = Message("{shown}; not among the published pairs of {month}", shown=shown, month=published())
    return Reading("driver", None, evidence, shown, expected, reason=reason)


def _voices(by_list: Optional[bool], by_matrix: Voice) -> Text:
    """Return what the driver's list and the matrix say about a pair."""
    if by_list is None and by_matrix is None:
        return Message("neither the driver's list nor the matrix of {month} mentions it", month=published())
    return Message(
        "the driver's list {by_list}, the matrix of {month} {by_matrix}",
        by_list=_ACCEPTS[by_list],
        month=published(),
        by_matrix=_ACCEPTS[by_matrix],
    )


def _expected(package: DriverPackage, drivers: tuple[str, ...]) -> Text:
    listed = package.products or "-"
    if not drivers:
        return Message("a CANN in the driver's list {listed}", listed=listed)
    return Message(
        "a CANN in the driver's list {listed}, or driver {drivers}", listed=listed, drivers=alternatives(drivers)
    )


def _by_list(package: DriverPackage, cann: Install) -> tuple[str, Optional[bool]]:
    """Return the product number of the CANN, and whether the driver's list names it."""
    number = product_number(cann.evidence.inner) or product_number(_known_prefix(cann.version))
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
    """Return the product number that the matrix gives for a CANN version; empty if it gives none."""
    for row in matrix():
        if cann and row.cann_inner_prefix and same_version(row.cann, cann):
            return row.cann_inner_prefix
    return ""


def _serves_product(package: DriverPackage, number: str) -> bool:
    """Return whether the vendor pairs this driver with another CANN of the same product number.

    Then the driver's list is known to be too narrow for that number.
    """
    siblings = {row.cann for row in matrix() if number and row.cann_inner_prefix == number}
    return any(_by_matrix(package, cann)[0] is True for cann in siblings)


def _by_matrix(package: DriverPackage, cann: Optional[str]) -> tuple[Voice, list[tuple[MatrixRow, str]]]:
    """Return what the vendor's tables say about the pair, and their rows; None if they do not contain the CANN."""
    rows = list(hdk_rows(cann, "cann_hdk", "matched")) if cann else []
    versions = [version for version in (package.bundle, package.version) if version]

    def naming(candidates: Iterable[tuple[MatrixRow, str]]) -> list[tuple[MatrixRow, str]]:
        return [(row, name) for row, name in candidates if any(matches_row(version, name) for version in versions)]

    refusing = naming(hdk_rows(cann, "cann_hdk_refused")) if cann else []
    if refusing:
        return False, refusing + rows
    accepting = naming(rows)
    if accepting:
        return True, accepting
    return ("unlisted", rows) if rows else (None, [])


@probe("cann.driver_running")
def driver_running(context: Context) -> Iterable[Reading]:
    """Whether the installed driver is the running one: `same`, or `different` until the host is restarted.

    Source: driver and firmware upgrade guide of the vendor (restart after the upgrade). Of the two versions in the head
    of `npu-smi info` the first is the tool's; `Version:` is what dcmi_get_driver_version returns, which asks a device
    (dsmi_get_version) and reads no file: the open sources of npu-smi and DCMI. They may differ, as in the vendor's
    manual (`npu-smi 22.0.0 Version:22.0.2`).
    """
    package = context.cached(read_package, "driver")
    output = smi_output(context)
    running = output.table.version
    if not running:
        reason = output.failure.meaning if output.failure is not None else Message("npu-smi prints no version")
        raise Undetermined(reason, output.source, output.text)
    header = next((line for line in output.text.splitlines() if "Version:" in line), "")
    evidence = Evidence(enumerated((package.path, output.source)), f"{package.text}\n{header}")
    expected = Message("one version in both")
    if same_driver(package, running):
        shown = Message("{version} in the files and in npu-smi", version=running)
        return [Reading("driver", "same", evidence, shown, expected)]
    shown = Message("{files} is installed, {running} is running", files=package.shown, running=running)
    return [Reading("driver", "different", evidence, shown, expected, commands=_before_reboot(context, package))]


def _before_reboot(context: Context, package: DriverPackage) -> tuple[Command, ...]:
    """Return what to do before the installed driver is started by a reboot; nothing where it may be."""
    if in_container(context):
        return (Command("fix", Message("Create the container anew: it has files of another driver than the host's.")),)
    rejected = [*_rejected_by(context, package)]
    if not rejected:
        return ()
    others = Joined(rejected, Message(" and "))
    said = Message("Do not restart yet: the installed driver does not support {others}.", others=others)
    return (Command("fix", said),)


def _rejected_by(context: Context, package: DriverPackage) -> Iterator[Text]:
    """Yield what the installed driver does not support."""
    with suppress(HostError, Undetermined, NotApplicable):
        if judge_firmware(package, context.cached(read_package, "firmware")).value == "mismatch":
            yield Message("the firmware")
    with suppress(HostError, Undetermined, NotApplicable):
        cann = active_install(context)
        if judge_driver(package, cann).value == "mismatch":
            yield Message("CANN {version}", version=cann.version)
