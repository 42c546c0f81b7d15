"""Which CANN version a tree is: several files state it, and they may disagree.

Trusted in this order: `version=` of ascend_*_install.info, the version directory the links lead to, `version_dir` of
the packages' version.info, the CANN half of version.cfg, internal numbers through the matrix. A version.cfg left by an
older install has been seen in the wild (8.0.T63 next to links to 8.2.RC2), so it comes late and disagreement is
reported.
"""

from __future__ import annotations

from posixpath import basename, join
from typing import Optional

from envtune.collector.sources.cann import key_values
from envtune.errors import HostError, Missing, host_error_text
from envtune.host import Host
from envtune.messages import Message, Text
from envtune.records import NamedTuple, expression
from envtune.resources.cann.compatibility import cann_of_internal
from envtune.resources.cann.version_files import same_version, selected_fields, version_cfg

INSTALL_INFOS = ("*-linux*/ascend_*_install.info", "ascend_*_install.info")
PACKAGES = ("compiler", "opp", "runtime", "toolkit", "opp_kernel", "fwkacllib")
_VERSION = expression(r"(?:cann-)?(\d+(?:[.-]\w+)+)")


class VersionEvidence(NamedTuple):
    """The version of one tree and the file that states it; `notes` if others disagree, `reason` if none states it."""

    version: Optional[str]
    source: str
    text: str = ""
    inner: str = ""  # innerversion= of the install info: V100R001C22SPC001B231
    notes: tuple[Text, ...] = ()
    reason: Optional[Text] = None


class Statement(NamedTuple):
    """The version stated by one file."""

    version: str
    source: str
    text: str


def read_version(host: Host, path: str, real: str) -> VersionEvidence:
    """Return the version of the tree at `real`, which has the name `path`."""
    problems: list[Text] = []
    statements, inner = _install_infos(host, path, real, problems)
    statements += [*_directory_name(real), *_version_dirs(host, real, problems)]
    statements += _version_cfg(host, path, real, problems)
    if not statements:
        statements = _internal_numbers(host, real, inner, problems)
    if not statements:
        reason = problems[0] if problems else Message("no file below {tree} shows the version", tree=real)
        return VersionEvidence(None, real, inner=inner, reason=reason)
    trusted = statements[0]
    notes: dict[str, Text] = {}
    for other in statements[1:]:
        if not same_version(other.version, trusted.version):
            key = f"{other.version} {basename(other.source)}"
            notes.setdefault(key, Message("{version} in {source}", source=other.source, version=other.version))
    return VersionEvidence(trusted.version, trusted.source, trusted.text, inner, tuple(notes.values()))


def _install_infos(host: Host, path: str, real: str, problems: list[Text]) -> tuple[list[Statement], str]:
    """Return the statements of the install infos, and innerversion; toolkit and nnae precede operator packages."""
    statements: list[Statement] = []
    inner = ""
    for file in _info_files(host, path, real):
        info = key_values(_read(host, file, problems))
        inner = inner or info.get("innerversion", "")
        if _VERSION.fullmatch(info.get("version", "")):
            keys = ("package_name", "version", "innerversion", "compatible_version", "path")
            statements.append(Statement(info["version"], file, selected_fields(info, *keys)))
    return statements, inner


def _info_files(host: Host, path: str, real: str) -> list[str]:
    for root in dict.fromkeys((real, path)):
        files = [file for pattern in INSTALL_INFOS for file in _glob(host, join(root, pattern))]
        if files:
            return sorted(files, key=lambda file: not basename(file).startswith(("ascend_toolkit", "ascend_nnae")))
    return []


def _directory_name(real: str) -> list[Statement]:
    version = _VERSION.fullmatch(basename(real))
    return [Statement(version[1], real, real)] if version else []


def _version_dirs(host: Host, real: str, problems: list[Text]) -> list[Statement]:
    statements = []
    for file in _version_infos(host, real):
        info = key_values(_read(host, file, problems))
        version = info.get("version_dir") or ""
        if not version and "/share/info/" in file:
            # From CANN 8.5 on, Version= may be the public version itself: 9.1.0; 8.5.0.2.220 is an internal one.
            version = info.get("version", "") if info.get("version", "").count(".") == 2 else ""
        if _VERSION.fullmatch(version):
            statements.append(Statement(version, file, selected_fields(info, "version", "version_dir")))
    return statements


def _version_infos(host: Host, real: str) -> tuple[str, ...]:
    files = [join(real, package, "version.info") for package in PACKAGES]
    return (*files, *_glob(host, join(real, "share/info/*/version.info")))


def _version_cfg(host: Host, path: str, real: str, problems: list[Text]) -> list[Statement]:
    statements = []
    for root in dict.fromkeys((path, real)):
        file = join(root, "version.cfg")
        pairs = version_cfg(_read(host, file, problems))
        for cann in dict.fromkeys(cann for _, cann in pairs.values() if _VERSION.fullmatch(cann)):
            packages = ", ".join(name for name, pair in pairs.items() if pair[1] == cann)
            statements.append(Statement(cann, file, f"{packages}: {cann}"))
    return statements


def _internal_numbers(host: Host, real: str, inner: str, problems: list[Text]) -> list[Statement]:
    """Return the versions of internal numbers in the matrix; nothing is guessed from their digits."""
    statements = []
    for file in _version_infos(host, real):
        number = key_values(_read(host, file, problems)).get("version", "")
        cann = cann_of_internal(number) if number else None
        if cann:
            statements.append(Statement(cann, file, f"Version={number}"))
    cann = cann_of_internal(inner) if inner else None
    return [*statements, Statement(cann, real, f"innerversion={inner}")] if cann else statements


def _read(host: Host, path: str, problems: list[Text]) -> str:
    try:
        return host.read(path)
    except Missing:
        return ""
    except HostError as error:
        problems.append(host_error_text(error))
        return ""


def _glob(host: Host, pattern: str) -> tuple[str, ...]:
    try:
        return host.glob(pattern)
    except HostError:
        return ()
