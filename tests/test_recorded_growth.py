"""Every value of a recorded host, made long in turn: no check takes longer than in proportion to it."""

from __future__ import annotations

import copy
import time
from typing import Any, Callable, Iterator, Mapping

import pytest
from helpers.recorded import host_data, host_names

from envtune.audit import audit
from envtune.catalog import load
from envtune.context.open import open_context
from envtune.snapshot.host import SnapshotHost

SIZE = 16_000  # characters of a value
UNITS = (" ", "(", "a_", "\n", "Package: x\n", "/a", "1,", "a:", "|  ")
SECONDS = 2.0  # of CPU that one long value may add; a quadratic reader of it adds many times as much
HOSTS = ("910b-openeuler2203-troubled", "910a-ubuntu1804-mixed")


def seconds(data: Mapping[str, Any]) -> float:
    start = time.process_time()
    audit(load().checks, open_context(SnapshotHost(data)))
    return time.process_time() - start


def long(value: str, unit: str) -> str:
    """The value, and behind it the unit again and again; for no unit the value itself."""
    unit = unit or value or "x"
    return value + unit * (SIZE // len(unit))


def changes(data: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[dict[str, Any], str], None]]]:
    """Yield what is changed, and how, for every recorded text."""
    for path, entry in data.get("files", {}).items():
        if isinstance(entry, str):
            yield path, lambda new, unit, at=path: new["files"].update({at: long(new["files"][at], unit)})
    for name in data.get("environ", {}):
        yield name, lambda new, unit, at=name: new["environ"].update({at: long(str(new["environ"][at]), unit)})
    for line, output in data.get("commands", {}).items():
        if isinstance(output, str):
            yield line, lambda new, unit, at=line: new["commands"].update({at: long(new["commands"][at], unit)})
        elif output.get("stdout"):
            yield (
                line,
                lambda new, unit, at=line: new["commands"][at].update(stdout=long(new["commands"][at]["stdout"], unit)),
            )


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", HOSTS)
def test_no_long_value_costs_more_than_its_length(name: str) -> None:
    data = host_data(name)
    usual = seconds(data)
    slow = []
    for number, (what, change) in enumerate(changes(data)):
        new = copy.deepcopy(dict(data))
        change(new, ("", *UNITS)[number % (len(UNITS) + 1)])
        taken = seconds(new)
        if taken > usual + SECONDS:
            slow.append((what, taken))
    assert not slow


def test_the_hosts_are_recorded() -> None:
    assert set(HOSTS) <= set(host_names())
