"""The lines of a script that start the job: what all of them give it."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Optional

from envtune.messages import Message, Text
from envtune.shell.expansion import Value
from envtune.shell.persistent import PersistentMap
from envtune.shell.state import State, Variable


class Launch(NamedTuple):
    """What the job gets: `place` is the line that starts it, `places` has file:line that set each variable."""

    place: str
    values: Mapping[str, Value]
    places: Mapping[str, str]
    unknown_by_default: Optional[Text]


class Launches:
    """What the lines that start the job have in common; a variable they differ in is unknown.

    Only the first and the last line are kept: a line costs what was changed since the one before.
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
        """Take a line that starts the job with what is exported in `state`."""
        self._place, variables = place, state.variables.copy()
        if self._first is None:
            self._first = place, variables
        else:
            for name in variables.changed(self._last):
                self._compare(name, _given(variables.get(name)), self._first, place)
        self._last = variables
        self._unknown_by_default = self._unknown_by_default or state.unknown_by_default

    def add_unknown(self, place: str, reason: Text) -> None:
        """Take a line that starts the job with nobody knows what."""
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
