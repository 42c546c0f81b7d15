"""What the search paths and CANN's variables of a job should be: only differences from what it gets.

Sources: porting guide 003:2852-2860 (gcc), 003:2880-2885 (hdf5), 003:1118, 1567, 3044 (set_env.sh), 003:3295-3297
(ASCEND_AICPU_PATH).
"""

from __future__ import annotations

import posixpath
from typing import Callable, Iterable, Iterator, Optional, Sequence

from envtune.collector.sources.cann import INSTALL_VARIABLES, SEARCH_VARIABLES
from envtune.context import Context
from envtune.errors import HostError, NotApplicable, Undetermined
from envtune.host import Host, exists, is_dir
from envtune.messages import Message, Text, clauses, listed
from envtune.model import Reading
from envtune.resources.cann.environment import (
    aicpu,
    environment_script,
    needed_variables,
    one_install,
    sourced,
)
from envtune.resources.cann.hccl_library import library_path, shipped_in
from envtune.resources.cann.installs import active_install
from envtune.resources.cann.tree import Install, install_root, is_of_other_install
from envtune.resources.environment.profile import Setting
from envtune.resources.environment.search_paths import (
    HDF5,
    HDF5_ENTRIES,
    SEARCHED,
    entry_defects,
    gcc_homes,
    path_defects,
)
from envtune.resources.environment.simulate import environment_after, with_environment

Keep = Callable[[str], bool]


def advice(context: Context) -> tuple[Setting, ...]:
    """Return cleaned and completed search paths, and CANN's environment; nothing if the variables are unknown."""
    if context.target.environment.variables is None:
        return ()
    paths = _Paths(context)
    _clean(context, paths)
    cann = _cann(context, paths)
    _built(context, paths)
    return (*paths.settings(), *cann)


class _Paths:
    """The search paths that the job should have, under construction."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._kept: dict[str, list[str]] = {}  # where entries are removed
        self._added: dict[str, list[str]] = {}
        self._reasons: dict[str, list[Text]] = {}
        self._of_other_installs: set[str] = set()  # names that lose entries of another CANN

    def entries(self, name: str) -> Optional[list[str]]:
        """Return the entries as planned so far; None if unknown."""
        if self._context.target.environment.why_unknown(name) is not None:
            return None
        if name in self._kept:
            return self._kept[name]
        value = self._context.target.variables().get(name, "")
        return value.split(":") if value else []

    def filter(self, name: str, keep: Keep, reason: Text, other_install: bool = False) -> None:
        """Remove the entries that are not kept."""
        entries = self.entries(name)
        if entries is None:
            return
        kept = [entry for entry in entries if keep(entry)]
        if kept != entries and kept:
            self._kept[name] = kept
            self._reasons.setdefault(name, []).append(reason)
            if other_install:
                self._of_other_installs.add(name)

    def add(self, name: str, entry: str, reason: Text) -> None:
        """Put an entry in front."""
        if self.entries(name) is not None:
            self._added.setdefault(name, []).insert(0, entry)
            self._reasons.setdefault(name, []).append(reason)

    def settings(self) -> Iterator[Setting]:
        """Yield one for each search path that changes."""
        for name, reasons in self._reasons.items():
            added, entries = self._added.get(name, []), self.entries(name) or []
            value = ":".join([*added, *(entry for entry in entries if entry)])
            prefixes = () if name in self._kept or "" in entries else tuple(added)
            other_install = name in self._of_other_installs
            yield Setting(name, value, clauses(reasons), prefixes=prefixes, other_install=other_install)


def _clean(context: Context, paths: _Paths) -> None:
    """Remove empty, relative, duplicate and dead entries from the search paths."""
    for name in SEARCHED:
        entries = paths.entries(name)
        if not entries:
            continue
        defects, _ = path_defects(context.host, ":".join(entries), files=name == "PYTHONPATH")
        if defects:
            reason = Message("removed: {defects}", defects=listed(defects))
            paths.filter(name, _good(context.host, name == "PYTHONPATH"), reason)


def _good(host: Host, files: bool) -> Keep:
    seen: set[str] = set()

    def keep(entry: str) -> bool:
        plain = posixpath.normpath(entry) if entry else ""
        if not entry.startswith("/") or plain in seen:
            return False
        seen.add(plain)
        try:
            return not entry_defects(host, entry, files)
        except HostError:
            return True  # it cannot be looked at

    return keep


def _built(context: Context, paths: _Paths) -> None:
    """Add what was built in addition to the system's: a gcc, and an hdf5 for dumps."""
    name, host = "LD_LIBRARY_PATH", context.host
    libraries = _normal(paths.entries(name))
    dead = [path for path in libraries if "gcc" in path and path.endswith("/lib64") and _absent(host, path)]
    if dead:
        reason = Message("{path} does not exist", path=dead[0])
        paths.filter(name, lambda entry: posixpath.normpath(entry or ".") not in dead, reason)
    for home in gcc_homes(host):
        if home + "/lib64" not in libraries:
            paths.add(name, home + "/lib64", Message("the runtime of {home}", home=home))
    if not _is_dir(host, HDF5):
        return
    for variable, folder in HDF5_ENTRIES.items():
        entries = paths.entries(variable)
        if entries is not None and f"{HDF5}/{folder}" not in _normal(entries):
            paths.add(variable, f"{HDF5}/{folder}", Message("hdf5 for operator dumps"))


def _normal(entries: Optional[Sequence[str]]) -> list[str]:
    return [posixpath.normpath(entry) for entry in entries or () if entry]


def _absent(host: Host, path: str) -> bool:
    try:
        return not exists(host, path)
    except HostError:
        return False


def _is_dir(host: Host, path: str) -> bool:
    try:
        return is_dir(host, path)
    except HostError:
        return False


# ---------------------------------------------------------------------- CANN


def _cann(context: Context, paths: _Paths) -> tuple[Setting, ...]:
    """Return the environment of the active install, if something of CANN is missing or from another install."""
    try:
        install = active_install(context)
    except (HostError, Undetermined):
        return ()
    defects = _defects(context)
    if not defects:
        return ()
    if one_install in defects:
        _one_install(context, install, paths)
    script = environment_script(context.host, install)
    if script is None:
        return tuple(_explicit(context, install, paths))
    source = Setting("", None, Message("the environment of {path}", path=install.path), script=script)
    settings: list[tuple[Setting, set[Probe]]] = []
    if one_install in defects:
        settings += [(setting, {one_install}) for setting in _stale(context, install)]
    settings.append((source, defects))
    left = _defects_after(context, paths, settings)
    if left and aicpu in defects:  # scripts that do not set it. Source: porting guide 003:3297
        reason = Message("the AICPU kernels of this install")
        settings.append((Setting("ASCEND_AICPU_PATH", install.path, reason), {aicpu}))
        left = _defects_after(context, paths, settings)
    if left >= defects:
        return ()  # none of it would help
    return tuple(setting for setting, repaired in settings if not repaired <= left)


Probe = Callable[[Context], Iterable[Reading]]
_PROBES: tuple[Probe, ...] = (sourced, library_path, aicpu, one_install)  # for what CANN's variables can repair


def _defects(context: Context) -> set[Probe]:
    """Return the probes that find something wrong."""
    return {probe for probe in _PROBES if _finds_a_defect(context, probe)}


def _defects_after(context: Context, paths: _Paths, settings: Iterable[tuple[Setting, object]]) -> set[Probe]:
    after = environment_after(context, (*paths.settings(), *(setting for setting, _ in settings)))
    return _defects(with_environment(context, after))


def _finds_a_defect(context: Context, probe: Probe) -> bool:
    try:
        readings = list(probe(context))
    except (HostError, NotApplicable, Undetermined):
        return False
    return any(reading.reason is None and reading.value is not True for reading in readings)


def _one_install(context: Context, install: Install, paths: _Paths) -> None:
    """Remove the entries of other installs from the lists."""
    reason = Message("removed: entries of other installs than {real}", real=install.real)
    for name in SEARCH_VARIABLES:
        paths.filter(
            name, lambda entry: not is_of_other_install(context.host, install, entry), reason, other_install=True
        )


def _stale(context: Context, install: Install) -> Iterator[Setting]:
    """Yield single paths that lead elsewhere: to be unset before the script, which may not set each of them."""
    known = context.target.environment.variables or {}
    for name in INSTALL_VARIABLES:
        value = known.get(name, "")
        try:
            other = bool(value) and install_root(context.host, value) != install.real
        except HostError:
            other = False
        if other:
            yield Setting(name, None, Message("{value} does not belong to {real}", value=value, real=install.real))


def _explicit(context: Context, install: Install, paths: _Paths) -> Iterator[Setting]:
    """Yield what users of trees without a script (fwkacllib) write into launch scripts.

    Source: 003:3044, 3297; public launch scripts of CANN 20.x-5.0.2 (Ascend ModelZoo-PyTorch).
    """
    root = install.path
    reason = Message("of the install {root}", root=root)
    single = {"ASCEND_OPP_PATH": f"{root}/opp", "ASCEND_AICPU_PATH": root, "ASCEND_HOME_PATH": root}
    variables = context.target.environment.variables or {}
    for name, value in single.items():
        if name in (*needed_variables(install), "ASCEND_AICPU_PATH") and variables.get(name) != value:
            yield Setting(name, value, reason)
    shipped = shipped_in(context.host, install)
    library = posixpath.dirname(shipped) if shipped is not None else f"{root}/fwkacllib/lib64"
    lists = {"LD_LIBRARY_PATH": library, "PYTHONPATH": f"{root}/fwkacllib/python/site-packages"}
    for name, entry in lists.items():
        if entry not in (paths.entries(name) or []) and _is_dir(context.host, entry):
            paths.add(name, entry, reason)
