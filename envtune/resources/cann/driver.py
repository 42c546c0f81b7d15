"""NPU driver and firmware: their version.info files, and whether the two accept each other."""

from __future__ import annotations

import re
from typing import Iterable, Optional

from envtune.collector.sources.cann import DRIVER_INFO, key_values
from envtune.context import Context
from envtune.context.registry import fact, probe
from envtune.errors import HostError, Missing, Undetermined, Unreadable
from envtune.host import Host, is_dir
from envtune.messages import Literal, Message, Text, alternatives, enumerated, listed
from envtune.model import Evidence, Fact, Reading
from envtune.records import NamedTuple
from envtune.resources.cann.version_files import in_ranges, same_version, selected_fields
from envtune.resources.npu.board import compatibility
from envtune.resources.npu.devices import in_container, smi_output

DEFAULT_BASE = "/usr/local/Ascend"
DEVICES = ("/dev/davinci_manager", "/dev/davinci[0-9]*")


class DriverPackage(NamedTuple):
    """A driver or firmware package as described by its version.info; empty for what the file does not contain."""

    path: str
    version: str  # Version=
    bundle: str  # package_version=, shared by driver and firmware of one delivery
    inner: str  # Innerversion=, V100R001C21SPC002B220
    accepts: str  # compatible_version_fw= of a driver, compatible_version_drv= of firmware
    products: str  # compatible_version= of a driver: the CANN product numbers it serves
    text: str

    @property
    def shown(self) -> str:
        """Return the version by which people know the package."""
        return self.bundle or self.version


def parse_package(path: str, text: str) -> DriverPackage:
    """Return the package; raises Unreadable if the text names no version."""
    info = key_values(text)
    version, bundle = info.get("version", ""), info.get("package_version", "")
    if not version and not bundle:
        raise Unreadable(path, "no version in it")
    keys = ("version", "package_version", "innerversion", "compatible_version_fw", "compatible_version_drv")
    return DriverPackage(
        path,
        version,
        bundle,
        inner=info.get("innerversion", ""),
        accepts=info.get("compatible_version_fw") or info.get("compatible_version_drv") or "",
        products=info.get("compatible_version", ""),
        text=selected_fields(info, *keys, "compatible_version"),
    )


def package_bases(host: Host, kind: str) -> tuple[str, ...]:
    """Return where the package may be: what /etc/ascend_install.info names, then the default."""
    try:
        named = key_values(host.read(DRIVER_INFO)).get(f"{kind}_install_path_param", "").rstrip("/")
    except (Missing, Unreadable):
        named = ""
    return tuple(dict.fromkeys(base for base in (named, DEFAULT_BASE) if base.startswith("/")))


def read_package(context: Context, kind: str) -> DriverPackage:
    """Return the `driver` or `firmware` package; raises Missing if there is no version.info in any of its places.

    /etc/ascend_install.info may be left over from an older installation: if both of its places have a driver, the one
    reported by npu-smi is used, and the firmware next to it.
    """
    paths = [f"{base}/{kind}/version.info" for base in package_bases(context.host, kind)]
    found = []
    for path in paths:
        try:
            found.append(parse_package(path, context.host.read(path)))
        except Missing:
            continue
    if not found:
        raise Missing(paths[0])
    if len(found) == 1:
        return found[0]
    if kind == "firmware":
        base = context.cached(read_package, "driver").path.rpartition("/driver/")[0]
        return next((package for package in found if package.path.startswith(f"{base}/")), found[0])
    running = running_version(context)
    return next((package for package in found if running and same_driver(package, running)), found[0])


def running_version(context: Context) -> str:
    """Return the version of the running driver reported by npu-smi; empty if it reports none."""
    try:
        return smi_output(context).table.version
    except (HostError, Undetermined):
        return ""


def same_driver(package: DriverPackage, running: str) -> bool:
    """Return whether npu-smi's version is the package's."""
    return any(same_version(running, version) for version in (package.version, package.bundle) if version)


def running_package(context: Context) -> DriverPackage:
    """Return the driver package, with the version reported by npu-smi if the files are from a different version.

    The list of CANN versions in such files does not belong to the running driver, and is left out.
    """
    package, running = context.cached(read_package, "driver"), running_version(context)
    if not running or same_driver(package, running):
        return package
    text = f"npu-smi: {running}\n{package.text}"
    return package._replace(path=f"npu-smi info, {package.path}", version=running, bundle="", products="", text=text)


@fact("driver")
def fact_driver(context: Context) -> Fact:
    """Version of the NPU driver; `none` if this host has neither a driver nor an NPU."""
    return _package_fact(context, "driver")


@fact("firmware")
def fact_firmware(context: Context) -> Fact:
    """Version of the NPU firmware; `none` if this host has no driver."""
    return _package_fact(context, "firmware")


def _package_fact(context: Context, kind: str) -> Fact:
    try:
        package = context.cached(read_package, kind)
    except Missing as error:
        trace = context.cached(driver_trace)
        if trace is None and not _may_be_unmounted(context):
            return Fact(kind, "none", error.path)
        if trace is None:
            reason = Message("{path} is not mounted into this container: check on the host", path=error.path)
            return Fact(kind, None, error.path, reason)
        reason = Message(
            "no version file; {trace} exists, so a driver is expected; mount {path} into a container",
            path=error.path,
            trace=trace,
        )
        return Fact(kind, None, error.path, reason)
    return Fact(kind, package.shown, package.path)


def _may_be_unmounted(context: Context) -> bool:
    """Return whether this is an Ascend container, which does not see the host's driver unless it is mounted."""
    return in_container(context) and context.facts.value("ascend") == "true"


def driver_trace(context: Context) -> Optional[str]:
    """Return something that only exists on a host with a driver, None if there is nothing like that."""
    for pattern in DEVICES:
        for path in context.host.glob(pattern):
            return path
    for base in package_bases(context.host, "driver"):
        if is_dir(context.host, f"{base}/driver"):
            return f"{base}/driver"
    return None


@probe("cann.firmware_match", formerly="driver.firmware_match")
def firmware_match(context: Context) -> Iterable[Reading]:
    """Whether driver and firmware are compatible: `match` or `mismatch`.

    Rule: one delivery (equal package_version) or either side accepting the other is a match; if both refuse, it is a
    mismatch; a missing or incomplete file leaves it unknown, unless npu-smi reports it (Compatibility). Sources:
    porting guide 003:3024-3036 for the demand; key names and ranges as in public version.info samples; the DCMI source
    of the driver, which asks the driver's list first and then the firmware's.
    """
    said = compatibility(context)
    spoken = () if said is None else (said,)
    driver = context.cached(read_package, "driver")
    try:
        firmware = context.cached(read_package, "firmware")
    except Missing as error:
        if spoken:
            return spoken
        raise Undetermined(
            Message(
                "{path} does not exist, so the firmware cannot be compared (in a container, check on the host)",
                path=error.path,
            ),
            error.path,
            driver.text,
        ) from None
    judged = judge_firmware(driver, firmware)
    return spoken if judged.value is None and spoken else (judged, *spoken)


def judge_firmware(driver: DriverPackage, firmware: DriverPackage) -> Reading:
    """Return the verdict on two packages as a reading: match, mismatch, or unknown."""
    same_bundle = bool(driver.bundle) and driver.bundle.lower() == firmware.bundle.lower()
    by_driver = _accepts([firmware.version], driver.accepts)
    by_firmware = _accepts([driver.bundle, driver.version], firmware.accepts)
    evidence = Evidence(
        enumerated((driver.path, firmware.path)), f"[driver]\n{driver.text}\n[firmware]\n{firmware.text}"
    )
    shown = Message(
        "{bundle}{verdict} (driver {driver}, firmware {firmware})",
        driver=driver.shown,
        firmware=_firmware_text(firmware),
        bundle=_SAME_BUNDLE if same_bundle else "",
        verdict=_BOTH.get((by_driver, by_firmware)) or listed((_OF_DRIVER[by_driver], _OF_FIRMWARE[by_firmware])),
    )
    expected = Message(
        "firmware {driver_list}, or driver {firmware_list}",
        driver_list=_ranges_text(driver.accepts) or Message("the list of the driver"),
        firmware_list=_ranges_text(firmware.accepts) or Message("the list of the firmware"),
    )
    if same_bundle or by_driver or by_firmware:
        return Reading("firmware", "match", evidence, shown, expected)
    if by_driver is False and by_firmware is False:
        return Reading("firmware", "mismatch", evidence, shown, expected)
    return Reading("firmware", None, evidence, shown, expected, reason=shown)


def _firmware_text(firmware: DriverPackage) -> Text:
    """Return the version that the driver's list means, with that of the package, by which a person knows it."""
    if not firmware.version or not firmware.bundle:
        return Literal(firmware.shown)
    return Message("{version} of package {package}", version=firmware.version, package=firmware.bundle)


_SAME_BUNDLE = Message("one release package (equal package_version); ")
_BOTH = {
    (True, True): Message("driver and firmware each list the other's version"),
    (False, False): Message("driver and firmware each reject the other's version"),
    (None, None): Message("neither the driver nor the firmware lists the other's version"),
}
_OF_DRIVER = {
    True: Message("the driver accepts the firmware"),
    False: Message("the driver rejects the firmware"),
    None: Message("the driver does not mention the firmware"),
}
_OF_FIRMWARE = {
    True: Message("the firmware accepts the driver"),
    False: Message("the firmware rejects the driver"),
    None: Message("the firmware does not mention the driver"),
}


def _ranges_text(ranges: str) -> Optional[Text]:
    """Return `[7.0.0,7.2.99],[24.0,24.0.]` as `7.0.0 to 7.2.99 or 24.0.x`; None for an empty list."""
    pairs = re.findall(r"\[([^\[\],]+),([^\[\],]+)\]", ranges)
    if re.sub(r"\[[^\[\]]*\]|[,\s]", "", ranges) or not pairs:
        return Literal(ranges) if ranges else None
    return alternatives(
        Literal(f"{first}.x") if last == f"{first}." else Message("{first} to {last}", first=first, last=last)
        for first, last in pairs
    )


def _accepts(versions: Iterable[str], ranges: str) -> Optional[bool]:
    """Return whether a list accepts one of the versions; None if it is empty or cannot be parsed."""
    answers: list[bool] = []
    for version in versions:
        try:
            if version and ranges:
                answers.append(in_ranges(version, ranges))
        except ValueError:
            continue
    return any(answers) if answers else None
