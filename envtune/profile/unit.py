"""What was read about one rank, or about the ranks of one file."""

from __future__ import annotations

from typing import Optional, Sequence

from envtune.profile.readers.communication import Collectives
from envtune.profile.readers.compiling import Compiling
from envtune.profile.readers.dataset import Pipeline, Queue
from envtune.profile.readers.kernels import KernelGroup, Kernels
from envtune.profile.readers.operators import Api
from envtune.profile.readers.settings import Metadata, Settings
from envtune.profile.readers.steps import RankSteps
from envtune.profile.readers.trace import Trace


class Unit:
    """The profile of one rank: everything in its files."""

    def __init__(self, name: str) -> None:
        self.name = name  # directory or file
        self.number: Optional[str] = None  # of the rank, from a file or directory name
        self.label = name  # its name in reports
        self.steps: list[RankSteps] = []
        self.kernels: list[Kernels] = []
        self.operators: list[KernelGroup] = []  # from tables of sums written by the profiler
        self.types: list[KernelGroup] = []  # like operators, for the mean step
        self.aicpu: list[KernelGroup] = []
        self.apis: list[Api] = []
        self.stored_operators: list[KernelGroup] = []  # from databases, which duplicate the tables next to them
        self.stored_apis: list[Api] = []
        self.pipelines: list[Pipeline] = []
        self.queue: Optional[Queue] = None
        self.idle: Optional[float] = None  # share of idle CPU time while MindSpore prepared data
        self.collectives: Optional[Collectives] = None
        self.trace: Optional[Trace] = None
        self.compiling: Optional[Compiling] = None  # from a database
        self.profiler = ""  # which one wrote the table of steps
        self.settings: Optional[Settings] = None
        self.metadata: Optional[Metadata] = None
        self.metadata_file = ""

    @property
    def rank(self) -> Optional[str]:
        """The number of the rank; None if nothing names it."""
        known = [one.rank for one in (self.metadata, self.settings) if one is not None and one.rank is not None]
        return known[0] if known else self.number

    def prefer_tables(self) -> None:
        """Use data from databases only if no table has it."""
        self.operators = self.operators or self.stored_operators
        self.apis = self.apis or self.stored_apis

    def of_rank(self, steps: RankSteps) -> Unit:
        """Return a unit named after one of the ranks of a shared table."""
        if len(self.steps) == 1:
            return self
        unit = Unit(self.name)
        unit.label, unit.steps = steps.rank, [steps]
        return unit

    @property
    def base(self) -> Optional[float]:
        """The time of all steps in microseconds; None if no table of steps of this rank is known."""
        if len(self.steps) == 1 and not self.steps[0].only_start_up:
            return self.steps[0].whole
        return None

    def share(self, time: float) -> tuple[Optional[float], str]:
        """Return the share of a time of the steps or, if unknown, of the kernels; and which of both."""
        if self.base:
            return time / self.base, "step"
        kernels = sum(group.total for group in self.groups if not group.communicates)
        return (time / kernels, "kernels") if kernels > 0 else (None, "")

    @property
    def groups(self) -> Sequence[KernelGroup]:
        """The kernels by type: from the table of kernels if it has types, else from the profiler's sums."""
        detailed = [group for one in self.kernels for group in one.groups]
        known = any(one.has_types for one in self.kernels)
        summed = self.operators or self._of_all_steps()
        chosen = detailed if known or not summed else summed
        return sorted([*chosen, *self.aicpu], key=lambda group: -group.total)

    def _of_all_steps(self) -> list[KernelGroup]:
        steps = 1.0 if self.base is None else self.base / self.steps[0].mean.total
        return [group._replace(total=group.total * steps) for group in self.types]

    @property
    def full_precision(self) -> float:
        """Time of matrix operators with float32 inputs, in microseconds."""
        return sum(one.full_precision for one in self.kernels)

    @property
    def scalar(self) -> float:
        """Time of long kernels that spend it in the scalar unit, in microseconds."""
        return sum(one.scalar for one in self.kernels)

    @property
    def communication_share(self) -> Optional[float]:
        """The share of the step in communication that computing does not hide."""
        return self.steps[0].share("communication", "bubble") if len(self.steps) == 1 else None
