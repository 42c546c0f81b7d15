"""In which order measurements are made, and that changes are made and undone between them."""

from __future__ import annotations

import pytest

from envtune.bench.compare import Comparison, Measurement, compare
from envtune.bench.statistics import Verdict


class Machine:
    """Work that takes `after` seconds while the changes are made and `before` while they are not."""

    def __init__(self, before: float, after: float) -> None:
        self.seconds = {False: before, True: after}
        self.made, self.log, self.drift = True, "", 1.0

    def make(self) -> None:
        assert not self.made
        self.made = True

    def undo(self) -> None:
        assert self.made
        self.made = False

    def measure(self) -> Measurement:
        self.log += "+" if self.made else "-"
        self.drift *= 1.05
        seconds = self.seconds[self.made] * self.drift
        return Measurement(seconds, {"one": seconds / 4}, "with" if self.made else "without")

    def compare(self) -> Comparison:
        return compare(self.measure, self)


def test_each_pair_is_measured_in_the_other_order() -> None:
    machine = Machine(2.0, 1.0)
    found = machine.compare()
    assert machine.log == "+" + "+--+" * 4 and machine.made == found.are_made
    assert found.verdict is Verdict.FASTER and [pair[0].about for pair in found.pairs] == ["without"] * 8
    assert found.estimate.ratio == pytest.approx(0.5, rel=0.06) and found.parts["one"].ratio == found.estimate.ratio


def test_a_drift_larger_than_the_effect_does_not_decide() -> None:
    assert Machine(1.0, 1.0).compare().verdict is Verdict.UNDECIDED


def test_what_takes_as_long_makes_no_difference() -> None:
    machine = Machine(1.0, 1.0)
    seconds = iter([1.0, *[1.0, 1.001] * 100])
    found = compare(lambda: Measurement(next(seconds)), machine)
    assert found.verdict is Verdict.SAME and len(found.pairs) == 8


def test_every_pair_is_reported() -> None:
    seen: list[tuple[int, float]] = []
    machine = Machine(1.0, 2.0)
    found = compare(machine.measure, machine, lambda number, ratio: seen.append((number, ratio)))
    assert [number for number, _ in seen] == [*range(1, 9)] and found.verdict is Verdict.SLOWER


def test_a_measurement_that_fails_ends_it() -> None:
    machine = Machine(1.0, 1.0)

    def measure() -> Measurement:
        if len(machine.log) == 5:
            raise OSError("no")
        return machine.measure()

    with pytest.raises(OSError, match="no"):
        compare(measure, machine)
