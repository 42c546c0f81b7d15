"""System packages and header files that building Pillow or pillow-simd from source needs.

Debian's package database is text and is read; RPM's is binary and `rpm` is asked once. Names of the porting guide
(003:1436, 1440, 2907-2911), with its wrong ones corrected: `libjpeg`, `python-devel`, `zlib-devel` and
`libjpeg-turbo-devel` are not Debian packages, and `libjpeg8-dev` is Ubuntu's name for what Debian calls
`libjpeg62-turbo-dev`.
"""

from __future__ import annotations

import re
from typing import Iterable, Mapping

from envtune.collector.python.distributions import python_includes, system_includes
from envtune.collector.sources.images import DPKG_STATUS, PILLOW_BUILD_DEBIAN, PILLOW_BUILD_QUERY
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Denied, HostError, Missing, NotApplicable, Undetermined, host_error_text
from envtune.host import Host, exists
from envtune.messages import Message, enumerated
from envtune.model import Evidence, Reading
from envtune.ranges import checked_int
from envtune.resources.images.pillow import BROKEN, SIMD, imported_pillow
from envtune.resources.python.distributions import NONE, interpreter

WHEELS_SINCE = (3, 9)
HEADER_PACKAGES: Mapping[str, tuple[str, str]] = {  # header -> (Debian, RHEL)
    "jpeglib.h": ("libjpeg-dev", "libjpeg-turbo-devel"),
    "zlib.h": ("zlib1g-dev", "zlib-devel"),
    "Python.h": ("python3-dev", "python3-devel"),
}


@probe("images.pillow_build_packages", formerly="packages.pillow_build")
def pillow_build(context: Context) -> Iterable[Reading]:
    """System packages needed to build pillow-simd that are not installed; empty if all are installed."""
    _only_for_training(context)
    missing, evidence = missing_packages(context)
    if missing and _imports(context) == SIMD:
        raise NotApplicable(
            Message("PIL is already imported from pillow-simd: nothing needs to be built"),
            evidence.source,
            "missing: " + " ".join(missing),
        )
    yield Reading("packages", missing, evidence, enumerated(missing) if missing else Message("all"))


def missing_packages(context: Context) -> tuple[tuple[str, ...], Evidence]:
    """Return the packages to install, in the names of this distribution, and where that was read."""
    if context.facts.value("os_family") == "debian":
        wanted = PILLOW_BUILD_DEBIAN
        known = installed_debian(context.host, {name for any_of in wanted for name in any_of})
        names = tuple(_debian_name(context, any_of) for any_of in wanted if not set(any_of) & known)
        return names, Evidence(DPKG_STATUS, f"{len(wanted) - len(names)} of {len(wanted)} are installed")
    result = context.host.run(PILLOW_BUILD_QUERY, 10.0)
    return missing_rpm(result.stdout + result.stderr), Evidence(result.line, result.stdout + result.stderr)


def installed_debian(host: Host, names: Iterable[str]) -> frozenset[str]:
    """Return those of `names` that are installed, by dpkg's status file; raises Undetermined if there is none."""
    try:
        text = host.read(DPKG_STATUS).replace("\r\n", "\n")
    except Missing as error:
        reason = Message("{reason} (the list of installed packages)", reason=host_error_text(error))
        raise Undetermined(reason, DPKG_STATUS, DPKG_STATUS) from None
    return installed_in(text, names)


def installed_in(text: str, names: Iterable[str]) -> frozenset[str]:
    """Return those of `names` whose state is `installed` in the text of dpkg's status file."""
    return frozenset(name for name in names if _is_installed(text, name))


def _is_installed(text: str, name: str) -> bool:
    """Search the name first: a status file has some thousand paragraphs, of which a few are needed."""
    at = text.find(f"Package: {name}\n")
    while at >= 0:
        end = text.find("\n\n", at)
        end = len(text) if end < 0 else end
        if (at == 0 or text[at - 1] == "\n") and _says_installed(text[at:end]):
            return True
        at = text.find(f"Package: {name}\n", end)
    return False


def _says_installed(paragraph: str) -> bool:
    """Return whether the third word of a paragraph's status is `installed`."""
    states = (line[7:].split() for line in paragraph.split("\n") if line.startswith("Status:"))
    return any(len(words) > 2 and re.match(r"installed\b", words[2]) for words in states)


def _debian_name(context: Context, any_of: tuple[str, ...]) -> str:
    """Choose Ubuntu's own name only on Ubuntu."""
    ubuntu = context.facts.value("os") == "ubuntu"
    return next((name for name in any_of if ubuntu or not name.startswith("libjpeg8")), any_of[0])


def missing_rpm(output: str) -> tuple[str, ...]:
    """Return the names that `rpm -q --whatprovides` finds no package for."""
    return tuple(re.findall(r"^no package provides (\S+)", output, re.M))


@probe("images.pillow_headers", formerly="packages.pillow_headers")
def pillow_headers(context: Context) -> Iterable[Reading]:
    """Path of each header file needed to build Pillow; empty if not found."""
    readings = [_header(context, name) for name in HEADER_PACKAGES]
    missing = [reading.subject for reading in readings if reading.reason is None and not reading.value]
    if missing:
        _only_for_training(context)
        _only_without_wheels(context)
        if _imports(context) not in (NONE, BROKEN):
            raise NotApplicable(
                Message("Pillow is already installed, so {headers} is not needed now", headers=enumerated(missing)),
                readings[0].evidence.source,
            )
    return readings


def _header(context: Context, name: str) -> Reading:
    family = context.facts.value("os_family")
    package = HEADER_PACKAGES[name][0 if family == "debian" else 1]
    expected = Message("{name} (package {package})", name=name, package=package)
    folders = tuple(dict.fromkeys(header_folders(context, name)))
    places = tuple(f"{folder}/{name}" for folder in folders)
    for place in places:
        try:
            if exists(context.host, place):
                return Reading(name, place, Evidence(place), expected=expected)
        except HostError as error:
            reason, needs_privilege = host_error_text(error), isinstance(error, Denied)
            return Reading(name, "", Evidence(place), expected=expected, reason=reason, needs_privilege=needs_privilege)
    absent = Message("not in {folders}", folders=enumerated(folders))
    return Reading(name, "", Evidence(places[0], "\n".join(places)), absent, expected)


def header_folders(context: Context, name: str) -> Iterable[str]:
    """Return where a compiler looks for a header; Python.h belongs to the interpreter's own installation."""
    python = interpreter(context)
    if name == "Python.h":
        return python_includes(python.real, python.version)
    return system_includes(python.prefix, context.facts.value("arch") or "")


def _imports(context: Context) -> str:
    try:
        return imported_pillow(context).kind
    except NotApplicable:
        return NONE


def _only_without_wheels(context: Context) -> None:
    """Raise NotApplicable if pip installs Pillow from a wheel, so that nothing is built.

    Pillow publishes manylinux2014 wheels for x86_64 and aarch64 (PyPI, 9.5.0: cp37 and newer); pip supports them since
    19.3, and every Python from 3.9 on includes a newer pip.
    """
    version = interpreter(context).version
    numbers = tuple(checked_int(part) for part in version.split("."))
    if numbers >= WHEELS_SINCE and context.facts.value("arch") in ("x86_64", "aarch64"):
        words = Message("Python is {version}: its pip installs Pillow from a wheel, nothing is built", version=version)
        raise NotApplicable(words, interpreter(context).real)


def _only_for_training(context: Context) -> None:
    """Raise NotApplicable on a host without any sign of training: no Pillow, no torch, no Ascend software."""
    torch, ascend = context.facts["torch"], context.facts["ascend"]
    if _imports(context) != NONE or torch.value not in (None, NONE) or ascend.value == "true":
        return
    for fact in (torch, ascend):
        if fact.value is None:
            raise Undetermined(fact.reason or Message("{name} unknown", name=fact.name), fact.source)
    raise NotApplicable(
        Message("not a training host: no torch, no Pillow and no Ascend component"),
        torch.source,
    )
