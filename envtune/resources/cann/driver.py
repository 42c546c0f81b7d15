"""NPU driver and firmware: their version.info files, and whether the two accept each other."""

from __future__ import annotations

from typing import Iterable, NamedTuple, Optional

from envtune.collector.sources.cann import DRIVER_INFO, key_values
from envtune.context import Context
from envtune.context.registry import fact, probe
from envtune.errors import Missing, Undetermined, Unreadable
from envtune.host import Host, is_dir
from envtune.messages import Bilingual, Literal, Message, Text
from envtune.model import Evidence, Fact, Reading
from envtune.resources.cann.version_files import described, in_ranges

DEFAULT_BASE = "/usr/local/Ascend"
DEVICES = ("/dev/davinci_manager", "/dev/davinci[0-9]*")


class Package(NamedTuple):
    """A driver or firmware package as its version.info tells it; empty where the file is silent."""

    path: str
    version: str  # Version=
    bundle: str  # package_version=, which driver and firmware of one delivery share
    inner: str  # Innerversion=, V100R001C21SPC002B220
    accepts: str  # compatible_version_fw= of a driver, compatible_version_drv= of firmware
    products: str  # compatible_version= of a driver: the CANN product numbers it serves
    text: str

    @property
    def shown(self) -> str:
        """The version a person knows the package by."""
        return self.bundle or self.version


def parse_package(path: str, text: str) -> Package:
    """The package; Unreadable when the text names no version."""
    found = key_values(text)
    version, bundle = found.get("version", ""), found.get("package_version", "")
    if not version and not bundle:
        raise Unreadable(path, "no version in it")
    accepts = found.get("compatible_version_fw") or found.get("compatible_version_drv") or ""
    keys = ("version", "package_version", "innerversion", "compatible_version_fw", "compatible_version_drv")
    return Package(
        path,
        version,
        bundle,
        found.get("innerversion", ""),
        accepts,
        found.get("compatible_version", ""),
        described(found, *keys, "compatible_version"),
    )


def bases(host: Host, kind: str) -> tuple[str, ...]:
    """Where the package may be: what /etc/ascend_install.info names, then the default."""
    try:
        named = key_values(host.read(DRIVER_INFO)).get(f"{kind}_install_path_param", "").rstrip("/")
    except (Missing, Unreadable):
        named = ""
    return tuple(dict.fromkeys(base for base in (named, DEFAULT_BASE) if base.startswith("/")))


def read_package(context: Context, kind: str) -> Package:
    """The `driver` or `firmware` package; Missing when there is no version.info in any of its places."""
    paths = [f"{base}/{kind}/version.info" for base in bases(context.host, kind)]
    for path in paths:
        try:
            return parse_package(path, context.host.read(path))
        except Missing:
            continue
    raise Missing(paths[0])


@fact("driver")
def fact_driver(context: Context) -> Fact:
    """The driver's version; none where neither the driver nor a device is to be seen."""
    return _fact(context, "driver")


@fact("firmware")
def fact_firmware(context: Context) -> Fact:
    """The firmware's version; none where there is no driver either."""
    return _fact(context, "firmware")


def _fact(context: Context, kind: str) -> Fact:
    try:
        package = context.cached(read_package, kind)
    except Missing as error:
        trace = context.cached(driver_trace)
        if trace is None:
            return Fact(kind, "none", error.path)
        return Fact(
            kind,
            None,
            error.path,
            Message(
                "{path} is not there although {trace} is (a container sees it only when it is mounted)",
                path=error.path,
                trace=trace,
            ),
        )
    return Fact(kind, package.shown, package.path)


def driver_trace(context: Context) -> Optional[str]:
    """Something that only a host with a driver has, None when there is nothing of it."""
    for pattern in DEVICES:
        for path in context.host.glob(pattern):
            return path
    for base in bases(context.host, "driver"):
        if is_dir(context.host, f"{base}/driver"):
            return f"{base}/driver"
    return None


@probe("cann.firmware_match", formerly="driver.firmware_match")
def firmware_match(context: Context) -> Iterable[Reading]:
    """Whether driver and firmware accept each other.

    Rule: one delivery (equal package_version) or either side accepting the other is a match; both refusing is none; a
    file that is missing or silent leaves it open. Sources: porting guide 003:3024-3036 for the demand; key names and
    ranges as in public version.info samples; the DCMI source of the driver, which asks the driver's list first and
    then the firmware's.
    """
    driver = context.cached(read_package, "driver")
    try:
        firmware = context.cached(read_package, "firmware")
    except Missing as error:
        raise Undetermined(
            Message(
                "{path} is not there, so the firmware cannot be compared (in a container ask the host)", path=error.path
            ),
            error.path,
            driver.text,
        ) from None
    return [judge_firmware(driver, firmware)]


def judge_firmware(driver: Package, firmware: Package) -> Reading:
    """The verdict over two packages as a reading: match, mismatch, or not told."""
    same = bool(driver.bundle) and driver.bundle.lower() == firmware.bundle.lower()
    by_driver = _says([firmware.version], driver.accepts)
    by_firmware = _says([driver.bundle, driver.version], firmware.accepts)
    evidence = Evidence(f"{driver.path}, {firmware.path}", f"[driver]\n{driver.text}\n[firmware]\n{firmware.text}")
    words = _words(same, by_driver, by_firmware)
    shown = Message(
        "driver {shown}, firmware {version}: {words}",
        shown=driver.shown,
        version=firmware.version or firmware.shown,
        words=words,
    )
    expected = Bilingual(
        f"firmware in {driver.accepts or 'the list of the driver'}, or a driver in "
        f"{firmware.accepts or 'the list of the firmware'}",
        f"固件在 {driver.accepts or '驱动的兼容列表'} 内，或驱动在 {firmware.accepts or '固件的兼容列表'} 内",
    )
    if same or by_driver or by_firmware:
        return Reading("firmware", "match", evidence, shown, expected)
    if by_driver is False and by_firmware is False:
        return Reading("firmware", "mismatch", evidence, shown, expected)
    return Reading("firmware", None, evidence, shown, expected, reason=shown)


def _says(versions: list[str], ranges: str) -> Optional[bool]:
    """Whether a list accepts one of the versions; None when it is silent or cannot be understood."""
    known = [version for version in versions if version]
    if not known or not ranges:
        return None
    answers: list[bool] = []
    for version in known:
        try:
            answers.append(in_ranges(version, ranges))
        except ValueError:
            continue
    return any(answers) if answers else None


def _words(same: bool, by_driver: Optional[bool], by_firmware: Optional[bool]) -> Text:
    said = {
        True: Message("accepts it"),
        False: Message("refuses it"),
        None: Message("does not say"),
    }
    bundle = Message("one delivery (equal package_version); ") if same else Literal("")
    driver, firmware = said[by_driver], said[by_firmware]
    return Message(
        "{bundle}the driver {driver}, the firmware {firmware}", bundle=bundle, driver=driver, firmware=firmware
    )
