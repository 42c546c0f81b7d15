"""The job's interpreter: the one that was named, that of a process, of the active environment, or on PATH."""

import os
import re
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..paths import kind_at, link_text, names_in, on_path, real_path, search_path
from .errors import Unresolved
from .installation import (
    installation,
    installation_sites,
    present,
    site_packages,
    user_site,
    venv_settings,
    venv_version,
)
from .wrappers import PYTHON_NAME, interpreter_behind

# Usual places of a second Python on these hosts: source builds as in the porting guide, conda.
CONDA_FOLDERS = ("conda", "miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba")
USUAL_PYTHONS = tuple(base + "/" + name for base in ("/opt", "/usr/local", "/root") for name in CONDA_FOLDERS)
HOME_PYTHONS = CONDA_FOLDERS + (".conda",)  # ~/.conda/envs: for a conda installed by others


def find_interpreter(
    host: Any, variables: Mapping[str, str], cwd: str, named: str = "", pid: Optional[int] = None
) -> Dict[str, Any]:
    """Return the job's Python: {path, real, version, kind, prefix, sites, chosen}; raises Unresolved or OSError.

    `chosen` is the reason: named, pid, VIRTUAL_ENV, CONDA_PREFIX or PATH.
    """
    if named:
        path, chosen = named_interpreter(host, variables, cwd, named), "named"
    elif pid is not None:
        path, chosen = process_interpreter(host, variables, pid), "pid"
    else:
        path, chosen = _default_interpreter(host, variables, cwd)
    return dict(describe_interpreter(host, variables, cwd, path), chosen=chosen)


def describe_interpreter(host: Any, variables: Mapping[str, str], cwd: str, path: str) -> Dict[str, Any]:
    """Return {path, real, version, kind, prefix, sites} of the interpreter behind `path`."""
    start, real = interpreter_behind(host, variables, cwd, path)
    settings, prefix = venv_settings(host, start)
    if settings is None:
        home = variables.get("PYTHONHOME", "").split(":")[0]
        folders = ([home + "/bin"] if home else []) + [os.path.dirname(real)]
        prefix, version = installation(host, folders, os.path.basename(real))
        sites = user_site(variables, version) + installation_sites(host, prefix, version)
        kind = "conda" if kind_at(host, prefix + "/conda-meta") == "dir" else "system"
    else:
        kind = "venv"
        version = venv_version(host, settings, prefix, real)
        sites = site_packages(prefix, version)
        if settings.get("include-system-site-packages", "").lower() == "true":
            folders = [settings.get("home", ""), os.path.dirname(real)]  # home may be a virtual environment itself
            base, _ = installation(host, folders, "python" + version)
            sites += user_site(variables, version) + installation_sites(host, base, version)
    return {
        "path": path,
        "real": real,
        "version": version,
        "kind": kind,
        "prefix": prefix,
        "sites": present(host, sites),
    }


def named_interpreter(host: Any, variables: Mapping[str, str], cwd: str, named: str) -> str:
    """Return the path meant by `--python`: a file, a virtual environment's directory, or a name on PATH."""
    if named.startswith("~/"):
        named = variables.get("HOME", "~") + named[1:]
    if "/" not in named and kind_at(host, os.path.join(cwd, named)) != "dir":
        path = on_path(host, variables, cwd, named)
        if path is None:
            raise Unresolved("not-on-path", named)
        return path
    path = os.path.normpath(os.path.join(cwd, named))
    kind = kind_at(host, path)
    if kind is None:
        raise Unresolved("missing", path)
    if kind == "dir":
        inside = environment_python(host, path)
        if inside is None:
            raise Unresolved("no-python-in", path)
        return inside
    return path


def process_interpreter(host: Any, variables: Mapping[str, str], pid: int) -> str:
    """Return the path a running process was started by; its `exe` alone would lose the virtual environment."""
    folder = "/proc/%d" % pid
    try:
        first = host.read_bytes(folder + "/cmdline").split(b"\0")[0].decode("utf-8", "replace")
    except FileNotFoundError:
        raise Unresolved("no-process", folder) from None
    if link_text(host, folder + "/ns/mnt") not in (None, link_text(host, "/proc/self/ns/mnt")):
        raise Unresolved("other-namespace", folder + "/ns/mnt")
    exe = str(host.readlink(folder + "/exe"))
    if exe.endswith(" (deleted)"):
        exe = exe[: -len(" (deleted)")]
    if not re.match(PYTHON_NAME, os.path.basename(exe)):
        raise Unresolved("not-python", folder + "/exe", exe)
    for candidate in _started_by(host, variables, folder, first):
        try:
            if kind_at(host, candidate) == "file" and real_path(host, candidate) == exe:
                return candidate
        except OSError:
            continue
    return exe


def _started_by(host: Any, variables: Mapping[str, str], folder: str, first: str) -> Iterator[str]:
    """Yield the paths that argv[0] may refer to."""
    cwd = link_text(host, folder + "/cwd") or "/"
    if "/" in first:
        yield os.path.normpath(os.path.join(cwd, first))
    elif first:
        path = on_path(host, variables, cwd, first)
        if path is not None:
            yield path
        for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            if variables.get(name):
                yield os.path.join(variables[name], "bin", first)


def _default_interpreter(host: Any, variables: Mapping[str, str], cwd: str) -> Tuple[str, str]:
    """Return the Python of the active environment, else the first on PATH, and the reason."""
    skipped = []
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = variables.get(name, "").rstrip("/")
        path = environment_python(host, folder) if folder.startswith("/") else None
        if path is None:
            continue
        if not _only_envtune(host, folder):
            return path, name
        skipped.append(folder + "/bin")
    for program in ("python3", "python"):
        path = on_path(host, variables, cwd, program, skipped)
        if path is not None:
            return path, "PATH"
    raise Unresolved("not-on-path", "python3")


def _only_envtune(host: Any, folder: str) -> bool:
    """Return whether a virtual environment was created for envtune: it contains envtune and no torch."""
    names: List[str] = []
    for lib in names_in(host, folder + "/lib"):
        if lib.startswith("python"):
            names += names_in(host, "%s/lib/%s/site-packages" % (folder, lib))
    has_envtune = any(re.match(r"(__editable__\.)?envtune\b", n) for n in names)
    return has_envtune and not any(n == "torch" or n.startswith("torch-") for n in names)


def environment_python(host: Any, folder: str) -> Optional[str]:
    """Return the interpreter below the prefix `folder`."""
    for name in ("bin/python3", "bin/python", "bin/python2"):
        if kind_at(host, folder + "/" + name) == "file":
            return folder + "/" + name
    return None


def other_interpreters(host: Any, variables: Mapping[str, str], cwd: str) -> List[str]:
    """Return the usual interpreters on training hosts, to find out which of them has torch."""
    paths: Dict[str, None] = {}
    for name in ("python3", "python") + tuple("python3.%d" % minor for minor in range(6, 15)):
        for folder in search_path(variables, cwd):
            if kind_at(host, folder + "/" + name) == "file":
                paths[folder + "/" + name] = None
    roots = list(USUAL_PYTHONS)
    roots += ["/usr/local/" + n for n in names_in(host, "/usr/local") if n.startswith("python")]
    if variables.get("HOME"):
        roots += [variables["HOME"] + "/" + name for name in HOME_PYTHONS]
    # `conda`, and what it activates, is on PATH as PREFIX/condabin and PREFIX/bin.
    condas = roots + [os.path.dirname(f) for f in search_path(variables, cwd) if f.endswith(("/bin", "/condabin"))]
    environments = [root + "/envs/" + name for root in dict.fromkeys(condas) for name in _environments(host, root)]
    for root in roots + environments:
        path = environment_python(host, root)
        if path is not None:
            paths[path] = None
    return list(paths)


def _environments(host: Any, root: str) -> List[str]:
    """Return the names of the environments of a conda, none if they cannot be read."""
    try:
        return names_in(host, root + "/envs")
    except OSError:
        return []


def holds_torch(host: Any, sites: Sequence[str]) -> bool:
    """Return whether one of the site directories holds an installed torch."""
    return any(kind_at(host, site + "/torch/__init__.py") == "file" for site in sites)


def pip_commands(host: Any, variables: Mapping[str, str], cwd: str, version: str) -> List[Tuple[str, str]]:
    """Return (command, path) of pip, pip3 and pipX.Y, as found on PATH."""
    names = ["pip", "pip" + version.split(".")[0], "pip" + version]
    paths = [(name, on_path(host, variables, cwd, name)) for name in names]
    return [(name, path) for name, path in paths if path is not None]
