"""What the search paths and CANN's variables of a job should be: only what differs from what it gets.

Sources: porting guide 003:2852-2860 (gcc), 003:2880-2885 (hdf5), 003:1118, 1567, 3044 (set_env.sh), 003:3295-3297
(ASCEND_AICPU_PATH).
"""

from __future__ import annotations

import posixpath
from typing import Callable, Iterable, Optional, Sequence

from envtune.collector.sources.cann import INSTALL_VARIABLES, SEARCH_VARIABLES
from envtune.context import Context
from envtune.errors import HostError, Missing, NotApplicable, Undetermined
from envtune.host import Host, exists, is_dir
from envtune.messages import Bilingual, Message, Text
from envtune.resources.cann.environment import SCRIPTS, aicpu, needed_variables, one_install, sourced
from envtune.resources.cann.hccl_library import library_path, shipped_in
from envtune.resources.cann.installs import active_install
from envtune.resources.cann.tree import Install, install_root
from envtune.resources.environment.profile import Setting
from envtune.resources.environment.search_paths import HDF5, HDF5_ENTRIES, SEARCHED, gcc_homes, path_defects
from envtune.resources.environment.simulate import environment_after, with_environment

Keep = Callable[[str], bool]


def advice(context: Context) -> tuple[Setting, ...]:
    """Search paths cleaned and completed, and CANN's environment; nothing where the job's variables are not known."""
    if context.target.environment.variables is None:
        return ()
    paths = _Paths(context)
    _clean(context, paths)
    cann = _cann(context, paths)
    _built(context, paths)
    return (*paths.settings(), *cann)


class _Paths:
    """The search paths of the job in the making."""

    def __init__(self, context: Context) -> None:
        self._scene = context
        self._kept: dict[str, list[str]] = {}  # where entries are taken out
        self._added: dict[str, list[str]] = {}
        self._why: dict[str, list[tuple[Text, tuple[str, ...]]]] = {}

    def entries(self, name: str) -> Optional[list[str]]:
        """The entries as planned so far; None when they cannot be told."""
        if self._scene.target.environment.why_unknown(name) is not None:
            return None
        if name in self._kept:
            return self._kept[name]
        value = self._scene.target.variables().get(name, "")
        return value.split(":") if value else []

    def filter(self, name: str, keep: Keep, why: Text, *checks: str) -> None:
        """Take out the entries that are not kept."""
        there = self.entries(name)
        if there is None:
            return
        rest = [entry for entry in there if keep(entry)]
        if rest != there and rest:
            self._kept[name] = rest
            self._note(name, why, checks)

    def add(self, name: str, entry: str, why: Text, *checks: str) -> None:
        """Put an entry in front."""
        if self.entries(name) is not None:
            self._added.setdefault(name, []).insert(0, entry)
            self._note(name, why, checks)

    def _note(self, name: str, why: Text, checks: tuple[str, ...]) -> None:
        self._why.setdefault(name, []).append((why, checks))

    def settings(self) -> Iterable[Setting]:
        """One per search path that changes."""
        for name, reasons in self._why.items():
            rest, added = self.entries(name) or [], self._added.get(name, [])
            value = ":".join([*added, *rest])
            words = Bilingual("; ".join(why.en for why, _ in reasons), "；".join(why.zh for why, _ in reasons))
            checks = tuple(dict.fromkeys(check for _, group in reasons for check in group))
            prefixes = () if name in self._kept else tuple(added)
            yield Setting(name, value, words, checks, prefixes)


def _clean(context: Context, paths: _Paths) -> None:
    """Search paths without empty, relative, doubled and dead entries (ENV014)."""
    for name in SEARCHED:
        there = paths.entries(name)
        if not there:
            continue
        defects, _ = path_defects(context.host, ":".join(there), files=name == "PYTHONPATH")
        if defects:
            why = Bilingual("without: " + ", ".join(d.en for d in defects), "去掉：" + "，".join(d.zh for d in defects))
            paths.filter(name, _good(context.host, name == "PYTHONPATH"), why, "ENV014")


def _good(host: Host, files: bool) -> Keep:
    seen: set[str] = set()

    def keep(entry: str) -> bool:
        plain = posixpath.normpath(entry) if entry else ""
        if not entry.startswith("/") or plain in seen:
            return False
        seen.add(plain)
        try:
            kind = host.stat(entry).kind
        except Missing:
            return False
        except HostError:
            return True  # it cannot be looked at
        return kind == "dir" or (files and kind == "file")

    return keep


def _built(context: Context, paths: _Paths) -> None:
    """What was built beside the system: a gcc (ENV011), and an hdf5 for dumps (ENV012)."""
    name, host = "LD_LIBRARY_PATH", context.host
    listed = [posixpath.normpath(entry) for entry in paths.entries(name) or [] if entry]
    strange = [e for e in listed if "gcc" in e and e.endswith("/lib64") and _absent(host, e)]
    if strange:
        why = Message("{strange} does not exist", strange=strange[0])
        paths.filter(name, lambda entry: posixpath.normpath(entry or ".") not in strange, why, "ENV011")
    for home in gcc_homes(host):
        if home + "/lib64" not in listed:
            why = Message("the runtime of {home}", home=home)
            paths.add(name, home + "/lib64", why, "ENV011")
    if not _is_dir(host, HDF5):
        return
    for variable, folder in HDF5_ENTRIES.items():
        there = paths.entries(variable)
        entry = f"{HDF5}/{folder}"
        if there is not None and entry not in [posixpath.normpath(one) for one in there if one]:
            paths.add(variable, entry, Message("hdf5 for operator dumps"), "ENV012")


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
    """The environment of the active install, where checks CANN002, 005, 008 or 012 would fail."""
    try:
        install = active_install(context)
    except (HostError, Undetermined):
        return ()
    failing = _failing(context)
    if not failing:
        return ()
    if "CANN012" in failing:
        _one_install(context, install, paths)
    script = environment_script(context.host, install)
    if script is None:
        return tuple(_explicit(context, install, failing, paths))
    words = Message("the environment of {path}", path=install.path)
    stale = tuple(_stale(context, install)) if "CANN012" in failing else ()
    source = Setting("", None, words, failing, script=script)
    for made in ((*stale, source), (*stale, source, *_aicpu(install, failing))):
        left = _failing(with_environment(context, environment_after(context, (*paths.settings(), *made))))
        if not left:
            break
    if set(left) >= set(failing):
        return ()  # nothing of it would help
    return tuple(one for one in made if not set(one.checks) <= set(left))


def _failing(context: Context) -> tuple[str, ...]:
    return tuple(check for check, probe in _PROBES.items() if _fails(context, probe))


def _aicpu(install: Install, failing: Sequence[str]) -> Iterable[Setting]:
    """ASCEND_AICPU_PATH by itself, for scripts that do not set it. Source: porting guide 003:3297."""
    if "CANN008" in failing:
        words = Message("the AICPU kernels of this install")
        yield Setting("ASCEND_AICPU_PATH", install.path, words, ("CANN008",))


_PROBES = {"CANN002": sourced, "CANN005": library_path, "CANN008": aicpu, "CANN012": one_install}


def _fails(context: Context, probe: Callable[[Context], Iterable[object]]) -> bool:
    try:
        readings = list(probe(context))
    except (HostError, NotApplicable, Undetermined):
        return False
    return any(getattr(r, "reason", None) is None and getattr(r, "value", True) is not True for r in readings)


def environment_script(host: Host, install: Install) -> Optional[str]:
    """The vendor's script that sets the variables of an install; None for a tree without one."""
    roots = tuple(dict.fromkeys((install.path, install.real)))
    places = [posixpath.join(root, name) for root in roots for name in SCRIPTS]
    places += [posixpath.join(posixpath.dirname(root), "set_env.sh") for root in roots]
    for path in places:
        try:
            if exists(host, path):
                return path
        except HostError:
            continue
    return None


def _one_install(context: Context, install: Install, paths: _Paths) -> None:
    """Entries of other installs go out of the lists."""

    def own(entry: str) -> bool:
        try:
            return not entry.startswith("/") or install_root(context.host, entry) in (None, install.real)
        except HostError:
            return True

    for name in SEARCH_VARIABLES:
        why = Message("without the entries of other installs than {real}", real=install.real)
        paths.filter(name, own, why, "CANN012")


def _stale(context: Context, install: Install) -> Iterable[Setting]:
    """Single paths that lead elsewhere: unset before the script, which need not set each of them."""
    known = context.target.environment.variables or {}
    for name in INSTALL_VARIABLES:
        value = known.get(name, "")
        try:
            other = bool(value) and install_root(context.host, value) != install.real
        except HostError:
            other = False
        if other:
            words = Message("{value} is not of {real}", value=value, real=install.real)
            yield Setting(name, None, words, ("CANN012",))


def _explicit(context: Context, install: Install, failing: Sequence[str], paths: _Paths) -> Iterable[Setting]:
    """Trees without a script (fwkacllib): what their users write into launch scripts. Source: 003:3044, 3297; public
    launch scripts of CANN 20.x-5.0.2 (Ascend ModelZoo-PyTorch)."""
    root = install.path
    words = Message("of the install {root}", root=root)
    single = {"ASCEND_OPP_PATH": f"{root}/opp", "ASCEND_AICPU_PATH": root, "ASCEND_HOME_PATH": root}
    wanted = {*needed_variables(install), "ASCEND_AICPU_PATH"}
    for name, value in single.items():
        if name in wanted and (context.target.environment.variables or {}).get(name) != value:
            yield Setting(name, value, words, tuple(failing))
    shipped = shipped_in(context.host, install)
    library = posixpath.dirname(shipped) if shipped is not None else f"{root}/fwkacllib/lib64"
    lists = {"LD_LIBRARY_PATH": library, "PYTHONPATH": f"{root}/fwkacllib/python/site-packages"}
    for name, entry in lists.items():
        if entry not in (paths.entries(name) or []) and _is_dir(context.host, entry):
            paths.add(name, entry, words, *failing)
