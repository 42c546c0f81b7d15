"""What a shell script has set at one point of its execution, and what several possible executions have in common."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field, replace
from typing import Any, Iterable, Mapping, Optional, Sequence

from envtune.messages import Message, Text
from envtune.shell.expansion import Value


@dataclass
class State:
    """Variables (a Text: unknown, and why), which of them are exported, and where each was set last."""

    values: dict[str, Value] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    places: dict[str, str] = field(default_factory=dict)
    unknown_by_default: Optional[Text] = None  # why a variable that is not in `values` may be set all the same
    functions: dict[str, Any] = field(default_factory=dict)
    arguments: Optional[Sequence[Value]] = None
    cwd: Optional[str] = None  # None: unknown
    allexport: bool = False
    alive: bool = True  # False after exit, exec or return
    removed: dict[str, str] = field(default_factory=dict)  # variable -> where it was unset
    readonly: dict[str, str] = field(default_factory=dict)  # variable -> where it was made so

    def copy(self) -> State:
        """Return a state that shares nothing mutable with this one."""
        return replace(
            self,
            values=dict(self.values),
            exported=set(self.exported),
            places=dict(self.places),
            functions=dict(self.functions),
            removed=dict(self.removed),
            readonly=dict(self.readonly),
        )

    def assign_from(self, other: State) -> None:
        """Take over everything of `other`."""
        self.__dict__.update(other.__dict__)

    def lookup(self, name: str) -> Optional[Value]:
        """Return the value; None when the variable is not set."""
        return self.values.get(name, self.unknown_by_default)

    def set(self, name: str, value: Value, place: str) -> None:
        """Assign; under `set -a` also export. A readonly variable keeps its value: bash goes on, sh ends."""
        if name in self.readonly:
            return
        self.values[name] = value
        self.places[name] = place
        self.removed.pop(name, None)
        if self.allexport:
            self.exported.add(name)

    def unset(self, name: str, place: str) -> None:
        """Remove the variable, unless it is readonly."""
        if name in self.readonly:
            return
        self.values.pop(name, None)
        self.places.pop(name, None)
        self.exported.discard(name)
        self.removed[name] = place

    def restore(self, name: str, value: Optional[Value], exported: bool) -> None:
        """Give the variable back the value it had before `local`; None: it was not set."""
        self.exported.discard(name)
        if value is None:
            self.values.pop(name, None)
        else:
            self.values[name] = value
            if exported:
                self.exported.add(name)

    def invalidate(self, reason: Text) -> None:
        """Make every variable unknown, because anything may have been set."""
        self.values = dict.fromkeys(self.values, reason)
        self.exported |= set(self.values)
        self.removed = {}
        self.unknown_by_default = reason

    def environment(self) -> dict[str, Value]:
        """Return what a program started now gets."""
        return {name: value for name, value in self.values.items() if name in self.exported}

    def place(self, name: str) -> str:
        """Return where the variable was set or unset last."""
        return self.places.get(name) or self.removed.get(name, "")

    def absolute(self, path: str) -> Optional[str]:
        """Return a path of the script, resolved against its working directory; None when that is unknown."""
        if path.startswith("/"):
            return posixpath.normpath(path)
        return None if self.cwd is None else posixpath.normpath(posixpath.join(self.cwd, path))


def merge(states: Sequence[State], before: State) -> State:
    """Return what holds whichever of the states is the real one; a variable they differ in is unknown.

    `before` is the state that all of them come from: it shows which of them touched a variable. States after an exit
    do not count, unless all are.
    """
    alive = [state for state in states if state.alive]
    if len(alive) <= 1:
        return alive[0] if alive else states[-1]
    common = alive[0].copy()
    for name in {name for state in alive for name in state.values}:
        rows = {(state.values.get(name), name in state.exported) for state in alive}
        if len(rows) > 1:
            common.values[name] = _differs(name, alive, before)
            if any(name in state.exported for state in alive):
                common.exported.add(name)
    common.unknown_by_default = _first_text(state.unknown_by_default for state in alive)
    for state in alive[1:]:
        common.functions.update(state.functions)
        common.cwd = common.cwd if state.cwd == common.cwd else None
        common.arguments = common.arguments if state.arguments == common.arguments else None
        common.places.update({name: place for name, place in state.places.items() if place != before.places.get(name)})
        common.removed.update(state.removed)
        common.readonly.update(state.readonly)
    return common


def _differs(name: str, states: Sequence[State], before: State) -> Text:
    for state in states:
        place = state.place(name)
        value = state.values.get(name)
        if place and place != before.place(name):
            if isinstance(value, Text):
                return value
            return Message("set under a condition only ({place})", place=place)
    return Message("set under a condition only")


@dataclass(frozen=True)
class Launch:
    """A line that starts the job, and the environment it gets there."""

    place: str
    values: Mapping[str, Value]
    places: Mapping[str, str]
    unknown_by_default: Optional[Text]


def intersection(launches: Sequence[Launch]) -> Launch:
    """Return what all launch lines have in common; a variable they differ in is unknown."""
    first, last = launches[0], launches[-1]
    if len(launches) == 1:
        return first
    values: dict[str, Value] = {}
    for name in sorted({name for launch in launches for name in launch.values}):
        seen = [launch.values.get(name) for launch in launches]
        if len(set(seen)) == 1:
            values[name] = first.values[name]
        else:
            other = next(launch for launch in launches if launch.values.get(name) != seen[0])
            values[name] = _first_text(seen) or Message(
                "not the same in the lines that start the job ({place}, {other_place})",
                place=first.place,
                other_place=other.place,
            )
    places = {name: place for launch in launches for name, place in launch.places.items()}
    return Launch(last.place, values, places, _first_text(launch.unknown_by_default for launch in launches))


def _first_text(values: Iterable[Optional[Value]]) -> Optional[Text]:
    return next((value for value in values if isinstance(value, Text)), None)
