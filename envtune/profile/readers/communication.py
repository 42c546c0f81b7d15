"""Sum the data on collectives in communication.json and cluster_communication.json: waiting, transport, packets.

The parsers of torch_npu (communication_parser) and msprof_analyze write objects with `Communication Time Info` and
`Communication Bandwidth Info` at different depths; the objects are found wherever they are.
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Optional

from envtune.profile.readers.tables import number
from envtune.records import NamedTuple

_TIME, _BANDWIDTH, _TOTAL = "Communication Time Info", "Communication Bandwidth Info", "Total Op Info"
# MB below which a packet does not fill the link: msprof_analyze/advisor/rules, packet.yaml
SMALL: Mapping[str, float] = {"RDMA": 1.0, "SDMA": 16.0}
# usual GB/s: msprof_analyze/docs, cluster_communication_matrix: HCCS and PCIE about 18, RDMA of 910A about 12
USUAL: Mapping[str, float] = {"HCCS": 18.0, "PCIE": 18.0, "RDMA": 12.0}
_DEPTH = 8


class Transport(NamedTuple):
    """The traffic over one kind of link."""

    name: str
    size: float  # MB
    time: float  # milliseconds
    small: float  # milliseconds of packets that do not fill the link

    @property
    def bandwidth(self) -> Optional[float]:
        """GB/s; None if nothing was sent."""
        return self.size / self.time if self.time > 0 else None


class Collectives(NamedTuple):
    """Sums over collectives and their ranks, in milliseconds."""

    number: int
    elapsed: float
    transit: float
    waiting: float
    idle: float
    transports: tuple[Transport, ...]


def read_collectives(data: Mapping[str, Any]) -> Optional[Collectives]:
    """Return the sums; None if there is no collective."""
    count, sums = 0, {"Elapse Time": 0.0, "Transit Time": 0.0, "Wait Time": 0.0, "Idle Time": 0.0}
    links: dict[str, list[float]] = {}
    for operation in _operations(data, _DEPTH):
        count += 1
        for name in sums:
            sums[name] += _value(operation[_TIME], f"{name}(ms)")
        for name, link in _members(operation.get(_BANDWIDTH)):
            _add(links.setdefault(name, [0.0, 0.0, 0.0]), name, link)
    if not count:
        return None
    if set(links) & {"HCCS", "PCIE", "SIO"} and _used(links, "HCCS", "PCIE", "SIO"):
        links.pop("SDMA", None)  # their sum
    transports = tuple(Transport(name, *values) for name, values in sorted(links.items()) if values[1] > 0)
    elapsed, transit, waiting, idle = sums.values()
    return Collectives(count, elapsed, transit, waiting, idle, transports)


def _operations(data: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    if not isinstance(data, Mapping) or depth == 0:
        return
    if isinstance(data.get(_TIME), Mapping):
        yield data
        return
    for key, value in data.items():
        if not str(key).startswith(_TOTAL):
            yield from _operations(value, depth - 1)


def _members(data: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(data, Mapping):
        yield from ((str(key), value) for key, value in data.items() if isinstance(value, Mapping))


def _value(data: Any, key: str) -> float:
    value = data.get(key) if isinstance(data, Mapping) else None
    return max(number(str(value)) or 0.0, 0.0)


def _add(sums: list[float], name: str, link: Mapping[str, Any]) -> None:
    sums[0] += _value(link, "Transit Size(MB)")
    sums[1] += _value(link, "Transit Time(ms)")
    limit = SMALL["RDMA" if name == "RDMA" else "SDMA"]
    packets = link.get("Size Distribution")
    for size, row in packets.items() if isinstance(packets, Mapping) else ():
        if isinstance(row, list) and len(row) > 1 and (number(str(size)) or 0.0) < limit:
            sums[2] += max(number(str(row[1])) or 0.0, 0.0)


def _used(links: Mapping[str, list[float]], *names: str) -> bool:
    return any(name in links and links[name][1] > 0 for name in names)
