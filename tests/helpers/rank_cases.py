"""Multi-rank cases: the logs of a job as files, and which process failed first.

`tests/cases/ranks/<case>.yaml` holds

    about      what happened
    size       ranks of the job, `node` ranks on one host (8 by default)
    clocks     host -> seconds that its clock is ahead; the times in its files are moved by them
    files      a list of `{path, for, text}`: the path below the root, the ranks (`0-3,5`) for which it is written, the
               lines. `@name key=value` is a line of lines.yaml; what stands in braces is filled in, as there
    arguments  directories and files that are named on the command line; the root's children by default
    root       what is expected of it (rank, host, device, file: some of them); null where it cannot be known
    candidates the ranks of the candidates where the root is null
    waiters, missing  the ranks of those who only waited, and of those that are missing
    answer     the entries or codes that are the diagnoses
    first      text that the first error holds
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Iterator, Mapping

from helpers.examples import ROOT
from helpers.yaml_text import load_yaml

CASES = ROOT / "tests" / "cases" / "ranks"
NAMES = sorted(path.stem for path in CASES.glob("*.yaml") if path.stem != "lines")
_TIME = re.compile(r"(2025-\d\d-\d\d)([- ])(\d\d:\d\d:\d\d)")


@cache
def parsed(path: Path) -> Any:
    return load_yaml(path.read_text("utf-8"))


@cache
def case(name: str) -> Mapping[str, Any]:
    return parsed(CASES / f"{name}.yaml")


def write(name: str, root: Path) -> list[str]:
    """Write the files of a case; return what is named on the command line."""
    data = case(name)
    written: dict[Path, list[str]] = {}
    for file in data["files"]:
        for rank in ranks(file.get("for", "0")):
            values = _values(data, rank)
            path = file["path"].format(**values)
            clock = data.get("clocks", {}).get(path.split("/")[0], 0)
            text = [_moved(_line(line, values), clock) for line in file["text"]]
            written.setdefault(root / path, []).extend(text)
    for path, lines in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
    named = data.get("arguments")
    return [str(root / place) for place in named] if named else sorted(map(str, root.iterdir()))


def ranks(text: Any) -> Iterator[int]:
    for part in str(text).split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _values(data: Mapping[str, Any], rank: int) -> dict[str, Any]:
    node, device = divmod(rank, data.get("node", 8))
    return {
        "rank": rank,
        "pid": 4100 + rank,
        "device": device,
        "node": "ABCDEFGH"[node % 8],
        "ip": f"10.20.0.{node + 1}",
        "dip": f"192.168.{node + 10}.{device + 101}",
        "size": data["size"],
        "comm": "10.20.0.1%enp179s0f0_60000_0_1741082401144389",
        "shown": rank,
        "op": "AllReduce",
        "index": 21,
        "count": 256,
        "status": "Heartbeat Lost Occurred",
        "state": "NO",
        "next": (rank + 1) % data["size"],
        "before": (rank - 1) % data["size"],
        "half": rank // 2,
        "odd": rank % 2,
        "of": _Others(data),
    }


class _Others:
    """`{of[3][dip]}`: a value of another rank."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data

    def __getitem__(self, rank: int) -> Mapping[str, Any]:
        return _values(self._data, int(rank))


def _line(line: str, values: Mapping[str, Any]) -> str:
    if not line.startswith("@"):
        return line.format(**values)
    name, *words = line[1:].split()
    given = dict(word.split("=", 1) for word in words)
    given = {key: value.replace("_", " ") if key == "status" else value for key, value in given.items()}
    own = {**values, **{key: value.format(**values) for key, value in given.items()}}
    if "peer" in own and str(own["peer"]).isdigit():
        other = _values(values["of"]._data, int(own["peer"]))
        own = {"pip": other["dip"], "pserver": other["ip"], "pdevice": other["device"], **own}
    return str(parsed(CASES / "lines.yaml")[name].format(**own))


def _moved(line: str, seconds: int) -> str:
    def move(found: re.Match[str]) -> str:
        moment = datetime.strptime(f"{found[1]} {found[3]}", "%Y-%m-%d %H:%M:%S") + timedelta(seconds=seconds)
        return moment.strftime(f"%Y-%m-%d{found[2]}%H:%M:%S")

    return _TIME.sub(move, line) if seconds else line
