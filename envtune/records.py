"""`NamedTuple` as in typing, at a fraction of the cost: `envtune check` defines some fifty of these at each start.

Regular expressions that are compiled on first use: it also imports many of these and uses few.

typing compiles the annotation of every field, and collections a `__new__` for every class (ADR 7). Here types are not
examined, and classes with the same number of fields share compiled code. Type checkers see the one of typing.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # like typing.TYPE_CHECKING
if TYPE_CHECKING:
    from typing import Any
    from typing import NamedTuple as NamedTuple
else:
    from collections import _tuplegetter
    from sys import intern
    from types import CodeType, FunctionType

    _SPACE = {"_new": tuple.__new__, "__builtins__": {}}
    _new = tuple.__new__
    # A `__new__` for each number of fields, with unnamed arguments: the usual ones are compiled beforehand.
    _USUAL = (
        lambda _cls, a: _new(_cls, (a,)),
        lambda _cls, a, b: _new(_cls, (a, b)),
        lambda _cls, a, b, c: _new(_cls, (a, b, c)),
        lambda _cls, a, b, c, d: _new(_cls, (a, b, c, d)),
        lambda _cls, a, b, c, d, e: _new(_cls, (a, b, c, d, e)),
        lambda _cls, a, b, c, d, e, f: _new(_cls, (a, b, c, d, e, f)),
        lambda _cls, a, b, c, d, e, f, g: _new(_cls, (a, b, c, d, e, f, g)),
        lambda _cls, a, b, c, d, e, f, g, h: _new(_cls, (a, b, c, d, e, f, g, h)),
        lambda _cls, a, b, c, d, e, f, g, h, i: _new(_cls, (a, b, c, d, e, f, g, h, i)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j: _new(_cls, (a, b, c, d, e, f, g, h, i, j)),
        lambda _cls, a, b, c, d, e, f, g, h, i, j, k: _new(_cls, (a, b, c, d, e, f, g, h, i, j, k)),
    )
    _codes: dict[int, CodeType] = {number: made.__code__ for number, made in enumerate(_USUAL, 1)}

    class _Record:
        """The methods of all records, equivalent to those of collections.namedtuple."""

        __slots__ = ()

        @classmethod
        def _make(cls, iterable):
            """Return a record of a sequence or iterable."""
            made = tuple.__new__(cls, iterable)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changed):
            """Return the record with other values for some of its fields."""
            made = self._make(map(changed.pop, self._fields, self))
            if changed:
                raise ValueError(f"Got unexpected field names: {list(changed)!r}")
            return made

        def __repr__(self):
            fields = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
            return f"{type(self).__name__}({fields})"

        def _asdict(self):
            """Return the values by the names of their fields."""
            return dict(zip(self._fields, self))

        def __getnewargs__(self):
            """Return the values; used by copy and pickle."""
            return tuple(self)

    _METHODS = {name: value for name, value in vars(_Record).items() if callable(value) or name == "_make"}

    def _code(count: int) -> CodeType:
        """Return the code of a `__new__` with that many arguments."""
        if count not in _codes:
            names = "".join(f"_{number}," for number in range(count))
            _codes[count] = eval(f"lambda _cls, {names}: _new(_cls, ({names}))", _SPACE).__code__
        return _codes[count]

    class _Maker(type):
        """Turns a class with annotated fields into a named tuple of these fields, with the methods of the class."""

        def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, space)
            fields = tuple(map(intern, space.get("__annotations__", ())))
            defaults = {field: space.pop(field) for field in fields if field in space}
            new = FunctionType(
                _code(len(fields)).replace(co_varnames=("_cls", *fields)), _SPACE, "__new__", tuple(defaults.values())
            )
            new.__qualname__ = f"{name}.__new__"
            getters = {field: _tuplegetter(number, field) for number, field in enumerate(fields)}
            about = {"__slots__": (), "_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            about["__doc__"] = f"{name}({', '.join(fields)})"
            return type(name, (tuple,), {**_METHODS, **about, "__new__": new, **getters, **space})

    class NamedTuple(metaclass=_Maker):
        """The base of a record: its fields are annotations, those with a default the last ones."""


_OF_EXPRESSIONS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub")


class _Expression:
    """A placeholder for a compiled expression that gets its methods on first use."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._source)
        self.__dict__.update((method, getattr(compiled, method)) for method in _OF_EXPRESSIONS)
        return getattr(compiled, name)


def expression(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return an object like `re.compile(pattern, flags)` that costs nothing until it is used."""
    return _Expression(pattern, flags)  # type: ignore[return-value]
