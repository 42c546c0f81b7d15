"""CANN installs of all three generations, the one the job uses, and the facts about it.

    fwkacllib   CANN 20.x-5.0.2   {ascend-toolkit,nnae}/latest -> version directory, which holds fwkacllib/
    arch-linux  CANN 5.0.4-8.3    latest/ is a directory of links into the version directory with its {arch}-linux/
    cann        CANN >= 8.5       /usr/local/Ascend/cann -> cann-<version>, which holds share/info/

Sources: vendor installation guide (CANN 8.0 and 8.5, "File paths"); public listings and version files of CANN 5.1-9.1;
porting guide 003:1567, 2688, 3048, 3297.
"""

from __future__ import annotations

from posixpath import join
from typing import Iterable, Mapping, Optional

from envtune.collector.sources.cann import CANN_BASE, install_bases
from envtune.context import Context
from envtune.context.registry import fact, probe
from envtune.errors import Denied, HostError, Missing, Undetermined, host_error_text
from envtune.host import Host, is_dir
from envtune.messages import Literal, Message, Text
from envtune.model import Evidence, Fact, Reading
from envtune.records import NamedTuple
from envtune.resources.cann.tree import BrokenInstall, Install, find_install, has_components, install_root, read_install

LINKS = ("cann", "ascend-toolkit/latest", "nnae/latest", "latest")
# Names of processes that run the containers of a host: Docker, containerd, CRI-O, iSulad, and a Kubernetes node.
ENGINES = ("dockerd", "containerd", "crio", "isulad", "kubelet", "k3s-server", "k3s-agent")
# Variables that name an install, the most specific first. Source: set_env.sh of CANN 5.1-8.5.
HOME_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_AICPU_PATH")


class InstallSearch(NamedTuple):
    """Everything of CANN on a host. `active` is what the job uses, and `why`; `errors` what could not be examined."""

    installs: tuple[Install, ...] = ()
    broken: tuple[BrokenInstall, ...] = ()
    active: Optional[Install] = None
    why: Text = Literal("")
    errors: tuple[HostError, ...] = ()


def discover(context: Context) -> InstallSearch:
    """Examine every place where CANN is installed, and choose the job's install."""
    host, variables = context.host, context.target.environment.variables or {}
    installs: dict[str, Install] = {}
    broken: list[BrokenInstall] = []
    errors: list[HostError] = []
    for path in candidates(host, variables):
        try:
            install = find_install(host, path)
        except HostError as error:
            errors.append(error)
            continue
        if isinstance(install, Install):
            installs.setdefault(install.path, install)
        elif install is not None:
            broken.append(install)
    active, why = _choose_active(host, variables, tuple(installs.values()))
    guess = context.target.environment.why_unknown(HOME_VARIABLES[0])
    if active is not None and guess is not None and not any(variables.get(name) for name in HOME_VARIABLES):
        why = Message("the job's variables are unknown, so {path} is used", path=active.path)
    if active is not None:
        installs.setdefault(active.path, active)
    return InstallSearch(tuple(installs.values()), tuple(broken), active, why, tuple(errors))


def candidates(host: Host, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names under which CANN is installed: the default, the user's directory, the installer's record."""
    home = variables.get("HOME") or host.environ.get("HOME") or ""
    bases = install_bases(host, (home,))
    names = [join(base, link) for base in bases for link in LINKS]
    return tuple(names + [base for base in bases if _old_tree(host, base)])


def _old_tree(host: Host, base: str) -> bool:
    """Return whether a base is itself an install, as before CANN 20.1 (`/usr/local/Ascend/fwkacllib`)."""
    try:
        return is_dir(host, join(base, "fwkacllib")) and is_dir(host, join(base, "opp"))
    except HostError:
        return False


def _choose_active(
    host: Host, variables: Mapping[str, str], installs: tuple[Install, ...]
) -> tuple[Optional[Install], Text]:
    for name, value in _absolute_paths(variables):
        try:
            root = install_root(host, value)
            if root is None or not has_components(host, root):
                continue
        except HostError:
            continue
        why = Message("{name} points to it", name=name)
        known = next((install for install in installs if install.real == root), None)
        return known or read_install(host, root, root), why
    if installs:
        path = installs[0].path
        return installs[0], Message("no variable of the job names an install, so {path} is used", path=path)
    return None, Message("no install was found")


def _absolute_paths(variables: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Yield (variable, path) of everything that may name an install, in order of precedence."""
    for name in HOME_VARIABLES:
        if variables.get(name, "").startswith("/"):
            yield name, variables[name]
    for name in ("LD_LIBRARY_PATH", "PYTHONPATH"):
        for entry in variables.get(name, "").split(":"):
            if entry.startswith("/"):
                yield name, entry


def active_install(context: Context) -> Install:
    """Return the install the job uses; raises Undetermined, or the error encountered, if there is none."""
    search = context.cached(discover)
    if search.active is not None:
        return search.active
    if search.broken:
        broken = search.broken[0]
        raise Undetermined(Message("{path} {reason}", path=broken.path, reason=broken.reason), broken.path, broken.text)
    raise search.errors[0] if search.errors else Missing(CANN_BASE)


@fact("cann")
def fact_cann(context: Context) -> Fact:
    """Version of the active CANN; `none` if CANN is not installed."""
    try:
        install = active_install(context)
    except Missing:
        return Fact("cann", "none", CANN_BASE)
    return Fact("cann", install.version, install.evidence.source, install.evidence.reason)


@fact("cann_generation")
def fact_cann_generation(context: Context) -> Fact:
    """Directory layout of the active CANN: `fwkacllib`, `arch-linux` or `cann`; `none` if CANN is not installed."""
    try:
        install = active_install(context)
    except Missing:
        return Fact("cann_generation", "none", CANN_BASE)
    return Fact("cann_generation", install.generation, install.real)


@probe("cann.installs")
def installs(context: Context) -> Iterable[Reading]:
    """State of each CANN install: `valid`, `mixed`, `broken` (link without a target) or `absent`.

    Source: porting guide 003:128, 1567, 3048, 3297.
    """
    search = context.cached(discover)
    expected = Message("a complete CANN whose `latest` or `cann` link resolves")
    readings = [_install_reading(install, search, expected) for install in search.installs]
    for broken in search.broken:
        readings.append(Reading(broken.path, "broken", Evidence(broken.path, broken.text), broken.reason, expected))
    for error in search.errors if search.active is None else ():
        reason, needs_privilege = host_error_text(error), isinstance(error, Denied)
        readings.append(
            Reading("CANN", None, Evidence(error.path), None, expected, reason=reason, needs_privilege=needs_privilege)
        )
    if not readings:
        engine = _container_engine(context)
        if engine is not None:
            reason = Message("no CANN on this host; {name} is running: containers may have their own", name=engine)
            return [Reading("CANN", None, Evidence(CANN_BASE, "does not exist"), None, expected, reason=reason)]
        absent = Message("no CANN toolkit and no nnae on this host")
        readings.append(Reading("CANN", "absent", Evidence(CANN_BASE, "does not exist"), absent, expected))
    return readings


def _container_engine(context: Context) -> Optional[str]:
    """Return the program that runs containers on this host, unless this is a container; None if there is none."""
    if context.facts.value("container") == "true":
        return None
    try:
        return next((row.name for row in context.host.processes() if row.name in ENGINES), None)
    except HostError:
        return None


def _install_reading(install: Install, search: InstallSearch, expected: Text) -> Reading:
    evidence = Evidence(install.evidence.source, install.evidence.text)
    if install.strays:
        strays = ", ".join(install.strays)
        shown = Message("mixed: mostly {tree}, but {strays}", tree=install.real, strays=strays)
        return Reading(install.path, "mixed", Evidence(install.path, strays), shown, expected)
    if install.version is None:
        return Reading(install.path, None, evidence, None, expected, reason=install.evidence.reason)
    shown = Message("CANN {version}", version=install.version)
    if search.active is not None and install.real == search.active.real:
        shown = Message("{install}, used by the job ({why})", install=shown, why=search.why)
    for note in install.evidence.notes:
        shown = Message("{install}; {note}", install=shown, note=note)
    return Reading(install.path, "valid", evidence, shown, expected)
