"""Where the catalog is: the shipped entries, the site's in /etc/envtune, and those of `--catalog DIR`.

A later layer replaces entries of the same id and adds new ones. The shipped layer is `envtune/_data` in a wheel or
zipapp and the top of the checkout otherwise (an editable install is a checkout).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Iterator, Optional, Sequence

from envtune import version
from envtune.errors import CatalogError, UsageError, no_directory_text
from envtune.messages import Joined, Message, Text
from envtune.records import NamedTuple
from envtune.trust.ownership import who_can_change

PACKAGE = os.path.dirname(os.path.abspath(version.__file__))
# zipimport finds its archive's members only by the path it was started with: `./envtune.pyz` is kept unchanged.
COMPILED = os.path.join(os.path.dirname(version.__file__), "_data", "catalog.json")
SITE = "/etc/envtune"
_KINDS_OF_FOLDERS = {"faq": "faq", "codes": "codes"}  # below checks/


class Layer(NamedTuple):
    """A directory that holds `checks/` and `playbooks/`; `own` is the shipped one."""

    directory: str
    own: bool = False
    flat: bool = False  # the directory itself holds the checks


MAX_BYTES = 256 * 1024  # of a catalog file


class Source(NamedTuple):
    """One catalog file; `kind` is one of schema.KINDS or codes, `shown` its path as a diagnostic names it."""

    path: str
    kind: str
    layer: Layer
    shown: str
    family: str  # its folder, empty directly below checks/ or playbooks/
    stamp: str  # changes whenever the file does
    changed: int  # last change, in ns since the epoch


def data_root() -> Path:
    """Return the directory that holds the shipped `checks/` and `playbooks/`."""
    packed = Path(PACKAGE, "_data")
    return packed if packed.is_dir() else Path(PACKAGE).parent


def overlays(extra: Sequence[Path]) -> tuple[Layer, ...]:
    """Return the site's layer, if there is one, and the named directories, lowest first.

    Raises UsageError for a named directory that does not exist, CatalogError for one that root must not trust.
    """
    found = [Layer(SITE)] if any(_there(os.path.join(SITE, part)) for part in ("checks", "playbooks")) else []
    for path in extra:
        directory = os.path.abspath(path)
        problem = no_directory_text(directory)
        if problem is not None:
            raise UsageError(Message("--catalog {path}: {reason}", path=path, reason=problem))
        if directory in [layer.directory for layer in found]:
            continue  # named twice, or the site's own
        parts = [part for part in ("checks", "playbooks") if os.path.isdir(os.path.join(directory, part))]
        found.append(Layer(directory, flat=not parts))
    return tuple(found)


def _there(path: str) -> bool:
    """Return whether it exists; a parent directory that cannot be entered is an error, not `no`."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _unreadable(path, error) from None
    return True


def sources(layer: Layer) -> tuple[Source, ...]:
    """Return every file of a layer, sorted by path."""
    if layer.flat:
        parts = [(layer.directory, "checks")]
    else:
        parts = [(os.path.join(layer.directory, part), part) for part in ("checks", "playbooks")]
    found: list[Source] = []
    for directory, kind in parts:
        _add_below(found, layer, directory, kind)
    return tuple(found)


def _add_below(found: list[Source], layer: Layer, directory: str, kind: str, family: str = "") -> None:
    for entry in _entries(directory):
        name = entry.name
        if name.startswith("."):
            continue
        if name.endswith((".yaml", ".yml")):
            is_family = kind == "checks" and name == "family.yaml"
            found.append(_source(layer, entry, "families" if is_family else kind, family))
        elif not family and entry.is_dir() and not (kind == "checks" and name == "examples"):
            below = _KINDS_OF_FOLDERS.get(name, kind) if kind == "checks" else kind
            _add_below(found, layer, entry.path, below, name)


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unreadable(directory, error) from None


def _source(layer: Layer, entry: os.DirEntry[str], kind: str, family: str) -> Source:
    shown = entry.path[len(layer.directory) + 1 :] if layer.own else entry.path
    try:
        status = entry.stat()
    except OSError as error:
        raise _unreadable(shown, error) from None
    if not stat.S_ISREG(status.st_mode):
        raise refused(shown, Message("not a regular file; remove it"))
    if not entry.name.endswith(".yaml"):
        raise refused(shown, Message("name it .yaml, other files are not read"))
    return Source(entry.path, kind, layer, shown, family, *_stamp(entry.path, status))


def _stamp(path: str, status: os.stat_result) -> tuple[str, int]:
    """Return a stamp that changes with the file (ctime included, as tools reset mtime), and when it last changed."""
    written, changed = status.st_mtime_ns, status.st_ctime_ns
    stamp = f"{path} {status.st_size} {written} {changed} {status.st_ino}"
    return stamp, written if written > changed else changed


def code_files() -> tuple[Source, ...]:
    """Return the files that validate a catalog file: probes, matchers, facts, tables; or the running archive."""
    own = Layer(PACKAGE, own=True)
    paths = [os.path.join(PACKAGE, name) for name in ("expect.py", "data/variables.json", "snapshot/schema.py")]
    if not os.path.isdir(PACKAGE):
        paths = [PACKAGE]
        while not os.path.exists(paths[0]):
            paths = [os.path.dirname(paths[0])]
    else:
        folders = ("catalog", "context", "resources", "schema")
        paths += [path for folder in folders for path in _modules(os.path.join(PACKAGE, folder))]
    if os.path.exists(COMPILED):
        paths.append(COMPILED)
    return tuple(Source(path, "code", own, path, "", *_stamp(path, os.stat(path))) for path in paths)


def _modules(directory: str) -> Iterator[str]:
    for entry in _entries(directory):
        if entry.name.endswith(".py"):
            yield entry.path
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _modules(entry.path)


def content(source: Source) -> bytes:
    """Return the bytes of a file, at most MAX_BYTES + 1 of a site's; raises CatalogError if it cannot be read.

    What is larger than MAX_BYTES is refused when it is compiled.
    """
    try:
        with open(source.path, "rb") as file:
            return file.read(-1 if source.layer.own else MAX_BYTES + 1)
    except OSError as error:
        raise _unreadable(source.shown, error) from None


def check_trust(files: Sequence[Source], layers: Sequence[Layer]) -> None:
    """Refuse, as root, overlay files that somebody else could change; CatalogError names each with the reason."""
    over = [file.path for file in files if not file.layer.own]
    paths = dict.fromkeys([*(layer.directory for layer in layers if not layer.own), *map(os.path.dirname, over), *over])
    reasons = dict.fromkeys(reason for reason in map(why_untrusted, paths) if reason is not None)
    if reasons:
        raise CatalogError(
            [Message("{reason}; refused when run as root: chown root and chmod go-w", reason=r) for r in reasons]
        )


def why_untrusted(path: str) -> Optional[Text]:
    """Return, as root, why somebody else could change the target of `path`; None if nobody can, or for other users.

    What does not exist yet, or is inside an archive (the zipapp), is as safe as its container.
    """
    if os.geteuid() != 0:
        return None
    path = os.path.abspath(path)
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    try:
        exposure = who_can_change(path)
    except OSError as error:
        return Message("{path} cannot be examined: {strerror}", path=error.filename or path, strerror=error.strerror)
    if exposure is None:
        return None
    if exposure.foreign:
        return Message("{path} belongs to uid {uid}, not to root", path=exposure.path, uid=exposure.uid)
    mode = f"{exposure.mode:04o}"
    return Message("{path} can be written by users other than root (mode {mode})", path=exposure.path, mode=mode)


def refused(path: str, reason: Text) -> CatalogError:
    """Return an error about a file as a whole."""
    return CatalogError([Joined((f"{path}:1:1", reason), ": ")])


def _unreadable(path: str, error: OSError) -> CatalogError:
    return refused(path, Message("cannot be read: {strerror}", strerror=error.strerror))
