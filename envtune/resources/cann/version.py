"""Which CANN version a tree is: several files say it, and they may disagree.

Trusted in this order: `version=` of ascend_*_install.info, the version directory the links lead to, `version_dir` of
the packages' version.info, the CANN half of version.cfg, internal numbers through the matrix. A version.cfg that was
left behind by an older install has been seen in the wild (8.0.T63 beside links to 8.2.RC2), so it comes late and is
reported.
"""

from __future__ import annotations

import re
from posixpath import basename, join
from typing import NamedTuple, Optional

from envtune.collector.sources.cann import key_values
from envtune.errors import HostError, Missing, NotRecorded, host_error_text
from envtune.host import Host
from envtune.messages import Message, Text
from envtune.resources.cann.version_files import described, same_version, version_cfg

INSTALL_INFOS = ("*-linux*/ascend_*_install.info", "ascend_*_install.info")
PACKAGES = ("compiler", "opp", "runtime", "toolkit", "opp_kernel", "fwkacllib")
_VERSION = re.compile(r"(?:cann-)?(\d+(?:[.-]\w+)+)")


class Told(NamedTuple):
    """What the files of one tree tell about its version; `notes` where they disagree."""

    version: Optional[str]
    source: str
    text: str = ""
    inner: str = ""  # innerversion= of the install info: V100R001C22SPC001B231
    notes: tuple[Text, ...] = ()
    reason: Optional[Text] = None


class Word(NamedTuple):
    """One statement about the version."""

    version: str
    source: str
    text: str


def told_version(host: Host, path: str, real: str) -> Told:
    """The version of the tree at `real` that is named `path`."""
    trouble: list[Text] = []
    words, inner = _install_infos(host, path, real, trouble)
    words += [word for word in (_directory(real), *_version_dirs(host, real, trouble)) if word]
    words += _version_cfg(host, path, real, trouble)
    if not words:
        words = _internal(host, real, inner, trouble)
    if not words:
        reason = trouble[0] if trouble else Message("no file below {real} tells the version", real=real)
        return Told(None, real, inner=inner, reason=reason)
    first = words[0]
    notes: dict[str, Text] = {}
    for word in words[1:]:
        if not same_version(word.version, first.version):
            key = f"{word.version} {basename(word.source)}"
            notes.setdefault(key, Message("{source} says {version}", source=word.source, version=word.version))
    return Told(first.version, first.source, first.text, inner, tuple(notes.values()))


def _install_infos(host: Host, path: str, real: str, trouble: list[Text]) -> tuple[list[Word], str]:
    """(what the install infos say, innerversion); the toolkit or nnae comes before the operator packages."""
    words: list[Word] = []
    inner = ""
    for file in _info_files(host, path, real):
        found = key_values(_read(host, file, trouble))
        inner = inner or found.get("innerversion", "")
        if _VERSION.fullmatch(found.get("version", "")):
            keys = ("package_name", "version", "innerversion", "compatible_version", "path")
            words.append(Word(found["version"], file, described(found, *keys)))
    return words, inner


def _info_files(host: Host, path: str, real: str) -> list[str]:
    for root in dict.fromkeys((real, path)):
        files = [file for pattern in INSTALL_INFOS for file in _glob(host, join(root, pattern))]
        if files:
            return sorted(files, key=lambda file: not basename(file).startswith(("ascend_toolkit", "ascend_nnae")))
    return []


def _directory(real: str) -> Optional[Word]:
    found = _VERSION.fullmatch(basename(real))
    return Word(found[1], real, real) if found else None


def _version_dirs(host: Host, real: str, trouble: list[Text]) -> list[Word]:
    words = []
    for file in _version_infos(host, real):
        found = key_values(_read(host, file, trouble))
        version = found.get("version_dir") or ""
        if not version and "/share/info/" in file:
            # From CANN 8.5 on, Version= may be the public version itself: 9.1.0, while 8.5.0.2.220 is an internal one.
            version = found.get("version", "") if found.get("version", "").count(".") == 2 else ""
        if _VERSION.fullmatch(version):
            words.append(Word(version, file, described(found, "version", "version_dir")))
    return words


def _version_infos(host: Host, real: str) -> tuple[str, ...]:
    files = [join(real, package, "version.info") for package in PACKAGES]
    return (*files, *_glob(host, join(real, "share/info/*/version.info")))


def _version_cfg(host: Host, path: str, real: str, trouble: list[Text]) -> list[Word]:
    words = []
    for root in dict.fromkeys((path, real)):
        file = join(root, "version.cfg")
        pairs = version_cfg(_read(host, file, trouble))
        for cann in dict.fromkeys(cann for _, cann in pairs.values() if _VERSION.fullmatch(cann)):
            packages = ", ".join(name for name, pair in pairs.items() if pair[1] == cann)
            words.append(Word(cann, file, f"{packages}: {cann}"))
    return words


def _internal(host: Host, real: str, inner: str, trouble: list[Text]) -> list[Word]:
    """Internal numbers that the matrix knows; nothing is guessed from their digits."""
    from envtune.resources.cann.compatibility import cann_of_internal

    words = []
    for file in _version_infos(host, real):
        number = key_values(_read(host, file, trouble)).get("version", "")
        cann = cann_of_internal(number) if number else None
        if cann:
            words.append(Word(cann, file, f"Version={number}"))
    cann = cann_of_internal(inner) if inner else None
    return [*words, Word(cann, real, f"innerversion={inner}")] if cann else words


def _read(host: Host, path: str, trouble: list[Text]) -> str:
    try:
        return host.read(path)
    except Missing:
        return ""
    except HostError as error:
        trouble.append(host_error_text(error))
        return ""


def _glob(host: Host, pattern: str) -> tuple[str, ...]:
    try:
        return host.glob(pattern)
    except (NotRecorded, HostError):
        return ()
