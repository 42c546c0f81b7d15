"""CANN installs of all three generations, the one the job uses, and the facts about it.

    fwkacllib   CANN 20.x-5.0.2   {ascend-toolkit,nnae}/latest -> version directory, which holds fwkacllib/
    arch-linux  CANN 5.0.4-8.3    latest/ is a directory of links into the version directory with its {arch}-linux/
    cann        CANN >= 8.5       /usr/local/Ascend/cann -> cann-<version>, which holds share/info/

Sources: vendor installation guide (CANN 8.0 and 8.5, "File paths"); public listings and version files of CANN 5.1-9.1;
porting guide 003:1567, 2688, 3048, 3297.
"""

from __future__ import annotations

from posixpath import join
from typing import Iterable, Mapping, NamedTuple, Optional

from envtune.collector.sources.cann import CANN_BASE, install_bases
from envtune.context import Context
from envtune.context.registry import fact, probe
from envtune.errors import Denied, HostError, Missing, Undetermined, host_error_text
from envtune.host import Host, is_dir
from envtune.messages import Literal, Message, Text
from envtune.model import Evidence, Fact, Reading
from envtune.resources.cann.tree import Broken, Install, has_components, install_root, look, read_install

LINKS = ("cann", "ascend-toolkit/latest", "nnae/latest", "latest")
# Variables that name an install, the most telling first. Source: set_env.sh of CANN 5.1-8.5.
HOME_VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME", "ASCEND_OPP_PATH", "ASCEND_AICPU_PATH")


class Found(NamedTuple):
    """Everything of CANN on a host. `active` is what the job uses, and `why`; `untold` what could not be looked at."""

    installs: tuple[Install, ...] = ()
    broken: tuple[Broken, ...] = ()
    active: Optional[Install] = None
    why: Text = Literal("")
    untold: tuple[HostError, ...] = ()


def discover(context: Context) -> Found:
    """Look at every place where CANN is installed, and choose the install of the job."""
    host, variables = context.host, context.target.environment.variables or {}
    installs: dict[str, Install] = {}
    broken: list[Broken] = []
    untold: list[HostError] = []
    for path in candidates(host, variables):
        try:
            one = look(host, path)
        except HostError as error:
            untold.append(error)
            continue
        if isinstance(one, Install):
            installs.setdefault(one.path, one)
        elif one is not None:
            broken.append(one)
    active, why = _chosen(host, variables, tuple(installs.values()))
    guess = context.target.environment.untold_reason(HOME_VARIABLES[0])
    if active is not None and guess is not None and not any(variables.get(name) for name in HOME_VARIABLES):
        why = Message("the job's variables cannot be told, so {path} is taken", path=active.path)
    if active is not None:
        installs.setdefault(active.path, active)
    return Found(tuple(installs.values()), tuple(broken), active, why, tuple(untold))


def candidates(host: Host, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The names CANN is installed under: the default, the user's own directory, what the installer noted."""
    home = variables.get("HOME") or host.environ.get("HOME") or ""
    bases = install_bases(host, (home,))
    names = [join(base, link) for base in bases for link in LINKS]
    return tuple(names + [base for base in bases if _old_tree(host, base)])


def _old_tree(host: Host, base: str) -> bool:
    """Whether a base is itself an install, as before CANN 20.1 (`/usr/local/Ascend/fwkacllib`)."""
    try:
        return is_dir(host, join(base, "fwkacllib")) and is_dir(host, join(base, "opp"))
    except HostError:
        return False


def _chosen(host: Host, variables: Mapping[str, str], installs: tuple[Install, ...]) -> tuple[Optional[Install], Text]:
    for name, value in _named(variables):
        try:
            root = install_root(host, value)
            if root is None or not has_components(host, root):
                continue
        except HostError:
            continue
        why = Message("{name} points to it", name=name)
        known = next((one for one in installs if one.real == root), None)
        return known or read_install(host, root, root), why
    for one in installs:
        why = Message("no variable of the job names an install, so {path} is taken", path=one.path)
        return one, why
    return None, Message("no install was found")


def _named(variables: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for name in HOME_VARIABLES:
        if variables.get(name, "").startswith("/"):
            yield name, variables[name]
    for name in ("LD_LIBRARY_PATH", "PYTHONPATH"):
        for entry in variables.get(name, "").split(":"):
            if entry.startswith("/"):
                yield name, entry


def active_install(context: Context) -> Install:
    """The install the job uses; Undetermined, or the error met on the way, when there is none to look at."""
    found = context.cached(discover)
    if found.active is not None:
        return found.active
    if found.broken:
        one = found.broken[0]
        raise Undetermined(Message("{path} {reason}", path=one.path, reason=one.reason), one.path, one.text)
    for error in found.untold:
        raise error
    raise Missing(CANN_BASE)


@fact("cann")
def fact_cann(context: Context) -> Fact:
    """The version of the active CANN, none without any."""
    try:
        install = active_install(context)
    except Missing:
        return Fact("cann", "none", CANN_BASE)
    return Fact("cann", install.version, install.told.source, install.told.reason)


@fact("cann_generation")
def fact_cann_generation(context: Context) -> Fact:
    """fwkacllib, arch-linux, cann, or none."""
    try:
        install = active_install(context)
    except Missing:
        return Fact("cann_generation", "none", CANN_BASE)
    return Fact("cann_generation", install.generation, install.real)


@probe("cann.installs")
def installs(context: Context) -> Iterable[Reading]:
    """Every CANN install and every name of one that leads nowhere. Source: porting guide 003:128, 1567, 3048, 3297."""
    found = context.cached(discover)
    expected = Message("a complete CANN whose `latest` or `cann` link resolves")
    readings = [_reading(one, found, expected) for one in found.installs]
    for one in found.broken:
        readings.append(Reading(one.path, "broken", Evidence(one.path, one.text), one.reason, expected))
    for error in found.untold:
        reason, needs_privilege = host_error_text(error), isinstance(error, Denied)
        if found.active is None:
            readings.append(
                Reading(
                    "CANN", None, Evidence(error.path), None, expected, reason=reason, needs_privilege=needs_privilege
                )
            )
    if not readings:
        absent = Message("no CANN toolkit and no nnae on this host")
        readings.append(Reading("CANN", "absent", Evidence(CANN_BASE, "not there"), absent, expected))
    return readings


def _reading(one: Install, found: Found, expected: Text) -> Reading:
    evidence = Evidence(one.told.source, one.told.text)
    if one.strays:
        listed = ", ".join(one.strays)
        shown = Message("mixed: most of it is {real}, but {listed}", real=one.real, listed=listed)
        return Reading(one.path, "mixed", Evidence(one.path, listed), shown, expected)
    if one.version is None:
        return Reading(one.path, None, evidence, None, expected, reason=one.told.reason)
    shown = Message("CANN {version}", version=one.version)
    if found.active is not None and one.real == found.active.real:
        shown = Message("{shown}, used by the job ({why})", shown=shown, why=found.why)
    for note in one.told.notes:
        shown = Message("{shown}; {note}", shown=shown, note=note)
    return Reading(one.path, "valid", evidence, shown, expected)
