"""What the job's variables say about CANN.

Whether its environment is set up, points to one install, and has the AICPU kernels where the runtime looks.
"""

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
from envtune.errors import Denied, HostError, host_error_text
from envtune.host import Host, exists, is_dir
from envtune.messages import N_, Literal, Message, Text, enumerated
from envtune.model import Command, Evidence, Reading
from envtune.resources.cann.installs import active_install
from envtune.resources.cann.tree import Install, has_components, install_root

NEEDED: Mapping[str, tuple[str, ...]] = {
    "fwkacllib": ("ASCEND_OPP_PATH", "LD_LIBRARY_PATH", "PYTHONPATH"),
    "arch-linux": ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "LD_LIBRARY_PATH", "PYTHONPATH"),
    "cann": ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "LD_LIBRARY_PATH", "PYTHONPATH"),
}
SCRIPTS = ("set_env.sh", "bin/setenv.bash")  # below the install; set_env.sh may also be in its parent directory


@probe("cann.sourced", formerly="cann_environment.sourced")
def sourced(context: Context) -> Iterable[Reading]:
    """Whether the CANN environment script exists and the job's variables point to the active CANN.

    Source: porting guide 003:128, 622, 1118, 1567.
    """
    install = active_install(context)
    script = _script(context.host, install)
    if script is not None:
        yield script
    if context.target.environment.variables is None:
        yield _unknown(context, "environment")
        return
    fields = _sourcing(context, install)
    for name in needed_variables(install):
        if context.target.environment.why_unknown(name) is None:
            reading = _below_install(context, install, name, context.target.variables().get(name, ""))
            yield reading._replace(fields=fields)
        else:
            yield _unknown(context, name)


def _unknown(context: Context, name: str) -> Reading:
    """Return the reading for a variable with an unknown value; `environment` stands for all of them."""
    environment = context.target.environment
    evidence = Evidence(environment.place(name), f"{name} is unknown")
    return Reading(
        name, None, evidence, reason=environment.why_unknown(name), needs_privilege=environment.needs_privilege
    )


def _unreadable(subject: str, evidence: Evidence, error: HostError) -> Reading:
    return Reading(subject, None, evidence, reason=host_error_text(error), needs_privilege=isinstance(error, Denied))


def needed_variables(install: Install) -> tuple[str, ...]:
    """Return the variables a job needs.

    Launch scripts for CANN 5.x do not use ASCEND_HOME_PATH (Ascend ModelZoo-PyTorch).
    """
    names = NEEDED[install.generation]
    old = install.version is not None and install.version.startswith("5.")
    return tuple(name for name in names if not (old and name == "ASCEND_HOME_PATH"))


def _script(host: Host, install: Install) -> Optional[Reading]:
    """Return the reading for the environment script; None for an old tree, whose users write their own."""
    expected = Message("set_env.sh in the install or its parent directory")
    paths = _script_places(install)
    for path in paths:
        try:
            if exists(host, path):
                return Reading("set_env.sh", True, Evidence(path), Literal(path), expected)
        except HostError as error:
            return Reading(
                "set_env.sh",
                None,
                Evidence(path),
                reason=host_error_text(error),
                needs_privilege=isinstance(error, Denied),
            )
    if install.generation == "fwkacllib":
        return None
    shown = Message("neither in {path} nor in {parent}", path=install.path, parent=dirname(install.path))
    return Reading("set_env.sh", False, Evidence(paths[0], "does not exist"), shown, expected)


def _script_places(install: Install) -> list[str]:
    roots = dict.fromkeys((install.path, install.real))
    below = [join(root, name) for root in roots for name in SCRIPTS]
    return below + [join(dirname(root), "set_env.sh") for root in roots]


def environment_script(host: Host, install: Install) -> Optional[str]:
    """Return the vendor's script that sets the variables of an install; None for a tree without one."""
    for path in _script_places(install):
        try:
            if exists(host, path):
                return path
        except HostError:
            continue
    return None


def _sourcing(context: Context, install: Install) -> Mapping[str, str]:
    """Return the script to source, if there is one."""
    script = environment_script(context.host, install)
    return {} if script is None else {"script": script}


def _below_install(context: Context, install: Install, name: str, value: str) -> Reading:
    """Return the reading about whether a variable names a path below the active install."""
    expected = Message("a path below {tree}", tree=install.real)
    evidence = Evidence(context.target.environment.place(name), f"{name}={value}" if value else f"{name} is not set")
    if not value:
        return Reading(name, False, evidence, Message("not set"), expected)
    try:
        below = any(install_root(context.host, path) == install.real for path in absolute_paths(value))
    except HostError as error:
        return _unreadable(name, evidence, error)
    shown = Message("set") if below else Message("no path below {tree} in it", tree=install.real)
    return Reading(name, below, evidence, shown, expected)


def absolute_paths(value: str) -> tuple[str, ...]:
    """Return the absolute paths in a list like LD_LIBRARY_PATH, without repetition."""
    return tuple(dict.fromkeys(part.rstrip("/") for part in value.split(":") if part.startswith("/")))


@probe("cann.one_install", formerly="cann_environment.one_install")
def one_install(context: Context) -> Iterable[Reading]:
    """Whether each variable of the job that points to a CANN install points to the active one.

    Source: porting guide 003:3044, 3048.
    """
    install = active_install(context)
    variables = context.target.variables()
    readings: list[Reading] = []
    for name in (*INSTALL_VARIABLES, *SEARCH_VARIABLES):
        if context.target.environment.why_unknown(name) is not None:
            readings.append(_unknown(context, name))
        elif variables.get(name):
            judge = _single_path if name in INSTALL_VARIABLES else _path_list
            reading = judge(context, install, name, variables[name])
            readings += [] if reading is None else [reading]
    if all(reading.subject == "PATH" for reading in readings):
        return [_none_set(context, install)]
    return [_with_repair(context, install, reading) if reading.value is False else reading for reading in readings]


def _with_repair(context: Context, install: Install, reading: Reading) -> Reading:
    """Return the reading with what repairs it: in this shell the script alone would leave the other paths in place."""
    script = _sourcing(context, install).get("script")
    if script is None:
        return reading
    template = N_("Remove the paths of other installs where they are set, then source only {script}.")
    return reading._replace(commands=(Command("fix", Message(template, script=script)),))


def _single_path(context: Context, install: Install, name: str, value: str) -> Optional[Reading]:
    evidence = Evidence(context.target.environment.place(name), f"{name}={value}")
    expected = Literal(install.real)
    if not value.startswith("/"):
        return Reading(name, False, evidence, Message("{value} is not an absolute path", value=value), expected)
    try:
        value_exists = exists(context.host, value)
        root = install_root(context.host, value)
    except HostError as error:
        return _unreadable(name, evidence, error)
    if name == "TOOLCHAIN_HOME" and not value_exists and root == install.real:
        return None  # set_env.sh sets it even if the toolkit part is not installed
    if not value_exists:
        return Reading(name, False, evidence, Message("{value} does not exist", value=value), expected)
    if root is None:
        shown = Message("{value} is in no CANN install", value=value)
        return Reading(name, False, evidence, shown, expected)
    return Reading(name, root == install.real, evidence, Literal(root), expected)


def _path_list(context: Context, install: Install, name: str, value: str) -> Optional[Reading]:
    """Judge every path in any CANN install; paths of other software, and dead ones, do not count."""
    host, source = context.host, context.target.environment.place(name)
    roots: dict[str, str] = {}
    for path in absolute_paths(value):
        try:
            root = install_root(host, path)
            if root is not None and (root == install.real or exists(host, path) or has_components(host, root)):
                roots.setdefault(root, path)
        except HostError as error:
            evidence = Evidence(source, f"{name}: {path}")
            return _unreadable(name, evidence, error)
    if not roots:
        return None
    others = "; ".join(f"{root} ({path})" for root, path in roots.items() if root != install.real)
    evidence = Evidence(source, f"{name}={value}")
    return Reading(name, not others, evidence, Literal(others or install.real), Literal(install.real))


def _none_set(context: Context, install: Install) -> Reading:
    reason = Message("no variable of the job points to a CANN install")
    return Reading("environment", None, Evidence(context.target.environment.source, install.real), reason=reason)


@probe("cann.aicpu", formerly="cann_environment.aicpu")
def aicpu(context: Context) -> Iterable[Reading]:
    """Whether ASCEND_AICPU_PATH points to a directory with the AICPU kernels of PyTorch operators.

    Source: porting guide 003:3285-3297. The kernels are a library or packed in an archive; a tree without any visible
    AICPU directory is not judged.
    """
    install = active_install(context)
    value = context.target.variables().get("ASCEND_AICPU_PATH", "")
    source = context.target.environment.place("ASCEND_AICPU_PATH")
    expected = Message("{path} with {library} in it", path=install.path, library=AICPU_KERNELS)
    good = _kernels(context.host, install.path, expected, Evidence(source)).value is True
    fields = {"install": install.path} if good else {}
    if not value:
        shown = Message("not set")
        return [Reading("ASCEND_AICPU_PATH", False, Evidence(source, "not set"), shown, expected, fields=fields)]
    evidence = Evidence(source, f"ASCEND_AICPU_PATH={value}")
    if not value.startswith("/") or not is_dir(context.host, value):
        shown = Message("{value} is not a directory", value=value)
        return [Reading("ASCEND_AICPU_PATH", False, evidence, shown, expected, fields=fields)]
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
        searched = enumerated([*places, *packed])
        shown = Message(
            "{root}: neither {library} nor an archive of AICPU kernels below {searched}",
            root=root,
            library=AICPU_KERNELS,
            searched=searched,
        )
        return Reading(subject, False, Evidence(searched, evidence.text), shown, expected)
    reason = Message(
        "no AICPU kernels in the known directories of {root} ({directories})",
        root=root,
        directories=enumerated(AICPU_PLACES),
    )
    return Reading(subject, None, evidence, None, expected, reason=reason)
