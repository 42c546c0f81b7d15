"""Which change of a plan owns what it writes: two changes never write the same thing unknowingly."""

from __future__ import annotations

import base64
from typing import Any, Iterator, Mapping

from envtune.executor.files import digest, normalized
from envtune.model import Change


class Ownership:
    """The things that the changes admitted so far write."""

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}  # thing -> id of the change
        self._written: dict[str, Mapping[str, Any]] = {}  # path -> the last operation that writes there

    def conflict(self, change: Change) -> str:
        """Return the id of the change that owns something this one writes; empty if there is none.

        A file expected to contain what the earlier change writes is a continuation, not a conflict.
        """
        for operation in change.operations:
            for thing in _things(operation):
                owner = self._owners.get(thing)
                if owner is not None and not self._goes_on(thing, operation):
                    return owner
        return ""

    def claim(self, change: Change) -> None:
        """Note what the change writes."""
        for operation in change.operations:
            for thing in _things(operation):
                self._owners[thing] = change.id
                if operation["op"] == "file":
                    self._written[thing] = operation

    def _goes_on(self, thing: str, operation: Mapping[str, Any]) -> bool:
        """Return whether an operation expects what the last one writes; digests are computed only if compared."""
        last = self._written.get(thing)
        return operation.get("expect") == ("" if last is None else written_digest(last))


def written_digest(operation: Mapping[str, Any]) -> str:
    """Return the digest of what a file operation writes."""
    content = operation["content"]
    data = None if content is None else base64.b64decode(content)
    return digest(normalized(operation["path"], data))


def _things(operation: Mapping[str, Any]) -> Iterator[str]:
    kind = operation["op"]
    if kind == "file":
        yield str(operation["path"])
    elif kind == "swap":
        yield from (f"{operation['root']}/{name}" for name in operation["touches"])
    elif kind == "signal":
        yield f"process {operation['pid']}"
    else:
        yield " ".join(operation["argv"])
