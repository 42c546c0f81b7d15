"""The graph of waits: where all waiting ends, and who is behind if all wait for each other."""

from __future__ import annotations

import re
from typing import Callable, Iterable, Mapping, Optional, Sequence

from envtune.ranks.clocks import Clocks
from envtune.ranks.records import Link, Process
from envtune.ranks.waits import Wait

LATE = 60.0  # seconds after the others by which a wait that began late ends
_TIMEOUT = re.compile(r"(?i)time ?out\W{0,3}(\d{1,18})")


def sinks(links: Sequence[Link], waiting: Iterable[Process]) -> list[Process]:
    """Return the processes that others wait for and that wait for nobody; if several, those that most wait for."""
    waiters: dict[Process, list[Process]] = {}
    for link in links:
        if link.peer is not link.waiter:
            waiters.setdefault(link.peer, []).append(link.waiter)
    wait = {*waiting, *(link.waiter for link in links if link.peer is not link.waiter)}
    ends = {process: len(_reached(process, waiters)) for process in waiters if process not in wait}
    most = max(ends.values(), default=0)
    return [process for process, number in ends.items() if number == most]


def _reached(start: Process, edges: Mapping[Process, Sequence[Process]]) -> set[Process]:
    """Return all processes reachable along the edges."""
    reached: set[Process] = set()
    left = list(edges.get(start, ()))
    while left:
        process = left.pop()
        if process not in reached:
            reached.add(process)
            left += edges.get(process, ())
    return reached


def waits_for_itself(links: Sequence[Link]) -> list[Process]:
    """Return processes whose device waited for itself while others waited for them."""
    own = {link.waiter for link in links if link.peer is link.waiter}
    return list(dict.fromkeys(link.peer for link in links if link.peer in own and link.waiter is not link.peer))


def cycle(links: Sequence[Link]) -> list[Process]:
    """Return the processes that wait for each other in a cycle, empty if there is none."""
    edges = [(link.waiter, link.peer) for link in links if link.peer is not link.waiter]
    left = dict.fromkeys(process for edge in edges for process in edge)
    while True:
        inside = [edge for edge in edges if edge[0] in left and edge[1] in left]
        waiters, peers = {waiter for waiter, _ in inside}, {peer for _, peer in inside}
        kept = dict.fromkeys(process for process in left if process in waiters and process in peers)
        if len(kept) == len(left):
            return list(kept)
        left = kept


def behind(waits: Sequence[Wait]) -> list[Process]:
    """Return the processes that wait in a different collective of a communicator than the others.

    The one with a different number or name. If both sides are equally many, those with the lower number; with different
    names there is no telling which is wrong: then all of them.
    """
    by_comm: dict[str, list[Wait]] = {}
    for wait in waits:
        if wait.kind == "notify" and (wait.index is not None or wait.tag):
            by_comm.setdefault(wait.comm, []).append(wait)
    for own in by_comm.values():
        for value in (_index, _tag, _count):
            groups = _by_value(own, value)
            if len(groups) > 1:
                return _odd(groups)
    return []


def _by_value(waits: Sequence[Wait], value: Callable[[Wait], object]) -> dict[object, list[Process]]:
    """Return the processes by the value of their first wait that has one: not every file of a process has it."""
    first: dict[Process, object] = {}
    for wait in waits:
        if value(wait):
            first.setdefault(wait.process, value(wait))
    groups: dict[object, list[Process]] = {}
    for process, said in first.items():
        groups.setdefault(said, []).append(process)
    return groups


def _index(wait: Wait) -> Optional[int]:
    return None if wait.index is None else wait.index + 1  # 0 is a number, too


def _tag(wait: Wait) -> str:
    return wait.tag


def _count(wait: Wait) -> str:
    return wait.count


def _odd(groups: Mapping[object, list[Process]]) -> list[Process]:
    fewest = min(map(len, groups.values()))
    smallest = [value for value, own in groups.items() if len(own) == fewest]
    numbers = [value for value in smallest if isinstance(value, int)]
    chosen = [min(numbers)] if numbers else smallest
    return [process for value in chosen for process in groups[value]]


def late(waits: Sequence[Wait], clocks: Clocks) -> list[Process]:
    """Return the process whose wait ended long after all others: it began when they had given up."""
    first: dict[Process, float] = {}
    limits = []
    for wait in waits:
        if wait.note.time is not None and wait.kind != "error":
            first[wait.process] = min(first.get(wait.process, wait.note.time), wait.note.time)
            limit = _TIMEOUT.search(wait.note.text)
            limits += [float(limit[1])] if limit else []
    if len(first) < 2 or len(first) < len({wait.process for wait in waits}):
        return []
    limit_of_all = max(LATE, 0.5 * min(limits, default=0.0))
    last: dict[str, Process] = {}
    for process in first:
        if process.host not in last or first[process] > first[last[process.host]]:
            last[process.host] = process
    for process in last.values():
        apart = (clocks.later(process, first[process], other, first[other]) for other in first if other is not process)
        if all(seconds is not None and seconds > limit_of_all for seconds in apart):
            return [process]
    return []
