"""What a shell script has set at one point of its execution, and what several possible executions have in common."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field, replace
from typing import Any, Mapping, NamedTuple, Optional, Sequence

from envtune.messages import Message, Text
from envtune.shell.budget import Budget
from envtune.shell.expansion import Value
from envtune.shell.persistent import PersistentMap


class Variable(NamedTuple):
    """A variable's value (None: not set; a Text: unknown, and why), and file:line that set or unset it last."""

    value: Optional[Value]
    exported: bool = False
    place: str = ""


_NONE = Variable(None)


class LeftOpen(Message):
    """Why a variable that a script does not mention is unknown, if only what the script itself sets matters.

    As a state's `unknown_by_default`, values derived from such a variable are unknown until the job runs.
    """

    __slots__ = ()


@dataclass
class State:
    """The variables, functions and arguments of a shell."""

    variables: PersistentMap[Variable] = field(default_factory=PersistentMap)
    unknown_by_default: Optional[Text] = None  # why a variable that is not in `variables` may still be set
    functions: PersistentMap[Any] = field(default_factory=PersistentMap)
    arguments: Optional[Sequence[Value]] = None
    cwd: Optional[str] = None  # None: unknown
    allexport: bool = False
    alive: bool = True  # False after exit, exec or return
    readonly: PersistentMap[str] = field(default_factory=PersistentMap)  # variable -> where it was made readonly

    @classmethod
    def started(
        cls, values: Mapping[str, Value], places: Mapping[str, str], unknown_by_default: Optional[Text], cwd: str
    ) -> State:
        """Return the state of a shell that is started with this environment."""
        state = cls(unknown_by_default=unknown_by_default, cwd=cwd)
        for name, value in values.items():
            state.variables[name] = Variable(value, True, places.get(name, ""))
        return state

    def copy(self) -> State:
        """Return a state that shares nothing mutable with this one."""
        return replace(
            self, variables=self.variables.copy(), functions=self.functions.copy(), readonly=self.readonly.copy()
        )

    def child(self) -> State:
        """Return the state of a script that is started from here: what is exported, and where that was set."""
        state = State(unknown_by_default=self.unknown_by_default, cwd=self.cwd)
        state.variables = self.variables.copy()
        for name, variable in self.variables.items():
            if not variable.exported:
                state.variables[name] = Variable(None, False, variable.place)
        return state

    def assign_from(self, other: State) -> None:
        """Copy everything from `other`."""
        self.__dict__.update(other.__dict__)

    def variable(self, name: str) -> Variable:
        """Return the variable, even if it is not set."""
        return self.variables.get(name) or _NONE

    def is_set(self, name: str) -> bool:
        """Return whether the variable was given a value, known or not."""
        return self.variable(name).value is not None

    def lookup(self, name: str) -> Optional[Value]:
        """Return the value; None if the variable is not set."""
        value = self.variable(name).value
        return self.unknown_by_default if value is None else value

    def set(self, name: str, value: Value, place: str) -> None:
        """Assign; under `set -a` also export. A readonly variable keeps its value: bash continues, sh exits."""
        if name in self.readonly:
            return
        self.variables[name] = Variable(value, self.allexport or self.variable(name).exported, place)

    def export(self, name: str, exported: bool = True) -> None:
        """Export the variable, or stop exporting it; an unset one is exported once it is set."""
        self.variables[name] = self.variable(name)._replace(exported=exported)

    def unset(self, name: str, place: str) -> None:
        """Remove the variable, unless it is readonly."""
        if name in self.readonly:
            return
        self.variables[name] = Variable(None, False, place)

    def restore(self, name: str, variable: Variable) -> None:
        """Restore the variable's value from before `local`."""
        self.variables[name] = variable._replace(place=self.variable(name).place)

    def invalidate(self, reason: Text) -> None:
        """Make every variable unknown, because anything may have been set."""
        for name, variable in list(self.variables.items()):
            known = variable.value is not None
            self.variables[name] = Variable(reason, True, variable.place) if known else variable._replace(place="")
        self.unknown_by_default = reason

    def place(self, name: str) -> str:
        """Return where the variable was set or unset last."""
        return self.variable(name).place

    def absolute(self, path: str) -> Optional[str]:
        """Return a path of the script, resolved against its working directory; None if that is unknown."""
        if path.startswith("/"):
            return posixpath.normpath(path)
        return None if self.cwd is None else posixpath.normpath(posixpath.join(self.cwd, path))


def same_variables(one: State, other: State) -> bool:
    """Return whether both have the same values, and export the same."""
    return all(one.variable(name)[:2] == other.variable(name)[:2] for name in one.variables.changed(other.variables))


def merge(states: Sequence[State], before: State, budget: Budget) -> State:
    """Return what holds in all of the states; a variable in which they differ is unknown.

    `before` is the state that all of them come from: it shows which of them touched a variable. States after an exit
    do not count, unless all are.
    """
    alive = [state for state in states if state.alive]
    if len(alive) <= 1:
        return alive[0] if alive else states[-1]
    common = alive[0].copy()
    names = {name for state in alive[1:] for name in alive[0].variables.changed(state.variables)}
    budget.look(len(names) * len(alive))
    for name in names:
        common.variables[name] = _merged(name, alive, before)
    common.unknown_by_default = next((s.unknown_by_default for s in alive if s.unknown_by_default is not None), None)
    for state in alive[1:]:
        for name in common.functions.changed(state.functions):
            function = state.functions.get(name)
            if function is not None:
                common.functions[name] = function
        common.cwd = common.cwd if state.cwd == common.cwd else None
        common.arguments = common.arguments if state.arguments == common.arguments else None
        for name in common.readonly.changed(state.readonly):
            place = state.readonly.get(name)
            if place is not None and name not in common.readonly:
                common.readonly[name] = place
    return common


def _merged(name: str, states: Sequence[State], before: State) -> Variable:
    rows = [state.variable(name) for state in states]
    old = before.place(name)
    place = next((row.place for row in reversed(rows) if row.place and row.place != old), rows[0].place)
    if all(row[:2] == rows[0][:2] for row in rows):
        return rows[0]._replace(place=place)
    return Variable(_differs(rows, old), any(row.exported for row in rows), place)


def _differs(rows: Sequence[Variable], old_place: str) -> Text:
    for value, _, place in rows:
        if place and place != old_place:
            return value if isinstance(value, Text) else Message("set only under a condition ({place})", place=place)
    return Message("set only under a condition")


class Launch(NamedTuple):
    """What the job gets: `place` is the line that starts it, `places` has file:line that set each variable."""

    place: str
    values: Mapping[str, Value]
    places: Mapping[str, str]
    unknown_by_default: Optional[Text]


class Launches:
    """What the lines that start the job have in common; a variable they differ in is unknown.

    Only the first and the last line are kept: the cost of a line is what changed since the previous one.
    """

    def __init__(self) -> None:
        self._place = ""
        self._first: Optional[tuple[str, PersistentMap[Variable]]] = None
        self._last: PersistentMap[Variable] = PersistentMap()
        self._differing: dict[str, Text] = {}
        self._unknown_by_default: Optional[Text] = None
        self._reason: Optional[Text] = None

    def __bool__(self) -> bool:
        return bool(self._place)

    def add(self, place: str, state: State) -> None:
        """Record a line that starts the job with what is exported in `state`."""
        self._place, variables = place, state.variables.copy()
        if self._first is None:
            self._first = place, variables
        else:
            for name in variables.changed(self._last):
                self._compare(name, _given(variables.get(name)), self._first, place)
        self._last = variables
        self._unknown_by_default = self._unknown_by_default or state.unknown_by_default

    def add_outside(self, place: str, reason: Text, state: State, inside: State) -> None:
        """Record a line that starts the job with `inside` instead of what is exported in `state`."""
        self._place, self._reason = place, self._reason or reason

    def add_unread(self, place: str, reason: Text, state: State) -> None:
        """Record a line that starts a script which cannot be read, with what is exported in `state`."""
        self._place, self._reason = place, self._reason or reason

    def _compare(
        self, name: str, value: Optional[Value], first: tuple[str, PersistentMap[Variable]], place: str
    ) -> None:
        other = _given(first[1].get(name))
        if value is other or value == other or name in self._differing:
            return
        unknown = next((text for text in (other, value) if isinstance(text, Text)), None)
        self._differing[name] = unknown or Message(
            "not the same in the lines that start the job ({place}, {other_place})", place=first[0], other_place=place
        )

    def common(self) -> Launch:
        """Return what every line gives the job."""
        if self._reason is not None or self._first is None:
            return Launch(self._place, {}, {}, self._reason)
        values: dict[str, Value] = {}
        places: dict[str, str] = {}
        for variables in (self._first[1], self._last):
            for name, variable in variables.items():
                given = _given(variable)
                if given is not None:
                    values[name] = given
                if variable.value is not None and variable.place:
                    places[name] = variable.place
        values.update(self._differing)
        return Launch(self._place, dict(sorted(values.items())), places, self._unknown_by_default)


def _given(variable: Optional[Variable]) -> Optional[Value]:
    return variable.value if variable is not None and variable.exported else None
