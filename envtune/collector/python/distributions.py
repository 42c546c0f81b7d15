"""The import path of a Python, and the names of the distributions on it.

Sources: CPython's site.py (.pth files), PEP 376, PEP 503.
"""

import os
import re
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from ..paths import kind_at

ENTRY_LIMIT = 2000  # entries of the import path; an environment with only editable packages has some hundred


def import_path(
    host: Any, variables: Mapping[str, str], cwd: str, sites: Sequence[str]
) -> Tuple[List[str], List[Tuple[str, str]]]:
    """Return (the directories and archives searched for modules, in order; the .pth files that could not be read).

    PYTHONPATH, then each site directory followed by what its .pth files add.
    """
    entries = [os.path.normpath(os.path.join(cwd, part)) for part in variables.get("PYTHONPATH", "").split(":") if part]
    damaged: List[Tuple[str, str]] = []
    for site in sites:
        entries.append(site)
        try:
            names = host.listdir(site)
        except OSError:
            continue  # the caller that lists it again gets the same error and reports it
        for name in sorted(name for name in names if name.endswith(".pth") and not name.startswith(".")):
            try:
                text = host.read_bytes(site + "/" + name).decode("utf-8", "replace")
            except OSError as error:
                damaged.append((site + "/" + name, str(error)))
                continue
            folders = _pth_folders(site, text)
            if len(entries) + len(folders) > ENTRY_LIMIT:
                damaged.append((site + "/" + name, "more than %d directories" % ENTRY_LIMIT))
                continue
            entries += [folder for folder in folders if kind_at(host, folder) is not None]
    return list(dict.fromkeys(entries)), damaged


def _pth_folders(site: str, text: str) -> List[str]:
    """Return the paths named in a .pth file; its `import` lines are code and are not run."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    lines = [line.rstrip() for line in lines if not re.match(r"import[ \t]", line) and "\0" not in line]
    return [os.path.normpath(os.path.join(site, line)) for line in lines]


def distribution_of(name: str) -> Optional[Tuple[str, str]]:
    """Return (normalized name, version) from the name of a metadata file or directory; None for anything else.

    The version is "" if only the content gives it (`foo.egg-info`, `foo.egg-link`). Names as in PEP 503.
    """
    if not name.endswith((".dist-info", ".egg-info", ".egg", ".egg-link")):
        return None
    stem, _, suffix = name.rpartition(".")
    if suffix == "dist-info":
        title, _, version = stem.rpartition("-")
    else:
        title, _, tail = stem.partition("-")
        version = re.split(r"-py[0-9]", tail)[0]
    return normal_name(title or stem), version if title else ""


def normal_name(name: str) -> str:
    """Return a distribution's name as PEP 503 compares it: lower case, runs of `-`, `_` and `.` as one `-`."""
    plain = name.lower().replace("_", "-").replace(".", "-")
    return re.sub("--+", "-", plain) if "--" in plain else plain


def module_head(text: str) -> str:
    """Return the lines of a module before its first function or class: its imports."""
    body = re.search(r"^(def|class|async def|@)\b|^@", text, re.M)
    return text[: body.start()] if body else text


def python_includes(real: str, version: str) -> List[str]:
    """Return the directories that may hold the Python.h of an interpreter."""
    root = os.path.dirname(os.path.dirname(real)).rstrip("/")
    return ["%s/include/python%s%s" % (root, version, flag) for flag in ("", "m", "mu")]


def system_includes(prefix: str, machine: str) -> List[str]:
    """Return where a C compiler looks for the headers of libraries."""
    return ["/usr/include", "/usr/include/%s-linux-gnu" % machine, "/usr/local/include", prefix + "/include"]
