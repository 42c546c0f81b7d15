"""The location of an interpreter's installation, its version and its site directories.

Sources: CPython's site.py and Modules/getpath (3.6 to 3.13), Debian's and Fedora's patched site.py.
"""

import os
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..paths import kind_at, names_in, real_path
from .errors import Unresolved


def venv_settings(host: Any, path: str) -> Tuple[Optional[Dict[str, str]], str]:
    """Return the keys of the pyvenv.cfg of an interpreter path, and its directory; (None, "") without one.

    CPython looks in the directory of the path it was started by and one level up, without following links. A virtualenv
    older than 20 has no such file; it is recognized by lib/pythonX.Y/orig-prefix.txt.
    """
    folder = os.path.dirname(path)
    for place in (folder, os.path.dirname(folder)):
        try:
            text = host.read(place + "/pyvenv.cfg")
        except FileNotFoundError:
            continue
        settings = {}
        for line in text.splitlines():
            key, mark, value = line.partition("=")
            if mark:
                settings[key.strip().lower()] = value.strip()
        return settings, place
    prefix = os.path.dirname(folder)
    for lib in names_in(host, prefix + "/lib"):
        if lib.startswith("python") and kind_at(host, "%s/lib/%s/orig-prefix.txt" % (prefix, lib)) == "file":
            base = host.read("%s/lib/%s/orig-prefix.txt" % (prefix, lib)).strip()
            closed = kind_at(host, "%s/lib/%s/no-global-site-packages.txt" % (prefix, lib)) == "file"
            shared = "false" if closed else "true"
            return {"home": base + "/bin", "version": lib[6:], "include-system-site-packages": shared}, prefix
    return None, ""


def venv_version(host: Any, settings: Mapping[str, str], prefix: str, real: str) -> str:
    """Return the X.Y of a virtual environment; raises Unresolved if nothing tells it."""
    for key in ("version", "version_info"):
        match = re.match(r"([0-9]+\.[0-9]+)", settings.get(key, ""))
        if match:
            return match.group(1)
    return _version_by_name(os.path.basename(real)) or _only_version(host, prefix, real)


def _version_by_name(name: str) -> str:
    match = re.search(r"(?:python|pypy)([0-9]+\.[0-9]+)", name)
    return match.group(1) if match else ""


def _only_version(host: Any, prefix: str, real: str) -> str:
    """Return the X.Y of the only lib/pythonX.Y below `prefix`."""
    versions = set()
    for lib in ("lib", "lib64"):
        for name in names_in(host, "%s/%s" % (prefix, lib)):
            if re.match(r"python[0-9]+\.[0-9]+$", name):
                versions.add(name[6:])
    if len(versions) != 1:
        raise Unresolved("version", real, ", ".join(sorted(versions)))
    return versions.pop()


def installation(host: Any, folders: Sequence[str], name: str) -> Tuple[str, str]:
    """Return (prefix, version) of the Python that the first of `folders` belongs to: the nearest one with the library.

    CPython looks for lib/pythonX.Y/os.py from there upwards. If no parent has it, the directory alone is enough, since
    a recording may lack os.py.
    """
    version = _version_by_name(name)
    if not version:
        prefix = os.path.dirname(folders[0])
        return prefix, _only_version(host, prefix, folders[-1] + "/" + name)
    for landmark in ("/os.py", ""):
        for place in [parent for folder in folders for parent in _parents(folder)]:
            for lib in ("lib", "lib64"):
                if _is_landmark(host, "%s/%s/python%s%s" % (place.rstrip("/"), lib, version, landmark)):
                    return place, version
    raise Unresolved("no-library", folders[-1] + "/" + name, "lib/python" + version)


def _parents(folder: str) -> Iterator[str]:
    """Yield the directory and its parents."""
    while folder.startswith("/"):
        yield folder
        if folder == "/":
            return
        folder = os.path.dirname(folder)


def _is_landmark(host: Any, path: str) -> bool:
    """Return whether it exists; what a recording does not say counts as absent, and the next landmark decides."""
    try:
        host.stat(path)
    except PermissionError:
        raise
    except OSError:
        return False
    return True


def site_packages(prefix: str, version: str) -> List[str]:
    """Return the site-packages directories below a prefix, in import order."""
    return ["%s/%s/python%s/site-packages" % (prefix.rstrip("/"), lib, version) for lib in ("lib64", "lib")]


def user_site(variables: Mapping[str, str], version: str) -> List[str]:
    """Return the user's site directory, none if it is disabled."""
    base = variables.get("PYTHONUSERBASE") or (variables["HOME"] + "/.local" if variables.get("HOME") else "")
    if not base or variables.get("PYTHONNOUSERSITE"):
        return []
    return ["%s/lib/python%s/site-packages" % (base, version)]


def installation_sites(host: Any, prefix: str, version: str) -> List[str]:
    """Return the site directories of an installation, in import order, as patched by Debian and Fedora for /usr."""
    if prefix != "/usr":
        return site_packages(prefix, version)
    debian = [
        "/usr/local/lib/python%s/dist-packages" % version,
        "/usr/lib/python%s/dist-packages" % (version if version.startswith("2") else "3"),
    ]
    if not version.startswith("2"):
        debian.append("/usr/lib/python%s/dist-packages" % version)
    if any(kind_at(host, path) == "dir" for path in debian):
        return debian
    sites = site_packages("/usr", version)
    if kind_at(host, "/usr/local/bin/python" + version) is None:  # otherwise /usr/local is another Python's
        sites = site_packages("/usr/local", version) + sites
    return sites


def present(host: Any, paths: Sequence[str]) -> List[str]:
    """Return those that exist (or may not be examined), each directory once, even if lib64 links to lib."""
    by_target: Dict[str, str] = {}
    for path in paths:
        try:
            host.stat(path)
            real = real_path(host, path)
            if real not in by_target or "/lib64/" in by_target[real]:
                by_target[real] = path
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            by_target.setdefault(path, path)
    return list(by_target.values())
