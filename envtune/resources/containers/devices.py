"""The device nodes of a container: those a job opens in addition to /dev/davinciN, and who may open them.

Sources: Ascend Docker Runtime, "Default Content Mounted by Ascend Docker Runtime" and "Usage on the Docker Client"
(ASCEND_VISIBLE_DEVICES, ASCEND_RUNTIME_OPTIONS); CANN installation guide, "running user" (the driver's user group).
"""

from __future__ import annotations

import re
from typing import Iterable, NamedTuple, Optional

from envtune.context import Context
from envtune.context.registry import probe
from envtune.errors import HostError, Missing, NotApplicable, Undetermined
from envtune.messages import Literal, Message
from envtune.model import Evidence, FileStat, Reading
from envtune.resources.npu.devices import NODES, device_nodes

MANAGEMENT = ("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc")
VISIBLE = "ASCEND_VISIBLE_DEVICES"
OPTIONS = "ASCEND_RUNTIME_OPTIONS"
RANGE = re.compile(r"(?:Ascend\w*-)?(\d{1,4})(?:-(\d{1,4}))?")
READ_WRITE = 0o6


class User(NamedTuple):
    """Who the job runs as: effective user, effective group and all further groups."""

    uid: int
    groups: frozenset[int]
    source: str


def require_devices(context: Context) -> tuple[int, ...]:
    """Return N of every /dev/davinciN; NotApplicable if there is none: this container was not started for an NPU."""
    nodes = device_nodes(context)
    if not nodes:
        raise NotApplicable(Message("this container has no {nodes}", nodes=NODES), NODES)
    return nodes


@probe("containers.device_nodes")
def nodes(context: Context) -> Iterable[Reading]:
    """Whether the container has each management device node that an NPU job opens, such as /dev/davinci_manager."""
    require_devices(context)
    for path in MANAGEMENT:
        try:
            kind = context.host.stat(path).kind
        except Missing:
            kind = "missing"
        shown = Message("a device node") if kind == "char" else Message("missing")
        if kind not in ("char", "missing"):
            shown = Message("a {kind}, not a device node", kind=kind)
        yield Reading(path, kind == "char", Evidence(path, kind), shown, Message("a device node"))


@probe("containers.device_access")
def access(context: Context) -> Iterable[Reading]:
    """Whether the job's user can read and write each NPU device node in the container."""
    paths = [*MANAGEMENT, *(f"/dev/davinci{number}" for number in require_devices(context))]
    user = job_user(context)
    for path in paths:
        try:
            found = context.host.stat(path)
        except Missing:
            continue  # reported by `containers.device_nodes`
        allowed = may_open(found, user)
        text = f"{path}: mode {found.mode:04o}, user {found.uid}, group {found.gid}"
        shown = Message("user {uid} may open it", uid=user.uid)
        if not allowed:
            shown = Message(
                "user {uid} may not open it: mode {mode}, owner {owner}, group {group}",
                uid=user.uid,
                mode=f"{found.mode:04o}",
                owner=found.uid,
                group=found.gid,
            )
        fields = {"group": str(found.gid)}
        expected = Message("readable and writable for the job's user")
        yield Reading(path, allowed, Evidence(path, text), shown, expected, fields=fields)


def job_user(context: Context) -> User:
    """Return who the job runs as: the process of --pid, else the user of envtune; raises Undetermined if unreadable."""
    pid = context.target.options.pid
    if pid is None and context.host.euid == 0:
        return User(0, frozenset({0}), "root")
    path = f"/proc/{pid or 'self'}/status"
    try:
        found = parse_user(context.host.read(path), path)
    except HostError:
        found = None
    if found is None:
        raise Undetermined(Message("the groups of the job's user are unknown"), path)
    return found


def parse_user(text: str, source: str) -> Optional[User]:
    """Return the effective user and groups of /proc/PID/status, proc(5); None if a line is missing."""
    rows = {key: value.split() for key, _, value in (line.partition(":") for line in text.splitlines())}
    uids, gids, others = (rows.get(key, []) for key in ("Uid", "Gid", "Groups"))
    if len(uids) < 2 or len(gids) < 2 or not all(word.isdecimal() for word in (*uids, *gids, *others)):
        return None
    return User(int(uids[1]), frozenset({int(gids[1]), *map(int, others)}), source)


def may_open(found: FileStat, user: User) -> bool:
    """Return whether the mode lets a user read and write, as in path_resolution(7): the first class that applies."""
    if user.uid == 0:
        return True
    shift = 6 if user.uid == found.uid else 3 if found.gid in user.groups else 0
    return found.mode >> shift & READ_WRITE == READ_WRITE


@probe("containers.visible_devices")
def visible(context: Context) -> Iterable[Reading]:
    """Number of NPUs listed in ASCEND_VISIBLE_DEVICES that are missing in the container."""
    value = context.host.environ.get(VISIBLE, "").strip()
    if not value or value.lower() == "void":
        raise NotApplicable(Message("{name} is not set", name=VISIBLE), VISIBLE)
    if "VIRTUAL" in context.host.environ.get(OPTIONS, ""):
        raise NotApplicable(Message("{name} lists virtual NPUs", name=VISIBLE), OPTIONS)
    asked = parse_list(value)
    evidence = Evidence(VISIBLE, f"{VISIBLE}={value}")
    if asked is None:
        reason = Message("{value} is not a list of NPUs", value=value)
        return [Reading(VISIBLE, None, evidence, reason=reason)]
    there = device_nodes(context)
    missing = sorted(asked - set(there))
    if missing and len(there) >= len(asked):
        reason = Message("this container numbers its NPUs in another way: {nodes}", nodes=", ".join(map(str, there)))
        return [Reading(VISIBLE, None, evidence, reason=reason)]
    names = ", ".join(f"/dev/davinci{number}" for number in missing[:8])
    shown = Message("missing: {names}", names=names) if missing else Literal(value)
    return [Reading(VISIBLE, len(missing), evidence, shown, Message("a device node for each"))]


def parse_list(value: str) -> Optional[frozenset[int]]:
    """Return the numbers of `0,2-4` or `Ascend910-0,Ascend910-1`; None for anything else.

    Sources: Ascend Docker Runtime (numbers and ranges), Ascend Device Plugin (names of the chip and a number).
    """
    found: set[int] = set()
    for part in value.split(","):
        match = RANGE.fullmatch(part.strip())
        if match is None or int(match[2] or match[1]) < int(match[1]):
            return None
        found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(found)
