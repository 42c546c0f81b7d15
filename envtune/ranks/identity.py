"""Who printed a line: from its prefixes, as written by launchers and frameworks, and from its file's location.

A number elsewhere in a line (`rank[443] failed`) refers to the line's subject, not to who printed it.
"""

from __future__ import annotations

import re
from typing import Iterable, Mapping, NamedTuple, Optional, Sequence

HEAD = 300  # characters at the start of a line that contain its prefixes


class Identity(NamedTuple):
    """What a prefix or a path tells about a process."""

    rank: Optional[int] = None
    local_rank: Optional[int] = None
    pid: Optional[int] = None
    host: str = ""
    device: Optional[int] = None
    worker: str = ""  # a name that distinguishes several processes of a file
    logged: str = ""  # the host given by a journal; that of a directory is preferred, as this one may not be unique
    label: Optional[int] = None  # a bare number (`7: `, `[7]: `), as in `srun --label`, but also in any list

    @property
    def empty(self) -> bool:
        """Whether it contains nothing that distinguishes processes."""
        numbers = (self.rank, self.local_rank, self.pid, self.label)
        return not self.worker and all(number is None for number in numbers)

    def as_of_rank(self, labelled: bool) -> Identity:
        """Return it with its label as the rank if the lines of its file are labeled, else without."""
        rank = self.label if labelled and self.rank is None else self.rank
        return self if self.label is None else self._replace(rank=rank, label=None)


_HOST = re.compile(
    r"(?:\[[\d,]+\]<std\w+>:)?((?:worker|node|host|pod|server)[\w.-]*\d[\w.-]*|\d{1,3}(?:\.\d{1,3}){3}): "
    r"|\[pod/([\w.-]+)(?:/[\w.-]+)?\] "  # kubectl logs --prefix
)
# kubectl logs --timestamps, docker logs --timestamps, files of containerd; journalctl, syslog; docker compose logs.
_LOGGED = re.compile(
    r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?) "
    r"(?:std(?:out|err) [FP] |(?P<host>[\w.-]+) (?:kernel|[\w./@-]+\[\d+\]): )?"
    r"|(?P<container>[\w.-]+) +\| "
)
_RANK = re.compile(
    r"(?:\[default\d+\]:\s?)?(?:\(\w[\w.]* [^)]*\)\s?)?\[(?:[Rr]ank|RANK)[ _=]?(?P<rank>\d{1,18})\]"
    r"|\[\d+,(?P<mpi>\d{1,18})\]<std\w+>"
    r"|[^\n]{0,90}\[(?:PG [^\]]{0,60})?Rank (?P<watchdog>\d{1,18})\]"
)
_MASKED = re.compile(r"[^*]*\*.*|(?=.*[xX])(?:[\dA-Fa-f]{1,4}|[xX]{1,4})(?:[.:](?:[\dA-Fa-f]{1,4}|[xX]{1,4})){3,}")
_LABEL = re.compile(r"\[?(\d{1,5})\]?: ")
_LOCAL = re.compile(r"\[default(\d{1,18})\]:")
_ACTOR = re.compile(
    r"\((?P<worker>\w[\w.]*) (?:rank=(?P<rank>\d{1,18}) )?pid=(?P<pid>\d{1,18})(?:, ip=(?P<host>[\w.:*-]+))?\)"
)
_TENSOR = re.compile(r"\w*Worker_TP(\d{1,18})(?:_EP\d{1,18})?")
_TORCH_NPU = re.compile(r"\(PID:(\d{1,18}), ?Device:(-?\d{1,18}), ?RankID:(-?\d{1,18})\)")
# Services of the device (HCCP, AI CPU) have ids of their own there: file device-2849330 holds lines of HCCP(2988,...).
_PID = re.compile(
    r"\[PID: ?(\d{1,18})\]|^(?:\S*?:)?\[[A-Z]+\]\s?[A-Z_]+\((\d{1,18})(?!, ?(?:hccp_service|aicpu_\w*scheduler))[,)]"
)


def identity_of(text: str) -> Identity:
    """Return the identity given by the prefixes of a line."""
    own, head = _after_time(Identity(), text[:HEAD])
    host = _HOST.match(head)
    if host is not None:
        own = own._replace(host=host[1] or host[2])
        head = head[host.end() :]
    label = _LABEL.match(head)
    if label is not None:
        own, head = _after_time(own._replace(label=int(label[1])), head[label.end() :])
    rank, local = _RANK.match(head), _LOCAL.match(head)
    if rank is not None:
        own = own._replace(rank=next(int(value) for value in rank.groups() if value is not None))
    if local is not None:
        own = own._replace(local_rank=int(local[1]))
    own = _with_actor(own, head) if "pid=" in head else own
    return _with_process(own, head)


def _after_time(own: Identity, head: str) -> tuple[Identity, str]:
    """Return the line without the timestamp prefixed by a log collector, and the host in it."""
    found = _LOGGED.match(head) if head[4:5] == "-" or head[3:4] == " " or " | " in head[:70] else None
    if found is None:
        return own, head
    return own._replace(logged=found["host"] or found["container"] or own.logged), head[found.end() :]


def _with_actor(own: Identity, head: str) -> Identity:
    """Add the process of an actor (Ray) or a worker (vLLM)."""
    actor = _ACTOR.search(head)
    if actor is None:
        return own
    tensor = _TENSOR.fullmatch(actor["worker"])
    rank = actor["rank"] or (tensor[1] if tensor else "")
    own = own._replace(pid=int(actor["pid"]), worker=actor["worker"], host=unmasked(actor["host"] or own.host))
    return own._replace(rank=int(rank)) if rank and own.rank is None else own


def is_labelled(owns: Iterable[Identity]) -> bool:
    """Return whether the lines of a file are labeled with their ranks: several labels, as a single one may be a list.

    If lines also give a different rank, the label is that of the task which started it.
    """
    labels: set[int] = set()
    for own in owns:
        if own.label is not None and own.rank not in (None, own.label):
            return False
        labels |= set() if own.label is None else {own.label}
    return len(labels) > 1


def unmasked(address: str) -> str:
    """Return an address or a name, empty if somebody has masked it (`10.*.*.*`): many share it."""
    return "" if _MASKED.fullmatch(address) else address


def _with_process(own: Identity, head: str) -> Identity:
    """Add what a prefix of torch_npu or a plog tells."""
    torch_npu = _TORCH_NPU.search(head) if "RankID:" in head else None
    if torch_npu is not None:
        pid, device, rank = map(int, torch_npu.groups())
        known_rank = own.rank if own.rank is not None or rank < 0 else rank
        return own._replace(pid=pid, device=None if device < 0 else device, rank=known_rank)
    pid_of_line = _PID.search(head) if own.pid is None else None
    return own if pid_of_line is None else own._replace(pid=int(pid_of_line[1] or pid_of_line[2]))


# ---------------------------------------------------------------------- places

_IS_HOST = re.compile(
    r"(?:[Ww]orker|[Nn]ode|[Hh]ost|[Ss]erver|[Pp]od|[Mm]achine|[Mm]aster|[Ii]nstance|[Cc]ontainer)"
    r"(?:[-_.]\w[\w.-]*|\d[\w.-]*|[A-Z]\w?)|\d{1,3}(?:[.-]\d{1,3}){3}"
)
_HOST_IN_NAME = re.compile(
    r"(?i)(?<![a-z])((?:node|host|server)(?:[-_]?\d+|[-_]?[a-z](?![a-z]))|\d{1,3}(?:\.\d{1,3}){3})(?!\d)"
)
_NODE_RANK = re.compile(r"(?i)node[-_]?rank[-_.=]?(\d{1,18})")
_RANK_IN_NAME = re.compile(r"(?i)(?<!node)(?<!node[-_])(?<!local[-_])(?<![a-z])rank[-_.=]?(\d{1,18})")
_LOCAL_IN_NAME = re.compile(r"(?i)local[-_]?rank[-_.=]?(\d{1,18})")
_WORKER_IN_NAME = re.compile(r"(?i)(?<![a-z])worker[-_.]?(\d{1,18})(?![\w]*-[0-9a-f]{8})")
_TORCHRUN = re.compile(r"[/\\]attempt_\d+[/\\](\d{1,18})[/\\]std(?:out|err)\.log$")
_PLOG = re.compile(
    r"(?:plog|device)-(?:parser-)?(\d{1,18})[-_]\d+\.log"
    r"|(?:worker|python-core-worker)-[0-9a-f]{6,}.*?[-_](\d{1,18})\.(?:out|err|log)"
)
_DEVICE = re.compile(r"device[-_]?(\d{1,18})")
# Directory names that are not host names.
_COMMON = re.compile(
    r"(?i)(?:debug|run|plog|security|operation|logs?|out|output|stdout|stderr|slog|ascend|process_log\w*|train\w*|tmp"
    r"|session\w*|(?:local_)?rank[-_.]?\d+|device[-_]?\d+|attempt_\d+|none_\w+|\d+|host-\d+|msrun\w*|torchrun\w*)"
)


class Place(NamedTuple):
    """What a path tells; `weak_rank` is a rank only if nothing else gives one."""

    host: str = ""
    rank: Optional[int] = None
    local_rank: Optional[int] = None
    weak_rank: Optional[int] = None
    pid: Optional[int] = None
    device: Optional[int] = None


def places_of(labels: Mapping[str, str]) -> Mapping[str, Place]:
    """Return what each path tells; `labels` has the host of a path if the caller knows it, else nothing."""
    common = _common_depth([re.split(r"[/\\]", path)[:-1] for path in labels])
    places = {path: _place(path, label, common) for path, label in labels.items()}
    for path, rank in _numbered([path for path, place in places.items() if place == Place(place.host)]).items():
        places[path] = places[path]._replace(weak_rank=rank)
    unnamed = [path for path, place in places.items() if not place.host]
    for path, host in _first_difference(unnamed).items():
        places[path] = places[path]._replace(host=host)
    return places


def _place(path: str, label: str, common: int) -> Place:
    *folders, name = re.split(r"[/\\]", path)
    below = folders[common:]
    folders = [folder for folder in folders if folder]
    rank = _RANK_IN_NAME.search(name)
    for folder in reversed(folders[-6:]):
        rank = rank or _RANK_IN_NAME.fullmatch(folder)
    parent = folders[-1] if folders else ""
    local = _LOCAL_IN_NAME.search(name) or _TORCHRUN.search(path)
    weak = _WORKER_IN_NAME.search(name) or _WORKER_IN_NAME.fullmatch(parent)
    pid = _PLOG.search(name)
    device = _DEVICE.fullmatch(parent)
    return Place(
        _host(name, below, label),
        int(rank[1]) if rank else None,
        int(local[1]) if local else None,
        int(weak[1]) if weak else None,
        int(pid[1] or pid[2]) if pid else None,
        int(device[1]) if device else None,
    )


def _host(name: str, folders: list[str], label: str) -> str:
    named_so = bool(label) and not (_COMMON.fullmatch(label) or _WORKER_IN_NAME.fullmatch(label))
    if named_so and (_IS_HOST.fullmatch(label) or not any(_IS_HOST.fullmatch(folder) for folder in folders)):
        return label
    node = _NODE_RANK.search(name)
    if node:
        return f"node{node[1]}"
    hosts = [own for own in reversed(folders) if _IS_HOST.fullmatch(own) and not _COMMON.fullmatch(own)]
    if hosts:  # worker-3 is a process if another directory names the host
        return next((own for own in hosts if not _WORKER_IN_NAME.fullmatch(own)), hosts[0])
    named = _HOST_IN_NAME.search(name)
    return named[1] if named else ""


def _numbered(paths: Iterable[str]) -> Mapping[str, int]:
    """Return the numbers by which names in one directory differ (`train_0.log`, `train_1.log`)."""
    series: dict[tuple[str, str], dict[int, str]] = {}
    for path in paths:
        if _HOST_IN_NAME.search(re.split(r"[/\\]", path)[-1]):
            continue
        found = re.fullmatch(r"(.*?[^\d/\\]|.*[/\\]|)(\d{1,5})((?:\.[a-z]+)+)", path)
        if found:
            series.setdefault((found[1], found[3]), {})[int(found[2])] = path
    return {path: rank for own in series.values() if len(own) > 1 and 0 in own for rank, path in own.items()}


def _first_difference(paths: Iterable[str]) -> Mapping[str, str]:
    """Return the first directory in which the paths differ, if it may be a host's in all of them."""
    parts = {path: re.split(r"[/\\]", path)[:-1] for path in paths}
    if len(parts) < 2 or not all(parts.values()):
        return {}
    depth = _common_depth(list(parts.values()))
    if not all(len(own) > depth for own in parts.values()):
        return {}
    hosts = {path: own[depth] for path, own in parts.items()}
    return {} if any(_COMMON.fullmatch(host) for host in hosts.values()) else hosts


def _common_depth(folders: Sequence[Sequence[str]]) -> int:
    """Return how many leading directories all the paths share."""
    depth = 0
    while folders and all(len(own) > depth for own in folders) and len({own[depth] for own in folders}) == 1:
        depth += 1
    return depth
