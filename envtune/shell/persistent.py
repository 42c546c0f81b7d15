"""A mapping whose copies share what neither has changed, so that the cost of a copy does not depend on its size."""

from __future__ import annotations

from typing import Generic, Iterator, Optional, TypeVar

V = TypeVar("V")
_BUCKETS = 128  # a power of two


class PersistentMap(Generic[V]):
    """Names and values in buckets; a shared bucket is copied on first write.

    In no particular order: callers sort for display.
    """

    __slots__ = ("_buckets", "_own")

    def __init__(self) -> None:
        self._buckets: list[dict[str, V]] = [{}] * _BUCKETS
        self._own = 0  # bit n: bucket n is not shared

    def copy(self) -> PersistentMap[V]:
        """Return a mapping that can be changed without changing this one."""
        other: PersistentMap[V] = PersistentMap.__new__(PersistentMap)
        other._buckets, other._own = self._buckets[:], 0
        self._own = 0
        return other

    def get(self, name: str) -> Optional[V]:
        """Return the value, None if there is none."""
        return self._buckets[hash(name) & _BUCKETS - 1].get(name)

    def __contains__(self, name: str) -> bool:
        return name in self._buckets[hash(name) & _BUCKETS - 1]

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def __setitem__(self, name: str, value: V) -> None:
        self._owned(name)[name] = value

    def discard(self, name: str) -> None:
        """Remove the name, if present."""
        if name in self:
            del self._owned(name)[name]

    def _owned(self, name: str) -> dict[str, V]:
        number = hash(name) & _BUCKETS - 1
        if not self._own >> number & 1:
            self._buckets[number] = dict(self._buckets[number])
            self._own |= 1 << number
        return self._buckets[number]

    def items(self) -> Iterator[tuple[str, V]]:
        """Yield names and values."""
        for bucket in self._buckets:
            yield from bucket.items()

    def changed(self, other: PersistentMap[V]) -> list[str]:
        """Return the names whose values are not the same object in both; costs only what was changed in either."""
        names: list[str] = []
        for one, two in zip(self._buckets, other._buckets):
            if one is not two:
                names += [name for name, value in one.items() if two.get(name) is not value]
                names += [name for name in two if name not in one]
        return names
