"""`NamedTuple` as in typing, but nobody looks at the types when a class is made: that takes a third of the time.

typing compiles the annotation of every field, and `envtune check` makes some forty of these classes at each start
(ADR 7). Type checkers see typing's own.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from typing import Any
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple

    class _Maker(type):
        """Makes of a class with annotated fields the named tuple of these fields, with the methods of the class."""

        def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, space)
            fields = space.get("__annotations__", {})
            defaults = [space[field] for field in fields if field in space]
            made = namedtuple(name, fields, defaults=defaults, module=space["__module__"])
            for key, value in space.items():
                if key not in fields:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Maker):
        """The base of a record: its fields are annotations, those with a default the last ones."""
