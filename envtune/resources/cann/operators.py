"""The operator packages (ops, kernels) of a CANN install, and whether they belong to its toolkit.

From CANN 8.5 on both can be upgraded separately. Sources: release notes of CANN 9.0.1, 9.1.0 and 9.1.1 (tables "ops and
toolkit"); `required_package_*_version` in public version.info files of CANN 8.1 to 8.3, which compare internal numbers.
"""

from __future__ import annotations

import re
from posixpath import basename, dirname, join
from typing import Iterable, Mapping, NamedTuple, Optional

from envtune.collector.sources.cann import key_values
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, NotApplicable
from envtune.host import Host
from envtune.messages import Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.cann.compatibility import newer_cann, published, toolkits_of_ops
from envtune.resources.cann.installs import active_install
from envtune.resources.cann.tree import Install
from envtune.resources.cann.version_files import requirement_met, same_release, same_version

# The toolkit packages whose version.info may refer to operator packages, and to which these may refer.
TOOLKIT_PARTS = ("toolkit", "compiler", "runtime")
OPERATOR_PARTS = ("opp", "opp_kernel")
_OPERATOR_INFO = re.compile(r"ascend_(?!toolkit|nnae|nnrt)\w*(ops|kernels)\w*_install\.info")


class OperatorPackage(NamedTuple):
    """One operator package: `name` as used by CANN, its CANN version, the file that states it, and its fields."""

    name: str
    version: str
    path: str
    fields: Mapping[str, str]


@probe("cann.operators_match")
def operators_match(context: Context) -> Iterable[Reading]:
    """Whether each operator package has the version of the toolkit of the active CANN: `match` or `mismatch`."""
    host, install = context.host, active_install(context)
    packages = _operator_packages(host, install)
    if not packages:
        raise NotApplicable(Message("no operator package has its own version"), install.real)
    toolkit = _toolkit_version(host, install)
    parts = {part: fields for part in TOOLKIT_PARTS for fields in [_part_fields(host, install, part)[1]] if fields}
    return [_reading(package, toolkit, install, parts) for package in packages]


def _operator_packages(host: Host, install: Install) -> list[OperatorPackage]:
    found: dict[str, OperatorPackage] = {}
    for path in _files(host, install, "*-linux*/ascend_*_install.info", "ascend_*_install.info"):
        fields = _fields(host, path)
        if _OPERATOR_INFO.fullmatch(basename(path)) and fields.get("version"):
            name = fields.get("package_name") or basename(path)[: -len("_install.info")]
            found.setdefault(name, OperatorPackage(name, fields["version"], path, fields))
    for part in OPERATOR_PARTS:
        path, fields = _part_fields(host, install, part)
        if fields.get("version_dir"):
            found.setdefault(part, OperatorPackage(part, fields["version_dir"], path, fields))
    return list(found.values())


def _toolkit_version(host: Host, install: Install) -> Optional[str]:
    """Return the version of the toolkit (or nnae) itself; that of the install if no file of the toolkit states it."""
    for path in _files(host, install, "*-linux*/ascend_*_install.info", "ascend_*_install.info"):
        if re.match(r"ascend_(toolkit|nnae|nnrt)_", basename(path)):
            version = _fields(host, path).get("version")
            if version:
                return version
    for part in TOOLKIT_PARTS:
        version = _part_fields(host, install, part)[1].get("version_dir")
        if version:
            return version
    return install.version


def _part_fields(host: Host, install: Install, part: str) -> tuple[str, Mapping[str, str]]:
    """Return the path and fields of a part's version.info, in the layout before 8.5 or the one since."""
    for path in install.places(f"{part}/version.info", f"share/info/{part}/version.info"):
        fields = _fields(host, path)
        if fields:
            return path, fields
    return "", {}


def _fields(host: Host, path: str) -> Mapping[str, str]:
    try:
        return key_values(host.read(path))
    except HostError:
        return {}


def _files(host: Host, install: Install, *patterns: str) -> list[str]:
    paths: dict[str, None] = {}
    for root in dict.fromkeys((install.real, install.path)):
        for pattern in patterns:
            try:
                paths.update(dict.fromkeys(sorted(host.glob(join(root, pattern)))))
            except HostError:
                continue
    return list(paths)


def _reading(
    package: OperatorPackage, toolkit: Optional[str], install: Install, parts: Mapping[str, Mapping[str, str]]
) -> Reading:
    month, rows = published(), toolkits_of_ops(package.version)
    pair: Text = Message(
        "{name} {version}, toolkit {toolkit}", name=package.name, version=package.version, toolkit=toolkit or "?"
    )
    lines = [f"{package.path}: {package.version}", f"{install.evidence.source}: {toolkit}", *(row.text for row in rows)]
    evidence = Evidence(package.path, "\n".join(lines))
    listed = " | ".join(dict.fromkeys(row.cann for row in rows)) or package.version
    expected = Message(
        "toolkit {listed} for {name} {version}", listed=listed, name=package.name, version=package.version
    )
    if toolkit is None:
        reason: Optional[Text] = install.evidence.reason or Message("the version of the toolkit is not stated")
        return Reading(package.name, None, evidence, pair, expected, reason=reason)
    if same_version(package.version, toolkit):
        return Reading(package.name, "match", evidence, pair, expected)
    if any(same_release(toolkit, row.cann) for row in rows):
        shown = Message("{pair}: a published pair (data of {month})", pair=pair, month=month)
        return Reading(package.name, "match", evidence, shown, expected)
    refused, accepted = _stated(package, parts)
    if refused:
        shown = Message("{pair}: rejected by {stated}", pair=pair, stated=refused)
        return Reading(package.name, "mismatch", evidence, shown, expected)
    if accepted:
        shown = Message("{pair}: accepted by {stated}", pair=pair, stated=accepted)
        return Reading(package.name, "match", evidence, shown, expected)
    reason = Message("not among the published pairs of {month}: {pair}", pair=pair, month=month)
    newer = newer_cann(package.version) or newer_cann(toolkit)
    if newer is not None:
        reason = Message("{reason}; {newer}", reason=reason, newer=newer)
    return Reading(package.name, None, evidence, pair, expected, reason=reason)


def _stated(package: OperatorPackage, parts: Mapping[str, Mapping[str, str]]) -> tuple[str, str]:
    """Return the first statement of either side that refuses the other one, and the first that accepts it."""
    refused, accepted = "", ""
    part = basename(dirname(package.path))
    for name, fields in parts.items():
        for owner, wanted, statement in (
            (name, package.fields, f"required_package_{part}_version"),
            (part, fields, f"required_package_{name}_version"),
        ):
            requirement = (fields if owner == name else package.fields).get(statement, "")
            try:
                met = requirement_met(wanted.get("version", ""), requirement)
            except ValueError:
                continue
            text = f"{owner}: {statement}={requirement}"
            refused, accepted = (refused, accepted or text) if met else (refused or text, accepted)
    return refused, accepted
