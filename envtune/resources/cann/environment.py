"""What the job's variables say about CANN: is its environment set up, does it point to one install, are the AICPU
kernels where the runtime looks for them."""

from __future__ import annotations

from posixpath import dirname, join
from typing import Iterable, Mapping, Optional

from envtune.collector.sources.cann import (
    AICPU_ARCHIVE_PLACES,
    AICPU_ARCHIVES,
    AICPU_DEPTH,
    AICPU_KERNELS,
    AICPU_PLACES,
    INSTALL_VARIABLES,
    SEARCH_VARIABLES,
)
from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import Denied, HostError, Missing, NotRecorded, host_error_text
from envtune.host import Host, exists, is_dir
from envtune.messages import Bilingual, Literal, Message, Text
from envtune.model import Evidence, Reading
from envtune.resources.cann.installs import active_install
from envtune.resources.cann.tree import Install, has_components, install_root

NEEDED: Mapping[str, tuple[str, ...]] = {
    "fwkacllib": ("ASCEND_OPP_PATH", "LD_LIBRARY_PATH", "PYTHONPATH"),
    "arch-linux": ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "LD_LIBRARY_PATH", "PYTHONPATH"),
    "cann": ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "LD_LIBRARY_PATH", "PYTHONPATH"),
}
SCRIPTS = ("set_env.sh", "bin/setenv.bash")  # and set_env.sh beside the install


@probe("cann.sourced", formerly="cann_environment.sourced")
def sourced(context: Context) -> Iterable[Reading]:
    """Whether the environment script is there, and whether the job's variables lead below the active install.

    Source: porting guide 003:128, 622, 1118, 1567.
    """
    install = active_install(context)
    script = _script(context.host, install)
    if script is not None:
        yield script
    if context.target.environment.variables is None:
        yield _untold(context, "environment")
        return
    for name in needed(install):
        if context.target.environment.untold_reason(name) is None:
            yield _leads_below(context, install, name, context.target.variables().get(name, ""))
        else:
            yield _untold(context, name)


def _untold(context: Context, name: str) -> Reading:
    """A variable, or all of them, that cannot be told."""
    environment = context.target.environment
    evidence = Evidence(environment.place(name), f"{name} cannot be told")
    return Reading(
        name, None, evidence, reason=environment.untold_reason(name), needs_privilege=environment.needs_privilege
    )


def needed(install: Install) -> tuple[str, ...]:
    """The variables a job needs; launch scripts for CANN 5.x do without ASCEND_HOME_PATH (Ascend ModelZoo-PyTorch)."""
    names = NEEDED[install.generation]
    old = install.version is not None and install.version.startswith("5.")
    return tuple(name for name in names if not (old and name == "ASCEND_HOME_PATH"))


def _script(host: Host, install: Install) -> Optional[Reading]:
    """The environment script; None for an old tree without one, whose users write their own."""
    expected = Message("set_env.sh beside or below the install")
    roots = dict.fromkeys((install.path, install.real))
    wanted = [join(root, name) for root in roots for name in SCRIPTS]
    wanted += [join(dirname(root), "set_env.sh") for root in roots]
    for path in wanted:
        try:
            if exists(host, path):
                return Reading("set_env.sh", True, Evidence(path), Literal(path), expected)
        except HostError as error:
            return Reading(
                "set_env.sh", None, Evidence(path), reason=host_error_text(error), needs_privilege=_denied(error)
            )
    if install.generation == "fwkacllib":
        return None
    shown = Bilingual(f"not in {install.path} nor {dirname(install.path)}", f"{install.path} 及其上级目录中均没有")
    return Reading("set_env.sh", False, Evidence(wanted[0], "not there"), shown, expected)


def _leads_below(context: Context, install: Install, name: str, value: str) -> Reading:
    expected = Message("a path below {real}", real=install.real)
    evidence = Evidence(context.target.environment.place(name), f"{name}={value}" if value else f"{name} is not set")
    if not value:
        return Reading(name, False, evidence, Message("not set"), expected)
    try:
        below = any(install_root(context.host, entry) == install.real for entry in entries(value))
    except HostError as error:
        return Reading(name, None, evidence, reason=host_error_text(error), needs_privilege=_denied(error))
    nothing = Message("nothing of {real} in it", real=install.real)
    return Reading(name, below, evidence, Message("set") if below else nothing, expected)


def entries(value: str) -> tuple[str, ...]:
    """The absolute paths in a list like LD_LIBRARY_PATH, without repetition."""
    return tuple(dict.fromkeys(part.rstrip("/") for part in value.split(":") if part.startswith("/")))


@probe("cann.one_install", formerly="cann_environment.one_install")
def one_install(context: Context) -> Iterable[Reading]:
    """Whether every variable leads, by real path, to the active install. Source: porting guide 003:3044, 3048."""
    install = active_install(context)
    variables = context.target.variables()
    readings: list[Optional[Reading]] = []
    for name in (*INSTALL_VARIABLES, *SEARCH_VARIABLES):
        if context.target.environment.untold_reason(name) is not None:
            readings.append(_untold(context, name))
        elif variables.get(name):
            judge = _single if name in INSTALL_VARIABLES else _listed
            readings.append(judge(context, install, name, variables[name]))
    told = [reading for reading in readings if reading is not None]
    return told if any(r.subject != "PATH" for r in told) else [_none_set(context, install)]


def _single(context: Context, install: Install, name: str, value: str) -> Optional[Reading]:
    evidence = Evidence(context.target.environment.place(name), f"{name}={value}")
    expected = Literal(install.real)
    if not value.startswith("/"):
        return Reading(name, False, evidence, Message("{value} is not an absolute path", value=value), expected)
    try:
        there = exists(context.host, value)
        root = install_root(context.host, value)
    except HostError as error:
        return Reading(name, None, evidence, reason=host_error_text(error), needs_privilege=_denied(error))
    if name == "TOOLCHAIN_HOME" and not there and root == install.real:
        return None  # set_env.sh sets it whether or not the toolkit part is installed
    if not there:
        return Reading(name, False, evidence, Message("{value} does not exist", value=value), expected)
    if root is None:
        shown = Message("{value} is in no CANN install", value=value)
        return Reading(name, False, evidence, shown, expected)
    return Reading(name, root == install.real, evidence, Literal(root), expected)


def _listed(context: Context, install: Install, name: str, value: str) -> Optional[Reading]:
    """A list variable: every entry that lies in some CANN. Entries of other software, and dead ones, do not count."""
    host = context.host
    found: dict[str, str] = {}
    for entry in entries(value):
        try:
            root = install_root(host, entry)
            if root is not None and (root == install.real or exists(host, entry) or has_components(host, root)):
                found.setdefault(root, entry)
        except HostError as error:
            evidence = Evidence(context.target.environment.place(name), f"{name}: {entry}")
            return Reading(name, None, evidence, reason=host_error_text(error), needs_privilege=_denied(error))
    if not found:
        return None
    evidence = Evidence(context.target.environment.place(name), f"{name}={value}")
    shown = "; ".join(f"{root} ({entry})" for root, entry in found.items() if root != install.real)
    text = Literal(shown or install.real)
    return Reading(name, not shown, evidence, text, Literal(install.real))


def _none_set(context: Context, install: Install) -> Reading:
    reason = Message("no variable of the job points to a CANN install (CANN002 says what is missing)")
    return Reading("environment", None, Evidence(context.target.environment.source, install.real), reason=reason)


@probe("cann.aicpu", formerly="cann_environment.aicpu")
def aicpu(context: Context) -> Iterable[Reading]:
    """Whether ASCEND_AICPU_PATH leads to a directory that holds the AICPU kernels of PyTorch operators.

    Source: porting guide 003:3285-3297. The kernels lie there as a library or packed in an archive; a tree in
    which no AICPU directory is to be seen at all is not judged.
    """
    install = active_install(context)
    value = context.target.variables().get("ASCEND_AICPU_PATH", "")
    source = context.target.environment.place("ASCEND_AICPU_PATH")
    expected = Message("{path} with {AICPU_KERNELS} in it", path=install.path, AICPU_KERNELS=AICPU_KERNELS)
    if not value:
        shown = Message("not set")
        return [Reading("ASCEND_AICPU_PATH", False, Evidence(source, "not set"), shown, expected)]
    evidence = Evidence(source, f"ASCEND_AICPU_PATH={value}")
    if not value.startswith("/") or not is_dir(context.host, value):
        shown = Message("{value} is not a directory", value=value)
        return [Reading("ASCEND_AICPU_PATH", False, evidence, shown, expected)]
    return [_kernels(context.host, value.rstrip("/"), expected, evidence)]


def _kernels(host: Host, root: str, expected: Text, evidence: Evidence) -> Reading:
    subject = "ASCEND_AICPU_PATH"
    places = [place for place in (join(root, name) for name in AICPU_PLACES) if is_dir(host, place)]
    packed = [path for name in AICPU_ARCHIVE_PLACES for path in host.glob(join(root, name))]
    for place in packed:
        for path in host.glob(join(place, AICPU_ARCHIVES)):
            shown = Message("packed in {path}", path=path)
            return Reading(subject, True, Evidence(path, evidence.text), shown, expected)
    for place in places:
        for depth in AICPU_DEPTH:
            for path in host.glob(f"{place}/{depth}{AICPU_KERNELS}"):
                return Reading(subject, True, Evidence(path, evidence.text), Literal(path), expected)
    if places or packed:
        searched = ", ".join([*places, *packed])
        shown = Message(
            "{root}: neither {AICPU_KERNELS} nor an archive of AICPU kernels below {searched}",
            root=root,
            AICPU_KERNELS=AICPU_KERNELS,
            searched=searched,
        )
        return Reading(subject, False, Evidence(searched, evidence.text), shown, expected)
    reason = Message(
        "{root} exists, but none of the directories that hold AICPU kernels is there ({AICPU_PLACES})",
        root=root,
        AICPU_PLACES=", ".join(AICPU_PLACES),
    )
    return Reading(subject, None, evidence, None, expected, reason=reason)


def _denied(error: HostError) -> bool:
    return isinstance(error, Denied) and not isinstance(error, (Missing, NotRecorded))
