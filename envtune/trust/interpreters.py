"""Where a Python interpreter runs code from: its base, its library, its site directories and what these name."""

import glob
import os
import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Set

from .ownership import Exposure, exposed_below, who_can_change

_PACKAGES = ("site-packages", "dist-packages")
_MODULES = (".py", ".pyc", ".so")
# By path: a run starts the same interpreter several times, and examining a large environment takes a second.
_judged: Dict[str, Optional[Exposure]] = {}


class Installation(NamedTuple):
    """Where a Python looks: its prefixes, its version as a shell pattern, and the files that say so."""

    prefixes: List[str]
    version: str
    settings: List[str]


def is_python(path: str) -> bool:
    """Return whether a program is a Python interpreter, by its name."""
    return re.match(r"(python|pypy)[0-9.]*$", os.path.basename(path)) is not None


def interpreter_exposure(python: str) -> Optional[Exposure]:
    """Return what users other than root and the caller can change of what an interpreter imports or reads at start-up.

    This covers the program and its base (`home` of pyvenv.cfg), the standard library, the site directories with pip and
    everything else below them, what .pth files name with its modules, and pip's configuration.
    """
    if python not in _judged:
        _judged[python] = _first_exposure(python)
    return _judged[python]


def library_directories(python: str) -> List[str]:
    """Return the directory of an interpreter's libpython: with --enable-shared, only LD_LIBRARY_PATH may find it."""
    folders = ["%s/lib" % prefix for prefix in dict.fromkeys(_installation(python).prefixes) if prefix != "/usr"]
    return [folder for folder in folders if glob.glob(glob.escape(folder) + "/libpython*.so*")]


def _first_exposure(python: str) -> Optional[Exposure]:
    for place in _places(python):
        exposure = who_can_change(_existing(place))
        if exposure is None and os.geteuid() == 0 and os.path.isdir(place) and _is_library(place):
            exposure = exposed_below(place, _PACKAGES)
        if exposure is None and os.path.basename(place) in _PACKAGES:
            exposure = _exposure_by_pth(place)
        if exposure is not None:
            return exposure
    return None


def _exposure_by_pth(site: str) -> Optional[Exposure]:
    """Return what others can change of what the .pth files of a site directory name."""
    for place in _named_by_pth(site):
        exposure = who_can_change(_existing(place))
        if exposure is None and os.geteuid() == 0 and os.path.isdir(place):
            exposure = _exposed_modules(place, set())
        if exposure is not None:
            return exposure
    return None


def _exposed_modules(folder: str, seen: Set[str], inside: bool = False) -> Optional[Exposure]:
    """Return the first module below a directory of the import path that others can change.

    It may also contain data: a directory without `__init__` is entered only if it may be a namespace package itself.
    """
    seen.add(os.path.realpath(folder))
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        below = os.path.isdir(path)
        if not (name.isidentifier() if below else name.endswith(_MODULES)):
            continue
        exposure = who_can_change(path if os.path.exists(path) else _existing(os.path.realpath(path)))
        entered = below and os.path.realpath(path) not in seen
        if exposure is None and entered and (not inside or name == "__pycache__" or _is_package(path)):
            exposure = _exposed_modules(path, seen, inside=True)
        if exposure is not None:
            return exposure
    return None


def _is_package(folder: str) -> bool:
    return bool(glob.glob(glob.escape(folder) + "/__init__.*"))


def _existing(path: str) -> str:
    """Return the path, or its nearest existing parent: whoever can write there can create it before the start."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path


def _is_library(path: str) -> bool:
    return re.search("/(site-packages|dist-packages|python[0-9.]*)$", path) is not None


def _places(python: str) -> Iterator[str]:
    """Yield every path whose owner controls what this interpreter runs."""
    found = _installation(python)
    yield from found.settings
    for prefix in dict.fromkeys(found.prefixes):
        yield prefix
        for lib in ("lib", "lib64", "local/lib"):
            yield "%s/%s" % (prefix, lib)
            for pattern in ("python*.zip", "libpython*"):  # first on the import path, and the interpreter itself
                yield from sorted(glob.glob("%s/%s/%s" % (glob.escape(prefix), lib, pattern)))
            for library in _libraries("%s/%s" % (prefix, lib), found.version):
                yield library
                for name in _PACKAGES:
                    yield "%s/%s" % (library, name)


def _libraries(lib: str, version: str) -> List[str]:
    """Return the directories `pythonX.Y` of a prefix, and Debian's `python3` for every minor release."""
    return sorted(glob.glob("%s/python%s" % (glob.escape(lib), version)) + glob.glob(glob.escape(lib) + "/python3"))


def _installation(python: str) -> Installation:
    """Return where an interpreter looks, like `site` and getpath, from the path by which it is started."""
    real = os.path.realpath(python)
    prefixes, settings = [os.path.dirname(os.path.dirname(real))], [os.path.dirname(real), real]
    version = re.search(r"([0-9]+\.[0-9]+)$", os.path.basename(real))
    for folder in (os.path.dirname(python), os.path.dirname(os.path.dirname(python))):
        configuration = folder + "/pyvenv.cfg"
        if os.path.isfile(configuration):
            settings += [configuration, folder + "/pip.conf"]
            home = _home(configuration)
            if home is not None and home.startswith("/"):
                settings.append(home)
                prefixes += [folder, os.path.dirname(home), os.path.dirname(os.path.realpath(home))]
            break
    settings += ["/etc/pip.conf", "/etc/xdg/pip/pip.conf"]
    return Installation(prefixes, version.group(1) if version else "[23]*", settings)


def _home(configuration: str) -> Optional[str]:
    with open(configuration, encoding="utf-8", errors="replace") as file:
        found = re.search(r"(?mi)^\s*home\s*=\s*(.*?)\s*$", file.read(65536))
    return found.group(1) if found else None


def _named_by_pth(site: str) -> Iterator[str]:
    """Yield what the .pth files of a site directory add to the import path.

    That is their path lines, and the absolute paths in their import lines and in the modules imported there: editable
    installs of setuptools, editables, scikit-build-core and meson-python name them there.
    """
    for path in sorted(glob.glob(glob.escape(site) + "/*.pth")):
        for line in _text_of(path).splitlines():
            if line.startswith(("import ", "import\t")):
                yield from _literal_paths(line)
                for module in _modules_named(line):
                    for name in ("%s.py" % module, "%s/__init__.py" % module):
                        yield from _literal_paths(_text_of(os.path.join(site, name)))
            elif line.strip() and not line.startswith("#"):
                yield os.path.join(site, line.rstrip())


def _modules_named(line: str) -> List[str]:
    """Return the modules that an import line of a .pth file names; also those imported by `__import__`."""
    named = re.findall(r"\b(?:import|from)\s+([\w., \t]+)|__import__\(['\"]([\w.]+)", line)
    words = re.findall(r"[\w.]+", " ".join(" ".join(pair) for pair in named))
    return [word.replace(".", "/") for word in dict.fromkeys(words) if word not in ("import", "as")]


def _literal_paths(code: str) -> List[str]:
    return re.findall(r"""['"](/[^'"\\\n\0]+)['"]""", code)


def _text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""
